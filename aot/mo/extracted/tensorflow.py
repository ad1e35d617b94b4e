"""Attributes that Model Optimizer's extractors gave to nodes of TensorFlow files, beside those that the file has.

Source: the nodes that Model Optimizer 2024.6 made of messages of each kind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from aot.frontends.tf.files.tensors import TypeName
from aot.ir.types import numpy_dtype
from aot.mo.bridge.values import dtype_from
from aot.mo.extracted.attribute import Attr, File, always, called, constant, ints, one_of
from aot.mo.ops.permutations import PermuteAttrs
from aot.mo.utils.arrays import dynamic_dimension
from aot.runtime.abi import DType

TYPES = {
    DType(name) for name in "f16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 boolean".split()
}  # types that Model Optimizer reads
WIDEST = 64  # bits of a quantised number
DEPTHS = {"NDHWC": (1, 2, 3), "NCDHW": (2, 3, 4), "NHWC": (1, 2), "NCHW": (2, 3)}  # spatial dimensions


def _class(value: Any) -> Any:
    """Return NumPy's type for a type of the file; None for one that Model Optimizer did not read."""
    known = next((dtype for dtype in TYPES if dtype.value == str(value)), None)
    return None if known is None else numpy_dtype(known).type


def _classes(value: Any) -> list[Any]:
    return [_class(part) for part in value]


def _type(name: str, file: str, otherwise: Any = None) -> Attr:
    """Declare an attribute that is an element type."""

    def read(given: File) -> Any:
        return _class(given.get(file)) or otherwise

    return Attr(name, read, file, lambda value: TypeName(dtype_from(value).value))


def _bits(name: str, *, inverted: bool) -> Attr:
    """Declare a number in the file as a list of its bits, the lowest first; masks of begins and ends are inverted."""

    def read(file: File) -> Any:
        bits = [int(b) for b in reversed(np.binary_repr(int(file.get(name, 0))))]
        return np.array([1 - b for b in bits] if inverted else bits, np.int32)

    def write(value: Any) -> int:
        bits = (1 - int(b) if inverted else int(b) for b in np.asarray(value).reshape(-1))
        return sum(bit << i for i, bit in enumerate(bits))

    return Attr(name, read, name, write)


def _padding(same: str) -> Attr:
    return one_of("auto_pad", "padding", {"SAME": same, "VALID": "valid"}, "VALID")


def _places(letters: str) -> Callable[[File], Any]:
    return lambda file: [file.get("data_format", "NHWC").index(letter) for letter in letters]


def _spatial(file: File) -> Any:
    return list(DEPTHS.get(file.get("data_format", "NHWC"), ()))


LAYOUT = (
    Attr("layout", lambda file: file.get("data_format", "NHWC"), "data_format"),
    Attr("channel_dims", _places("C")),
    Attr("batch_dims", _places("N")),
)
STRIDE = called("stride", "strides", None, ints)
UNKNOWN_YET = always(pad=None, pad_spatial_shape=None, output_spatial_shape=None)  # inference sets them


def _count_groups(node: Any, shape: Any, kernel: Any, channel: str) -> Any:
    """Return the number of groups: channels of the data divided by a filter's; 1 if they are not known."""
    if node.has_valid("group"):
        return node.group
    if shape is None or kernel is None:
        return 1
    sizes = shape[node.channel_dims[0]], kernel[node[channel]]
    return 1 if any(size is dynamic_dimension for size in sizes) else shape[node.channel_dims] // sizes[1]


def _groups(node: Any) -> Any:
    shape, kernel = node.in_node(0).soft_get("shape", None), node.soft_get("kernel_shape", None)
    return _count_groups(node, shape, kernel, "input_feature_channel")


def _output_groups(node: Any) -> Any:
    """Return the number of groups of a transposed convolution, by its input that says the output's shape."""
    shape, kernel = node.in_port(2).data.get_value(), node.in_port(1).data.get_shape()
    return _count_groups(node, shape, kernel, "output_feature_channel")


def _one_group(node: Any) -> int:
    return 1


