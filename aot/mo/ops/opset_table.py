"""Classes for operations of OpenVINO's sets, by module.

    MODULE
        CLASS,CLASS(BASE)  op  type  set  inputs  outputs  attribute=default ...
    MODULE: CLASS ...

`.` is the class's name, `-` nothing. `back` lists the attributes of files where no set has the operation; else the
operation's definition does. Source: Model Optimizer 2024.6, asked by making one node of each class.
"""

TABLE = """
Cast: Cast . Convert 1 1 1 dst_type=None
ConvertLike: ConvertLike . . 1 2 1
DetectionOutput
    DetectionOutput . . 8 3 1 input_width=1 input_height=1 normalized=True share_location=True clip_after_nms=False
        clip_before_nms=False decrease_label_id=False variance_encoded_in_target=False
ExtractImagePatches: ExtractImagePatches . . 3 1 1
GRU
    GRU . RNNSequence - 6 2 blobs_wrb=False has_num_directions=False direction='forward' multiplier=3
        multilayers=False gate_order=[0,1,2] normalized=False activation_alpha=None activation_beta=None
        activations=None clip=None linear_before_reset=None
        back=hidden_size,direction,axis,activations,activations_alpha,activations_beta,clip,linear_before_reset
GRUCell: GRUCell . . 3 4 1 wr_input_id=2 gates_count=3 linear_before_reset=False
GatherTree: GatherTree . . 1 4 1
If: If . . 8 - -
LSTM
    LSTM . RNNSequence - 7 3 blobs_wrb=False has_num_directions=False direction='forward' multiplier=4 gate_order=None
        normalized=False multilayers=False format=None activation_alpha=None activation_beta=None activations=None
        clip=None input_forget=None
        back=hidden_size,direction,axis,activations,activations_alpha,activations_beta,clip
MatMul
    MatMul . . 1 2 1 transpose_a=False transpose_b=False
    FullyConnected . . - 3 1 back=out-size
    Gemm(MatMul) GEMM GEMM 1 2 1 back=transpose_a,transpose_b
RNN
    RNN . RNNSequence - 6 2 blobs_wrb=False has_num_directions=False direction='forward' multiplier=1 gate_order=[0]
        normalized=False activation_alpha=None activation_beta=None activations=None clip=None
        back=hidden_size,direction,axis,activation_alpha,activation_beta,activations,clip
RNNCell: RNNCell . . 3 4 1 wr_input_id=2 gates_count=1
ReduceOps
    ReduceSum,ReduceProd,ReduceMin,ReduceMax,ReduceMean,ReduceLogicalAnd,ReduceLogicalOr(ReduceOp) . . 1 2 1
    ReduceL1,ReduceL2(ReduceOp) . . 4 2 1
    ReduceAnd(ReduceOp) . ReduceLogicalAnd 1 2 1
activation: Activation . . - 1 1 back=type,alpha
activation_ops
    Sigmoid,Sin,Sinh,Asin,Cos,Cosh,Acos,Tan,Tanh,Atan,Exp,ReLU,Erf,Floor,Ceiling,Abs,Sign,LogicalNot,Log(Activation) .
        . 1 1 1
    Asinh,Acosh,Atanh,SoftPlus,Mish,HSwish(Activation) . . 4 1 1
    ReLU6(AttributedClamp) AttributedClamp Clamp 1 1 1 min=0 max=6
    Elu(Activation) . . 1 1 1 alpha=1.0
    LeakyReLU . . - 1 1 back=negative_slope
    HSigmoid(Activation) . . 5 1 1
    Swish . . 4 2 1
    SoftSign(Activation) . . 9 1 1
assign: Assign . . 6 1 1
broadcast: Broadcast . . 3 3 1 mode='numpy' force_precision_in_ports={1:'int64',2:'int64'}
bucketize: Bucketize . . 3 2 1
clamp: AttributedClamp . Clamp 1 1 1
concat: Concat . . 1 - 1 axis=1
convolution: Convolution . . 1 3 1 multiplication_transparent=True multiplication_transparent_ports=[[0,0],[1,0]]
ctc_greedy_decoder
    CTCGreedyDecoderOp CTCGreedyDecoder CTCGreedyDecoder 1 2 1 reinterp_shape=True ctc_merge_repeated=True
ctc_greedy_decoder_seq_len
    CTCGreedyDecoderSeqLenOp CTCGreedyDecoderSeqLen CTCGreedyDecoderSeqLen 6 3 2 merge_repeated=True
        classes_index_type=int32 sequence_length_type=int32
ctc_loss: CTCLoss . . 4 5 1 preprocess_collapse_repeated=False ctc_merge_repeated=True unique=False
cumsum: CumSum . . 3 2 1
deconvolution: Deconvolution . . 1 3 1 back=dilations,strides,pads_begin,pads_end,auto_pad
deformable_convolution
    DeformableConvolution . . 8 3 1 group=1 deformable_group=1 multiplication_transparent=True
        multiplication_transparent_ports=[[0,0],[2,0]] bilinear_interpolation_pad=False
depth_to_space: DepthToSpaceOp DepthToSpace DepthToSpace 1 1 1 mode='blocks_first'
detection_output_onnx: ExperimentalDetectronDetectionOutput . . 6 4 3
dft
    DFT,IDFT(FFTBase) . . 7 3 1
    RDFT . . 9 3 1
    IRDFT(FFTBase) . . 9 3 1
einsum: Einsum . . 7 - 1
elementwise
    Add,SquaredDifference,Maximum,Minimum,FloorMod,Mod(Elementwise) . . 1 2 1
    BiasAdd(Add) Add . 1 2 1 back=auto_broadcast
    Sub(Elementwise) . Subtract 1 2 1
    Mul(Elementwise) . Multiply 1 2 1
    Div(Elementwise) . Divide 1 2 1
    Pow(Elementwise) . Power 1 2 1
    Greater,GreaterEqual,Less,LessEqual,Equal,NotEqual,LogicalOr,LogicalAnd(LogicalElementwise) . . 1 2 1
    Round(UnaryElementwise) . . 5 1 1 mode='half_to_even'
    LogicalXor(Elementwise) . . 1 2 1 back=auto_broadcast
    Negative,Sqrt(UnaryElementwise) . . 1 1 1
    BitwiseAnd,BitwiseOr,BitwiseXor(Elementwise) . . 13 2 1
    BitwiseNot(UnaryElementwise) . . 13 1 1
eltwise: Eltwise Add . - 2 1 back=operation
embedding_bag
    EmbeddingBagOffsetsSum(EmbeddingBagBase) . . 3 5 1
    EmbeddingBagPackedSum(EmbeddingBagBase) . . 3 3 1
    EmbeddingSegmentsSum(EmbeddingBagBase) . . 3 6 1
eye: Eye . . 9 4 1 output_type=float32
fakequantize: FakeQuantize . . 1 5 1 auto_broadcast='numpy'
gather
    Gather . . 8 3 1 batch_dims=0 reinterp_shape=True force_precision_in_ports={1:'int32',2:'int64'}
    AttributedGather . Gather - 2 1 axis=0 reinterp_shape=True force_precision_in_ports={1:'int32'} back=axis
gatherelements: GatherElements . . 6 2 1 axis=0
gathernd: GatherND . . 8 2 1 batch_dims=0
gelu: GeLUOP Gelu Gelu 7 1 1
grn: GRNOp GRN GRN 1 1 1
group_norm: GroupNormalization . . 12 3 1 num_groups=None epsilon=None
hard_sigmoid: HardSigmoid . . 1 3 1
interp
    InterpOp Interp Interp - 2 1 factor=None align_corners=1 parse_2nd_input='value'
        back=height,width,zoom_factor,shrink_factor,factor,pad_beg,pad_end,align_corners
interpolate
    Interpolate . . 1 2 1 axes=None mode=None align_corners=0 antialias=0 pads_begin=0 pads_end=0
        force_precision_in_ports={1:'int64'}
log_softmax: LogSoftmax . . 5 1 1 axis=1
loop: Loop(TensorIterator) . . 5 - -
lrn: LRN . . 1 2 1 bias=1 region='across'
lstm_cell: LSTMCell . . 4 5 2 wr_input_id=3 gates_count=4
memory: Memory . . - 1 1 id=None size=None index=None back=id,size,index
multinomial: Multinomial . . 13 2 1 with_replacement=False log_probs=False global_seed=0 op_seed=0 convert_type=int64
mvn: MVN . . 6 2 1 eps=None normalize_variance=None eps_mode=None
nms_rotated: NMSRotated . . 13 5 3 sort_result_descending=True output_type=int64 clockwise=True
non_max_suppression
    NonMaxSuppression . . 9 5 3 output_type=int64 box_encoding='corner' sort_result_descending=1
        force_precision_in_ports={2:'int64'}
non_zero: NonZero . . 3 1 1
normalize_l2: NormalizeL2Op NormalizeL2 NormalizeL2 1 2 1 eps=None p=None eps_mode=None
one_hot: OneHot . . 1 4 1 axis=-1 data_type=None force_precision_in_ports={1:'int64'}
pad: Pad . . 1 4 1 mode='constant' force_precision_in_ports={1:'int64',2:'int64'}
permute: Permute . . - 1 1 order=None back=order
power: AttributedPower . Power - 1 1 power=1 scale=1 shift=0 back=power,scale,shift
prelu: PReLU . . 1 2 1 force_precision_in_ports={1:'float'}
priorbox
    PriorBoxOp PriorBox PriorBox 1 2 1 flip=True clip=True scale_all_sizes=True max_size=[] min_size=[]
        aspect_ratio=[] density=[] fixed_size=[] fixed_ratio=[]
priorbox_clustered: PriorBoxClusteredOp PriorBoxClustered PriorBoxClustered 1 2 1 clip=True
priorgridgenerator_onnx: ExperimentalDetectronPriorGridGenerator . . 6 - -
proposal
    ProposalOp Proposal Proposal 4 3 2 post_nms_topn=300 normalize=False clip_before_nms=True clip_after_nms=False
proposal_onnx
    ExperimentalDetectronGenerateProposalsSingleImage . . experimental - -
        back=min_size,nms_threshold,post_nms_count,pre_nms_count
proposal_python_example: ProposalPythonExampleOp Proposal Proposal - - - post_nms_topn=300
psroipooling
    PSROIPoolingOp PSROIPooling PSROIPooling 2 2 1 mode='average' trans_std=0 no_trans=True
    DeformablePSROIPoolingOp(PSROIPoolingOp) DeformablePSROIPooling DeformablePSROIPooling 1 3 1
        mode='bilinear_deformable'
random_uniform: RandomUniform . . 8 3 1 global_seed=0 op_seed=0 output_type=float32
range: Range . . 4 3 1
read_value: ReadValue . . 6 1 1
regionyolo: RegionYoloOp RegionYolo RegionYolo 1 1 1
reorgyolo: ReorgYoloOp ReorgYolo ReorgYolo 2 - -
reshape: Reshape . . 1 2 1 special_zero=True reinterp_shape=True
reverse_sequence: ReverseSequence . . 1 2 1 seq_axis=None batch_axis=0
roialign: ROIAlign . . 9 3 1 aligned_mode='asymmetric'
roifeatureextractor_onnx: ExperimentalDetectronROIFeatureExtractor . . 6 - 2
roipooling: ROIPooling . . 2 2 1 pooled_h=None pooled_w=None spatial_scale=0.0625 method='max'
roll: Roll . . 7 3 1
scale_shift: ScaleShiftOp ScaleShift ScaleShift - 3 1
scatter: ScatterElementsUpdate,ScatterUpdate(Scatter) . . 3 4 1 reduction=None use_init_val=None
scatternd: ScatterNDUpdate(ScatterNDBase) . . 4 3 1
select: Select . . 1 3 1 auto_broadcast='numpy'
shape: Shape ShapeOf ShapeOf 3 1 1 output_type=int64
shufflechannel: ShuffleChannels . . 3 1 1 axis=1 group=None
softmax: Softmax SoftMax SoftMax 8 1 1 axis=1
space_to_batch: SpaceToBatch,BatchToSpace . . 2 3 1
space_to_depth: SpaceToDepth . . 1 1 1 mode='blocks_first'
split
    VariadicSplit(VariadicSplitBase) . . 1 3 -
    Split(SplitBase) . . 1 2 -
    AttributedSplit(SplitBase) . Split 1 1 - axis=1
squeeze: Squeeze . . 1 2 1 squeeze_dims=None reinterp_shape=True keep_at_least_1d=0
strided_slice: StridedSlice . . 1 4 1
tensor_iterator: TensorIterator . . 1 - -
tile: Tile . . 1 2 1
topk: TopK . . 3 3 2 index_element_type=int32 axis=None mode='max' sort='none' force_precision_in_ports={1:'int32'}
topkrois_onnx: ExperimentalDetectronTopKROIs . . experimental - - back=max_rois
transpose: Transpose . . 1 2 1 force_precision_in_ports={1:'int64'}
unsqueeze: Unsqueeze . . 1 2 1 unsqueeze_dims=None reinterp_shape=True
"""
