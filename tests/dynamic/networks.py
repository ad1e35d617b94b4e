"""Small networks whose sizes only run time knows, and how they are checked: against the references, at each size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.codegen.ir.loops import Var
from aot.compilation.driver import compile_model
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.ir.interpret import interpret
from aot.ir.types import Array, Dim
from aot.opset.control.infrastructure import Parameter, Result
from aot.opset.image.resampling import NearestResize
from aot.opset.image.resize_weights import Coordinates, Rounding
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.runtime.model import CompiledModel

N, H, W = Var("n"), Var("h"), Var("w")
CLOSE = 2e-5  # of the largest value


def parameter(graph: Graph, name: str, *shape: Dim, dtype: DType = DType.F32) -> OutPort:
    return graph.add(Parameter(dtype, shape), name=name).out_port(0)


def result(graph: Graph, port: OutPort) -> None:
    graph.add(Result(), port)


def weights(build: Builder, *shape: int, seed: int = 0) -> OutPort:
    data = np.random.default_rng(seed).standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
    return build.const(data, DType.F32)


def mlp() -> Graph:
    """x[n, 20] - Dense 33 - Relu - Dense 7 - Softmax"""
    graph = Graph("mlp")
    build = Builder(graph)
    x = parameter(graph, "x", N, 20)
    hidden = build.Relu(build.Add(build.MatMul(x, weights(build, 20, 33)), weights(build, 33, seed=1)))
    result(graph, build.Softmax(build.MatMul(hidden, weights(build, 33, 7, seed=2)), axis=1))
    return graph


def conv_net() -> Graph:
    """x[n, 3, h, w] - 3x3/2 - depthwise 3x3 - 1x1 - MaxPool - sum over pixels: halos, and flattened rows."""
    graph = Graph("conv")
    build = Builder(graph)
    x = parameter(graph, "x", N, 3, H, W)
    around = {"pads_begin": (1, 1), "pads_end": (1, 1), "dilations": (1, 1)}
    x = build.Convolution(x, weights(build, 16, 3, 3, 3), strides=(2, 2), **around)
    x = build.Relu(build.Add(x, weights(build, 1, 16, 1, 1, seed=1)))
    depth = weights(build, 16, 1, 1, 3, 3, seed=2)
    x = build.GroupConvolution(x, depth, strides=(1, 1), **around)
    plain = {"pads_begin": (0, 0), "pads_end": (0, 0), "dilations": (1, 1)}
    x = build.Convolution(x, weights(build, 24, 16, 1, 1), strides=(1, 1), **plain)
    result(graph, build.Sigmoid(x))
    result(graph, build.ReduceMean(x, build.const([2, 3], DType.I64)))
    return graph


def pyramid() -> Graph:
    """x[n, 3, h, w] halved twice, then doubled and put beside what it was halved from, and halved again."""
    graph = Graph("pyramid")
    build = Builder(graph)
    x = parameter(graph, "x", N, 3, H, W)
    around = {"pads_begin": (1, 1), "pads_end": (1, 1), "dilations": (1, 1)}
    fine = build.Relu(build.Convolution(x, weights(build, 16, 3, 3, 3), strides=(2, 2), **around))
    coarse = build.Relu(build.Convolution(fine, weights(build, 16, 16, 3, 3, seed=1), strides=(2, 2), **around))
    double = build(NearestResize((2, 3), Coordinates.ASYMMETRIC, (2, 1, 2, 1), Rounding.FLOOR), coarse)
    both = build.Concat(double, fine, axis=1)
    result(graph, build.Convolution(both, weights(build, 8, 32, 3, 3, seed=2), strides=(2, 2), **around))
    return graph


def compiled(graph: Graph, **options: object) -> CompiledModel:
    return compile_model(graph, CompileOptions(level=None, **options), threads=1)  # type: ignore[arg-type]


def check(model: CompiledModel, oracle: Graph, arrays: Sequence[Array]) -> None:
    """The results are those of the references."""
    found = model(list(arrays))
    for i, expected in enumerate(interpret(oracle, arrays)):
        assert found[i].shape == expected.shape
        assert found[i].dtype == expected.dtype
        if expected.size:
            assert np.abs(found[i] - expected).max() <= CLOSE * max(float(np.abs(expected).max()), 1e-3)
