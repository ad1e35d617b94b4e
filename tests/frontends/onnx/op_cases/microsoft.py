"""Operations of domain com.microsoft."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.frontends.onnx.case import Case, case, known, row
from tests.frontends.onnx.models import Numbers

NUMBERS = Numbers(11)
f32, u8, i8, i7 = NUMBERS.f32, NUMBERS.u8, NUMBERS.i8, NUMBERS.i7
X, WORDS = f32(2, 3, 8), f32(2, 5, 8)
MASKS = (np.int32([2, 3]), np.int32([3, 2, 1, 0]), np.int32([[1, 1, 0], [1, 1, 1]]))
IDS, SEGMENTS, MASK = np.int32([[1, 2, 8], [0, 3, 3]]), np.int32([[0, 1, 1], [1, 0, 0]]), MASKS[2]
Q, R = (known(0.02, np.float32), known(120, np.uint8)), (known(0.03, np.float32), known(131, np.uint8))
SHARES = (known(1 / 256, np.float32), known(0, np.uint8))
FIVE = known(np.arange(5, dtype=np.int32))


def scale(value: float) -> Any:
    return known(value, np.float32)


def zero(value: int) -> Any:
    return known(value, np.uint8)


def ms(kind: str, x: Any, *others: Any, **attrs: Any) -> Case:
    """Return a case whose first input is fed, and whose others are constants."""
    held = (known(c) if isinstance(c, np.ndarray | np.generic) else c for c in others)
    return case(f"com.microsoft.{kind}", x, *held, **attrs)


def attention(*others: Any, **attrs: Any) -> Case:
    return ms("Attention", row(X), f32(8, 24), f32(24), *others, num_heads=2, tolerance=1e-4, **attrs)


def heads(*inputs: Any, **attrs: Any) -> Case:
    return case("com.microsoft.MultiHeadAttention", *map(row, inputs), num_heads=2, tolerance=1e-4, **attrs)


def experts(*others: Any, **attrs: Any) -> Case:
    """Return a case of 6 rows of 32 numbers and 4 experts."""
    held = (known(c) if isinstance(c, np.ndarray) else c for c in others)
    return case("com.microsoft.MoE", row(f32(6, 32)), row(f32(6, 4)), *held, tolerance=1e-4, **attrs)


def small_experts(bits: int, block: int, *, zeros: bool = False, **attrs: Any) -> Case:
    """Return the same with weights of a few bits, a scale for each row (`block` 0) or each block."""

    def layer(rows: int, columns: int) -> tuple[Any, Any, Any]:
        blocks = (columns // block,) if block else ()
        points = (-(-blocks[0] * bits // 8),) if block else ()
        point = u8(4, rows, *points) if block else u8(4, rows * bits // 8)
        return u8(4, rows, columns * bits // 8), np.abs(f32(4, rows, *blocks, size=0.02)), point if zeros else None

    (w1, s1, z1), (w2, s2, z2) = layer(48, 32), layer(32, 48)
    given = [w1, s1, f32(4, 48), w2, s2, f32(4, 32), None, None, None, z1, z2]
    made = [known(a) if a is not None else None for a in given]
    sizes = {"block_size": block} if block else {}
    more = {"expert_weight_bits": bits, "tolerance": 1e-4, **sizes, **attrs}
    return case("com.microsoft.QMoE", row(f32(6, 32)), row(f32(6, 4)), *made, k=2, **more)


CASES = [
    ms("Gelu", f32(2, 8)),
    ms("FastGelu", f32(2, 8)),
    ms("FastGelu", f32(2, 8), f32(8)),
    ms("BiasGelu", f32(2, 8), f32(8)),
    ms("QuickGelu", f32(2, 8)),
    ms("QuickGelu", f32(2, 8), alpha=0.5),
    ms("SkipLayerNormalization", X, f32(2, 3, 8), f32(8), f32(8), f32(8), epsilon=1e-5, outputs=(0, 3), tolerance=1e-4),
    ms("SkipSimplifiedLayerNormalization", X, f32(2, 3, 8), f32(8), f32(8), outputs=(0, 3), tolerance=1e-4),
    ms("FusedMatMul", f32(2, 3, 4), f32(2, 5, 4), transB=1, alpha=0.25),
    ms("FusedMatMul", f32(3, 2, 4), f32(2, 4, 5), transBatchA=1, alpha=0.5),
    ms("FusedMatMul", f32(4, 2, 3), f32(5, 2, 4), transBatchA=1, transA=1, transBatchB=1, transB=1),
    ms("TransposeMatMul", f32(2, 3, 4), f32(2, 5, 4), transB=1),
    ms("FusedGemm", f32(3, 4), f32(4, 5), f32(5), activation="LeakyRelu", activation_alpha=0.3),
    *(ms("FusedGemm", f32(3, 4), f32(4, 5), activation=a) for a in ("Relu", "Tanh", "Sigmoid")),
    ms("FusedConv", row(f32(1, 3, 7, 7), 1), f32(4, 3, 3, 3), f32(4), activation="Relu", pads=[1, 1, 1, 1]),
    ms(
        "FusedConv", row(f32(1, 3, 7, 7), 1), f32(4, 3, 3, 3), activation="LeakyRelu", activation_params=[0.2],
        kernel_shape=[3, 3],
    ),
    *(
        ms("FusedConv", row(f32(1, 3, 7, 7), 1), f32(4, 3, 3, 3), activation=a, activation_params=p)
        for a, p in (("Clip", [-0.5, 2.0]), ("HardSigmoid", [0.3, 0.4]))
    ),
    *(attention(mask, open=False) for mask in (None, *MASKS)),
    attention(),
    attention(unidirectional=1),
    attention(None, f32(2, 2, 2, 4, 4), unidirectional=1, outputs=2),
    attention(np.int32([[1, 1, 0, 1, 1], [0, 1, 1, 1, 1]]), f32(2, 2, 2, 2, 4), outputs=2),
    attention(np.tril(np.ones((2, 3, 7), np.int32)), f32(2, 2, 2, 4, 4), outputs=2),
    ms("Attention", row(X), f32(8, 20), f32(20), num_heads=2, qkv_hidden_sizes=[8, 8, 4], tolerance=1e-4),
    heads(WORDS, f32(2, 7, 8), f32(2, 7, 12)),
    heads(WORDS, WORDS, WORDS, unidirectional=1),
    ms("MultiHeadAttention", row(WORDS), f32(2, 7, 8), f32(2, 7, 8), f32(24), num_heads=2, scale=0.3, tolerance=1e-4),
    ms(
        "MultiHeadAttention", row(WORDS), f32(2, 7, 8), f32(2, 7, 8), None, np.int32([[1] * 7, [1, 1, 1, 1, 0, 0, 0]]),
        f32(2, 2, 5, 7), num_heads=2, tolerance=1e-4,
    ),
    ms(
        "MultiHeadAttention", row(WORDS), f32(2, 5, 8), f32(2, 5, 8), None, None, None, f32(2, 2, 3, 4),
        f32(2, 2, 3, 4), num_heads=2, outputs=3, tolerance=1e-4,
    ),
    ms("MultiHeadAttention", row(WORDS), f32(2, 2, 7, 4), f32(2, 2, 7, 4), num_heads=2, tolerance=1e-4),
    case(
        "com.microsoft.GroupQueryAttention", row(f32(2, 1, 64)), row(f32(2, 1, 32)), row(f32(2, 1, 32)),
        f32(2, 2, 6, 16), f32(2, 2, 6, 16), known([6, 6], np.int32), known(7, np.int32),
        num_heads=4, kv_num_heads=2, outputs=3, tolerance=1e-4, open=False,
    ),
    ms("RotaryEmbedding", f32(2, 3, 16), np.int64([[0, 1, 2], [4, 3, 2]]), f32(9, 4), f32(9, 4), open=False),
    ms("RotaryEmbedding", f32(2, 2, 3, 8), np.int64([5]), f32(9, 4), f32(9, 4), interleaved=1, open=False),
    ms("MatMulNBits", row(f32(3, 48)), u8(5, 2, 16), f32(10), K=48, N=5, bits=4, block_size=32, tolerance=1e-4),
    ms("MatMulNBits", row(f32(3, 64)), u8(5, 2, 16), f32(10), u8(5), K=64, N=5, bits=4, block_size=32, tolerance=1e-4),
    ms("MatMulNBits", row(f32(3, 64)), u8(5, 2, 32), f32(10), K=64, N=5, bits=8, block_size=32, tolerance=1e-4),
    ms(
        "MatMulNBits", row(f32(3, 64)), u8(5, 2, 16), f32(10), None, np.arange(64, dtype=np.int32) % 2, K=64, N=5,
        bits=4, block_size=32, tolerance=1e-4,
    ),
    *(
        case(
            "com.microsoft.GatherBlockQuantized", known(u8(9, 48 * bits // 8)), np.int64([[1, 0, 8], [4, 4, 3]]),
            known(f32(9, 3)), *([known(u8(9, zeros))] if zeros else []), bits=bits, block_size=16, gather_axis=0,
            quantize_axis=1,
        )
        for bits, zeros in ((4, 0), (4, 2), (8, 3), (8, 0), (2, 1))
    ),
    ms(
        "EmbedLayerNormalization", IDS, SEGMENTS, f32(9, 6), f32(5, 6), f32(2, 6), f32(6), f32(6), MASK, outputs=2,
        tolerance=1e-4,
    ),
    ms("EmbedLayerNormalization", IDS, None, f32(9, 6), f32(5, 6), None, f32(6), f32(6), outputs=2, tolerance=1e-4),
    ms(
        "QEmbedLayerNormalization", IDS, SEGMENTS, u8(9, 6), u8(5, 6), u8(2, 6), u8(6), u8(6), MASK,
        *(scale(0.01 * k) for k in range(1, 6)), *(zero(100 + k) for k in range(5)), outputs=2, tolerance=2e-4,
    ),
    ms("MatMulIntegerToFloat", u8(3, 16), i7(16, 5), scale(0.02), scale(0.01), zero(120), known(3, np.int8)),
    ms("MatMulIntegerToFloat", u8(3, 16), i7(16, 5), scale(0.02), np.abs(f32(5)), zero(120), None, f32(5)),
    ms("DynamicQuantizeMatMul", f32(3, 8), u8(8, 4), np.float32([0.01]), np.uint8([128])),
    ms("DynamicQuantizeMatMul", f32(3, 8), i7(8, 4), scale(0.01), None, f32(4)),
    ms("QGemm", u8(3, 16), *Q, i7(16, 5), scale(0.01), known(3, np.int8), FIVE, tolerance=1e-4),
    ms("QGemm", u8(3, 16), *Q, u8(16, 5), *R, FIVE, scale(0.4), zero(128), levels=1),
    ms("QGemm", u8(3, 16), *Q, i7(5, 16), np.abs(f32(5)) / 50, i8(5), None, scale(0.4), zero(128), transB=1, levels=1),
    ms(
        "QAttention", row(u8(2, 3, 8)), i7(8, 24), f32(24), scale(0.02), scale(0.01), np.int32([2, 3]), zero(120),
        known(2, np.int8), num_heads=2, open=False, tolerance=2e-4,
    ),
    ms(
        "QAttention", row(u8(2, 3, 8)), i7(8, 24), f32(24), scale(0.02), scale(0.01),
        np.int32([[1] * 5, [1, 1, 1, 1, 0]]), zero(120), known(2, np.int8), f32(2, 2, 2, 2, 4), num_heads=2, outputs=2,
        tolerance=2e-4,
    ),
    *(ms(op, u8(3, 64), *Q, u8(64), *R, scale(0.05), zero(100), levels=1) for op in ("QLinearAdd", "QLinearMul")),
    ms("QLinearLeakyRelu", u8(3, 64), *Q, *R, alpha=0.1, levels=1),
    ms("QLinearSigmoid", u8(3, 64), *Q, *SHARES, levels=1),
    ms("QLinearSoftmax", u8(3, 20), *Q, *SHARES, axis=-1, opset=13, levels=1),
    ms("QLinearAveragePool", u8(2, 5, 7, 6), *Q, *R, kernel_shape=[3, 3], pads=[1, 1, 1, 1], levels=1),
    *(ms("QLinearGlobalAveragePool", u8(2, 5, 7, 6), *Q, *R, channels_last=last, levels=1) for last in (0, 1)),
    ms("NhwcMaxPool", u8(2, 7, 6, 5), kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1]),
    ms(
        "QLinearConv", row(u8(1, 7, 6, 3)), *Q, i7(4, 3, 3, 3), scale(0.01), known(2, np.int8), scale(0.3), zero(128),
        channels_last=1, pads=[1, 1, 1, 1], levels=1,
    ),
    case("com.microsoft.QLinearConcat", *R, u8(2, 5), *Q, known(u8(2, 5)), *R, axis=1, levels=1),
    case(
        "com.microsoft.QLinearWhere", f32(3, 5) > 0, u8(3, 5), *Q, u8(3, 5), *R, scale(0.04), zero(90), levels=1,
    ),
    *(
        ms(
            "DynamicQuantizeLSTM", row(f32(5, 1, 3)), i7(1, 3, 16), i7(1, 4, 16), f32(1, 32), None, None, None, None,
            np.float32([0.01]), np.int8([0]), np.float32([0.01]), np.int8([0]), hidden_size=4, direction=way, outputs=3,
            tolerance=1e-5, open=False,
        )
        for way in ("forward", "reverse")
    ),
    *(
        experts(f32(4, 48, 32), f32(4, 48), f32(4, 32, 48), f32(4, 32), k=2, activation_type=a)
        for a in ("relu", "gelu", "silu", "identity")
    ),
    experts(f32(4, 48, 32), None, f32(4, 32, 48), k=1, normalize_routing_weights=1),
    experts(
        f32(4, 96, 32), f32(4, 96), f32(4, 32, 48), f32(4, 32), k=2, activation_type="swiglu", swiglu_fusion=1,
        activation_alpha=1.702, activation_beta=1.0, swiglu_limit=2.0, normalize_routing_weights=1,
    ),
    *(small_experts(bits, 0, zeros=z, activation_type="silu") for bits, z in ((4, False), (8, False), (8, True))),
    small_experts(4, 16, activation_type="silu"),
]  # fmt: skip
