"""Arithmetic, comparisons, booleans and activations, element by element."""

from __future__ import annotations

from functools import reduce

import numpy as np

from aot.frontends.conversion.table import renames
from aot.frontends.tf.arrays.shape import plain
from aot.frontends.tf.math.complex_numbers import Number, by_parts
from aot.frontends.tflite.registry import TfliteNode, tflite
from aot.ir.graph import OutPort
from aot.opset.elementwise.activation import Approximation
from aot.runtime.abi import DType

SAME = renames(
    """
    ABS=Abs CEIL=Ceiling COS=Cos ELU=Elu EXP=Exp FLOOR=Floor HARD_SWISH=HSwish LOG=Log LOGICAL_NOT=LogicalNot
    LOGISTIC=Sigmoid RELU=Relu ROUND=Round SIGN=Sign SIN=Sin SQRT=Sqrt TANH=Tanh STABLEHLO_ABS=Abs
    STABLEHLO_COSINE=Cos STABLEHLO_EXPONENTIAL=Exp STABLEHLO_FLOOR=Floor STABLEHLO_LOG=Log
    STABLEHLO_LOGISTIC=Sigmoid STABLEHLO_TANH=Tanh
    """
)
SAME_TWO = renames(
    """
    BITWISE_XOR=BitwiseXor EQUAL=Equal FLOOR_MOD=FloorMod GREATER=Greater GREATER_EQUAL=GreaterEqual LESS=Less
    LESS_EQUAL=LessEqual LOGICAL_AND=LogicalAnd LOGICAL_OR=LogicalOr MAXIMUM=Maximum MINIMUM=Minimum
    NOT_EQUAL=NotEqual POW=Power PRELU=PRelu SQUARED_DIFFERENCE=SquaredDifference STABLEHLO_MAXIMUM=Maximum
    STABLEHLO_MINIMUM=Minimum STABLEHLO_POWER=Power STABLEHLO_REMAINDER=Mod
    """
)
TF_TWO = renames(
    """
    ADD=AddV2 DIV=Div MUL=Mul SUB=Sub STABLEHLO_ADD=AddV2 STABLEHLO_DIVIDE=Div STABLEHLO_MULTIPLY=Mul
    STABLEHLO_SUBTRACT=Sub
    """
)  # of complex numbers, too
DIRECTIONS = ("Equal", "NotEqual", "GreaterEqual", "Greater", "LessEqual", "Less")


@tflite(*SAME)
def one(node: TfliteNode, x: OutPort) -> OutPort:
    return getattr(node.build, SAME[node.kind])(x)


@tflite(*TF_TWO, takes_complex=True)
def arithmetic(node: TfliteNode, a: Number, b: Number) -> Number:
    """Integers are truncated by a division."""
    node.refuse(any(plain(x).type.dtype is DType.STRING for x in (a, b)), "strings are not supported")
    return node.tf(TF_TWO[node.kind], a, b)


@tflite(*(k for k in SAME_TWO if k != "PRELU"))
def two(node: TfliteNode, a: OutPort, b: OutPort) -> OutPort:
    node.refuse(DType.STRING in (a.type.dtype, b.type.dtype), "strings are not supported")
    if a.type.dtype is DType.BOOL and node.kind == "BITWISE_XOR":
        return node.build.LogicalXor(a, b)
    return getattr(node.build, SAME_TWO[node.kind])(a, b)


@tflite("PRELU")
def prelu(node: TfliteNode, x: OutPort, alpha: OutPort) -> OutPort:
    """Slopes broadcast to `x`; those of the last axis alone are slopes of channels."""
    build = node.build
    return build.Add(build.Relu(x), build.Multiply(alpha, build.Minimum(x, node.like(0, x))))


@tflite("ADD_N")
@by_parts
def add_all(node: TfliteNode, *xs: OutPort) -> OutPort:
    return reduce(node.build.Add, xs)


@tflite("RELU6")
def relu6(node: TfliteNode, x: OutPort) -> OutPort:
    return node.build.Clamp(x, min=0.0, max=6.0)


@tflite("RELU_N1_TO_1")
def relu_n1_to_1(node: TfliteNode, x: OutPort) -> OutPort:
    return node.build.Clamp(x, min=-1.0, max=1.0)