def _filters(node: Any) -> Any:
    """Return the number of channels of a convolution's result."""
    return node.kernel_shape[node.output_feature_channel]


def _depthwise_filters(node: Any) -> Any:
    return node.kernel_shape[-1] * node.kernel_shape[-2]


def _weights(*order: int) -> tuple[Attr, ...]:
    """Return the permutation that brings weights into the order of the operation sets."""
    return always(get_weights_permute=PermuteAttrs.Permutation(ints(order), ints(np.argsort(order))))


def _convolution(inputs: int, outputs: int, *order: int) -> tuple[Attr, ...]:
    """Return the attributes of a convolution; dimensions of the weights that are its channels, and their order."""
    channels = {"input_feature_channel": inputs, "output_feature_channel": outputs}
    fixed = always(type="Convolution", version="opset1", bias_addable=True, bias_term=False, **channels)
    return (
        *fixed,
        *LAYOUT,
        STRIDE,
        called("dilation", "dilations", None, ints),
        _padding("same_upper"),
        *_weights(*order),
    )


def _deconvolution(inputs: int, outputs: int, *order: int) -> tuple[Attr, ...]:
    channels = {"input_feature_channel": inputs, "output_feature_channel": outputs}
    fixed = always(type=None, version="opset1", bias_addable=True, bias_term=False, **channels)
    later = always(output_shape=None, output=None, group=None, swap_0_and_2_inputs=True, shape_input=True)
    later += always(get_group=_output_groups, in_ports_count=3, out_ports_count=1)
    where = Attr("spatial_dims", _spatial)
    return (*fixed, *later, *UNKNOWN_YET, *LAYOUT, where, STRIDE, _padding("same_lower"), *_weights(*order))


def _pooling(method: str, version: str | None) -> tuple[Attr, ...]:
    named = {"version": version, **({} if version is None else {"type": "Pooling"})}
    return (
        *always(**named, pool_method=method, exclude_pad=True),
        *UNKNOWN_YET,
        LAYOUT[0],
        STRIDE,
        Attr("spatial_dims", _spatial),
        called("window", "ksize", (), ints),
        _padding("same_upper"),
    )


def _power(**values: float) -> tuple[Attr, ...]:
    return always(**{"power": 1, "scale": 1, "shift": 0, **values})


def _resize(mode: str) -> tuple[Attr, ...]:
    flags = [called(name, name, False) for name in ("align_corners", "half_pixel_centers")]
    return (*always(mode=mode), *flags)


def _depth(file: File) -> int:
    return 2 * int(file.get("depth_radius", 5)) + 1


def _levels(file: File) -> int:
    """Return the number of levels of a quantisation. ValueError for a width that no type has."""
    bits = int(file.get("num_bits", 8))
    if not 0 <= bits <= WIDEST:
        raise ValueError(f"num_bits is at most {WIDEST}, got {bits}")
    return 2**bits - int(bool(file.get("narrow_range", False)))


def _count(side: str, file: str) -> Attr:
    """Declare the number of ports, which is the length of an attribute of the file."""
    return Attr(f"{side}_ports_count", lambda given: len(given.get(file) or ()))


DATA_TYPE = _type("data_type", "T")
INDICES = (
    *always(top_k=1, axis=None, keepdims=0, remove_values_output=True),
    _type("output_type", "output_type", np.int64),
)
BLOCKS = (called("block_size", "block_size"), called("data_format", "data_format", "NHWC"))
LEVELS = (
    Attr("levels", _levels),
    called("narrow_range", "narrow_range", False),
    called("num_bits", "num_bits", 8),
)
QUEUE = (called("shapes", "shapes", ()), called("types", "component_types", (), _classes), _count("out", "shapes"))
REDUCTION = (called("keep_dims", "keep_dims", False),)
ELEMENT_SHAPE = Attr("element_shape", lambda file: ints(file.get("element_shape") or ()), "element_shape")
SEEDS = (called("global_seed", "seed", 0), called("op_seed", "seed2", 0))
SELECTION = always(format="tf")
TOP = (*always(mode="max", axis=-1, sort="value", index_element_type=np.int32),)
TRANSFORMS = {
    f"{kind}FFT{count}": always(num_of_dimensions=int(count[:1] or 1), fft_kind=f"{kind}DFT")
    for kind in ("", "I", "R", "IR")
    for count in ("", "2D", "3D")
}
MATMUL = (called("transpose_a", "adj_x", False), called("transpose_b", "adj_y", False))

