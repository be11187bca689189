"""Blocks of torch modules: inner outputs, read by forward hooks in one pass."""

from collections.abc import Callable, Sequence
from math import isqrt
from typing import Any, TypeAlias

from imprint.backbones.block import Block, projection
from imprint.core.errors import ParameterError, unknown

OUTPUT = "output"  # in place of the name of a module: what the network returns
MAX_WIDTH = 512  # numbers of a block that is chosen here; wider ones are projected
STAGES = 3  # of a convolutional network, the last ones of different sizes
DEPTHS = (0.5, 0.75, 1.0)  # of the layers of a transformer
MAP_AXES = 4
TOKEN_AXES = 3

Shape: TypeAlias = tuple[int, ...]


class Tapped:
    """A network whose result is its blocks, side by side.

    `embed` calls the network.
    """

    def __init__(
        self,
        network: str,
        module: Any,
        blocks: Sequence[Block],
        embed: Callable[[Any], Any],
    ):
        self.network = network
        self.blocks = blocks
        self.embed = embed
        self._outputs: dict[str, Any] = {}
        self._projections: dict[Block, Any] = {}
        known = [name for name, _ in module.named_modules() if name]
        tensors = [block.tensor for block in blocks if block.tensor != OUTPUT]
        for name in dict.fromkeys(tensors):
            if name not in known:
                raise unknown(f"module of {network}", name, known)
            inner = module.get_submodule(name)
            inner.register_forward_hook(self._hook(name))

    def _hook(self, name: str) -> Callable[[Any, Any, Any], None]:
        def keep(module: Any, inputs: Any, output: Any) -> None:
            self._outputs[name] = _first(output)

        return keep

    def __call__(self, inputs: Any) -> Any:
        """The blocks of a batch, float32 (n, width)."""
        import torch

        self._outputs.clear()
        outputs = {OUTPUT: self.embed(inputs)}
        outputs |= self._outputs
        rows = []
        for block in self.blocks:
            output = outputs[block.tensor].float()
            values = _pooled(self.network, block, output)
            if block.projected_from is not None:
                values = values @ self._projection(block, values)
            rows.append(values)
        self._outputs.clear()  # maps are large
        return torch.cat(rows, dim=1)

    def _projection(self, block: Block, rows: Any) -> Any:
        import torch

        if block not in self._projections:
            matrix = projection(block.pooled_width, block.width)
            self._projections[block] = torch.from_numpy(matrix).to(rows.device)
        return self._projections[block]


def _pooled(network: str, block: Block, x: Any) -> Any:
    """One row for each input."""
    if block.pooling in MAP_POOLINGS:
        _check_axes(network, block, x, MAP_AXES)
        # transformers over windows, such as Swin, have the channels last
        if has_channels_last(x.shape):
            x = x.permute(0, 3, 1, 2)
        rows = MAP_POOLINGS[block.pooling](x)
    elif block.pooling in TOKEN_POOLINGS:
        _check_axes(network, block, x, TOKEN_AXES)
        rows = TOKEN_POOLINGS[block.pooling](x)
    else:
        rows = x.flatten(1)
    width = rows.shape[1]
    if width != block.pooled_width:
        raise ParameterError(
            f"The block {block.name!r} of {network} gives {width} numbers; its record"
            f" says {block.pooled_width}."
        )
    return rows


def _mean(x: Any) -> Any:
    return x.mean(dim=(2, 3))


def _deviation(x: Any) -> Any:
    variance = x.var(dim=(2, 3), unbiased=False)
    return variance.sqrt()