@tflite("RELU_0_TO_1")
def relu_0_to_1(node: TfliteNode, x: OutPort) -> OutPort:
    return node.build.Clamp(x, min=0.0, max=1.0)


@tflite("LEAKY_RELU")
def leaky_relu(node: TfliteNode, x: OutPort) -> OutPort:
    return node.build.PRelu(x, node.like(node.number("alpha", 0.0), x))


@tflite("GELU")
def gelu(node: TfliteNode, x: OutPort) -> OutPort:
    mode = Approximation.TANH if node.flag("approximate") else Approximation.ERF
    return node.build.Gelu(x, approximation_mode=mode)


@tflite("RSQRT", "STABLEHLO_RSQRT")
def rsqrt(node: TfliteNode, x: OutPort) -> OutPort:
    return node.build.Divide(node.like(1, x), node.build.Sqrt(x))


@tflite("STABLEHLO_CBRT")
def cbrt(node: TfliteNode, x: OutPort) -> OutPort:
    build = node.build
    return build.Multiply(build.Sign(x), build.Power(build.Abs(x), node.like(1 / 3, x)))


@tflite("SQUARE", takes_complex=True)
def square(node: TfliteNode, x: Number) -> Number:
    return node.tf("Mul", x, x)


@tflite("STABLEHLO_AND", "STABLEHLO_OR")
def bits(node: TfliteNode, a: OutPort, b: OutPort) -> OutPort:
    name = "And" if node.kind.endswith("AND") else "Or"
    return getattr(node.build, f"{'Logical' if a.type.dtype is DType.BOOL else 'Bitwise'}{name}")(a, b)


@tflite("STABLEHLO_CLAMP")
def clamp(node: TfliteNode, low: OutPort, x: OutPort, high: OutPort) -> OutPort:
    return node.build.Minimum(node.build.Maximum(x, low), high)


@tflite("STABLEHLO_COMPARE")
def compare(node: TfliteNode, a: OutPort, b: OutPort) -> OutPort:
    direction = node.integer("comparison_direction", 0)
    node.refuse(not 0 <= direction < len(DIRECTIONS), f"comparison {direction} is not supported")
    return getattr(node.build, DIRECTIONS[direction])(a, b)


@tflite("CAST", "STABLEHLO_CONVERT", stored=True, takes_complex=True)
def cast_(node: TfliteNode, x: Number) -> Number:
    return node.tf("Cast", x, DstT=node.output_tensors[0].type)


@tflite("BITCAST", stored=True)
def bitcast(node: TfliteNode, x: OutPort) -> OutPort:
    return node.tf("Bitcast", x, type=node.output_tensors[0].type)


@tflite("QUANTIZE", "DEQUANTIZE")
def quantize(node: TfliteNode, x: OutPort) -> OutPort:
    """To numbers and back; f16 weights become f32."""
    target = node.output_type()
    return node.cast(x, target) if target.is_float else x


@tflite("FAKE_QUANT")
def fake_quant(node: TfliteNode, x: OutPort) -> OutPort:
    limits = {"min": node.number("min", 0.0), "max": node.number("max", 0.0)}
    bits, narrow = node.integer("num_bits", 8), node.flag("narrow_range")
    return node.tf("FakeQuantWithMinMaxArgs", x, **limits, num_bits=bits, narrow_range=narrow)


@tflite("REAL", "IMAG", stored=True, takes_complex=True)
def part(node: TfliteNode, x: Number) -> OutPort:
    return node.tf(node.kind.capitalize(), x)


@tflite("COMPLEX_ABS", stored=True, takes_complex=True)
def complex_abs(node: TfliteNode, x: Number) -> OutPort:
    return node.tf("ComplexAbs", x)


@tflite("ZEROS_LIKE", stored=True)
@by_parts
def zeros_like(node: TfliteNode, x: OutPort) -> OutPort:
    q = node.output_quantization()
    zero = 0 if q is None else q.zeros[0]
    return node.build.Broadcast(node.build.const(np.array(zero), x.type.dtype), node.dims(x, range(x.type.rank)))
