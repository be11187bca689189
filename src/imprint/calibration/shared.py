"""The calibration of a model that is shared without the rows that determined it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NoReturn

from imprint.calibration.calibration import Calibration
from imprint.core.arrays import Array
from imprint.core.errors import ParameterError


@dataclass(frozen=True, eq=False)
class SharedCalibration:
    """The numbers of a calibration, in place of a `CrossValidation`.

    They are those of the classes as they are: what would change the classes is refused,
    because the calibration could not follow.
    """

    calibration: Calibration
    has_rows: ClassVar[bool] = False
    keep_rows: ClassVar[bool] = False
    held: ClassVar[Mapping[object, object]] = {}  # no class has held rows
    fitted: ClassVar[Mapping[object, object]] = {}

    def learn(
        self,
        X: Array,
        y: Array,
        weight: Array | None = None,
    ) -> NoReturn:
        """Refused."""
        raise self._refusal("learn more rows")

    def only(self, labels: set[object]) -> NoReturn:
        """Refused."""
        raise self._refusal("lose a class")

    def contains(self, label: object, X: Array) -> NoReturn:
        """Refused."""
        raise self._refusal("forget rows")

    def remove_rows(self, label: object, X: Array) -> NoReturn:
        """Refused."""
        raise self._refusal("forget rows")

    def rename(self, old: object, new: object) -> "SharedCalibration":
        """The same calibration."""
        return self

    def without_rows(self) -> "SharedCalibration":
        """The same calibration."""
        return self

    def rows_of(self, label: object) -> None:
        """None: no rows are held."""

    def count_known(self, X: Array, y: Array) -> int:
        """0: copies cannot be recognised."""
        return 0

    def _refusal(self, action: str) -> ParameterError:
        return ParameterError(
            f"This model was shared without rows, so it cannot {action} and stay"
            " calibrated; change the original model and share it again, or merge it."
        )
