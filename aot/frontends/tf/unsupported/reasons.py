"""Operations that cannot be converted, each with its reason and the step that helps."""

from __future__ import annotations

from aot.frontends.tf.registry import TfNode, Value, tf

CUT = "make its result an input of the network: --cut"
EXPORT = "export the network for inference"
REASONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "queues and iterators": (
        f"it reads from the program around the network: {CUT}",
        ("FIFOQueue", "FIFOQueueV2", "RandomShuffleQueueV2", "PaddingFIFOQueueV2", "QueueDequeue", "QueueDequeueV2",
         "QueueDequeueMany", "QueueDequeueManyV2", "QueueDequeueUpTo", "QueueDequeueUpToV2", "QueueEnqueueV2",
         "IteratorV2", "OneShotIterator", "IteratorGetNext", "IteratorFromStringHandleV2"),
    ),
    "files": (
        f"it reads or writes files or pictures in files: {CUT}",
        ("ReadFile", "WriteFile", "MatchingFiles", "DecodeJpeg", "DecodePng", "DecodeBmp", "DecodeGif", "DecodeImage",
         "DecodeAndCropJpeg", "EncodeJpeg", "EncodePng", "DecodeWav", "EncodeWav", "DecodeRaw", "DecodeCSV",
         "ParseExample", "ParseExampleV2", "ParseSingleExample", "ParseTensor", "DecodeProtoV2"),
    ),
    "strings": (
        f"strings are compared, joined, split, matched and looked up only: {CUT}",
        ("StaticRegexReplace", "RegexReplace", "StringSplit", "StringNGrams",
         "StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong", "StringFormat", "Substr",
         "AsString", "ReduceJoin", "UnicodeDecode", "UnicodeEncode", "UnicodeTranscode", "UnicodeScript",
         "EncodeBase64", "DecodeBase64", "UnsortedSegmentJoin"),
    ),
    "tables that change": (
        f"tables are constants here: {CUT}",
        ("LookupTableInsert", "LookupTableInsertV2", "LookupTableRemoveV2", "LookupTableExport", "LookupTableExportV2"),
    ),
    "code": (
        f"it calls code that the file does not hold: {CUT}",
        ("PyFunc", "PyFuncStateless", "EagerPyFunc", "XlaLaunch", "XlaCallModule", "TPUPartitionedCall"),
    ),
    "training": (
        f"it belongs to training: {EXPORT}",
        ("Conv2DBackpropFilter", "Conv3DBackpropFilterV2", "DepthwiseConv2dNativeBackpropFilter", "MaxPoolGrad",
         "AvgPoolGrad", "FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3", "ResizeBilinearGrad",
         "BiasAddGrad", "ApplyGradientDescent", "ApplyAdam", "ApplyMomentum", "ApplyRMSProp",
         "ResourceApplyGradientDescent", "ResourceApplyAdam", "ResourceApplyMomentum", "ResourceApplyRMSProp",
         "ResourceApplyKerasMomentum", "ResourceApplyAdagradV2"),
    ),
    "factors of matrices": (
        f"matrices are inverted, and not taken apart: {CUT}",
        ("Lu", "Qr", "Svd", "SelfAdjointEigV2", "Eig", "MatrixLogarithm", "MatrixExponential",
         "MatrixSquareRoot", "MatrixSolveLs"),
    ),
    "random numbers": (
        f"these random numbers would not be TensorFlow's: {CUT}",
        ("RandomShuffle", "RandomGamma", "RandomPoissonV2", "ParameterizedTruncatedNormal", "StatelessTruncatedNormal",
         "StatelessTruncatedNormalV2", "StatelessMultinomial", "StatefulUniform", "StatefulStandardNormalV2"),
    ),
    "search": (
        "the number of beams that stay depends on data: decode greedily, or outside of the network",
        ("CTCBeamSearchDecoder",),
    ),
}  # fmt: skip
REASON = {kind: reason for reason, kinds in REASONS.values() for kind in kinds}


@tf(*REASON, takes_complex=True)
def refused(node: TfNode, *inputs: Value) -> None:
    """UnsupportedError with the reason."""
    node.refuse(True, REASON[node.kind])
