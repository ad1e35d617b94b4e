"""Images scaled by kernels that reach farther where they are made smaller: ScaleAndTranslate."""

from __future__ import annotations

from collections.abc import Callable
from math import pi

from aot.frontends.tf.image.resize import weighed
from aot.frontends.tf.neural.layout import image
from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort
from aot.runtime.abi import DType

SIGMA = 0.5  # standard deviation of the Gaussian kernel, which ends at 1.5
NEAR = 1e-3  # distance in pixels up to which Lanczos's kernel is 1
Kernel = Callable[[TfNode, OutPort], OutPort]


def _polynomial(node: TfNode, x: OutPort, *factors: float) -> OutPort:
    value = node.like(factors[0], x)
    for factor in factors[1:]:
        value = node.build.Add(node.build.Multiply(value, x), factor)
    return value


def _cubic(near: tuple[float, ...], far: tuple[float, ...]) -> Kernel:
    """Polynomials for distances below 1 and below 2."""

    def kernel(node: TfNode, x: OutPort) -> OutPort:
        build = node.build
        outer = build.Select(build.Less(x, 2.0), _polynomial(node, x, *far), node.like(0, x))
        return build.Select(build.Less(x, 1.0), _polynomial(node, x, *near), outer)

    return kernel


def _lanczos(radius: float) -> Kernel:
    """Lanczos 1964: radius sin(pi x) sin(pi x / radius) / (pi x)^2"""

    def kernel(node: TfNode, x: OutPort) -> OutPort:
        build = node.build
        angle = build.Multiply(x, pi)
        waves = build.Multiply(build.Sin(angle), build.Sin(build.Divide(angle, radius)))
        value = build.Divide(build.Multiply(waves, radius), build.Multiply(angle, angle))
        value = build.Select(build.LessEqual(x, NEAR), node.like(1, x), value)
        return build.Select(build.Greater(x, radius), node.like(0, x), value)

    return kernel


def _gaussian(node: TfNode, x: OutPort) -> OutPort:
    build = node.build
    value = build.Exp(build.Multiply(build.Multiply(x, x), -0.5 / SIGMA**2))
    return build.Select(build.Less(x, 3 * SIGMA), value, node.like(0, x))


def _box(node: TfNode, x: OutPort) -> OutPort:
    build = node.build
    inner = build.Select(build.Less(x, 0.5), node.like(1, x), node.like(0, x))
    return build.Select(build.Equal(x, 0.5), node.like(0.5, x), inner)


def _triangle(node: TfNode, x: OutPort) -> OutPort:
    return node.build.Maximum(node.build.Subtract(node.like(1, x), x), 0.0)


KERNELS: dict[str, Kernel] = {
    "lanczos1": _lanczos(1.0),
    "lanczos3": _lanczos(3.0),
    "lanczos5": _lanczos(5.0),
    "gaussian": _gaussian,
    "box": _box,
    "triangle": _triangle,
    "keyscubic": _cubic((1.5, -2.5, 0.0, 1.0), (-0.5, 2.5, -4.0, 2.0)),  # Keys 1981
    "mitchellcubic": _cubic((7 / 6, -2.0, 0.0, 8 / 9), (-7 / 18, 2.0, -10 / 3, 16 / 9)),  # Mitchell, Netravali 1988
}


@tf("ScaleAndTranslate")
def scale_and_translate(node: TfNode, x: OutPort, size: OutPort, scale: OutPort, translation: OutPort) -> OutPort:
    """Output element o lies at (o + 1/2 - translation) / scale; outside of the image it is 0."""
    y, build, zero = node.cast(image(node, x, 4), DType.F32), node.build, node.scalar(0)
    sizes, kernel = node.cast(size, DType.I64), node.choice("kernel_type", KERNELS)
    for axis in (1, 2):
        count, factor, shift = (build.Gather(p, node.scalar(axis - 1), zero) for p in (sizes, scale, translation))
        inverse = build.Divide(node.like(1, factor), factor)
        reach = build.Maximum(inverse, 1.0) if node.flag("antialias") else node.like(1, factor)
        rows, columns = (
            build.Add(node.cast(build.Range(zero, n, node.scalar(1), output_type=DType.I64), DType.F32), 0.5)
            for n in (count, node.size(y, axis))
        )
        at = build.Multiply(build.Subtract(rows, shift), inverse)
        at = build.Unsqueeze(at, node.list([1]))
        share = kernel(node, build.Divide(build.Abs(build.Subtract(columns, at)), reach))
        total = build.ReduceSum(share, node.list([1]), keep_dims=True)
        extent = node.cast(node.size(y, axis), DType.F32)
        inside = build.LogicalAnd(build.GreaterEqual(at, 0.0), build.LessEqual(at, extent))
        inside = build.LogicalAnd(inside, build.NotEqual(total, 0.0))
        share = build.Select(inside, build.Divide(share, total), node.like(0, share))
        y = weighed(node, y, axis, share)
    return y
