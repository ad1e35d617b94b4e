"""Functions of library classes that infer otherwise than by a definition, by module and class.

`infer`, `reverse_infer` (inputs from outputs) and `cf_infer` (which branches are executed) become attributes of nodes.
Some have a second name, after the first, under which extensions call the function of the class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aot.mo.partial_infer import axes, branches, choices, elementwise, reverse, slicing, sparse, windows

Infer = Callable[..., Any]

TABLE: dict[tuple[str, str], dict[str, Infer]] = {
    ("BlockLSTM", "BlockLSTM"): {"infer": sparse.block_lstm_infer},
    ("Complex", "Complex"): {"infer": slicing.complex_infer},
    ("Enter", "Enter"): {"infer enter_infer": branches.pass_infer},
    ("Exit", "Exit"): {
        "infer exit_infer": branches.pass_infer,
        "cf_infer control_flow_infer": branches.exit_control_infer,
    },
    ("ExtractImagePatches", "ExtractImagePatches"): {"infer": windows.patches_infer},
    ("LookupTableInsert", "LookupTableInsert"): {"infer": sparse.table_insert_infer},
    ("NextIteration", "NextIteration"): {"infer enter_infer": branches.pass_infer},
    ("ONNXResize11", "ONNXResize11Op"): {"infer onnx_resize_infer": windows.onnx_resize_infer},
    ("Reverse", "Reverse"): {"infer": slicing.reverse_infer},
    ("argmax", "ArgMaxOp"): {"infer": slicing.arg_ops_infer},
    ("argmin", "ArgMinOp"): {"infer": slicing.arg_ops_infer},
    ("assert_op", "Assert"): {
        "infer assert_infer": branches.assert_infer,
        "cf_infer assert_control_flow_infer": branches.assert_control_infer,
    },
    ("clamp", "Clamp"): {"infer": elementwise.clamp_infer},
    ("crop", "Crop"): {"infer": slicing.crop_infer},
    ("dft", "FFTBase"): {
        "canonicalize_axes": axes.canonicalize_axes,
        "canonicalize_signal_size": axes.canonicalize_signal_size,
        "get_axes": axes.get_axes,
        "get_signal_size": axes.get_signal_size,
    },
    ("expand_dims", "ExpandDims"): {"infer": slicing.expand_dims_infer},
    ("fakequantize", "FakeQuantize"): {"infer": choices.fake_quantize_infer},
    ("gather", "Gather"): {"reverse_infer": reverse.gather_reverse_infer},
    ("gather", "AttributedGather"): {"infer": slicing.gather_infer},
    ("interpolate", "Interpolate"): {"get_axes": windows.interpolated_axes},
    ("merge", "Merge"): {
        "infer merge_infer": branches.merge_infer,
        "cf_infer control_flow_infer": branches.merge_control_infer,
    },
    ("pooling", "Pooling"): {"infer pool_infer": windows.pool_infer, "reverse_infer": reverse.pool_reverse_infer},
    ("pooling", "PoolingV2"): {"infer": windows.pool_of_inputs_infer, "reverse_infer": reverse.pool_reverse_infer},
    ("priorbox", "PriorBoxOp"): {"infer priorbox_infer": windows.prior_box_infer},
    ("priorbox_clustered", "PriorBoxClusteredOp"): {"infer priorbox_clustered_infer": windows.clustered_box_infer},
    ("psroipooling", "PSROIPoolingOp"): {
        "infer psroipooling_infer": windows.psroipooling_infer,
        "reverse_infer": reverse.boxes_reverse_infer,
    },
    ("roipooling", "ROIPooling"): {"infer": windows.roipooling_infer, "reverse_infer": reverse.boxes_reverse_infer},
    ("select", "Select"): {"infer": choices.select_infer},
    ("slice", "Slice"): {"infer": slicing.onnx_slice_infer},
    ("slice", "OvSlice"): {"infer": slicing.opset_slice_infer},
    ("slice_like", "SliceLike"): {"infer": slicing.slice_like_infer},
    ("sparse_fill_empty_rows", "SparseFillEmptyRows"): {"infer": sparse.sparse_fill_infer},
    ("sparse_reshape", "SparseReshape"): {"infer": sparse.sparse_reshape_infer},
    ("sparse_segment_mean", "SparseSegmentMean"): {"infer": sparse.sparse_segment_infer},
    ("sparse_segment_sqrtn", "SparseSegmentSqrtN"): {"infer": sparse.sparse_segment_infer},
    ("sparse_segment_sum", "SparseSegmentSum"): {"infer": sparse.sparse_segment_infer},
    ("split", "SplitBase"): {"infer": slicing.split_infer, "reverse_infer": reverse.split_reverse_infer},
    ("split", "VariadicSplitBase"): {
        "infer": slicing.variadic_split_infer,
        "reverse_infer": reverse.split_reverse_infer,
    },
    ("squeeze", "Squeeze"): {"reverse_infer": reverse.squeeze_reverse_infer},
    ("switch", "Switch"): {
        "infer": branches.switch_infer,
        "cf_infer control_flow_infer": branches.switch_control_infer,
    },
    ("tile", "AttributedTile"): {"infer": slicing.tile_infer},
    ("transpose", "Transpose"): {"infer": axes.transpose_infer, "reverse_infer": reverse.transpose_reverse_infer},
    ("unique", "Unique"): {"infer": sparse.unique_infer},
    ("unsqueeze", "Unsqueeze"): {"reverse_infer": reverse.unsqueeze_reverse_infer},
    ("upsample", "UpsampleOp"): {"infer upsample_infer": windows.upsample_infer},
}


def functions(module: str, name: str) -> dict[str, Any]:
    """Return the functions of a class, as its static methods."""
    methods = TABLE.get((module, name), {})
    return {key: staticmethod(function) for keys, function in methods.items() for key in keys.split()}
