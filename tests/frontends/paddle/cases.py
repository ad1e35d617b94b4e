"""Operations of PaddlePaddle: what is called there, and the inputs. `make.py` stores the files and the results."""

from __future__ import annotations

import numpy as np

from tests.frontends.paddle.case import Case, both, cases_of, interpolated, ints, network, numbers, older
from tests.frontends.paddle.control_cases import CONTROL_CASES

X = numbers(2, 3, 4)
Y = numbers(2, 3, 4, seed=2)
IMAGE = numbers(2, 4, 6, 7)
POSITIVE = numbers(2, 3, 4, low=0.2, high=3)
SMALL = numbers(2, 3, 4, low=-0.9, high=0.9)
N = ints([[1, 5, -3], [0, 2, 7]])
GRU = [numbers(15, n, seed=i) for i in (1, 2) for n in (3, 5)] + [numbers(15, seed=i) for i in range(4)]
CORNERS = numbers(2, 8, 2, low=0, high=0.6)
BOXES = np.concatenate([CORNERS, CORNERS + numbers(2, 8, 2, low=0.1, high=0.4)], -1)
SCORES = numbers(2, 3, 8, low=0, high=1)
ONE = "abs atan asinh ceil cos erf exp floor sign sin sinh cosh tan tanh square expm1 trunc"
POSITIVES = "log log2 log10 log1p sqrt rsqrt reciprocal"
SMALLS = "acos asin atanh"
TWO = "add subtract multiply divide maximum minimum less_than less_equal greater_than greater_equal"
SAME = "equal not_equal"
BOOLEAN = "logical_and logical_or logical_xor"
BITS = "bitwise_and bitwise_or bitwise_xor"
ACTIVATIONS = (
    "relu relu6 silu softsign leaky_relu elu celu selu gelu swish hardswish hardsigmoid mish softplus softshrink "
    "hardshrink tanhshrink thresholded_relu log_sigmoid sigmoid log_softmax softmax hardtanh"
)

