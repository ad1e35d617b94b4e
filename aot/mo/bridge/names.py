"""Names of operations in Model Optimizer's graph: `op` for the types of operation sets and for foreign operations."""

from __future__ import annotations

from functools import cache

from aot.ir.op import Foreign
from aot.ir.op import Op as Definition
from aot.mo.extracted.nodes import name_by_attributes
from aot.mo.ops.library import rows

ONNX = {  # where the name differs; source: the extractors of Model Optimizer 2024.6
    "And": "LogicalAnd",
    "BatchNormalization": "batchNormInference",
    "Ceil": "Ceiling",
    "ConvTranspose": "Deconv2D",
    "Constant": "Const",
    "CTCGreedyDecoder": "CTCGreedyDecoderSeqLen",
    "Dropout": "Identity",
    "Expand": "Broadcast",
    "Flatten": "FlattenONNX",
    "Gather": "AttributedGather",
    "GreaterOrEqual": "GreaterEqual",
    "LRN": "AttributedLRN",
    "LeakyRelu": "LeakyReLU",
    "LessOrEqual": "LessEqual",
    "LogSoftmax": "LogSoftmaxONNX",
    "LpNormalization": "NormalizeL2",
    "Max": "EltwiseN",
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
    "Upsample": "ONNXResize10",
    "Where": "Select",
    "Xor": "LogicalXor",
}

TENSORFLOW = {  # the same for the operations of TensorFlow
    "AddN": "EltwiseN",
    "AddV2": "Add",
    "All": "ReduceAnd",
    "Any": "ReduceLogicalOr",
    "AvgPoolV2": "PoolingV2",
    "BatchMatMul": "MatMul",
    "BatchMatMulV2": "MatMul",
    "BatchToSpaceND": "BatchToSpace",
    "BiasAdd": "Add",
    "BroadcastTo": "Broadcast",
    "ClipByValue": "ClipByValueTF",
    "CTCGreedyDecoder": "CTCGreedyDecoderSeqLen",
    "Ceil": "Ceiling",
    "ConcatV2": "Concat",
    "Cumsum": "CumSum",
    "EuclideanNorm": "ReduceL2",
    "ExpandDims": "Unsqueeze",
    "Eye": "TFEye",
    "FFT": "TFFFT",
    "FFT2D": "TFFFT",
    "FFT3D": "TFFFT",
    "FakeQuantWithMinMaxVarsPerChannel": "FakeQuantWithMinMaxVars",
    "Gather": "AttributedGather",
    "GatherNd": "GatherND",
    "GatherV2": "Gather",
    "IFFT": "TFFFT",
    "IFFT2D": "TFFFT",
    "IFFT3D": "TFFFT",
    "IRFFT": "TFFFT",
    "IRFFT2D": "TFFFT",
    "IRFFT3D": "TFFFT",
    "LRN": "AttributedLRN",
    "LookupTableInsertV2": "LookupTableInsert",
    "LeakyRelu": "LeakyReLU",
    "Max": "ReduceMax",
    "MaxPoolV2": "PoolingV2",
    "Mean": "ReduceMean",
    "Min": "ReduceMin",
    "MirrorPad": "TFPad",
    "Neg": "AttributedPower",
    "NonMaxSuppressionV2": "NonMaxSuppression",
    "NonMaxSuppressionV3": "NonMaxSuppression",
    "NonMaxSuppressionV4": "NonMaxSuppression",
    "NonMaxSuppressionV5": "NonMaxSuppression",
    "Pad": "TFPad",
    "PadV2": "TFPad",
    "Prod": "ReduceProd",
    "RFFT": "TFFFT",
    "RFFT2D": "TFFFT",
    "RFFT3D": "TFFFT",
    "RandomUniform": "AttributedRandomUniform",
    "RandomUniformInt": "RandomUniform",
    "ReadVariableOp": "Identity",
    "RealDiv": "Div",
    "Relu": "ReLU",
    "Relu6": "AttributedClamp",
    "ResizeBilinear": "TFResize",
    "ResizeNearestNeighbor": "TFResize",
    "ResourceGather": "AttributedGather",
    "ReverseV2": "Reverse",
    "Rsqrt": "AttributedPower",
    "ScatterNd": "TFScatterND",
    "SelectV2": "Select",
    "Shape": "ShapeOf",
    "Slice": "TFSlice",
    "Softmax": "SoftMax",
    "Softplus": "SoftPlus",
    "Softsign": "SoftSign",
    "SpaceToBatchND": "SpaceToBatch",
    "SplitV": "VariadicSplit",
    "Sqrt": "AttributedPower",
    "Square": "AttributedPower",
    "Sum": "ReduceSum",
    "TopKV2": "TopK",
    "Variable": "FakeConst",
    "VariableV2": "FakeConst",
    "Unpack": "AttributedSplit",
    "ZerosLike": "AttributedPower",
    "swish_f32": "Swish",
}
CAFFE = {  # the same for layers of Caffe
    "AbsVal": "Abs",
    "BatchNorm": "batchNormInference",
    "Bias": "Add",
    "Convolution": "Conv2D",
    "Deconvolution": "Deconv2D",
    "Dropout": "Identity",
    "ELU": "Elu",
    "InnerProduct": "FullyConnected",
    "Interp": "Interpolate",
    "LRN": "AttributedLRN",
    "MVN": "MVNCaffe",
    "Permute": "Transpose",
    "Power": "AttributedPower",
    "Resample": "Interpolate",
    "Scale": "ScaleShift",
    "ShuffleChannel": "ShuffleChannels",
    "Slice": "CaffeSlice",
    "Softmax": "SoftMax",
    "TanH": "Tanh",
    "Tile": "AttributedTile",
}
_FOREIGN = {"onnx": ONNX, "tf": TENSORFLOW, "caffe": CAFFE}


def op_name(op: Definition) -> str:
    """Return the attribute `op` of an operation's nodes."""
    if isinstance(op, Foreign):
        return name_by_attributes(op) or _FOREIGN.get(op.dialect, {}).get(op.kind, op.kind.removeprefix("CUSTOM."))
    return _by_type().get(op.xml_type.lower(), op.xml_type or type(op).__name__)


@cache
def _by_type() -> dict[str, str]:
    found = {"constant": "Const", "const": "Const", "parameter": "Parameter", "result": "Result"}
    for row in rows().values():
        if row.type is not None and row.op is not None and (row.version or "").startswith("opset"):
            found.setdefault(row.type.lower(), row.op)
    return found | {"clamp": "AttributedClamp", "split": "Split"}
