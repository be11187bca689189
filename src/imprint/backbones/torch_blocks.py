"""Blocks of torch modules: inner outputs, read by forward hooks in one pass."""

from collections.abc import Callable, Sequence
from math import isqrt
from typing import Any

from imprint.backbones.block import Block, projection
from imprint.core.errors import ParameterError, unknown

OUTPUT = "output"  # in place of the name of a module: what the network returns
MAX_WIDTH = 512  # numbers of a block that is chosen here; wider ones are projected
STAGES = 3  # of a convolutional network, the last ones of different sizes
DEPTHS = (0.5, 0.75, 1.0)  # of the layers of a transformer
MAP_AXES = 4
TOKEN_AXES = 3


class Tapped:
    """A network whose result is its blocks, side by side.

    `embed` calls the network. `layouts` tells how the output of each inner module is
    arranged.
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
        for name in dict.fromkeys(block.tensor for block in blocks):
            if name == OUTPUT:
                continue
            if name not in known:
                raise unknown(f"module of {network}", name, known)
            module.get_submodule(name).register_forward_hook(self._hook(name))

    def _hook(self, name: str) -> Callable[[Any, Any, Any], None]:
        def keep(module: Any, inputs: Any, output: Any) -> None:
            # some layers return a tuple, whose first element is their output
            self._outputs[name] = output[0] if isinstance(output, tuple) else output

        return keep

    def __call__(self, inputs: Any) -> Any:
        """The blocks of a batch, float32 (n, width)."""
        import torch

        self._outputs.clear()
        outputs = {OUTPUT: self.embed(inputs)}
        outputs |= self._outputs
        rows = []
        for block in self.blocks:
            values = _pooled(self.network, block, outputs[block.tensor].float())
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
    import torch

    if block.pooling in ("mean", "std", "quadrants"):
        _check_axes(network, block, x, MAP_AXES)
        # transformers over windows, such as Swin, have the channels last
        if has_channels_last(x.shape):
            x = x.permute(0, 3, 1, 2)
    elif block.pooling != "none":
        _check_axes(network, block, x, TOKEN_AXES)
    if block.pooling == "mean":
        rows = x.mean(dim=(2, 3))
    elif block.pooling == "std":
        rows = x.var(dim=(2, 3), unbiased=False).sqrt()
    elif block.pooling == "quadrants":
        sides = tuple(x.shape[2:])
        kernel = tuple(-(-side // 2) for side in sides)
        stride = tuple(side // 2 for side in sides)
        rows = torch.nn.functional.avg_pool2d(x, kernel, stride).flatten(1)
    elif block.pooling == "tokens":
        rows = x.mean(dim=1)
    elif block.pooling == "class_token":
        rows = x[:, 0]
    elif block.pooling == "patches":
        rows = x[:, 1:].mean(dim=1)
    else:
        rows = x.flatten(1)
    if rows.shape[1] != block.pooled_width:
        raise ParameterError(
            f"The block {block.name!r} of {network} gives {rows.shape[1]} numbers; its"
            f" record says {block.pooled_width}."
        )
    return rows


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
    shapes: dict[str, tuple[int, ...]] = {}

    def note(name: str) -> Callable[[Any, Any, Any], None]:
        def hook(submodule: Any, inputs: Any, output: Any) -> None:
            value = output[0] if isinstance(output, tuple) else output
            shapes[name] = tuple(value.shape)

        return hook

    hooks = [
        module.get_submodule(name).register_forward_hook(note(name)) for name in names
    ]
    try:
        run()
    finally:
        for hook in hooks:
            hook.remove()
    maps = [name for name in names if _is_map(shapes.get(name, ()))]
    tokens = [name for name in names if len(shapes.get(name, ())) == TOKEN_AXES]
    blocks = [Block(name="last", tensor=OUTPUT, width=width)]
    if maps:
        for name in _last_stages(maps, shapes):
            shape = shapes[name]
            channels = shape[3] if has_channels_last(shape) else shape[1]
            blocks.append(_narrow(f"{name} quadrants", name, "quadrants", 4 * channels))
    elif tokens:
        for name in dict.fromkeys(_at_depths(tokens)):
            blocks += _token_blocks(name, shapes[name])
    return tuple(blocks) if len(blocks) > 1 else ()


def _is_map(shape: tuple[int, ...]) -> bool:
    """Whether an output is a map of at least two places in each direction."""
    if len(shape) != MAP_AXES:
        return False
    sides = shape[1:3] if has_channels_last(shape) else shape[2:]
    return min(sides) >= 2


def _last_stages(names: list[str], shapes: dict[str, tuple[int, ...]]) -> list[str]:
    """The last module of each of the last sizes of maps."""
    last_of_size = {}
    for name in names:
        shape = shapes[name]
        last_of_size[shape[1:3] if has_channels_last(shape) else shape[2:]] = name
    return list(last_of_size.values())[-STAGES:]


def _at_depths(names: list[str]) -> list[str]:
    return [names[max(0, round(depth * len(names)) - 1)] for depth in DEPTHS]


def _token_blocks(name: str, shape: tuple[int, ...]) -> list[Block]:
    """Without a class token, the patches are a square."""
    count, channels = shape[1:]
    if isqrt(count) ** 2 == count:
        return [_narrow(f"{name} tokens", name, "tokens", channels)]
    return [
        _narrow(f"{name} class token", name, "class_token", channels),
        _narrow(f"{name} patches", name, "patches", channels),
    ]


def _narrow(name: str, tensor: str, pooling: str, width: int) -> Block:
    if width <= MAX_WIDTH:
        return Block(name=name, tensor=tensor, pooling=pooling, width=width)
    return Block(
        name=name,
        tensor=tensor,
        pooling=pooling,
        width=MAX_WIDTH,
        projected_from=width,
    )