ATTRS: dict[str, tuple[Attr, ...]] = {
    "AddN": always(operation="sum"),
    "ArgMax": (*INDICES, *always(out_max_val=0)),
    "ArgMin": INDICES,
    "AvgPool": _pooling("avg", "opset1"),
    "AvgPool3D": _pooling("avg", "opset1"),
    "BatchMatMul": MATMUL,
    "BatchMatMulV2": MATMUL,
    "BiasAdd": (*always(type="BiasAdd"), DATA_TYPE, called("data_format", "data_format", "NHWC")),
    "BlockLSTM": (
        called("use_peephole", "use_peephole", False),
        called("cell_clip", "cell_clip", 3.0),
        called("forget_bias", "forget_bias", 1.0),
    ),
    "Bucketize": (
        *always(with_right_bound=False, output_type=np.int32),
        called("boundaries", "boundaries", (), lambda value: np.asarray(value, np.float32)),
    ),
    "CTCGreedyDecoder": (called("merge_repeated", "merge_repeated", False), *always(output_sparse_format=True)),
    "CTCLoss": (
        called("preprocess_collapse_repeated", "preprocess_collapse_repeated", False),
        called("ctc_merge_repeated", "ctc_merge_repeated", True),
        *always(unique=False, logits_time_major=True),
    ),
    "Cast": (_type("dst_type", "DstT"),),
    "Concat": (called("N", "N"), *always(simple_concat=True)),
    "Const": constant(),
    "Conv2D": (*_convolution(2, 3, 3, 2, 0, 1), *always(get_group=_groups, get_output_feature_dim=_filters)),
    "Conv2DBackpropInput": _deconvolution(3, 2, 3, 2, 0, 1),
    "Conv3D": (*_convolution(3, 4, 4, 3, 0, 1, 2), *always(get_group=_one_group, get_output_feature_dim=_filters)),
    "Conv3DBackpropInputV2": _deconvolution(4, 3, 4, 3, 0, 1, 2),
    "CropAndResize": always(
        type="ROIPooling", version="opset2", pooled_h=None, pooled_w=None, spatial_scale=1, method="bilinear"
    ),
    "Cumsum": (called("exclusive", "exclusive", False), called("reverse", "reverse", False)),
    "DepthToSpace": (*always(mode="blocks_first"), *BLOCKS),
    "DepthwiseConv2dNative": (
        *_convolution(2, 2, 2, 3, 0, 1),
        *always(kernel_spatial_idx=ints([0, 1]), get_group=_filters, get_output_feature_dim=_depthwise_filters),
    ),
    "Einsum": (called("equation", "equation"),),
    "ExtractImagePatches": (
        *always(spatial_dims=ints([1, 2])),
        called("sizes", "ksizes", (), ints),
        called("strides", "strides", None, ints),
        called("rates", "rates", None, ints),
        _padding("same_upper"),
    ),
    "FIFOQueueV2": QUEUE,
    "FakeQuantWithMinMaxVars": LEVELS,
    "FakeQuantWithMinMaxVarsPerChannel": LEVELS,
    "GRUBlockCell": always(format="tf"),
    "Identity": (DATA_TYPE, *always(identity=True)),
    "IdentityN": (called("data_types", "T", (), _classes), _count("in", "T"), _count("out", "T")),
    "IteratorGetNext": (
        called("shapes", "output_shapes", ()),
        called("types", "output_types", (), _classes),
        _count("out", "output_shapes"),
    ),
    "LRN": (
        *always(type="Norm", version="opset1", region="across"),
        Attr("alpha", lambda file: file.get("alpha", 1.0) * _depth(file)),
        called("beta", "beta", 0.5),
        called("bias", "bias", 1.0),
        Attr("local_size", _depth, "depth_radius", lambda value: (int(value) - 1) // 2),
    ),
    "LeakyRelu": (called("negative_slope", "alpha", 0.2),),
    "LogSoftmax": always(axis=-1),
    "MatMul": (called("transpose_a", "transpose_a", False), called("transpose_b", "transpose_b", False)),
    "MaxPool": _pooling("max", "opset8"),
    "MaxPool3D": _pooling("max", "opset8"),
    "MaxPoolV2": _pooling("max", None),
    "MirrorPad": (Attr("mode", lambda file: str(file.get("mode")).lower(), "mode", lambda value: str(value).upper()),),
    "Neg": _power(scale=-1),
    "NextIteration": always(is_cyclic=True),
    "OneHot": (called("axis", "axis", -1), _type("data_type", "T", np.float32)),
    "PlaceholderWithDefault": (
        _type("data_type", "dtype"),
        called("shape", "shape", None, ints),
        *always(identity=True),
    ),
    "QueueDequeue": QUEUE,
    "QueueDequeueV2": QUEUE,
    "RandomUniform": (_type("output_type", "dtype"), *SEEDS),
    "RandomUniformInt": (_type("output_type", "Tout"), *SEEDS),
    "Range": (_type("output_type", "Tidx"),),
    "Rank": always(output_type=np.int32),
    "ReadVariableOp": (DATA_TYPE, *always(identity=True)),
    "Relu6": always(type="Clamp", version="opset1", min=0, max=6),
    "Reshape": always(special_zero=False),
    "ResizeBilinear": (*_resize("linear"), DATA_TYPE),
    "ResizeNearestNeighbor": _resize("nearest"),
    "ReverseSequence": (called("seq_axis", "seq_dim"), called("batch_axis", "batch_dim", 0)),
    "Rsqrt": _power(power=-0.5),
    "Select": SELECTION,
    "SelectV2": SELECTION,
    "Shape": (_type("output_type", "out_type", np.int32),),
    "Size": (_type("output_type", "out_type", np.int32),),
    "Softmax": always(axis=-1),
    "SpaceToDepth": (*always(mode="blocks_first"), *BLOCKS),
    "Split": (called("num_splits", "num_split"), *always(input_port=1)),
    "SplitV": (called("out_ports_count", "num_split"), *always(swap_axis_and_split_size_inputs=True)),
    "Sqrt": _power(power=0.5),
    "Square": _power(power=2),
    "Squeeze": (called("squeeze_dims", "squeeze_dims", (), ints), *always(keep_at_least_1d=0)),
    "StopGradient": always(identity=True),
    "StridedSlice": tuple(
        _bits(f"{name}_mask", inverted=name in ("begin", "end"))
        for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    ),
    "TensorArrayGatherV3": (ELEMENT_SHAPE,),
    "TensorArrayV3": (ELEMENT_SHAPE,),
    "TopK": (*TOP, called("k", "k")),
    "TopKV2": TOP,
    "Transpose": always(order=None),
    "Unique": always(sorted="false", return_inverse="true", return_counts="false"),
    "Unpack": (
        *always(type="Split", version="opset1", squeeze_axis=True),
        called("axis", "axis", 0),
        called("num_splits", "num"),
    ),
    "ZerosLike": _power(scale=0),
    **{f"NonMaxSuppressionV{i}": always(output_type=np.int32, sort_result_descending=1) for i in (2, 3, 4, 5)},
    **dict.fromkeys("Add AddV2 Maximum Minimum Mod Mul Pow RealDiv SquaredDifference Sub".split(), (DATA_TYPE,)),
    **dict.fromkeys(("All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum"), REDUCTION),
    **TRANSFORMS,
}


def attrs_of(kind: str, file: File) -> tuple[Attr, ...]:
    """Return the attributes of a kind of operations."""
    return ATTRS.get(kind, ())
