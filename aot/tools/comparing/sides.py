"""Sides of a comparison: each computes values of layers and hands them to `take`, one by one.

Reference      NumPy, the oracle of all tests            one inference, values are handed on as they are computed
Compiled       layers become outputs of a new library    one compilation for each batch of layers
OnnxRuntime    a peer, without its optimisations         one session for each batch of layers
OpenVino       a peer, in f32                            one model for each batch of layers
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from aot.ir.graph import Graph, OutPort
from aot.ir.interpret import interpret
from aot.ir.types import Array, numpy_dtype
from aot.options import CompileOptions
from aot.passes.front.cut import tensors_by_name
from aot.runtime.abi import DType
from aot.runtime.arrays.files import Arrays
from aot.runtime.errors import MissingError, UnsupportedError, UsageError
from aot.runtime.model import CompiledModel
from aot.tools.comparing.alone import alone, mapped
from aot.tools.comparing.difference import numbers
from aot.tools.comparing.layer_values import Layer, port_of

Take = Callable[[str, Array], None]


class Side(Protocol):
    """Values of a model. `title`: who computes them; `streams`: all layers at once need no more memory than one."""

    title: str
    streams: bool

    def outputs(self, inputs: Arrays) -> list[Array]:
        """Return the outputs of the network, in order."""
        ...

    def values(self, layers: Sequence[Layer], inputs: Arrays, take: Take) -> None:
        """Give `take` name and value of each layer."""
        ...


class Reference:
    """The NumPy references of the operations, before any pass of the optimiser has run."""

    title, streams = "reference", True

    def __init__(self, model: Path, options: CompileOptions) -> None:
        self.model, self.options = model, options

    def outputs(self, inputs: Arrays) -> list[Array]:
        graph = self.graph()
        return interpret(graph, in_order(graph, inputs))

    def values(self, layers: Sequence[Layer], inputs: Arrays, take: Take) -> None:
        graph = self.graph()
        known = tensors_by_name(graph)
        wanted: dict[OutPort, list[str]] = {}
        for layer in layers:
            port = port_of(layer, known)
            if port is not None:
                wanted.setdefault(port, []).append(layer.name)

        def observe(port: OutPort, value: Array) -> None:
            for name in wanted.get(port, ()):
                take(name, value)

        interpret(graph, in_order(graph, inputs), observe=observe)

    def graph(self) -> Graph:
        """Return the graph in operations of the opset, with the interface that the options ask for."""
        return alone(self.model, self.options).converted


class Compiled:
    """A model compiled anew for each batch of layers, which become its outputs.

    A batch begins at the floats that earlier batches have computed, so that no layer is compiled twice; integers, which
    may be sizes, are computed again.
    """

    title, streams = "compiled", False

    def __init__(self, model: Path, options: CompileOptions, threads: int | None = None) -> None:
        self.model, self.options, self.threads = model, options, threads

    @property
    def made(self) -> CompiledModel:
        """The model as it is compiled without further outputs."""
        return self._compile(self.options)

    def outputs(self, inputs: Arrays) -> list[Array]:
        return results(self.made, inputs)

    def values(
        self, layers: Sequence[Layer], inputs: Arrays, take: Take, known: Mapping[str, Array] | None = None
    ) -> None:
        """`known`: floats that layers before these have computed."""
        begin = self.options.cut[0] if self.options.cut is not None else ()
        own = {one.name for one in layers}
        read = dict.fromkeys(name for one in layers for name in one.sources if name not in own)
        first = [name for name in read if known is not None and name in known]
        options = replace(self.options, cut=((*begin, *first), tuple(one.name for one in layers)))
        model = self._compile(options)
        needed = {name for info in model.inputs for name in (info.name, *info.names)}
        feeds = inputs | {name: np.asarray(known[name]) for name in first if known is not None}
        outputs = model({name: array for name, array in feeds.items() if name in needed})
        for i, (layer, info) in enumerate(zip(layers, model.outputs, strict=True)):
            take(layer.name, decoded(outputs[i], info.dtype))

    def _compile(self, options: CompileOptions) -> CompiledModel:
        return mapped(lambda: alone(self.model, options).built, self.threads)


class OnnxRuntime:
    """ONNX Runtime on a file of ONNX, with none of its optimisations."""

    title, streams = "onnxruntime", False

    def __init__(self, model: Path) -> None:
        if model.suffix not in (".onnx", ".pb"):
            raise UsageError(f"--against onnxruntime: needs an ONNX file, got {model.name}")
        self.model, self.package = model, _package("onnxruntime")
        _package("onnx")

    def outputs(self, inputs: Arrays) -> list[Array]:
        return self._run(inputs, ())

    def values(self, layers: Sequence[Layer], inputs: Arrays, take: Take) -> None:
        names = [one.tensors[0] if one.tensors else one.name for one in layers]
        for layer, value in zip(layers, self._run(inputs, names), strict=True):
            take(layer.name, value)

    def _run(self, inputs: Arrays, names: Sequence[str]) -> list[Array]:
        outputs = import_module("aot.frontends.onnx.outputs")  # the package is optional, and slow to import
        options = self.package.SessionOptions()
        options.graph_optimization_level = self.package.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        options.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", str(self.model.resolve().parent)
        )
        data = outputs.with_outputs(self.model, names)
        errors = vars(import_module("onnxruntime.capi.onnxruntime_pybind11_state")).values()
        with _peer_errors(self.title, *(e for e in errors if isinstance(e, type) and issubclass(e, Exception))):
            session = self.package.InferenceSession(data, options, providers=["CPUExecutionProvider"])
            known = {one.name for one in session.get_inputs()}
            return list(session.run(list(names) or None, {k: v for k, v in inputs.items() if k in known}))


class OpenVino:
    """OpenVINO's CPU plug-in, in f32."""

    title, streams = "openvino", False

    def __init__(self, model: Path) -> None:
        self.model, self.package = model, _package("openvino")

    def outputs(self, inputs: Arrays) -> list[Array]:
        return self._run(self._read(), inputs)

    def values(self, layers: Sequence[Layer], inputs: Arrays, take: Take) -> None:
        model = self._read()
        inner = [op for op in model.get_ordered_ops() if op.get_type_name() != "Result" and op.get_output_size()]
        ports = {op.get_friendly_name(): op.output(0) for op in inner}
        ports |= {name: out for op in inner for out in op.outputs() for name in out.get_names()}
        known = [(one, next((n for n in (one.name, *one.tensors) if n in ports), None)) for one in layers]
        output_numbers = {_port_key(result.input_value(0)): i for i, result in enumerate(model.results)}
        for _, name in known:
            if name is not None and (key := _port_key(ports[name])) not in output_numbers:
                output_numbers[key] = len(model.results)
                model.add_results([import_module("openvino.opset13").result(ports[name])])
        outputs = self._run(model, inputs)
        for layer, name in known:
            if name is not None:
                take(layer.name, outputs[output_numbers[_port_key(ports[name])]])

    def _read(self) -> Any:  # the package is optional, so are its types
        with _peer_errors(self.title):
            return self.package.Core().read_model(self.model)

    def _run(self, model: Any, inputs: Arrays) -> list[Array]:
        hints = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
        with _peer_errors(self.title):
            request = self.package.Core().compile_model(model, "CPU", hints).create_infer_request()
            request.infer(dict(inputs))
        return [np.array(request.get_output_tensor(i).data) for i in range(len(model.outputs))]


