"""Pre-processing of images as part of the network: channels reversed, then means subtracted, then divided by scales.

x: f32[1,3,224,224]      x: f32[1,3,224,224] - Multiply(Subtract(., mean), 1 / scale) - Gather(2,1,0)

Means and scales are in the order in which the network has its channels. They are applied before the channels are
reversed, with their numbers reversed, so that a convolution after them takes all three into its weights and bias.
A mean before a convolution with padding stays: the padding is zero after the mean is subtracted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.graph import Graph, Node, OutPort
from aot.ir.types import Array, dim_text, numpy_dtype
from aot.opset.control.infrastructure import Parameter
from aot.runtime.abi import DType
from aot.runtime.errors import UsageError

Numbers = tuple[str | int, tuple[float, ...]]  # an input by name or by position; "": all inputs of floats
FLOATS = (DType.F16, DType.BF16, DType.F32, DType.F64)
COLOURS = 3  # channels of an input that is reversed though no name is given


@dataclass(frozen=True, slots=True)
class MeanImage:
    """An image of means: the function that reads it, by channels, rows and columns, and where the input begins in it.

    Without `offsets` the input is in its middle.
    """

    read: Callable[[], Array]
    offsets: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Preprocess:
    """Pass for `--mean`, `--mean-file`, `--scale` and `--reverse-channels`.

    `mean`, `scale`: an input with a number for each of its channels, or with one; `reverse`: inputs whose channels the
    callers give in the opposite order, "" for all with three. Channels are dimension 1, or the last one where only
    that fits. UsageError for an input that does not exist, and for numbers that do not fit it.
    """

    mean: tuple[Numbers, ...] = ()
    scale: tuple[Numbers, ...] = ()
    reverse: tuple[str, ...] = ()
    image: MeanImage | None = None
    name: str = "preprocess"
    required: bool = True
    run_not_recursively: bool = True  # bodies of sub-graphs have inputs of their own

    def __call__(self, graph: Graph) -> bool:
        means, scales = _by_input(graph, self.mean, "mean"), _by_input(graph, self.scale, "scale")
        if self.image is not None:
            means |= _by_pixel(graph, self.image, bool(means))
        reversed_axes = {node: _reversed_axis(node, named) for node, named in _reversed(graph, self.reverse)}
        for node in graph.parameters:
            if node in means or node in scales or node in reversed_axes:
                _change(graph, node, means.get(node), scales.get(node), reversed_axes.get(node))
        return bool(means or scales or reversed_axes)


def _by_input(graph: Graph, numbers_given: Sequence[Numbers], option: str) -> dict[Node, Array]:
    """Return the numbers of each input in the shape that broadcasts to it."""
    numbers_by_input: dict[Node, Array] = {}
    for key, numbers in numbers_given:
        for node in _inputs(graph, key, option):
            if node in numbers_by_input:
                raise UsageError(f"--{option}: numbers for an input must be given once, got {node.name!r} again")
            numbers_by_input[node] = _fitted(node, numbers, option)
    return numbers_by_input


def _by_pixel(graph: Graph, image: MeanImage, is_known: bool) -> dict[Node, Array]:
    """Return the part of an image that lies under the only input; `is_known`: there are means of channels, too."""
    if is_known or len(graph.parameters) != 1:
        got = "--mean, too" if is_known else f"{len(graph.parameters)} inputs"
        raise UsageError(f"--mean-file: must be an image for the only input, got {got}")
    node, mean_image = graph.parameters[0], image.read()
    port = node.out_port(0)
    sizes = [n for n in port.shape if isinstance(n, int)]
    if port.type.dtype not in FLOATS or sizes[-3:-2] != [len(mean_image)] or len(sizes) < 3 or port.type.rank != 4:
        rule = f"an input of floats with {len(mean_image)} channels, rows and columns"
        raise UsageError(f"--mean-file: {rule}, got {node.name!r} of shape {_shown(port)}")
    rows, columns = sizes[-2:]
    row, column = image.offsets or ((mean_image.shape[1] - rows) // 2, (mean_image.shape[2] - columns) // 2)
    part = mean_image[None, :, max(row, 0) : row + rows, max(column, 0) : column + columns]
    if part.shape[2:] != (rows, columns):
        got = f"{mean_image.shape[1]} by {mean_image.shape[2]} for {rows} by {columns} from row {row}, column {column}"
        raise UsageError(f"--mean-file: the image must be as large as the input, got {got}")
    return {node: part.astype(numpy_dtype(port.type.dtype))}


def _inputs(graph: Graph, key: str | int, option: str) -> list[Node]:
    if key == "":
        return [node for node in graph.parameters if node.out_port(0).type.dtype in FLOATS]
    for i, node in enumerate(graph.parameters):
        if key in (i, node.name) or key in node.out_port(0).names:
            return [node]
    names = ", ".join(n.name for n in graph.parameters)
    raise UsageError(f"--{option}: no input {key!r}, the inputs are {names}")


def _fitted(node: Node, numbers: tuple[float, ...], option: str) -> Array:
    port = node.out_port(0)
    if port.type.dtype not in FLOATS:
        raise UsageError(f"--{option}: the input must have floats, got {node.name!r} of {port.type.dtype.value}")
    values = np.asarray(numbers, numpy_dtype(port.type.dtype))
    if not np.isfinite(values).all() or (option == "scale" and not values.all()):
        raise UsageError(
            f"--{option}: must be finite numbers{' but 0' if option == 'scale' else ''}, got {list(numbers)}"
        )
    if len(numbers) == 1:
        return values.reshape(())
    axis = _axis(port, len(numbers))
    if axis is None:
        rule = "one number, or one for each channel, in dimension 1 or the last one"
        shown = f"{len(numbers)} numbers do not fit input {node.name!r} of shape {_shown(port)}"
        raise UsageError(f"--{option}: {shown}: {rule}")
    return values.reshape([len(numbers) if i == axis else 1 for i in range(port.type.rank)])


def _axis(port: OutPort, count: int) -> int | None:
    """Return the dimension of `count` channels; None without one."""
    rank = port.type.rank
    return next((axis for axis in dict.fromkeys((1, rank - 1)) if 0 < axis < rank and port.shape[axis] == count), None)


def _shown(port: OutPort) -> str:
    return f"[{','.join(map(dim_text, port.shape))}]"


def _reversed(graph: Graph, names: Sequence[str]) -> list[tuple[Node, bool]]:
    """Return the inputs that are reversed, and whether they were named."""
    reversals: dict[Node, bool] = {}
    for name in names:
        if name:
            reversals[_inputs(graph, name, "reverse-channels")[0]] = True
            continue
        images = [n for n in graph.parameters if n.out_port(0).type.rank == 4 and _axis(n.out_port(0), COLOURS)]
        if not images:
            shown = ", ".join(f"{n.name} {_shown(n.out_port(0))}" for n in graph.parameters)
            raise UsageError(f"--reverse-channels: needs an input of rank 4 with {COLOURS} channels, got {shown}")
        reversals |= {node: False for node in images if node not in reversals}
    return list(reversals.items())


def _reversed_axis(node: Node, named: bool) -> int:
    port = node.out_port(0)
    axis = _axis(port, COLOURS)
    if axis is None and named and port.type.rank > 1:
        axis = 1
    if axis is None or not isinstance(port.shape[axis], int):
        rule = "the number of channels, dimension 1, must be fixed"
        raise UsageError(f"--reverse-channels: {rule}, got input {node.name!r} of shape {_shown(port)}")
    return axis


def _change(graph: Graph, node: Node, mean: Array | None, scale: Array | None, axis: int | None) -> None:
    if not isinstance(node.op, Parameter):
        return
    port, build = node.out_port(0), Builder(graph, node.origin)
    consumers, dtype, new_port = port.get_destinations(), port.type.dtype, port
    if axis is not None:
        mean, scale = (_flipped(v, axis) for v in (mean, scale))
    if mean is not None:
        new_port = build.Subtract(new_port, build.const(mean, dtype))
    if scale is not None:
        new_port = build.Multiply(new_port, build.const(np.reciprocal(scale), dtype))
    if axis is not None:
        count = port.shape[axis]
        assert isinstance(count, int)
        order = build.const(np.arange(count)[::-1].copy(), DType.I64)
        new_port = build.Gather(new_port, order, build.const(np.asarray(axis), DType.I64))
    for consumer in consumers:
        consumer.connect(new_port)


def _flipped(values: Array | None, axis: int) -> Array | None:
    """Return numbers in the opposite order of channels."""
    return values if values is None or values.ndim == 0 else np.flip(values, axis).copy()