CASES: tuple[Case, ...] = (
    *cases_of(ONE, [X]),
    *cases_of(POSITIVES, [POSITIVE]),
    *cases_of(SMALLS, [SMALL]),
    Case("acosh", lambda p, x: p.acosh(x), [POSITIVE + 1]),
    *cases_of(TWO, [X, numbers(3, 1)]),
    *cases_of(SAME, [N, ints([1, 2, 7])]),
    *cases_of(BOOLEAN, [X > 0, Y > 0]),
    Case("logical_not", lambda p, x: p.logical_not(x), [X > 0]),
    *cases_of(BITS, [N, ints([[6, 3, 1], [2, 2, 5]])]),
    Case("bitwise_not", lambda p, x: p.bitwise_not(x), [N]),
    *cases_of(ACTIVATIONS, [numbers(2, 3, 5, low=-5, high=5)], "f"),
    Case("gelu_tanh", lambda p, x: p.nn.functional.gelu(x, approximate=True), [X]),
    Case("leaky_slope", lambda p, x: p.nn.functional.leaky_relu(x, 0.3), [X]),
    Case("softplus_beta", lambda p, x: p.nn.functional.softplus(x, 2.0, 1.5), [X]),
    Case("stanh", lambda p, x: p.stanh(x, 0.5, 2.0), [X]),
    Case("prelu_one", lambda p, x, a: p.nn.functional.prelu(x, a), [X, numbers(1)]),
    Case("prelu_channel", lambda p, x, a: p.nn.functional.prelu(x, a), [IMAGE, numbers(4)]),
    Case("remainder", lambda p, x, y: p.remainder(x, y), [N, ints([2, -3, 4])]),
    Case("remainder_reals", lambda p, x, y: p.remainder(x, y), [X, Y]),
    Case("floor_divide", lambda p, x, y: p.floor_divide(x, y), [N, ints([2, -3, 4])]),
    Case("power", lambda p, x, y: p.pow(x, y), [POSITIVE, Y]),
    Case("pow", lambda p, x: (p.pow(x, 2.0), p.pow(x, 0.5)), [POSITIVE]),
    Case("atan2", lambda p, x, y: p.atan2(x, y), [X, Y]),
    Case("add_n", lambda p, x, y: p.add_n([x, y, x]), [X, Y]),
    Case("scale", lambda p, x: (2 * x + 1, p.scale(x, 3.0, 2.0, bias_after_scale=False)), [X]),
    Case("scale_ints", lambda p, x: x * 2 - 1, [N]),
    Case("increment", lambda p, x: older(p, "increment", {"X": x}, "float32", step=2.0), [numbers(1)]),
    Case("clip", lambda p, x: p.clip(x, -0.5, 1.0), [X]),
    Case("clip_ints", lambda p, x: p.clip(x, -1, 4), [N]),
    Case("round", lambda p, x: p.round(x), [X * 2]),
    Case("where", lambda p, c, x, y: p.where(c, x, y), [X > 0, X, Y]),
    Case("cast", lambda p, x: (p.cast(x, "int32"), p.cast(x > 0, "float32"), p.cast(x, "float64")), [X]),
    Case("isfinite", lambda p, x: (p.isfinite(1 / x), p.isinf(1 / x), p.isnan(x / x)), [N.astype(np.float32)]),
    # reductions
    Case("sum", lambda p, x: (p.sum(x), p.sum(x, [0, 2]), p.sum(x, -1, keepdim=True)), [X]),
    Case("sum_ints", lambda p, x: (p.sum(x, 1), p.sum(x > 0)), [N.astype(np.int32)]),
    Case("mean", lambda p, x: (p.mean(x), p.mean(x, [1, -1]), p.mean(x, 1, keepdim=True)), [X]),
    Case("extremes", lambda p, x: (p.max(x, 1), p.min(x), p.amax(x, [0, 1]), p.amin(x, -1, True)), [X]),
    Case("prod", lambda p, x: p.prod(x, 1), [X]),
    Case("all", lambda p, x: (p.all(x, 1), p.any(x, [0, 2]), p.any(x)), [X > -1.5]),
    Case("logsumexp", lambda p, x: (p.logsumexp(x, 1), p.logsumexp(x)), [X]),
    Case("p_norm", lambda p, x: [p.norm(x, n, 1) for n in (1, 2, 3, float("inf"))], [X]),
    Case("normalize", lambda p, x: p.nn.functional.normalize(x, axis=1), [X]),
    Case("argmax", lambda p, x: (p.argmax(x, 1), p.argmax(x), p.argmin(x, -1, keepdim=True)), [X]),
    Case("cumsum", lambda p, x: (p.cumsum(x, 1), p.cumsum(x)), [X]),
    # products
    Case("matmul", lambda p, x, y: (p.matmul(x, y, transpose_y=True), p.matmul(x, y, transpose_x=True)), [X, Y]),
    Case("bmm", lambda p, x, y: p.bmm(x, y), [X, numbers(2, 4, 5)]),
    Case(
        "addmm",
        lambda p, c, x, y: p.addmm(c, x, y, beta=0.5, alpha=2.0),
        [numbers(3, 5), numbers(3, 4), numbers(4, 5)],
    ),
    Case("dot", lambda p, x, y: p.dot(x, y), [numbers(3, 4), numbers(3, 4, seed=2)]),
    Case("linear", lambda p, x, w, b: p.nn.functional.linear(x, w, b), [X, numbers(4, 5), numbers(5)]),
    # windows
    Case(
        "conv2d",
        lambda p, x, w, b: p.nn.functional.conv2d(x, w, b, stride=2, padding=[1, 2], dilation=[1, 2]),
        [IMAGE, numbers(5, 4, 3, 2), numbers(5)],
    ),
    Case(
        "conv2d_pads", lambda p, x, w: p.nn.functional.conv2d(x, w, padding=[0, 1, 2, 3]), [IMAGE, numbers(3, 4, 3, 3)]
    ),
    Case(
        "conv2d_same",
        lambda p, x, w: p.nn.functional.conv2d(x, w, stride=2, padding="SAME"),
        [IMAGE, numbers(3, 4, 3, 2)],
    ),
    Case(
        "conv2d_groups",
        lambda p, x, w: p.nn.functional.conv2d(x, w, groups=2, padding="VALID"),
        [IMAGE, numbers(6, 2, 3, 3)],
        fixed=True,
    ),
    Case(
        "depthwise",
        lambda p, x, w: p.nn.functional.conv2d(x, w, groups=4, padding=1),
        [IMAGE, numbers(4, 1, 3, 3)],
        fixed=True,
    ),
    Case(
        "conv2d_last",
        lambda p, x, w: p.nn.functional.conv2d(x, w, data_format="NHWC"),
        [numbers(2, 6, 7, 4), numbers(3, 4, 3, 3)],
    ),
    Case(
        "conv3d",
        lambda p, x, w: p.nn.functional.conv3d(x, w, padding=1),
        [numbers(1, 2, 4, 4, 3), numbers(3, 2, 3, 3, 3)],
    ),
    Case(
        "conv2d_transpose",
        lambda p, x, w: p.nn.functional.conv2d_transpose(x, w, stride=2, padding=1, output_padding=1),
        [IMAGE, numbers(4, 3, 3, 3)],
    ),
    Case(
        "conv2d_transpose_size",
        lambda p, x, w: p.nn.functional.conv2d_transpose(x, w, stride=2, groups=2, output_size=[14, 15]),
        [IMAGE, numbers(4, 3, 3, 3)],
        fixed=True,
    ),
    Case(
        "depthwise_transpose",
        lambda p, x, w: p.nn.functional.conv2d_transpose(x, w, stride=2, groups=4),
        [IMAGE, numbers(4, 1, 2, 2)],
        fixed=True,
    ),
    Case("max_pool2d", lambda p, x: p.nn.functional.max_pool2d(x, 3, 2, 1), [IMAGE]),
    Case("max_pool2d_up", lambda p, x: p.nn.functional.max_pool2d(x, 2, 2, ceil_mode=True), [IMAGE]),
    Case("max_pool2d_places", lambda p, x: p.nn.functional.max_pool2d(x, 2, 2, return_mask=True), [IMAGE]),
    Case("avg_pool2d", lambda p, x: p.nn.functional.avg_pool2d(x, 3, 2, [1, 0, 1, 1]), [IMAGE]),
    Case("avg_pool2d_padded", lambda p, x: p.nn.functional.avg_pool2d(x, 3, 2, 1, exclusive=False), [IMAGE]),
    Case(
        "global_pool",
        lambda p, x: (p.nn.functional.adaptive_avg_pool2d(x, 1), p.nn.functional.adaptive_max_pool2d(x, 1)),
        [IMAGE],
    ),
    Case(
        "adaptive_pool",
        lambda p, x: (p.nn.functional.adaptive_avg_pool2d(x, [3, 2]), p.nn.functional.adaptive_max_pool2d(x, 4)),
        [IMAGE],
    ),
    Case("avg_pool3d", lambda p, x: p.nn.functional.avg_pool3d(x, 2, 2), [numbers(1, 2, 4, 4, 6)]),
    # normalisation
    Case(
        "batch_norm",
        lambda p, x, m, v, w, b: p.nn.functional.batch_norm(x, m, v, w, b, epsilon=1e-3),
        [IMAGE, numbers(4), numbers(4, low=0.5), numbers(4, seed=3), numbers(4, seed=4)],
    ),
    Case(
        "batch_norm_last",
        lambda p, x, m, v, w, b: p.nn.functional.batch_norm(x, m, v, w, b, data_format="NHWC"),
        [IMAGE, numbers(7), numbers(7, low=0.5), numbers(7, seed=3), numbers(7, seed=4)],
    ),
    Case("layer_norm", lambda p, x, w, b: p.nn.functional.layer_norm(x, 4, w, b), [X, numbers(4), numbers(4, seed=2)]),
    Case(
        "layer_norm_axes",
        lambda p, x, w, b: p.nn.functional.layer_norm(x, [3, 4], w, b),
        [X, numbers(12), numbers(12, seed=2)],
    ),
    Case("layer_norm_plain", lambda p, x: p.nn.functional.layer_norm(x, [3, 4]), [X]),
    Case(
        "group_norm",
        lambda p, x, w, b: p.nn.functional.group_norm(x, 2, 1e-5, w, b),
        [IMAGE, numbers(4), numbers(4, seed=2)],
        fixed=True,
    ),
    Case("instance_norm", lambda p, x: p.nn.functional.instance_norm(x), [IMAGE], fixed=True),
    Case(
        "dropout",
        lambda p, x: (
            p.nn.functional.dropout(x, 0.3, training=False),
            p.nn.functional.dropout(x, 0.3, training=False, mode="downscale_in_infer"),
        ),
        [X],
    ),
    # shapes and movement
    Case("shape", lambda p, x: (p.shape(x), p.numel(x)), [X]),
    Case("assign", lambda p, x: p.assign(x), [X]),
    Case("reshape", lambda p, x: p.reshape(x, [0, -1, 2]), [X]),
    Case("reshape_sizes", lambda p, x, y: p.reshape(x, [p.shape(y)[0], -1]), [X, numbers(4)]),
    Case("flatten", lambda p, x: (p.flatten(x), p.flatten(x, 1, 2), p.flatten(x, 2, 3)), [IMAGE]),
    Case("squeeze", lambda p, x: (p.squeeze(x, [1, -1]), p.squeeze(x, 0)), [numbers(2, 1, 3, 1)], fixed=True),
    Case("unsqueeze", lambda p, x: p.unsqueeze(x, [0, -1]), [X]),
    Case("transpose", lambda p, x: p.transpose(x, [2, 0, 1]), [X]),
    Case("expand", lambda p, x: p.expand(x, [2, 3, -1, 4]), [numbers(3, 5, 1)], fixed=True),
    Case("expand_as", lambda p, x, y: p.expand_as(x, y), [numbers(3, 1), X]),
    Case("tile", lambda p, x: p.tile(x, [2, 1, 2]), [X]),
    Case("flip", lambda p, x: p.flip(x, [0, -1]), [X]),
    Case("roll", lambda p, x: (p.roll(x, [1, -2], [0, 2]), p.roll(x, 3)), [X]),
    Case("pixel_shuffle", lambda p, x: p.nn.functional.pixel_shuffle(x, 2), [IMAGE]),
    Case("channel_shuffle", lambda p, x: p.nn.functional.channel_shuffle(x, 2), [IMAGE]),
    Case("unfold", lambda p, x: p.nn.functional.unfold(x, [3, 2], 2, [1, 0], 1), [IMAGE], fixed=True),
    Case("concat", lambda p, x, y: p.concat([x, y, x], -1), [X, Y]),
    Case("stack", lambda p, x, y: (p.stack([x, y], 1), p.stack([x, y], -1)), [X, Y]),
    Case("split", lambda p, x: (*p.split(x, 2, 0), *p.split(x, [1, -1], 1)), [X], fixed=True),
    Case("chunk", lambda p, x: p.chunk(x, 3, 1)[1], [X], fixed=True),
    Case("unbind", lambda p, x: (*p.unbind(x, 1), p.unstack(x, 0)[1]), [X], fixed=True),
    Case("meshgrid", lambda p, x, y: p.meshgrid(x, y), [numbers(3), numbers(4)]),
    Case("slice", lambda p, x: (x[:, 1:, :-1], x[-1], x[:, 0, 2:3], x[1:2, -2:]), [X]),
    Case("strided_slice", lambda p, x: (x[:, ::2], x[:, :, ::-1]), [X]),
    Case("gather", lambda p, x, i: (p.gather(x, i), p.gather(x, i, 1), p.index_select(x, i, 2)), [X, ints([1, 0, 1])]),
    Case("gather_nd", lambda p, x, i: p.gather_nd(x, i), [X, ints([[0, 2], [1, 1]])], fixed=True),
    Case("index_sample", lambda p, x, i: p.index_sample(x, i), [numbers(2, 5), ints([[0, 4, 1], [2, 2, 3]])]),
    Case(
        "take_along_axis",
        lambda p, x, i: p.take_along_axis(x, i, 1),
        [numbers(2, 5), ints([[0, 4, 1], [2, 2, 3]])],
        fixed=True,
    ),
    Case(
        "put_along_axis",
        lambda p, x, i, v: (p.put_along_axis(x, i, v, 1), p.put_along_axis(x, i, v, 1, "add")),
        [numbers(2, 5), ints([[0, 4, 1], [2, 1, 3]]), numbers(2, 3)],
        fixed=True,
    ),
    Case(
        "embedding",
        lambda p, i, w: (p.nn.functional.embedding(i, w), p.nn.functional.embedding(i, w, padding_idx=2)),
        [ints([[0, 2, 1]]), numbers(4, 3)],
    ),
    Case(
        "scatter",
        lambda p, x, i, u: (p.scatter(x, i, u), p.scatter(x, i, u, overwrite=False)),
        [numbers(4, 3), ints([1, 3]), numbers(2, 3)],
        fixed=True,
    ),
    Case(
        "scatter_nd_add",
        lambda p, x, i, u: p.scatter_nd_add(x, i, u),
        [numbers(4, 3), ints([[1], [3], [1]]), numbers(3, 3)],
        fixed=True,
    ),
    Case("nonzero", lambda p, x: p.nonzero(x), [N]),
    Case("topk", lambda p, x: (*p.topk(x, 2, 1), *p.topk(x, 2, -1, largest=False)), [X]),
    Case("argsort", lambda p, x: (p.argsort(x, 1), *[p.sort(x, -1, descending=True)]), [X]),
    # numbers
    Case("full", lambda p, x: (p.full([2, 3], 2.5), p.zeros([2], "int64") + x), [ints([3, 4])]),
    Case("full_inf", lambda p, x: p.minimum(p.full([4], float("inf")), x), [X]),
    Case("full_sizes", lambda p, x: p.full([p.shape(x)[0], 2], 1.5), [X]),
    Case("full_like", lambda p, x: (p.full_like(x, 3), p.zeros_like(x), p.ones_like(x, "int32")), [X]),
    Case("assign_value", lambda p, x: x + p.to_tensor([1.5, 2.5, -1.0, 4.0]), [X]),
    Case("arange", lambda p, x: (p.arange(2, 9, 3) + x, p.arange(0.0, 1.0, 0.3)), [ints([1])]),
    Case("arange_sizes", lambda p, x: p.arange(p.shape(x)[1]), [X]),
    Case("linspace", lambda p, x: p.linspace(-1, 2, 7) + x, [numbers(1)]),
    Case("eye", lambda p, x: p.eye(3, 4) + x, [numbers(4)]),
    Case("one_hot", lambda p, x: p.nn.functional.one_hot(x, 5), [ints([0, 4, 2])]),
    Case("triangles", lambda p, x: (p.tril(x, 1), p.triu(x, -1)), [X]),
    # images
    Case("nearest", lambda p, x: interpolated(p, x, "nearest", scale_factor=2), [IMAGE]),
    Case("nearest_size", lambda p, x: interpolated(p, x, "nearest", size=[9, 5]), [IMAGE]),
    Case("bilinear", lambda p, x: interpolated(p, x, "bilinear", size=[9, 15]), [IMAGE]),
    Case("bilinear_corners", lambda p, x: interpolated(p, x, "bilinear", size=[9, 15], align_corners=True), [IMAGE]),
    Case("bilinear_mode", lambda p, x: interpolated(p, x, "bilinear", scale_factor=[1.5, 2], align_mode=1), [IMAGE]),
    Case(
        "bilinear_sizes",
        lambda p, x: interpolated(p, x, "bilinear", size=[p.shape(x)[2] * 2, p.shape(x)[3] + 1]),
        [IMAGE],
    ),
    Case("bicubic", lambda p, x: interpolated(p, x, "bicubic", size=[9, 15]), [IMAGE]),
    Case("linear_interp", lambda p, x: interpolated(p, x, "linear", size=[9], data_format="NCW"), [X]),
    Case(
        "trilinear",
        lambda p, x: interpolated(p, x, "trilinear", size=[5, 6, 7], data_format="NCDHW"),
        [numbers(1, 2, 3, 4, 5)],
    ),
    Case("pad", lambda p, x: p.nn.functional.pad(x, [0, 0, 1, 0, 2, 1], value=1.5), [X]),
    Case(
        "pad_image",
        lambda p, x: [p.nn.functional.pad(x, [1, 2, 3, 1], mode=m) for m in ("constant", "reflect", "replicate")],
        [IMAGE],
    ),
    Case(
        "grid_sample",
        lambda p, x, g: (
            p.nn.functional.grid_sample(x, g),
            p.nn.functional.grid_sample(x, g, mode="nearest", align_corners=False),
        ),
        [IMAGE, numbers(2, 3, 5, 2, low=-1.1, high=1.1)],
    ),
    *CONTROL_CASES,
    Case(
        "lstm",
        lambda p, x, h, c, *w: p._C_ops.rnn(
            x, [h, c], list(w), None, p.zeros([1]), 0.0, False, 3, 5, 1, "LSTM", 0, True
        )[0],
        [
            numbers(4, 2, 3),
            numbers(1, 2, 5),
            numbers(1, 2, 5, seed=2),
            numbers(20, 3),
            numbers(20, 5),
            numbers(20),
            numbers(20, seed=4),
        ],
        fixed=True,
    ),
    Case(
        "gru",
        lambda p, x, h, *w: both(p._C_ops.rnn(x, [h], list(w), None, p.zeros([1]), 0.0, True, 3, 5, 1, "GRU", 0, True)),
        [numbers(4, 2, 3), numbers(2, 2, 5), *GRU],
        fixed=True,
    ),
    Case(
        "gru2",
        lambda p, x, h, *w: older(
            p,
            "rnn",
            {"Input": x, "PreState": [h], "WeightList": list(w)},
            "float32",
            ("Out", "DropoutState", "State", "Reserve"),
            is_bidirec=True,
            input_size=3,
            hidden_size=5,
            num_layers=1,
            mode="GRU",
            is_test=True,
        )[:1],
        [numbers(4, 2, 3), numbers(2, 2, 5), *GRU],
        fixed=True,
    ),
    # boxes
    Case(
        "multiclass_nms",
        lambda p, b, s: p._C_ops.multiclass_nms3(b, s, None, 0.2, 10, 6, 0.4, True, 1.0, -1),
        [BOXES, SCORES],
    ),
    Case(
        "multiclass_nms2",
        lambda p, b, s: older(
            p,
            "multiclass_nms3",
            {"BBoxes": b, "Scores": s},
            "float32",
            ("Out", "Index", "NmsRoisNum"),
            score_threshold=0.2,
            nms_top_k=10,
            keep_top_k=6,
            nms_threshold=0.4,
            background_label=0,
        ),
        [BOXES, SCORES],
    ),
    Case(
        "matrix_nms",
        lambda p, b, s: p.vision.ops.matrix_nms(b, s, 0.2, 0.1, 10, 6, background_label=-1, return_index=True),
        [BOXES, SCORES],
    ),
    Case(
        "roi_align",
        lambda p, x, b, n: (
            p.vision.ops.roi_align(x, b, n, 3, 0.5, 2, True),
            p.vision.ops.roi_align(x, b, n, (2, 3), 0.5, 2, False),
        ),
        [IMAGE, BOXES[0] * 8, ints([5, 3], np.int32)],
    ),
    Case(
        "yolo_box",
        lambda p, x, s: p.vision.ops.yolo_box(x, s, [10, 13, 16, 30], 3, 0.4, 32, scale_x_y=1.1),
        [numbers(2, 16, 3, 4), ints([[96, 128], [80, 100]], np.int32)],
        fixed=True,
    ),
    Case(
        "deformable_conv",
        lambda p, x, o, w, m: p.vision.ops.deform_conv2d(x, o, w, mask=m, padding=1, stride=2),
        [IMAGE, numbers(2, 18, 3, 4), numbers(3, 4, 3, 3), numbers(2, 9, 3, 4, low=0)],
        fixed=True,
    ),
    Case(
        "set_value",
        lambda p, x, y: (
            p.static.setitem(x + 0, (slice(None), slice(1, 3)), 3.0),
            p.static.setitem(x + 0, (0, slice(None), 1), y),
        ),
        [X, numbers(3)],
    ),
    Case("nms", lambda p, b: p.vision.ops.nms(b, 0.3), [BOXES[0]]),
    Case(
        "box_coder",
        lambda p, b, v, x: (
            p.vision.ops.box_coder(b, v, x, "decode_center_size"),
            p.vision.ops.box_coder(b, [0.1, 0.1, 0.2, 0.2], x, "decode_center_size", False),
        ),
        [BOXES[0], numbers(8, 4, low=0.1, high=0.3), numbers(3, 8, 4)],
    ),
    Case("einsum", lambda p, x, y: p.einsum("bij,bkj->bik", x, y), [X, Y]),
    Case("mv", lambda p, x, y: p.mv(x, y), [numbers(3, 4), numbers(4)]),
    Case("lerp", lambda p, x, y: p.lerp(x, y, 0.3), [X, Y]),
    Case("logit", lambda p, x: p.logit(x, 0.01), [numbers(2, 5, low=0, high=1)]),
    Case("masked_fill", lambda p, x, m: p.masked_fill(x, m, 2.5), [X, Y > 0]),
    Case("masked_select", lambda p, x, m: p.masked_select(x, m), [X, Y > 0]),
    Case("cumprod", lambda p, x: p.cumprod(x, 1), [X]),
    Case("repeat_interleave", lambda p, x: p.repeat_interleave(x, 3, 1), [X]),
    Case("pixel_unshuffle", lambda p, x: p.nn.functional.pixel_unshuffle(x, 2), [numbers(2, 3, 4, 6)]),
    Case("maxout", lambda p, x: p.nn.functional.maxout(x, 2), [IMAGE], fixed=True),
    Case("swiglu", lambda p, x, y: (p._C_ops.swiglu(x, None), p._C_ops.swiglu(x, y)), [X, Y], fixed=True),
    # operations that version 2 alone has
    Case("flatten2", lambda p, x: older(p, "flatten2", {"X": x}, "float32", ("Out", "XShape"), axis=2)[:1], [X]),
    Case("mul", lambda p, x, w: older(p, "mul", {"X": x, "Y": w}, "float32", x_num_col_dims=1), [X, numbers(12, 5)]),
    Case(
        "batch_size_like",
        lambda p, x: older(
            p, "fill_constant_batch_size_like", {"Input": x}, "float32", shape=[-1, 3], value=2.5, dtype=5
        ),
        [X],
    ),
    Case(
        "group_norm2",
        lambda p, x, w, b: older(
            p, "group_norm", {"X": x, "Scale": w, "Bias": b}, "float32", ("Y", "Mean", "Variance"), groups=2
        )[:1],
        [IMAGE, numbers(4), numbers(4, seed=2)],
        fixed=True,
    ),
    Case("mean_of_all", lambda p, x: older(p, "mean", {"X": x}, "float32"), [X]),
    Case("norm", lambda p, x: older(p, "norm", {"X": x}, "float32", ("Out", "Norm"), axis=1, epsilon=1e-3)[:1], [X]),
    Case("share_data", lambda p, x: older(p, "share_data", {"X": x}, "float32"), [X]),
    Case("shuffle_channel", lambda p, x: older(p, "shuffle_channel", {"X": x}, "float32", group=2), [IMAGE]),
    Case("squared_l2_norm", lambda p, x: older(p, "squared_l2_norm", {"X": x}, "float32"), [X]),
    Case("tril_triu", lambda p, x: older(p, "tril_triu", {"X": x}, "float32", diagonal=1, lower=False), [X]),
    Case("brelu", lambda p, x: older(p, "brelu", {"X": x}, "float32", t_min=-0.5, t_max=1.0), [X]),
    Case(
        "multiply_matrices",
        lambda p, x, y: older(p, "matmul", {"X": x, "Y": y}, "float32", transpose_Y=True, alpha=2.0),
        [X, Y],
    ),
    Case("reshape1", lambda p, x: older(p, "reshape", {"X": x}, "float32", shape=[0, -1]), [X]),
    Case("transpose1", lambda p, x: older(p, "transpose", {"X": x}, "float32", axis=[2, 0, 1]), [X]),
    Case("zeros_like", lambda p, x: older(p, "fill_zeros_like", {"X": x}, "float32"), [X]),
    Case(
        "add_to_channels",
        lambda p, x, y: older(p, "elementwise_add", {"X": x, "Y": y}, "float32", axis=1),
        [IMAGE, numbers(4)],
    ),
    Case(
        "bilinear_interp",
        lambda p, x: older(
            p, "bilinear_interp", {"X": x}, "float32", out_h=9, out_w=10, align_corners=False, interp_method="bilinear"
        ),
        [IMAGE],
    ),
    Case(
        "nearest_interp",
        lambda p, x: older(
            p, "nearest_interp", {"X": x}, "float32", scale=2.0, align_corners=False, interp_method="nearest"
        ),
        [IMAGE],
    ),
    Case("network", network, [numbers(2, 3, 4, 5), numbers(5, 3, 3, 3)]),
)
