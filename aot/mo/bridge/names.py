"""Names of operations in Model Optimizer's graph: `op` for the types of operation sets and for foreign operations."""

from __future__ import annotations

from functools import cache

from aot.ir.op import Foreign
from aot.ir.op import Op as Definition
from aot.mo.extracted.nodes import name_by_attributes
from aot.mo.ops.library import rows


def _table(text: str) -> dict[str, str]:
    """Return the name of each kind in entries `KIND,KIND=NAME`."""
    pairs = (entry.split("=") for entry in text.split())
    return {kind: name for kinds, name in pairs for kind in kinds.split(",")}


ONNX = _table(  # where the name differs; source: the extractors of Model Optimizer 2024.6
    """
    And=LogicalAnd BatchNormalization=batchNormInference Ceil=Ceiling ConvTranspose=Deconv2D Constant=Const
    CTCGreedyDecoder=CTCGreedyDecoderSeqLen Dropout=Identity Expand=Broadcast Flatten=FlattenONNX
    Gather=AttributedGather GreaterOrEqual=GreaterEqual LRN=AttributedLRN LeakyRelu=LeakyReLU LessOrEqual=LessEqual
    LogSoftmax=LogSoftmaxONNX LpNormalization=NormalizeL2 Max,Min,Sum=EltwiseN MeanVarianceNormalization=MVNOnnx
    Neg,Sqrt=AttributedPower Not=LogicalNot Or=LogicalOr PRelu=PReLU RandomUniform=AttributedRandomUniform Relu=ReLU
    Resize=ONNXResize11 RoiAlign=ROIAlign Scatter,ScatterElements=ScatterElementsUpdate ScatterND=ScatterNDUpdate
    Shape=ShapeOf Softmax=SoftMaxONNX Softplus=SoftPlus Softsign=SoftSign Unsqueeze=ExpandDims Upsample=ONNXResize10
    Where=Select Xor=LogicalXor
    """
)

TENSORFLOW = _table(  # the same for the operations of TensorFlow
    """
    AddN=EltwiseN AddV2,BiasAdd=Add All=ReduceAnd Any=ReduceLogicalOr AvgPoolV2,MaxPoolV2=PoolingV2
    BatchMatMul,BatchMatMulV2=MatMul BatchToSpaceND=BatchToSpace BroadcastTo=Broadcast ClipByValue=ClipByValueTF
    CTCGreedyDecoder=CTCGreedyDecoderSeqLen Ceil=Ceiling ConcatV2=Concat Cumsum=CumSum EuclideanNorm=ReduceL2
    ExpandDims=Unsqueeze Eye=TFEye FFT,FFT2D,FFT3D,IFFT,IFFT2D,IFFT3D,IRFFT,IRFFT2D,IRFFT3D,RFFT,RFFT2D,RFFT3D=TFFFT
    FakeQuantWithMinMaxVarsPerChannel=FakeQuantWithMinMaxVars Gather,ResourceGather=AttributedGather
    GatherNd=GatherND GatherV2=Gather LRN=AttributedLRN LookupTableInsertV2=LookupTableInsert LeakyRelu=LeakyReLU
    Max=ReduceMax Mean=ReduceMean Min=ReduceMin MirrorPad,Pad,PadV2=TFPad
    Neg,Rsqrt,Sqrt,Square,ZerosLike=AttributedPower
    NonMaxSuppressionV2,NonMaxSuppressionV3,NonMaxSuppressionV4,NonMaxSuppressionV5=NonMaxSuppression
    Prod=ReduceProd RandomUniform=AttributedRandomUniform RandomUniformInt=RandomUniform ReadVariableOp=Identity
    RealDiv=Div Relu=ReLU Relu6=AttributedClamp ResizeBilinear,ResizeNearestNeighbor=TFResize ReverseV2=Reverse
    ScatterNd=TFScatterND SelectV2=Select Shape=ShapeOf Slice=TFSlice Softmax=SoftMax Softplus=SoftPlus
    Softsign=SoftSign SpaceToBatchND=SpaceToBatch SplitV=VariadicSplit Sum=ReduceSum TopKV2=TopK
    Variable,VariableV2=FakeConst Unpack=AttributedSplit swish_f32=Swish
    """
)
CAFFE = _table(  # the same for layers of Caffe
    """
    AbsVal=Abs BatchNorm=batchNormInference Bias=Add Convolution=Conv2D Deconvolution=Deconv2D Dropout=Identity
    ELU=Elu InnerProduct=FullyConnected Interp,Resample=Interpolate LRN=AttributedLRN MVN=MVNCaffe Permute=Transpose
    Power=AttributedPower Scale=ScaleShift ShuffleChannel=ShuffleChannels Slice=CaffeSlice Softmax=SoftMax TanH=Tanh
    Tile=AttributedTile
    """
)
_FOREIGN = {"onnx": ONNX, "tf": TENSORFLOW, "caffe": CAFFE}


def op_name(op: Definition) -> str:
    """Return the attribute `op` of an operation's nodes."""
    if isinstance(op, Foreign):
        return name_by_attributes(op) or _FOREIGN.get(op.dialect, {}).get(op.kind, op.kind.removeprefix("CUSTOM."))
    return _by_type().get(op.xml_type.lower(), op.xml_type or type(op).__name__)


@cache
def _by_type() -> dict[str, str]:
    kinds = {"constant": "Const", "const": "Const", "parameter": "Parameter", "result": "Result"}
    for row in rows().values():
        if row.type is not None and row.op is not None and (row.version or "").startswith("opset"):
            kinds.setdefault(row.type.lower(), row.op)
    return kinds | {"clamp": "AttributedClamp", "split": "Split"}
