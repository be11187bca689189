from dataclasses import dataclass
from typing import ClassVar

from imprint.core.errors import FileError
from imprint.core.files.home import home
from imprint.datasets.named._base import Dataset
from imprint.datasets.record import DatasetRecord, DownloadProgress
from imprint.datasets.split import Split


@dataclass(frozen=True, kw_only=True)
class ImageNet(Dataset):
    """ImageNet-1K as a folder of your own: `train/` and `val/`, one sub-folder per class in each.

    The test labels are not public: the validation set stands in for `test`. The folder, or a link to it, lies at
    `data/imagenet` in `IMPRINT_HOME`.
    """

    record: ClassVar[DatasetRecord] = DatasetRecord(
        title="ImageNet, ILSVRC 2012",
        modality="image",
        classes=1000,
        train=1_281_167,
        test=50_000,
        homepage="https://image-net.org/challenges/LSVRC/2012/",
        licence="non-commercial research only, after registration",
        citation="O. Russakovsky et al.: ImageNet large scale visual recognition challenge. International Journal of "
        "Computer Vision 115, 2015.",
        note="Cannot be downloaded for you. Classes are the names of the sub-folders (WordNet ids), in order.",
    )

    def load(self, split: str, progress: DownloadProgress | None = None) -> Split:
        from imprint.datasets.folder import load_folder

        folder = home() / "data" / "imagenet"
        for part in ("train", "val"):
            if not (folder / part).is_dir():
                raise FileError(
                    f"imagenet must be downloaded by hand from {self.record.homepage}: put or link it so that "
                    f"{folder / part} has one sub-folder per class."
                )
        return load_folder(folder, split, tree=False)
