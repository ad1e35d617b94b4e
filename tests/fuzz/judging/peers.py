"""OpenVINO and ONNX Runtime as oracles, and where they are none (docs/use/migrate/differences.md)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
import openvino

from aot.ir.graph import Graph
from aot.ir.types import Array
from aot.opset.products.convolution import Convolution
from aot.runtime.abi import DType

# operations whose results in f32, i32 and boolean are known to be right; all others are left out
TRUSTED = frozenset(
    (
        "Parameter",
        "Constant",
        "Result",
        "Relu",
        "Sigmoid",
        "Tanh",
        "Exp",
        "Abs",
        "Negative",
        "Floor",
        "Ceiling",
        "Sqrt",
        "Sin",
        "Cos",
        "Erf",
        "Gelu",
        "Swish",
        "SoftPlus",
        "HSwish",
        "HSigmoid",
        "Mish",
        "Sign",
        "SoftSign",
        "Log",
        "Add",
        "Subtract",
        "Multiply",
        "Maximum",
        "Minimum",
        "SquaredDifference",
        "Equal",
        "NotEqual",
        "Less",
        "LessEqual",
        "Greater",
        "GreaterEqual",
        "Select",
        "LogicalNot",
        "LogicalAnd",
        "LogicalOr",
        "LogicalXor",
        "Reshape",
        "Transpose",
        "Unsqueeze",
        "Squeeze",
        "Concat",
        "Split",
        "VariadicSplit",
        "Slice",
        "Gather",
        "Tile",
        "Broadcast",
        "ReduceSum",
        "ReduceMean",
        "ReduceMax",
        "ReduceMin",
        "Softmax",
        "LogSoftmax",
        "MVN",
        "MatMul",
        "Convolution",
        "MaxPool",
        "Clamp",
        "AvgPool",
        "CumSum",
        "ShapeOf",
        "Round",
    )
)
TYPES = (DType.F32, DType.I32, DType.I64, DType.BOOL)  # f64 is computed in f32, short floats and integers in others


def openvino_is_trusted(graph: Graph) -> bool:
    """Static sizes, trusted operations, types that it computes in."""
    for node in graph.nodes.values():
        if node.type not in TRUSTED or (isinstance(node.op, Convolution) and _has_early_strides(node.op)):
            return False
        for port in node.out_ports().values():
            known = port.type.dtype in TYPES and all(isinstance(n, int) and n for n in port.type.shape)
            if not known:
                return False
    return True


def _has_early_strides(op: Convolution) -> bool:
    """True if OpenVINO may read every second element before it pads; it asks for one tap besides."""
    return any(n > 1 for n in op.strides) and any(op.pads_begin + op.pads_end)


def openvino_results(path: Path, inputs: Sequence[Array]) -> list[Array]:
    """Results of the CPU plugin, in f32."""
    core = openvino.Core()
    hints = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    request = core.compile_model(core.read_model(path), "CPU", hints).create_infer_request()
    for k, array in enumerate(inputs):
        request.set_input_tensor(k, openvino.Tensor(np.ascontiguousarray(array)))
    request.infer()
    return [np.array(t.data) for t in request.output_tensors]


def _session(path: Path) -> onnxruntime.InferenceSession:
    """The nodes as they are written, by one thread."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def onnxruntime_takes(path: Path) -> bool:
    """True if ONNX Runtime loads the model."""
    try:
        _session(path)
    except Exception:  # its exceptions have no base of their own
        return False
    return True


def onnxruntime_results(path: Path, inputs: Sequence[Array]) -> list[Array]:
    """Results of the nodes as they are written."""
    session = _session(path)
    return session.run(None, {i.name: x for i, x in zip(session.get_inputs(), inputs, strict=True)})
