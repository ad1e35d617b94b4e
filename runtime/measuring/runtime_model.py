"""The graph of what runs: inputs, calls of the code in their order, outputs; in the names of OpenVINO's runtime model.

for layer in model.get_runtime_model().get_ordered_ops():
    print(layer.get_friendly_name(), layer.get_rt_info()["layerType"], layer.get_rt_info()["execTimeMcs"])
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aot.runtime.inference.outputs import CallTime
from aot.runtime.loading.manifest import Manifest, TensorInfo

NOT_EXECUTED = "not_executed"
_KIND = re.compile(r"k\d+_(?P<kind>.+)")


@dataclass(frozen=True)
class RuntimeLayer:
    """An input, a call or an output. `kind`: what the call computes first; `layers`: those of the network in it.

    `precision`, `layout`: of an input or an output; of a call, those in which the model computes. `seconds`: mean time
    of the inferences that were measured, None without any.
    """

    name: str
    kind: str
    layers: tuple[str, ...]
    order: int
    precision: str
    layout: str
    kernel: str = ""
    seconds: float | None = None

    def get_friendly_name(self) -> str:
        return self.name

    def get_type_name(self) -> str:
        return "ExecutionNode"

    def get_rt_info(self) -> dict[str, str]:
        """Return the facts by OpenVINO's names, as texts."""
        time = NOT_EXECUTED if self.seconds is None else str(round(self.seconds * 1e6))
        return {
            "execOrder": str(self.order),
            "execTimeMcs": time,
            "execType": self.kernel or "unknown",
            "layerType": self.kind,
            "originalLayersNames": ",".join(self.layers),
            "outputLayouts": self.layout,
            "outputPrecisions": self.precision,
            "primitiveType": self.kernel or "unknown",
            "runtimePrecision": self.precision,
        }


@dataclass(frozen=True)
class RuntimeModel:
    """The layers in execution order."""

    name: str
    layers: tuple[RuntimeLayer, ...]

    def get_friendly_name(self) -> str:
        return self.name

    def get_ops(self) -> list[RuntimeLayer]:
        return list(self.layers)

    def get_ordered_ops(self) -> list[RuntimeLayer]:
        return list(self.layers)


def runtime_model(manifest: Manifest, precision: str, measured: Sequence[Sequence[CallTime]]) -> RuntimeModel:
    """Return the graph of a library's manifest; `measured`: the times of the calls of each inference."""
    layers = list(_ends(manifest.inputs, "Parameter", 0))
    for i, call in enumerate(manifest.calls):
        seconds = sum(times[i].seconds for times in measured) / len(measured) if measured else None
        matched = _KIND.fullmatch(call.kernel)
        kind = "".join(part.capitalize() for part in (matched["kind"] if matched else call.kernel).split("_"))
        name = call.layers[-1] if call.layers else call.kernel
        layers.append(RuntimeLayer(name, kind, call.layers, len(layers), precision, "", call.kernel, seconds))
    return RuntimeModel(manifest.name, (*layers, *_ends(manifest.outputs, "Result", len(layers))))


def _ends(tensors: Iterable[TensorInfo], kind: str, first: int) -> list[RuntimeLayer]:
    """Return the layers of inputs or outputs; dimensions are in the order of the network: a, b, c ..."""
    return [
        RuntimeLayer(t.name, kind, (t.name,), first + i, str(t.dtype.value), "abcdefghijkl"[: len(t.shape)])
        for i, t in enumerate(tensors)
    ]
