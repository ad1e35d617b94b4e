"""OpenVINO's `Core` over this compiler.

from aot.compat import openvino as ov
model = ov.Core().read_model("m.xml")
model.reshape({"x": [1, 3, 320, 320]})
ov.Core().compile_model(model, "CPU")(x)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

from aot.codegen.dataclass import dataclass
from aot.compilation.driver import compile_model as compile_one
from aot.compilation.sources import as_file
from aot.frontends import read_model
from aot.ir.graph import Graph
from aot.runtime.arrays.files import is_compiled
from aot.runtime.errors import UsageError
from aot.runtime.machine import default_threads
from aot.runtime.model import CompiledModel, import_model, load
from aot.runtime.properties import OLD_NAMES, SETTABLE, STREAMS, THREADS, checked
from aot.runtime.queue import AsyncInferQueue

__all__ = ["AsyncInferQueue", "CompiledModel", "Core", "Model", "compile_model", "import_model"]

_DEVICES = ("CPU", "AUTO")
_PRECISION, _CACHE, _HINT = "INFERENCE_PRECISION_HINT", "CACHE_DIR", "PERFORMANCE_HINT"
_PRECISIONS = {"f32": "f32", "bf16": "bf16"}

Size = int | str | tuple[int, int | None]
Shape = Sequence[Size]
FilePath = str | PathLike[str]


@dataclass(slots=True)
class Model:
    """A model that was read, with the shapes that it will be compiled for; `dims`: ranges of sizes that vary."""

    graph: Graph
    shapes: dict[str, list[int | str]] = field(default_factory=dict[str, list[int | str]])
    dims: dict[str, tuple[int, int | None]] = field(default_factory=dict[str, tuple[int, int | None]])

    def reshape(self, partial_shapes: Mapping[str, Shape] | Shape) -> None:
        """Set shapes of inputs by name, or of the only input: a size, -1 for any, (1, 64) for a range, or a name."""
        if not isinstance(partial_shapes, Mapping):
            names = [node.name for node in self.graph.parameters]
            if len(names) != 1:
                raise UsageError(f"reshape: shapes must be given by name, as there are {len(names)} inputs, got one")
            partial_shapes = {names[0]: partial_shapes}
        for name, shape in partial_shapes.items():
            self.shapes[name] = [self._size(f"{name}_{k}", size) for k, size in enumerate(shape)]

    def _size(self, name: str, size: Size) -> int | str:
        """Return a size as the compiler takes it: varying ones have a name."""
        if size != -1 and not isinstance(size, tuple):
            return size
        symbol = re.sub(r"\W", "_", f"d_{name}", flags=re.ASCII)
        if isinstance(size, tuple):
            self.dims[symbol] = size
        return symbol


class Core:
    """Reads and compiles models; takes the properties of OpenVINO that have a meaning here."""

    available_devices = ("CPU",)

    def __init__(self) -> None:
        self._properties: dict[str, Any] = {}

    def read_model(self, model: FilePath | bytes, weights: FilePath | None = None) -> Model:
        """Return the model in a file, or in the bytes of one, of any format."""
        with as_file(model) as file:
            if isinstance(file, Graph):
                return Model(file)
            return Model(read_model(Path(file), None if weights is None else Path(weights)))

    def compile_model(
        self, model: Model | FilePath | bytes, device_name: str = "CPU", config: Mapping[str, object] | None = None
    ) -> CompiledModel:
        """Compile a model, or load a library; UsageError for another device or an unknown property."""
        _check_device(device_name)
        properties = self._properties | _checked(config or {})
        result = self._compile(model, properties)
        result.set_property({name: value for name, value in properties.items() if name in SETTABLE and name != THREADS})
        return result

    def _compile(self, model: Model | FilePath | bytes, properties: Mapping[str, Any]) -> CompiledModel:
        threads = properties.get(THREADS)
        if isinstance(model, (str, PathLike)) and is_compiled(Path(model)):
            return load(Path(model), threads)
        precision = properties.get(_PRECISION, "f32")
        if isinstance(model, Model):
            return compile_one(model.graph, threads=threads, precision=precision, shapes=model.shapes, dims=model.dims)
        return compile_one(model, threads=threads, precision=precision, cache_dir=properties.get(_CACHE))

    def import_model(self, model_stream: BinaryIO | bytes, device_name: str = "CPU") -> CompiledModel:
        """Load a model from the bytes that `export_model` wrote."""
        _check_device(device_name)
        return import_model(model_stream)

    def set_property(
        self, device_name: str | Mapping[str, object], properties: Mapping[str, object] | None = None
    ) -> None:
        """Set properties of models that are compiled from now on, for the device if one is named."""
        if isinstance(device_name, str):
            _check_device(device_name)
            self._properties |= _checked(properties or {})
        else:
            self._properties |= _checked(device_name)

    def get_property(self, device_name: str, name: str) -> object:
        """Return a property of the device, or one that was set."""
        _check_device(device_name)
        known: dict[str, object] = {
            THREADS: default_threads(),
            STREAMS: 1,
            _PRECISION: "f32",
            _CACHE: "",
            _HINT: "LATENCY",
        }
        known |= {"PERF_COUNT": False, "CPU_BIND_THREAD": "NO", "DEVICE_ID": ""} | self._properties
        known |= {old: known[name] for old, name in OLD_NAMES.items()}
        if name == "SUPPORTED_PROPERTIES":
            return list(known)
        if name not in known:
            raise UsageError(f"property: must be one of {', '.join(known)}, got {name}")
        return known[name]


def compile_model(
    model: Model | FilePath | bytes, device_name: str = "CPU", config: Mapping[str, object] | None = None
) -> CompiledModel:
    """Compile a model without a Core."""
    return Core().compile_model(model, device_name, config)


def _check_device(name: str) -> None:
    if name.split(":", maxsplit=1)[0].split(".", maxsplit=1)[0] not in _DEVICES:
        raise UsageError(f"device: must be {' or '.join(_DEVICES)}, got {name}")


def _checked(config: Mapping[str, object]) -> dict[str, Any]:
    """Return the properties, with values of this compiler; UsageError for one that is not known."""
    properties: dict[str, Any] = {}
    for name, value in config.items():
        if name in SETTABLE:
            known, given = OLD_NAMES.get(name, name), checked(name, value)
            properties[known] = (given or None) if known == THREADS else (given or 1) if known == STREAMS else given
        elif name == _PRECISION and str(value) in _PRECISIONS:
            properties[name] = _PRECISIONS[str(value)]
        elif name == _CACHE:
            properties[name] = str(value) or None
        elif name == _HINT and str(value) in ("LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT"):
            properties[name] = str(value)  # a hint: requests that run at once share the threads in any case
        else:
            known = f"{', '.join(SETTABLE)}, {_PRECISION} (f32, bf16), {_CACHE}, {_HINT}"
            raise UsageError(f"property: must be one of {known}, got {name} = {value!r}")
    return properties
