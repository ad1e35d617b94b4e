"""`aot bench --precisions`: times of a model in each type that it can compute in, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.codegen.llvm.build import Built
from aot.codegen.llvm.host import parse_target
from aot.compilation.driver import stages
from aot.compilation.hints import BF16, F32, INT8, bf16_options, flags
from aot.compilation.jit import in_memory
from aot.ir.types import Array
from aot.options import CompileOptions
from aot.runtime.arrays.files import Arrays
from aot.runtime.describe import size_text
from aot.runtime.loading.manifest import Manifest
from aot.runtime.measuring import profile
from aot.tools.comparing.difference import difference
from aot.tools.comparing.sides import results


@dataclass(frozen=True, slots=True)
class Row:
    """`flags` of `aot compile`, "" for f32 as it is the default; seconds of an inference; `bytes` of code and weights.

    `error`: the largest difference of an output from that in f32, over its largest number.
    """

    flags: str
    seconds: float
    bytes: int
    error: float


def measured(
    model: Path, options: CompileOptions, threads: int | None, seconds: float, inputs: Callable[[Manifest], Arrays]
) -> list[Row]:
    """Return a row for data in f32, bf16, f16 and, if weights have 8 bits or fewer, data in 8 bits.

    `seconds`: for which all are measured together; `inputs`: arrays for the model that a manifest describes.
    """
    target = parse_target("native")
    others: list[Mapping[str, Any]] = [bf16_options(target, True) or {**BF16, "fast_math": True}, {"precision": "f16"}]
    compilation = stages(model, options)
    f32_options: Mapping[str, Any] = F32 if compilation.decided != compilation.options else {}
    compilation = stages(model, replace(options, **f32_options)) if f32_options else compilation
    one, size = in_memory(compilation.built, threads), _bytes(compilation.built)
    others += [INT8] if compilation.weight_bits is not None and target.abilities.dots else []
    feeds, each = inputs(one.manifest), seconds / (len(others) + 1)
    expected = results(one, feeds)
    rows = [Row(flags(f32_options), profile.measure(one, feeds, each).median, size, 0.0)]
    for changed in others:
        built = stages(model, replace(options, **changed)).built
        one = in_memory(built, threads)
        error = _error(expected, results(one, feeds))
        rows.append(Row(flags(changed), profile.measure(one, feeds, each).median, _bytes(built), error))
    return rows


def table(rows: list[Row]) -> str:
    """Return the rows as lines, each with its time divided by the time of f32."""
    width = max(len(row.flags) for row in rows)
    lines = [f"{'':{width}}        ms  of f32        size    error"]
    for row in rows:
        ratio = row.seconds / rows[0].seconds
        name = row.flags or "f32"
        lines.append(
            f"{name:{width}} {row.seconds * 1e3:9.4g} {ratio:7.2f} {size_text(row.bytes):>11} {row.error:8.1e}"
        )
    return "\n".join(lines)


def _error(expected: list[Array], actual: list[Array]) -> float:
    return max((difference(e, a, 0.0).error for e, a in zip(expected, actual, strict=True)), default=0.0)


def _bytes(built: object) -> int:
    assert isinstance(built, Built)  # for one target
    return len(built.code) + built.constant_bytes
