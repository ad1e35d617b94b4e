"""Names of operations in Model Optimizer's graph: `op` for the types of operation sets and for ONNX's operations."""

from __future__ import annotations

from functools import cache

from aot.ir.op import Foreign
from aot.ir.op import Op as Definition
from aot.mo.ops.library import rows

ONNX = {  # where the name differs; source: the extractors of Model Optimizer 2024.6
    "And": "LogicalAnd",
    "AveragePool": "Pooling",
    "BatchNormalization": "batchNormInference",
    "Ceil": "Ceiling",
    "Clip": "Clamp",
    "Conv": "Convolution",
    "ConvTranspose": "Convolution",
    "Constant": "Const",
    "CTCGreedyDecoder": "CTCGreedyDecoderSeqLen",
    "Dropout": "Identity",
    "Expand": "Broadcast",
    "Flatten": "FlattenONNX",
    "Gather": "AttributedGather",
    "GlobalAveragePool": "Pooling",
    "GlobalMaxPool": "Pooling",
    "GreaterOrEqual": "GreaterEqual",
    "LRN": "AttributedLRN",
    "LeakyRelu": "LeakyReLU",
    "LessOrEqual": "LessEqual",
    "LogSoftmax": "LogSoftmaxONNX",
    "LpNormalization": "NormalizeL2",
    "Max": "EltwiseN",
    "MaxPool": "Pooling",
    "MeanVarianceNormalization": "MVNOnnx",
    "Min": "EltwiseN",
    "Neg": "AttributedPower",
    "Not": "LogicalNot",
    "Or": "LogicalOr",
    "PRelu": "PReLU",
    "RandomUniform": "AttributedRandomUniform",
    "Relu": "ReLU",
    "Resize": "ONNXResize11",
    "RoiAlign": "ROIAlign",
    "Scatter": "ScatterElementsUpdate",
    "ScatterElements": "ScatterElementsUpdate",
    "ScatterND": "ScatterNDUpdate",
    "Shape": "ShapeOf",
    "Softmax": "SoftMaxONNX",
    "Softplus": "SoftPlus",
    "Softsign": "SoftSign",
    "Sqrt": "AttributedPower",
    "Sum": "EltwiseN",
    "Unsqueeze": "ExpandDims",
    "Where": "Select",
    "Xor": "LogicalXor",
}


def op_name(op: Definition) -> str:
    """Return the attribute `op` of an operation's nodes."""
    if isinstance(op, Foreign):
        return ONNX.get(op.kind, op.kind)
    return _by_type().get(op.xml_type.lower(), op.xml_type or type(op).__name__)


@cache
def _by_type() -> dict[str, str]:
    found = {"constant": "Const", "const": "Const", "parameter": "Parameter", "result": "Result"}
    for row in rows().values():
        if row.type is not None and row.op is not None and (row.version or "").startswith("opset"):
            found.setdefault(row.type.lower(), row.op)
    return found | {"clamp": "AttributedClamp", "split": "Split"}
