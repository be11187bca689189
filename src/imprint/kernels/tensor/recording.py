"""Work on a GPU recorded once as a CUDA graph and replayed, which spares the host its launches."""

from collections.abc import Callable

import torch


def recorded(work: Callable[[], object], device: torch.device) -> Callable[[], object]:
    """A call that repeats `work`, which must have run once, so that it is compiled, and must not wait for the host.

    Keep the call as long as a replay may be under way.
    """
    if device.type != "cuda":
        return work
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        graph.capture_begin()
        work()
        graph.capture_end()
    torch.cuda.current_stream(device).wait_stream(side)
    return graph.replay
