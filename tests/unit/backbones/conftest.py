import sys

import pytest


@pytest.fixture(scope="session")
def torchvision():
    """Import torchvision, even if its operators were compiled for another torch (no test uses them)."""
    torch = pytest.importorskip("torch")
    try:
        import torchvision
    except RuntimeError:
        for name in [n for n in sys.modules if n.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(
                f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            )
        import torchvision

        torchvision.operators_of_the_tests = (
            library  # keep a reference for the lifetime of the module
        )
    return torchvision
