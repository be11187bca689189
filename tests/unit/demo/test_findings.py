"""The measurements of `imprint demo`."""

import pytest

from imprint.demo import explore
from imprint.imprinter import Imprinter


def test_embedding_reports_its_progress(monkeypatch):
    class Stop(Exception):  # noqa: N818
        pass

    def embed(self, data, y=None, *, progress=None):
        progress("embedding")
        raise Stop

    monkeypatch.setattr(Imprinter, "embed", embed)
    reports = []
    with pytest.raises(Stop):
        explore(seeds=2, cache=False, progress=reports.append)
    assert reports == ["embedding"]
