"""The first layer of a compiled model that differs from a reference.

outputs of m.so  ==  outputs of the reference?     yes: done
no: layers become outputs of new libraries: the first that differs, see `aot.tools.comparing.search`
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Unpack, cast

from aot.codegen.dataclass import dataclass
from aot.compilation.recompile import is_same, options_of, with_decided
from aot.compilation.search.examples import example_inputs
from aot.ir.types import Array
from aot.ir.values.small_weights import weight_bits
from aot.options import CompileOptions
from aot.options.keywords import with_keywords
from aot.options.typed import CompileKeywords
from aot.runtime.arrays.files import Arrays, is_compiled
from aot.runtime.errors import UsageError
from aot.runtime.loading.manifest import TensorInfo
from aot.runtime.model import CompiledModel, load
from aot.tools.comparing.alone import alone
from aot.tools.comparing.layer_values import Layer, layers_of
from aot.tools.comparing.search import Judge, Row, Search
from aot.tools.comparing.sides import Compiled, results, side_of

SHOWN_BEFORE, SHOWN_AFTER = 3, 6  # layers around the first that differs, in the text

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Differences of outputs, and of layers in execution order, if they were requested or needed.

    `first`: the first layer, or else output, that is beyond its bound; None if the outputs agree. Inner values may then
    still differ by rounding: differences that cancel are noise. `alone`: it was found by bisection, with no other layer
    as an output. `same_code`: the library has the code that a new compilation gives; None: not compared.
    """

    expected: str
    actual: str
    outputs: tuple[Row, ...]
    layers: tuple[Row, ...] = ()
    first: str | None = None
    alone: bool = False
    same_code: bool | None = None

    @property
    def agrees(self) -> bool:
        """True if all outputs are within their bounds, and so are the layers that were requested by name."""
        return self.first is None

    def as_json(self) -> Json:
        """Return the fields, and `agrees`; an infinite error is the text `inf`."""
        return {"agrees": self.agrees, **cast(Json, _plain(asdict(self)))}

    def text(self, all_layers: bool = False) -> str:
        """Return lines for people; without `all_layers`, those around the first layer that differs."""
        lines = [f"{self.actual} against {self.expected}"]
        lines += [f"  output {_line(row)}" for row in self.outputs]
        names = [row.name for row in self.layers]
        at = names.index(self.first) if self.first in names else None
        window = slice(0, 0) if at is None else slice(max(at - SHOWN_BEFORE, 0), at + SHOWN_AFTER)
        shown = self.layers if all_layers else self.layers[window]
        lines += [f"  {'>' if row.name == self.first else ' '} {row.kind} {_line(row)}" for row in shown]
        compared = [row.found.error for row in (*self.outputs, *self.layers) if row.found is not None]
        if self.first is None:
            of = f"{len(self.outputs)} outputs" + (f", {len(self.layers)} layers" if self.layers else "")
            noisy = [row.name for row in self.layers if not row.agrees]
            note = f"; inside {len(noisy)} are beyond their bound, first {noisy[0]!r}" if noisy else ""
            return "\n".join([*lines, f"agree: {of}, largest error {max(compared, default=0.0):.1e}{note}"])
        alone = ", as the only layer that is kept" if self.alone else ""
        lines.append(f"differ: first at {self.first!r}{alone}")
        if self.same_code is False:
            lines.append("compiled anew, the model has another hash: the library is of other files or options")
        return "\n".join(lines)


