"""Layers: activations, convolutions, normalisation."""

from tests.frontends.pt2.case import bf, case, f, h, known, p

CASES = [
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
    case("instance_norm.default", f(2, 3, 4), f(3), f(3), None, None, True, 0.1, 1e-5, True),
    case("rms_norm.default", f(2, 3, 4), [4], f(4), 1e-6),
    case("rms_norm.default", f(2, 3, 4), [4]),
]