def _quadrants(x: Any) -> Any:
    """With an odd side, both windows have the middle."""
    import torch

    kernel = []
    stride = []
    for side in x.shape[2:]:
        kernel.append(-(-side // 2))
        stride.append(side // 2)
    means = torch.nn.functional.avg_pool2d(x, kernel, stride)
    return means.flatten(1)


def _tokens(x: Any) -> Any:
    return x.mean(dim=1)


def _class_token(x: Any) -> Any:
    return x[:, 0]


def _patches(x: Any) -> Any:
    patches = x[:, 1:]
    return patches.mean(dim=1)


# of (n, channels, height, width)
MAP_POOLINGS = {
    "mean": _mean,
    "std": _deviation,
    "quadrants": _quadrants,
}
# of (n, tokens, channels)
TOKEN_POOLINGS = {
    "tokens": _tokens,
    "class_token": _class_token,
    "patches": _patches,
}


def _check_axes(network: str, block: Block, x: Any, axes: int) -> None:
    if x.ndim != axes:
        raise ParameterError(
            f"The block {block.name!r} of {network}: its output has {x.ndim} axes, and"
            f" the pooling {block.pooling!r} needs {axes}."
        )


def has_channels_last(shape: Sequence[int]) -> bool:
    """Whether a square map has the shape (n, side, side, channels)."""
    _, first, second, third = shape
    return first == second and second != third


def choose_blocks(
    module: Any, names: Sequence[str], width: int, run: Callable[[], Any]
) -> tuple[Block, ...]:
    """The blocks of a network without a record of them: the last layer, then inner
    modules among `names`, in the order in which the network runs them.

    Of a convolutional network these are the quarters of the maps of its last stages; of
    a transformer the class token and the mean of the patches at a half, three quarters
    and the end of its depth. `run` calls the network with one blank input, which may be
    on torch's meta device.
    """
    shapes = _output_shapes(module, names, run)
    maps = []
    tokens = []
    for name, shape in shapes.items():
        if _is_map(shape):
            maps.append(name)
        elif len(shape) == TOKEN_AXES:
            tokens.append(name)
    last = Block(
        name="last",
        tensor=OUTPUT,
        width=width,
    )
    blocks = [last]
    if maps:
        for name in _last_stages(maps, shapes):
            width = 4 * _channels(shapes[name])
            block = _narrow(
                f"{name} quadrants",
                name,
                "quadrants",
                width,
            )
            blocks.append(block)
    elif tokens:
        # of few layers, two depths may be the same
        for name in dict.fromkeys(_at_depths(tokens)):
            blocks += _token_blocks(name, shapes[name])
    return tuple(blocks) if len(blocks) > 1 else ()


def _output_shapes(
    module: Any, names: Sequence[str], run: Callable[[], Any]
) -> dict[str, Shape]:
    """The shapes of what inner modules return, by name, while the network runs."""
    shapes: dict[str, Shape] = dict.fromkeys(names, ())

    def noting(name: str) -> Callable[[Any, Any, Any], None]:
        def note(submodule: Any, inputs: Any, output: Any) -> None:
            shapes[name] = tuple(_first(output).shape)

        return note

    hooks = []
    for name in names:
        inner = module.get_submodule(name)
        hooks.append(inner.register_forward_hook(noting(name)))
    try:
        run()
    finally:
        for hook in hooks:
            hook.remove()
    return shapes


def _first(output: Any) -> Any:
    """The output of a layer; of layers that return a tuple, its first element."""
    if isinstance(output, tuple):
        return output[0]
    return output


def _is_map(shape: Shape) -> bool:
    """Whether an output is a map of at least two places in each direction."""
    return len(shape) == MAP_AXES and min(_sides(shape)) >= 2


def _sides(shape: Shape) -> Shape:
    if has_channels_last(shape):
        return shape[1:3]
    return shape[2:]


def _channels(shape: Shape) -> int:
    if has_channels_last(shape):
        return shape[3]
    return shape[1]


def _last_stages(names: list[str], shapes: dict[str, Shape]) -> list[str]:
    """The last module of each of the last sizes of maps."""
    last_of_size: dict[Shape, str] = {}
    for name in names:
        sides = _sides(shapes[name])
        last_of_size[sides] = name
    stages = list(last_of_size.values())
    return stages[-STAGES:]


def _at_depths(names: list[str]) -> list[str]:
    chosen = []
    for depth in DEPTHS:
        layer = round(depth * len(names)) - 1
        chosen.append(names[max(0, layer)])
    return chosen


def _token_blocks(name: str, shape: Shape) -> list[Block]:
    """Without a class token, the patches are a square."""
    count, channels = shape[1:]
    if isqrt(count) ** 2 == count:
        return [_narrow(f"{name} tokens", name, "tokens", channels)]
    return [
        _narrow(f"{name} class token", name, "class_token", channels),
        _narrow(f"{name} patches", name, "patches", channels),
    ]


def _narrow(name: str, tensor: str, pooling: str, width: int) -> Block:
    projected_from = None
    if width > MAX_WIDTH:
        projected_from = width
    return Block(
        name=name,
        tensor=tensor,
        pooling=pooling,
        width=min(width, MAX_WIDTH),
        projected_from=projected_from,
    )