def compare(
    model: str | Path,
    other: str | Path | None = None,
    data: Mapping[str, Array] | None = None,
    *,
    against: str = "reference",
    bound: float | None = None,
    layers: bool = False,
    keep: Sequence[str] = (),
    threads: int | None = None,
    options: CompileOptions | None = None,
    **keywords: Unpack[CompileKeywords],
) -> Comparison:
    """Compare a compiled model with the results of `against` for the model's file.

    `other`: a library, or a model to compile; None: `model` itself is compiled. `data`: inputs by name; None: noise.
    `against`: `reference`, `onnxruntime` or `openvino`. `bound`: of errors of floats, over the largest element; None:
    by their type, 1e-4 for f32. `layers`: compare all layers even if the outputs agree; `keep`: only these layers.
    `options`, `keywords`: as for `compile_model`; options in the library's manifest need not be given.

    Raises UsageError for a layer that does not exist and for inputs that do not fit, and the errors of compiling.
    """
    path, second = Path(model), Path(model if other is None else other)
    given_options = with_keywords(options, keywords)
    if is_compiled(path):
        raise UsageError(f"compare: the first file is a model, the second one may be compiled, got {path}")
    library = load(second, threads, strict=True) if is_compiled(second) else None
    manifest = library.manifest if library is not None else None
    recorded_options = options_of(manifest, given_options) if manifest is not None else given_options
    subject = library if library is not None else Compiled(second, recorded_options, threads).made
    decided_options = with_decided(recorded_options, subject.manifest)
    side, compiled = side_of(against, path, decided_options), Compiled(second, decided_options, threads)
    inputs, references = _inputs_and_outputs(subject, data)
    judge = Judge(bound, decided_options, _fewer_bits(subject, path, decided_options))
    library = subject = None  # its weights need not be in memory from here on
    outputs = tuple(_judged(judge, references, side.outputs(inputs)))
    comparison = Comparison(f"{side.title} of {path.name}", second.name, outputs)
    differ = not all(row.agrees for row in outputs)
    if not (differ or layers or keep):
        return comparison
    same = None if manifest is None else is_same(manifest, path, recorded_options)
    searched = compiled if manifest is None else Compiled(path, decided_options, threads)
    search = Search(side, searched, judge, inputs)
    rows, first, alone = search.run(_chosen(layers_of(path, decided_options, inputs), keep), differ and not keep)
    if differ or keep:
        first = first or next((row.name for row in outputs if not row.agrees), None)
        return replace(comparison, layers=rows, first=first, alone=alone, same_code=same)
    return replace(comparison, layers=rows, same_code=same)


def _inputs_and_outputs(
    model: CompiledModel, data: Mapping[str, Array] | None
) -> tuple[Arrays, list[tuple[TensorInfo, Array]]]:
    """Return the inputs, noise if there are no data, and the outputs of a compiled model."""
    inputs = dict(data) if data is not None else example_inputs(model.inputs, model.manifest.rules)
    return inputs, list(zip(model.outputs, results(model, inputs), strict=True))


def _fewer_bits(subject: CompiledModel, model: Path, options: CompileOptions) -> int | None:
    """Return the bits of a library's weights if they are fewer than 9, and fewer than the model's."""
    bits = cast("int | None", subject.manifest.json.get("weight_bits"))
    if bits is None:
        return None
    own = weight_bits(alone(model, options).imported)
    return bits if own is None or bits < own else None


def _judged(judge: Judge, outputs: Sequence[tuple[TensorInfo, Array]], wanted: Sequence[Array]) -> Iterator[Row]:
    if len(wanted) != len(outputs):
        raise UsageError(f"compare: both must have the same number of outputs, got {len(wanted)} and {len(outputs)}")
    for (info, array), expected in zip(outputs, wanted, strict=True):
        yield judge.output(info, expected, array)


def _chosen(layers: list[Layer], keep: Sequence[str]) -> list[Layer]:
    """Return the layers that `keep` names, by any of their names; all without it."""
    if not keep:
        return layers
    by_name = {name: one for one in layers for name in (one.layer, *one.tensors, one.name)}
    if unknown := [name for name in keep if name not in by_name]:
        raise UsageError(f"--keep: must be a layer or tensor that depends on the inputs, got {unknown[0]!r}")
    names = {by_name[name].name for name in keep}
    return [one for one in layers if one.name in names]


def _line(row: Row) -> str:
    return f"{row.name!r} {row.shape}  {row.found if row.found is not None else f'not compared: {row.note}'}"


def _plain(value: object) -> object:
    match value:
        case dict():
            return {str(k): _plain(v) for k, v in cast("dict[object, object]", value).items()}
        case list() | tuple():
            return [_plain(v) for v in cast("list[object]", value)]
        case float() if not math.isfinite(value):
            return str(value)
        case _:
            return value


__all__ = ["Comparison", "Row", "compare"]
