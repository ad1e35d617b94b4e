"""ONNX Runtime's `InferenceSession` over compiled models.

from aot.compat.onnxruntime import InferenceSession
InferenceSession("m.onnx").run(None, {"x": x})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.compilation.driver import compile_model
from aot.runtime.abi import DType
from aot.runtime.arrays.files import is_compiled
from aot.runtime.arrays.tensors import Array
from aot.runtime.errors import UsageError
from aot.runtime.loading.manifest import Dim, TensorInfo
from aot.runtime.model import CompiledModel, load

_PROVIDER = "CPUExecutionProvider"
_INTEGERS = {
    "": (DType.I8, DType.I16, DType.I32, DType.I64, DType.I4),
    "u": (DType.U8, DType.U16, DType.U32, DType.U64, DType.U4),
}
_TYPES = {
    DType.F16: "float16",
    DType.F32: "float",
    DType.F64: "double",
    DType.BF16: "bfloat16",
    DType.BOOL: "bool",
    DType.STRING: "string",
    **{
        kind: f"{'u' * (kind.value[0] == 'u')}int{kind.bits}"
        for kind in DType
        if kind.value[1:].isdecimal() and kind.value[0] in "iu"
    },
}


@dataclass(slots=True)
class SessionOptions:
    """Options of a session. Others of ONNX Runtime are not known, so that none is ignored silently."""

    intra_op_num_threads: int = 0  # 0: as many as this process may use
    inter_op_num_threads: int = 0  # kernels run one after another: any number is fine
    log_severity_level: int = 2


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output: `shape` holds numbers and, for sizes that vary, names."""

    name: str
    type: str
    shape: list[int | str]


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    """Facts about the model."""

    graph_name: str
    producer_name: str = "aot"
    custom_metadata_map: Mapping[str, str] | None = None


class InferenceSession:
    """A compiled model with the interface of ONNX Runtime's session; any number of threads may call `run`."""

    def __init__(
        self,
        path_or_bytes: str | PathLike[str] | bytes,
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, Mapping[str, object]]] | None = None,
    ) -> None:
        """Load a library, or compile a model of any format. UsageError for providers without the CPU's."""
        named = {p if isinstance(p, str) else p[0] for p in providers or (_PROVIDER,)}
        if _PROVIDER not in named:
            raise UsageError(f"session: providers must contain {_PROVIDER}, got {', '.join(sorted(named))}")
        threads = (sess_options.intra_op_num_threads if sess_options is not None else 0) or None
        if not isinstance(path_or_bytes, bytes) and is_compiled(Path(path_or_bytes)):
            self.model: CompiledModel = load(path_or_bytes, threads)
        else:
            self.model = compile_model(path_or_bytes, threads=threads)

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: object = None
    ) -> list[Array]:
        """Return the outputs called `output_names`, or all; UsageError for names, types and shapes that do not fit."""
        if run_options is not None:
            raise UsageError(f"run: run_options must be None, got {type(run_options).__name__}")
        outputs = self.model(dict(input_feed))
        return [outputs[name] for name in output_names] if output_names else list(outputs.to_tuple())

    def get_inputs(self) -> list[NodeArg]:
        """Return the inputs that must be given."""
        return [_argument(info) for info in self.model.inputs if info.default is None]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Return the inputs that have a default."""
        return [_argument(info) for info in self.model.inputs if info.default is not None]

    def get_outputs(self) -> list[NodeArg]:
        """Return the outputs."""
        return [_argument(info) for info in self.model.outputs]

    def get_providers(self) -> list[str]:
        """Return the only provider there is."""
        return [_PROVIDER]

    def get_modelmeta(self) -> ModelMetadata:
        """Return facts about the model."""
        return ModelMetadata(self.model.name)


def get_available_providers() -> list[str]:
    """Return the only provider there is."""
    return [_PROVIDER]


def _argument(info: TensorInfo) -> NodeArg:
    kind = _TYPES.get(info.dtype, info.dtype.value)
    return NodeArg(info.name, f"tensor({kind})", [str(d) if isinstance(d, Dim) else d for d in info.shape])
