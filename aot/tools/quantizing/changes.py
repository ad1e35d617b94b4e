"""Changes of a graph by quantisation: levels for data, small weights, corrections.

data ──── FakeQuantize ──╮
                         ├── product ── Add(correction)
i8 ── Convert ── Multiply╯
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.ir.types import Array
from aot.opset.control.infrastructure import Parameter
from aot.opset.elementwise.binary import Add
from aot.opset.elementwise.quantization import FakeQuantize
from aot.passes.weights.matrices import small_weights
from aot.passes.weights.rounding import Rounded
from aot.runtime.abi import DType
from aot.tools.quantizing.products import Product
from aot.tools.quantizing.ranges import LEVELS

QUANTISED = "aot.quantised"  # the input that says which products are quantised
Limits = tuple[np.float32, np.float32]


@dataclass(frozen=True, slots=True)
class Change:
    """Quantisation of a product: limits of its data, its weights, and the numbers added to its results by channels.

    `limits` is None for data that a FakeQuantize of the network itself has made.
    """

    limits: Limits | None
    weights: Rounded
    correction: Array | None = None


def in_levels(build: Builder, data: OutPort, limits: Limits | None) -> OutPort:
    """Return the data on 256 levels."""
    if limits is None:
        return data
    ends = [build.const(limit, DType.F32) for limit in limits]
    return build(FakeQuantize(levels=LEVELS), data, *ends, *ends)


def quantize(graph: Graph, products: Sequence[Product], changes: Sequence[Change | None]) -> None:
    """Quantise products in place; those without a change stay as they are."""
    levels: dict[tuple[OutPort, Limits | None], OutPort] = {}
    for product, change in zip(products, changes, strict=True):
        if change is None:
            continue
        build = Builder(graph, product.node.origin)
        key = product.data, change.limits
        if key not in levels:
            levels[key] = in_levels(build, *key)
        product.read_data(levels[key])
        product.read_weights(small_weights(build, change.weights))
        if change.correction is not None:
            _correct(build, product, change.correction)


def quantize_by_flags(graph: Graph, products: Sequence[Product], changes: Sequence[Change]) -> None:
    """Let products be quantised where the input `QUANTISED` is set for them."""
    build = Builder(graph)
    flags = build(Parameter(DType.BOOL, (len(products),)), name=QUANTISED)
    for k, (product, change) in enumerate(zip(products, changes, strict=True)):
        flag = build.Gather(flags, build.const(k, DType.I64), build.const(0, DType.I64))
        exact, weights = product.data, build.const(product.weights, DType.F32)
        product.read_data(build.Select(flag, in_levels(build, exact, change.limits), exact))
        product.read_weights(build.Select(flag, build.const(change.weights.floats, DType.F32), weights))
        if change.correction is not None:
            added = build.const(change.correction.reshape(product.along_channels), DType.F32)
            _insert_add(build, product, build.Select(flag, added, build.const(0, DType.F32)))


def _correct(build: Builder, product: Product, correction: Array) -> None:
    """Add a correction to the results, in the constant that is added to them anyway where there is one."""
    added = correction.reshape(product.along_channels)
    out = product.node.out_port()
    consumer = out.destinations[0].node if len(out.destinations) == 1 else None
    if consumer is not None and isinstance(consumer.op, Add):
        other = consumer.in_port(1 if consumer.source(0) is out else 0)
        constant = other.data.node.data
        if constant is not None and constant.dtype == np.float32 and _is_along(constant, product):
            other.connect(
                build.const(constant + added if constant.size > 1 else constant.reshape(-1)[0] + added, DType.F32)
            )
            return
    _insert_add(build, product, build.const(added, DType.F32))


def _is_along(array: Array, product: Product) -> bool:
    """True if a constant that is added to the results has an element for each channel, or one for all."""
    shape = (1,) * (len(product.along_channels) - array.ndim) + array.shape
    return array.size == 1 or shape == product.along_channels


def _insert_add(build: Builder, product: Product, added: OutPort) -> None:
    out = product.node.out_port()
    consumers, names = out.get_destinations(), out.names
    new_port = build.Add(out, added)
    for port in consumers:
        port.connect(new_port)
    out.names = ()
    new_port.add_tensor_names(names)
