"""Classes for operations that no set has, in the form of `opset_table`: transformations must replace them.

Source: Model Optimizer 2024.6, asked by making one node of each class.
"""

TABLE = """
BN: BN . - - 5 1
BatchNormInference: BatchNormInference batchNormInference - - 5 1
BlockLSTM: BlockLSTM . - - - -
ClipByValueTF: ClibByValueTF ClipByValueTF - - 3 1
Complex: Complex . - - 2 1
Enter: Enter . - - 1 -
Exit: Exit . - - 1 -
GRUBlockCell: GRUBlockCell . - - 6 4
LookupTableInsert: LookupTableInsert . - - 3 1
MatMul: GemmONNX Gemm - - 3 1 transpose_a=False transpose_b=False alpha=1 beta=1 broadcast_c=True
NextIteration: NextIteration . - - 1 -
ONNXResize10: ONNXResize10 . - - 2 1
ONNXResize11
    ONNXResize11Op ONNXResize11 - - - 1
        back=coordinate_transformation_mode,cube_coeff,exclude_outside,extrapolation_value,mode,nearest_mode
ReduceOps: ReduceOp - - 1 2 1 keep_dims=False force_precision_in_ports={1:'int64'} back=keep_dims
Reverse: Reverse . - - 2 1 axis=None
TFFFT: TFFFT . - - 1 1
TFResize: TFResize . - - 2 1
TensorArray: TensorArray TensorArrayV3 - - - -
TensorArrayGather: TensorArrayGather TensorArrayGatherV3 - - - -
TensorArrayRead: TensorArrayReader TensorArrayReadV3 - - - -
TensorArrayScatter: TensorArrayScatter TensorArrayScatterV3 - - - -
TensorArraySize: TensorArraySize TensorArraySizeV3 - - - -
TensorArrayWrite: TensorArrayWriter TensorArrayWriteV3 - - - -
TensorIterator_ops
    TensorIteratorInput,TensorIteratorOutput . - - 3 1 axis=None start=None end=None stride=None part_size=None
        back=external_port_id,internal_layer_id,internal_port_id,axis,start,stride,part_size
    TensorIteratorCondition . - - 2 2
    TensorIteratorBackEdge . - - 3 1
activation_ops
    Activation - - 1 1 1
    ThresholdedRelu(Activation) . - 1 1 1 alpha=1.0
adaptive_avg_pooling: AdaptiveAvgPooling . - - 1 1
argmax: ArgMaxOp ArgMax - - 2 1 output_type=int64 back=out_max_val,top_k,axis
argmin: ArgMinOp ArgMin - - 2 1 output_type=int64 back=top_k,axis
assert_op: Assert . - - - -
aten: ATen . - - - - back=mode,operator
axpy: AxpyOp Axpy - - - -
binarization: Binarization . - - 1 1 dst_type=None
box_nms
    BoxNms _contrib_box_nms - - - - coord_start=2 force_suppress=False id_index=0 overlap_thresh=0.45 score_index=1
        topk=400 valid_thresh=0.01
        back=coord_start,force_suppress,id_index,overlap_thresh,score_index,topk,valid_thresh
clamp: Clamp . - - 3 1
constant_fill: ConstantFill . - - 1 1 input_as_shape=1 back=input_as_shape,fill_value
constant_of_shape: ConstantOfShape . - - 1 1 fill_value=0 back=fill_value
copyop: CopyOp copy - - - -
crop: Crop . - - 2 1 back=axis,offset,dim,crop_begin,crop_end
dequantize_linear: DequantizeLinear . - - 3 1 axis=None back=axis
dft: FFTBase - - 7 3 1
dropoutmask: DropoutMask dropoutmaskcomponent - - 0 1 dropout_proportion=None
elementwise
    Elementwise - - 1 2 1 can_be_bias=True can_be_fused=True is_eltwise=True stop_value_propagation=False
        auto_broadcast='numpy' back=auto_broadcast
    UnaryElementwise(Elementwise) - - 1 1 1
    LogicalElementwise(Elementwise) - - 1 2 1 back=auto_broadcast
eltwise_n
    EltwiseN . - - - 1
    EltwiseNMul,EltwiseNMin,EltwiseNMax,EltwiseNAdd(EltwiseN) EltwiseN - - - 1
eltwise_ninputs_in_1: EltwiseNin1 . - - - 1
embedding_bag
    EmbeddingBagBase - - - - 1
    EmbeddingSegmentsMean . - - 6 1
expand_dims: ExpandDims . - - 1 1 reinterp_shape=True expand_axis=None
eye: TFEye . - - 3 1 output_type=float32
fake_output: FakeOutput . - - 1 1
fill: Fill . - - 2 1
flatten
    Flatten . - - 1 1 axis=None end_axis='-1'
    FlattenONNX . - - 1 1 axis=None
group_norm: GroupNorm . - - 3 1
identity
    Identity . - - 1 1 identity=True
    IdentityN . - - - -
instance_normalization: InstanceNormalization . - - - - epsilon=None back=epsilon
layer_norm: LayerNorm . - - 1 3 axis=-1 epsilon=0.001 output_mean_var=False
log_softmax: LogSoftmaxONNX . - - 1 1 axis=1
lrn: AttributedLRN . - - 1 1 bias=1 region='across'
lstm_sequence
    LSTMSequence . - - - - blobs_wrb=False has_num_directions=False direction='forward' num_layers=1
        back=hidden_size,activations,activations_alpha,activations_beta,clip,direction
lstmnonlinearity: LstmNonLinearity . - - 1 1 use_dropout=False
memoryoffset: MemoryOffset . - - 1 1 pair_name=None splitted=False has_default=False
merge: Merge . - - - -
mvn
    MVNOnnx . - - 1 1 eps=None eps_mode=None normalize_variance=None axes=None
    MVNCaffe . - - 1 1 eps=1e-09 normalize_variance=None across_channels=None
mxfft: MXFFT . - - 1 1
mxrepeat: MXRepeat . - - 1 1
normalize: NormalizeOp Normalize - - 2 1
pack: PackOp Pack - - - 1 back=axis
pad
    AttributedPad . - - 1 1 mode='constant' fill_value=0.0 pads=None
    TFPad,ONNXPad . - - 3 1 mode='constant'
pnorm: PNormOp pnorm - - 1 1
pooling
    PoolingV2 . - - 3 1
    Pooling . - - 1 1
quantize_linear: QuantizeLinear . - - 3 1 axis=None back=axis
random_uniform: AttributedRandomUniform . - - 1 1 global_seed=0 op_seed=0 output_type=float32
rank: Rank . - - 1 1 output_type=int64
resize: ResizeOp Resize - - 2 1 back=mode
restrictedattentioncomponent: RestrictedAttentionComponent restrictedattentioncomponent - - 1 1 has_default=False
roll: AttributedRoll . - - 3 1 shift=None axes=None
scatter
    Scatter - - - 4 1 is_scatter=True
    ScatterElementsAdd,ScatterElementsDiv,ScatterElementsMax,ScatterElementsMin,ScatterElementsMul,ScatterElementsSub,ScatterAdd,ScatterDiv,ScatterMax,ScatterMin,ScatterMul,ScatterSub(Scatter)
        . - - 4 1
scatternd
    ScatterNDBase - - - 3 1
    TFScatterND . - - 3 1
size: Size . - - 1 1
slice
    AttributedSlice,CaffeSlice . - - 1 1
    TFSlice . - - 3 1
    Slice,OvSlice . - - 5 1
slice_like: SliceLike slice_like - - 2 1
softmax: SoftmaxONNX SoftMaxONNX - - 1 1 axis=1
sparse_fill_empty_rows: SparseFillEmptyRows . - experimental 4 3
sparse_reshape: SparseReshape . - - 3 2
sparse_segment_mean: SparseSegmentMean . - experimental 3 1
sparse_segment_sqrtn: SparseSegmentSqrtN . - experimental 3 1
sparse_segment_sum: SparseSegmentSum . - experimental 3 1
splice: Splice . - - 1 1 const_dim=0
split
    VariadicSplitBase,SplitBase - - - - -
    AttributedVariadicSplit(VariadicSplitBase) . - - 1 -
stop_gradient: StopGradientOp StopGradient - - 1 1 identity=True
swapaxis: SwapAxis . - - 1 1
switch: Switch . - - - -
tdnncomponent: TdnnComponent tdnncomponent - - 1 1
tile: AttributedTile . - - 1 1
timeheightconvolution: TimeHeightConvolutionComponent timeheightconvolutioncomponent - - 1 1
unique: Unique . - experimental 1 3 back=sorted,return_inverse,return_counts
upsample: UpsampleOp Upsample - - 2 1 back=height_scale,width_scale,mode
"""