def results(model: CompiledModel, inputs: Arrays) -> list[Array]:
    """Return the outputs of a compiled model as numbers, in order, computed from its initial state."""
    outputs = model.create_infer_request().infer(dict(inputs))
    return [decoded(outputs[i], info.dtype) for i, info in enumerate(model.outputs)]


def in_order(graph: Graph, inputs: Arrays) -> list[Array]:
    """Return the arrays, or the default values, of the graph's parameters."""
    arrays: list[Array] = []
    for node in graph.parameters:
        value = next((inputs[n] for n in (node.name, *node.out_port(0).names) if n in inputs), None)
        default = graph.defaults.get(node.id)
        if value is None and default is None:
            raise UsageError(f"compare: input {node.name!r} must be given, got {', '.join(inputs) or 'none'}")
        arrays.append(np.asarray(default if value is None else value))
    return arrays


def decoded(array: Array, dtype: DType) -> Array:
    """Return an array of bits, of a type that NumPy does not have, as numbers."""
    kind = numpy_dtype(dtype)
    is_bits = kind.kind == "V" and array.dtype.kind in "iu" and array.dtype.itemsize == kind.itemsize
    return array.view(kind) if is_bits else numbers(array, dtype)


def _port_key(output: Any) -> tuple[str, int]:
    """Return the name and the number that identify an output of OpenVINO."""
    return output.get_node().get_friendly_name(), output.get_index()


@contextmanager
def _peer_errors(title: str, *errors: type[Exception]) -> Generator[None]:
    """Turn errors of a peer into UnsupportedError."""
    try:
        yield
    except (RuntimeError, ValueError, TypeError, *errors) as error:
        reason = " ".join(str(error).split())[:300]
        raise UnsupportedError(f"--against {title}: a model and inputs that it accepts, got {reason}") from error


def _package(name: str) -> Any:
    if find_spec(name) is None:
        raise MissingError(f"--against {name}: needs the package {name}: pip install {name}")
    return import_module(name)


def side_of(name: str, model: Path, options: CompileOptions) -> Side:
    """Return the side that computes the expected values: `reference`, `onnxruntime` or `openvino`."""
    if name == "reference":
        return Reference(model, options)
    fields = ("layouts", "mean", "scale", "reverse_channels", "values", "cut")
    if changes := [field for field in fields if getattr(options, field)]:
        raise UnsupportedError(f"--against {name}: a model as its file has it, got {', '.join(changes)}")
    return OnnxRuntime(model) if name == "onnxruntime" else OpenVino(model)
