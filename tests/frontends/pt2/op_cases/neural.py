"""Layers: activations, convolutions, normalisation, pooling, attention, recurrent layers, embeddings."""

import numpy as np

from tests.frontends.pt2.case import bf, case, f, h, i, known, p

MASKED = np.array([[True, True, False], [False, False, False], [True, False, True]])
SOFT = np.where(MASKED, 0, -np.inf).astype(np.float32)


def weights(layers: int, directions: int, gates: int, inputs: int, hidden: int, biases: bool = True) -> list:
    """Return w_ih, w_hh, b_ih, b_hh of each layer and direction."""
    found = []
    for layer in range(layers):
        wide = inputs if not layer else directions * hidden
        for _ in range(directions):
            found += [known(f(gates * hidden, wide)), known(f(gates * hidden, hidden))]
            found += [known(f(gates * hidden)), known(f(gates * hidden))] if biases else []
    return found


X = f(2, 7)
ACTIVATIONS = "hardswish hardsigmoid mish silu relu6 hardtanh gelu elu celu selu leaky_relu softplus".split()
ACTIVATIONS += "log_sigmoid softshrink hardshrink".split()
CASES = [
    *(case(f"{name}.default", X) for name in ACTIVATIONS),
    case("hardtanh.default", X, -0.5, 0.25),
    case("gelu.default", X, approximate="tanh"),
    case("gelu.default", bf(2, 8)),
    case("leaky_relu.default", X, 0.3),
    case("prelu.default", f(2, 3, 4), f(3)),
    case("prelu.default", f(2, 3), f(1)),
    case("elu.default", X, 0.7, 1.2, 0.5),
    case("celu.default", X, 0.7),
    case("softplus.default", f(2, 7, low=-9, high=9), 3, 9),
    case("threshold.default", X, 0.5, 7),
    case("glu.default", f(2, 3, 4), 2),
    case("log_softmax.int", f(2, 3, 4), -1),
    case("_log_softmax.default", h(2, 3, 4), 1, False),
    case("_safe_softmax.default", SOFT, -1, fixed=True),
    case("dropout.default", X, 0.5, False),
    case("native_dropout.default", X, 0.5, False),
    case("max_pool1d.default", f(2, 3, 9), [3], [2], [1]),
    case("max_pool2d.default", f(3, 7, 8), [2, 3]),
    case("max_pool2d.default", f(2, 3, 8, 9), [3], [2], [1], [2], True),
    case("max_pool2d_with_indices.default", f(2, 3, 8, 9), [3, 2], [2, 1], [1, 0]),
    case("max_pool3d.default", f(1, 2, 4, 5, 6), [2, 2, 3], [1, 2, 1]),
    case("max_pool3d_with_indices.default", f(1, 2, 4, 5, 6), [2, 2, 3]),
    case("avg_pool1d.default", f(2, 3, 9), [3], [2], [1]),
    case("avg_pool2d.default", f(2, 3, 7, 8), [3, 2], [2, 2], [1, 1], False, False),
    case("avg_pool2d.default", f(2, 3, 7, 8), [3, 2], [2, 2], [1, 1], True, True),
    case("avg_pool2d.default", f(2, 3, 7, 8), [3, 2], [2, 2], [1, 1], True, False),
    case("avg_pool2d.default", f(3, 7, 8), [3, 2], [], [0, 0], False, True, 5),
    case("avg_pool3d.default", f(1, 2, 4, 5, 6), [2, 2, 3]),
    case("adaptive_avg_pool1d.default", f(2, 3, 7), [3]),
    case("adaptive_avg_pool2d.default", f(2, 3, 6, 8), [3, 4]),
    case("adaptive_avg_pool2d.default", f(2, 3, 7, 8), [1, 1]),
    case("_adaptive_avg_pool2d.default", f(2, 3, 7, 8), [3, 5], fixed=True),
    case("_adaptive_avg_pool3d.default", f(1, 2, 4, 5, 6), [2, 2, 4], fixed=True),
    case("adaptive_max_pool2d.default", f(2, 3, 7, 8), [3, 5], fixed=True),
    case("adaptive_max_pool1d.default", f(2, 3, 7), [3], fixed=True),
    case("scaled_dot_product_attention.default", f(2, 2, 3, 4), f(2, 2, 5, 4), f(2, 2, 5, 6)),
    case("scaled_dot_product_attention.default", f(2, 2, 3, 4), f(2, 2, 3, 4), f(2, 2, 3, 4), is_causal=True),
    case("scaled_dot_product_attention.default", f(2, 2, 3, 4), f(2, 2, 3, 4), f(2, 2, 3, 4), MASKED, scale=0.3),
    case("scaled_dot_product_attention.default", f(2, 2, 3, 4), f(2, 2, 3, 4), f(2, 2, 3, 4), SOFT),
    case("scaled_dot_product_attention.default", f(2, 4, 3, 4), f(2, 2, 5, 4), f(2, 2, 5, 4), enable_gqa=True),
    case("scaled_dot_product_attention.default", bf(1, 2, 3, 4), bf(1, 2, 3, 4), bf(1, 2, 3, 4)),
    case("lstm.input", f(5, 2, 3), [f(1, 2, 4), f(1, 2, 4)], weights(1, 1, 4, 3, 4), True, 1, 0.0, False, False, False),
    case("lstm.input", f(2, 5, 3), [f(4, 2, 4), f(4, 2, 4)], weights(2, 2, 4, 3, 4), True, 2, 0.0, False, True, True),
    case("gru.input", f(2, 5, 3), f(2, 2, 4), weights(1, 2, 3, 3, 4), True, 1, 0.0, False, True, True),
    case("gru.input", f(5, 2, 3), f(2, 2, 4), weights(2, 1, 3, 3, 4, False), False, 2, 0.0, False, False, False),
    case("rnn_tanh.input", f(2, 5, 3), f(1, 2, 4), weights(1, 1, 1, 3, 4), True, 1, 0.0, False, False, True),
    case("rnn_relu.input", f(2, 5, 3), f(1, 2, 4), weights(1, 1, 1, 3, 4), True, 1, 0.0, False, False, True),
    case("lstm_cell.default", f(2, 3), [f(2, 4), f(2, 4)], *weights(1, 1, 4, 3, 4)),
    case("gru_cell.default", f(2, 3), f(2, 4), *weights(1, 1, 3, 3, 4)),
    case("rnn_tanh_cell.default", f(2, 3), f(2, 4), *weights(1, 1, 1, 3, 4)),
    case("rnn_relu_cell.default", f(2, 3), f(2, 4), *weights(1, 1, 1, 3, 4)),
    case("embedding.default", f(7, 3), i(2, 4, low=0, high=7)),
    case("embedding.default", f(7, 3), i(2, 4, low=0, high=7, dtype=np.int32), 1),
    case("relu.default", f(2, 3)),
    case("softmax.int", f(2, 3, 4), 1),
    case("softmax.int", h(2, 3), -1),
    case("_softmax.default", f(2, 3), 1, False),
    case("conv1d.default", f(2, 3, 8), f(4, 3, 3), f(4), [2], [1], [1]),
    case("conv2d.default", f(2, 4, 7, 8), known(f(6, 2, 3, 3)), f(6), [1, 2], [1, 0], [2, 1], 2),
    case("conv2d.default", f(4, 7, 8), f(6, 4, 3, 3)),
    case("conv2d.padding", f(1, 2, 7, 8), known(f(3, 2, 2, 3)), f(3), [1, 1], "same", [1, 1]),
    case("conv2d.padding", f(1, 2, 7, 8), f(3, 2, 2, 3), None, [1, 1], "valid", [1, 1]),
    case("conv3d.default", f(1, 2, 5, 6, 4), f(3, 2, 3, 3, 2)),
    case("convolution.default", f(1, 4, 5, 6), known(f(4, 3, 3, 2)), f(6), [2, 1], [1, 0], [1, 1], True, [1, 0], 2),
    case("convolution.default", f(1, 4, 5, 6), f(6, 4, 3, 2), None, [2, 1], [1, 0], [1, 1], False, [0, 0], 1),
    case("conv_transpose1d.default", f(1, 4, 5), f(4, 3, 3), f(3), [2], [1]),
    case("conv_transpose2d.input", f(1, 4, 5, 6), f(4, 3, 3, 2), f(3), [2, 2], [1, 1], [1, 1], 1, [1, 2]),
    case("batch_norm.default", f(2, 3, 4), f(3), f(3), f(3), p(3), False, 0.1, 1e-5, True),
    case("batch_norm.default", f(2, 3, 4), None, None, f(3), p(3), False, 0.1, 1e-3, True),
    case("_native_batch_norm_legit_no_training.default", f(2, 3), f(3), f(3), f(3), p(3), 0.1, 1e-5),
    case("layer_norm.default", f(2, 3, 4), [4], f(4), f(4)),
    case("layer_norm.default", f(2, 3, 4), [3, 4], None, None, 1e-3),
    case("layer_norm.default", bf(2, 3, 8), [8], bf(8), bf(8)),
    case("native_layer_norm.default", f(2, 3, 4), [4], f(4), f(4), 1e-5),
    case("group_norm.default", f(2, 4, 5), 2, f(4), f(4)),
    case("group_norm.default", f(2, 4, 3, 5), 4),
    case("native_group_norm.default", f(2, 4, 5), f(4), f(4), 2, 4, 5, 2, 1e-5, fixed=True),
    case("_native_batch_norm_legit.no_stats", f(2, 3, 4), f(3), f(3), True, 0.1, 1e-5, fixed=True),
    case("instance_norm.default", f(2, 3, 4), f(3), f(3), None, None, True, 0.1, 1e-5, True),
    case("rms_norm.default", f(2, 3, 4), [4], f(4), 1e-6),
    case("rms_norm.default", f(2, 3, 4), [4]),
]
