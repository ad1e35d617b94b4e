"""Why transformations of Model Optimizer have no code here: a reason, and the modules or `module.class` that it is for.

A name stands for all that begins with it. Work that this compiler does itself, before or after extensions, needs no
transformation; calling one is an error with the reason.
"""

from __future__ import annotations

REFUSED: tuple[tuple[str, str], ...] = (
    (
        "it marks a place in the order, or does work of the pipeline: loading, inference, clean-up",
        """load utils.model_analysis analysis front.pass_separator middle.pass_separator back.pass_separator
        front.create_tensor_nodes front.restore_ports front.user_data_repack front.transformations_config
        front.tf.tensorflow_custom_operations_config_update front.MoveEmbeddedInputsToInputs front.no_op_eraser
        front.standalone_const_eraser front.tf.noop middle.PartialInfer middle.DeleteControlFlowEdges
        middle.DeleteNotExecutable middle.RemoveIdentity middle.CustomSubgraphCall middle.FakeSplitOutputs
        back.CorrectName""",
    ),
    (
        "an option of `aot compile` does it: `--cut`, `--value`, `--shape`, `--mean`, `--reverse-channels`",
        """front.input_cut front.output_cut middle.InputCut front.freeze_placeholder_value front.override_batch
        middle.preprocessing back.ReverseInputChannels front.tf.UnpackPackReverseInputChannels
        back.add_outputs_recursive""",
    ),
    (
        "it is a part of the change of layout, which is one step here",
        """middle.ApplyNHWCtoNCHWpermutation middle.ApplyPermutations middle.InsertLayoutPropagationTransposes
        middle.LayoutChangeForConstantShapePaths middle.LayoutChangeForEinsum
        middle.MarkSubgraphsWithCorrectLayout middle.MergeNodesPermutations middle.PreserveRuntimeInfo
        middle.ConvertLayoutDependentOperations middle.permute_tensor_iterator back.LayoutChangeForGatherND
        back.TransposeDFT""",
    ),
    (
        "networks of Kaldi and MXNet have no reader; layers of Caffe have conversions",
        """front.kaldi front.caffe middle.FuseReshapesSequence.FuseReshapesSequenceKaldi middle.InsertSelect
        middle.MXNetRNNSequenceNormalize middle.MXNetSplitMultiLayers middle.MakeKaldiConstReshapable
        middle.RemoveDuplicationMemory middle.ReplaceMemoryOffsetWithSplice middle.ReplacePNorm
        middle.ReplaceSpliceNodePattern middle.SwapAxesMiddleReplacer middle.split_tdnn_memoryoffset
        back.CutMemory back.kaldi_remove_memory_output back.remove_last_softmax_pattern""",
    ),
    (
        "loops and conditions of TensorFlow 1 have bodies before extensions see them",
        """front.tf.SwitchMergeOptimization front.tf.WhileNormalize front.tf.MapFNTransformation
        front.tf.GNMT_DynamicSequenceLengths middle.ConstSwitchResolver middle.UselessMerge
        middle.MoveConstToLoopBody middle.TensorIteratorBackEdge middle.TensorIteratorCondition
        middle.TensorIteratorConditionChecker middle.TensorIteratorInput middle.TensorIteratorLSTMToLSTMSequence
        middle.TensorIteratorMerge middle.TensorIteratorOutput middle.reverse_tensor_iterator""",
    ),
    (
        "the conversions of the framework's operations do it, behind the front phase",
        """front.AttributedGatherNormalizer front.FakeQuantWithMinMaxVars front.InterpolateNormalizer
        front.InterpolateV1ToInterpolate front.MatMul_normalizer front.TopKNormalize front.YOLO
        front.disable_weights_quantize_value_propagation front.flatten_to_reshape
        front.non_max_suppression_normalize front.onnx.LoopNormalize front.onnx.ONNXResize10ToInterpolate
        front.onnx.hard_sigmoid_ext front.onnx.mask_rcnn_conversion front.onnx.normalize_l2_normalize
        front.onnx.person_detection_crossroad_conversion front.softmax front.split_normalizer.SplitInputsReconnect
        front.split_normalizer.VariadicSplitInputsSwap front.tf.AutomlEfficientDet
        front.tf.BatchToSpaceNDToUpsample front.tf.BlockLSTM front.tf.CTCGreedyDecoderReplacement
        front.tf.CTCLossReplacement front.tf.ClipByValueTFTransformation front.tf.ComplexAbs
        front.tf.ComplexAbsAfterComplex front.tf.CorrectPaddingsForPadAfterComplex
        front.tf.CropAndResizeReplacement front.tf.FlattenToReshape front.tf.GRUBlockCellReplacement
        front.tf.IteratorGetNextCut front.tf.NonConstBeginStridedSliceReplacement front.tf.ObjectDetectionAPI
        front.tf.RFFTRealImagToRFFTSplit front.tf.RetinaNetFilteredDetectionsReplacement front.tf.RollRealImagPack
        front.tf.SSDToolboxDetectionOutput front.tf.TFFFTToDFT front.tf.TFResizeToInterpolate
        front.tf.TFScatterNDDecomposition front.tf.TFSliceToSlice front.tf.WhereDecomposition
        front.tf.assign_elimination front.tf.basic_lstm_cell front.tf.bucketize front.tf.concat
        front.tf.embedding_segments_mean_decomposition front.tf.embedding_segments_operation_fusing
        front.tf.eye_tf_to_eye front.tf.fake_const_ext front.tf.fifo_replacer front.tf.floor_div_decomposition
        front.tf.identityN_to_identity front.tf.mvn front.tf.mvn_unrolled front.tf.nearest_neighbor_upsampling
        front.tf.non_max_suppression_normalize front.tf.pad_tf_to_pad front.tf.prelu front.tf.space_to_batch
        front.tf.sparse_to_dense_replacer front.tf.swap_deconv_inputs front.tf.transposed_mvn_unrolled
        front.tf.variables_values_freezing middle.FusedBatchNormNonConstant middle.GatherNDDecomposition
        middle.ONNXResize11ToInterpolate middle.ReverseV2ToReverseSequence middle.SSliceComplex
        middle.AttributedTileNormalizer middle.Deconvolution3rdInputNormalization""",
    ),
    (
        "the compiler takes RNN, GRU and LSTM as they are in the file",
        """middle.BlockLSTMtoLSTMSequence middle.DecomposeBidirectionalRNNSequence
        middle.GRURNNSequenceToTensorIterator middle.LSTMRNNSequenceToTensorIterator
        middle.ONNXRNNSequenceNormalize middle.RNNSequenceNormalizeToIE middle.TF_lstm_cell_to_generic
        back.CellNormalizer back.RNNSequenceTypeRename""",
    ),
    (
        "rules of the compiler do it, behind the extensions",
        """front.Mish_fusion front.Softplus_fusion front.Swish_fusion middle.AddFakeQuantizeFuse
        middle.BiasAddBroadcasting middle.BinarizeWeightsM1P1 middle.ConvToBinaryConv middle.ConvertMultiInputConv
        middle.DecomposeBias middle.DilatedConvolution middle.EltwiseChecker middle.EltwiseInputReshape
        middle.FuseReshapesSequence.FuseReshapesSequence middle.RemoveRedundantReshapeAfterCropAndResize
        middle.RemoveRedundantReshapes middle.UselessSplitEraser middle.fusings
        middle.quantize_fuses.MarkNodesToFuseUpToFakeQuantize back.OptimizeTransposeReshapeSequence
        back.ReduceMerge back.ReduceTransposeDimensions back.RemoveUselessConvert back.UselessConcatRemoval
        back.EnableConstantStridedSlice""",
    ),
    (
        "it brings operations into the form of IR files, which `aot convert` writes by itself",
        """back.AvgPool back.CropToStridedSlice back.ForceStrictPrecision back.LRNToNorm back.LeakyReLUMutation
        back.LinearToLinearONNXReplacer back.NormalizeToNormalizeL2 back.PackBinaryWeights back.ProposalMutation
        back.ReshapeMutation back.ResultNormalizer back.SelectBroadcast back.SpecialNodesFinalization
        back.StridedSliceMasksNormalizer back.TopKNormalizer back.blob_normalizer back.op_versioning
        back.priorbox_mutation""",
    ),
)


def names() -> tuple[tuple[str, str], ...]:
    """Return each name of the table with its reason."""
    return tuple((name, reason) for reason, listed in REFUSED for name in listed.split())


def reasons(key: str) -> list[str]:
    """Return the reasons for a transformation, `module.class`."""
    return [reason for name, reason in names() if f"{key}.".startswith(f"{name}.")]
