"""What tensors need of their device: products in full float32, and work replayed without the host."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch


@contextmanager
def exact_float32() -> Iterator[None]:
    """Products of float32 matrices keep all their bits inside, whatever the caller has allowed outside."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def recorded(work: Callable[[], object], device: torch.device) -> Callable[[], object]:
    """A call that repeats `work`, which must have run once, so that it is compiled, and must not wait for the host.

    Keep the call as long as a replay may be under way.
    """
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        graph.capture_begin()
        work()
        graph.capture_end()
    torch.cuda.current_stream(device).wait_stream(side)
    return graph.replay
