"""Certificate of a compilation: the model, its optimised graph and its code give equal results on edge inputs.

original   NumPy, before any pass       results of each sample, written into files
optimised  NumPy, after all passes      against the original: a wrong rewrite is found by bisection
code       as it will be written        against the original: a wrong layer is found as `aot compare` finds it
layers     one sample of noise          errors of all layers

One graph, or the code, is in memory at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.llvm.build import Built
from aot.codegen.llvm.levels import Levels
from aot.compilation.recompile import options_of, with_decided
from aot.ir.graph import Graph
from aot.ir.interpret import interpret
from aot.ir.types import Array
from aot.options import CompileOptions, Event
from aot.options.derived import silent
from aot.options.rules import EXACT
from aot.precision import F32
from aot.runtime.errors import AotError, CorruptError, InternalError, PlatformError, UnsupportedError, UsageError
from aot.runtime.loading.manifest import Manifest
from aot.runtime.machine import machine_name, missing_features
from aot.runtime.model import CompiledModel
from aot.tools.comparing.alone import alone, mapped
from aot.tools.comparing.difference import difference
from aot.tools.comparing.edges import Sample, digest, moved, samples, without_integers
from aot.tools.comparing.layer_values import layers_of
from aot.tools.comparing.search import Judge, Row, Search
from aot.tools.comparing.sides import Compiled, Reference, in_order, results

Json = dict[str, Any]
CERTIFICATE = 1  # version of the entry of the manifest
SAMPLES = 2  # samples of noise, unless the user gives a number
MAX_NOISE = 1000  # samples of noise that a certificate may ask for
ROUNDINGS = 10  # a model rounds in each layer, where one unit in the last place of its inputs moves it once
GRAPH, CODE = "graph", "code"  # sides that are compared with the original


@dataclass(frozen=True, slots=True)
class Certificate:
    """Results of a certification. `json` is the manifest's entry; `fault`: the first difference, None if there is none.

    `layers`: errors of the layers in one sample of noise, in the order in which they run.
    """

    json: Json
    fault: str | None
    layers: tuple[Row, ...]


def certified(model: Path, options: CompileOptions, built: Built | Levels, count: int = SAMPLES) -> Built | Levels:
    """Return a built model with a certificate in its manifest, which changes no hash.

    `count`: samples of noise. InternalError, which names the first wrong layer, if results differ; PlatformError if the
    code does not run on this machine.
    """
    certificate = certify(model, options, built, count)
    if certificate.fault is not None:
        raise InternalError(
            f"certify: results must be those of the reference, got others from {certificate.fault}",
            advice=f"aot compare {model.name} shows the layers around it; report it with the model",
        )
    return replace(built, manifest=built.manifest | {"certificate": certificate.json})


def certify(model: Path, options: CompileOptions, built: Built | Levels, count: int = SAMPLES) -> Certificate:
    """Compare original, optimised graph and code on edge inputs and `count` samples of noise."""
    event = options.on_event or _silent
    code = _loaded(built)
    options = with_decided(silent(options), code.manifest)
    with TemporaryDirectory(prefix="aot-certify-") as folder:
        run = _Run(model, options, code, event, Path(folder))
        run.prepare(count)
        fault = run.compare_graphs() or run.compare_code()
        layers = run.layers() if fault is None else ()
    entry = {
        "version": CERTIFICATE,
        "noise": count,
        "samples": run.entries,
        "outputs": {
            name: {side: _short(error) for side, error in errors.items()} for name, errors in run.errors.items()
        },
        "layers": _layers_json(layers),
        "verdict": "equal within bounds" if fault is None else f"differ from {fault}",
    }
    return Certificate(entry, fault, layers)


class _Run:
    """One certification: expected results lie in files, one for each output and sample."""

    def __init__(self, model: Path, options: CompileOptions, code: CompiledModel, event: Event, folder: Path) -> None:
        self.model, self.options, self.code, self.event, self.folder = model, options, code, event, folder
        self.reference, self.judge = Reference(model, options), Judge(None, options)
        self.samples: list[Sample] = []
        self.entries: list[Json] = []
        self.sensitivities: dict[int, list[float]] = {}  # sensitivities of the outputs, by the number of the sample
        self.errors: dict[str, dict[str, float]] = {info.name: {GRAPH: 0.0, CODE: 0.0} for info in code.outputs}

    def prepare(self, count: int) -> None:
        """Choose the samples, and compute the expected outputs of each; samples that the model refuses are left out.

        Integers, which may be sizes or axes, become zeros where the model refuses others. UnsupportedError if it
        refuses all.
        """
        graph = self.reference.graph()
        drawn = list(samples(graph, self.code.inputs, self.code.manifest.rules, count))
        for done, one in enumerate(drawn):
            self.event("certify", done, 3 * len(drawn) + 1)
            for sample in dict.fromkeys((one, without_integers(one))):
                if (arrays := _accepted(graph, sample)) is None:
                    continue
                for k, array in enumerate(arrays):
                    np.save(self._file(len(self.samples), k), _storable(array))
                self.samples.append(sample)
                self.entries.append({"kind": sample.kind, "inputs": sample.digest})
                break
        if not self.samples:
            raise UnsupportedError("certify: the model must accept some inputs of its types, got one that refuses all")

    def compare_graphs(self) -> str | None:
        """Return the first difference that the optimiser made, with its rewrite; None if all results are equal."""
        graph = alone(self.model, self.options).optimized
        for n, sample in enumerate(self.samples):
            self._report(len(self.samples) + n)
            values = interpret(graph, in_order(graph, sample.inputs))
            if (wrong := self._wrong(n, values, GRAPH)) is not None:
                return f"{self._rewrite(n, sample)}: output {wrong.name!r} of sample {sample.kind!r}, {wrong.found}"
        return None

    def compare_code(self) -> str | None:
        """Return the first layer with other values than the reference; None if all results are equal."""
        for n, sample in enumerate(self.samples):
            self._report(2 * len(self.samples) + n)
            outputs = results(self.code, sample.inputs)
            self.entries[n]["outputs"] = digest(outputs)
            if (wrong := self._wrong(n, outputs, CODE)) is not None:
                _, first, _ = self._search(sample, bisect=True)
                where = f"layer {first!r}" if first is not None else "no single layer"
                return f"{where}: output {wrong.name!r} of sample {sample.kind!r}, {wrong.found}"
        return None

    def layers(self) -> tuple[Row, ...]:
        """Return the errors of all layers in the first sample of noise, or in the last one."""
        sample = next((s for s in self.samples if s.kind.startswith("noise")), self.samples[-1])
        rows, _, _ = self._search(sample, bisect=False)
        self._report(3 * len(self.samples) + 1)
        return rows

    def _search(self, sample: Sample, bisect: bool) -> tuple[tuple[Row, ...], str | None, bool]:
        compiled = Compiled(self.model, self.options)
        search = Search(self.reference, compiled, self.judge, sample.inputs)
        return search.run(layers_of(self.model, self.options, sample.inputs), bisect)

    def _wrong(self, n: int, arrays: Sequence[Array], side: str) -> Row | None:
        """Return the first output that differs, and remember the largest error of each.

        Results that a unit in the last place of the inputs moves about as far prove nothing: their sample is marked.
        """
        wrong: Row | None = None
        for k, row in enumerate(self._rows(n, arrays, side)):
            assert row.found is not None
            if not row.agrees and row.found.error <= ROUNDINGS * (moves := self._sensitivity(n)[k]):
                self.entries[n]["sensitive"] = _short(moves)
                continue
            self.errors[row.name][side] = max(self.errors[row.name][side], row.found.error)
            wrong = wrong or (None if row.agrees else row)
        return wrong

    def _sensitivity(self, n: int) -> list[float]:
        """Return how far a unit in the last place of the inputs moves each output of the reference, as an error."""
        if n not in self.sensitivities:
            sample, graph = self.samples[n], self.reference.graph()
            accepted = _accepted(graph, Sample(sample.kind, moved(sample.inputs)))
            pairs = enumerate(map(_storable, accepted or []))
            errors = [difference(np.load(self._file(n, k), mmap_mode="r"), array, 0.0).error for k, array in pairs]
            self.sensitivities[n] = errors or [0.0] * len(self.code.outputs)
        return self.sensitivities[n]

    def _rows(self, n: int, arrays: Sequence[Array], side: str) -> Iterator[Row]:
        """Yield the difference of each output."""
        judge = self.judge if side == CODE else Judge(None, replace(self.options, precision=F32, activations=EXACT))
        for k, (info, array) in enumerate(zip(self.code.outputs, arrays, strict=True)):
            yield judge.output(info, np.load(self._file(n, k), mmap_mode="r"), _storable(array))

    def _rewrite(self, n: int, sample: Sample) -> str:
        """Return the first rewrite of the graph after which a sample has other results, found by bisection."""
        compilation = alone(self.model, self.options)
        _ = compilation.optimized
        low, high = 0, compilation.report.rewrites
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self._agrees(n, sample, middle) else (low, middle)
        compilation = alone(self.model, replace(self.options, stop_after_rewrite=low))
        _ = compilation.optimized
        return (
            f"rewrite {compilation.report.last}"
            if low and compilation.report.last is not None
            else "passes that always run"
        )

    def _agrees(self, n: int, sample: Sample, rewrites: int) -> bool:
        graph = alone(self.model, replace(self.options, stop_after_rewrite=rewrites)).optimized
        return all(row.agrees for row in self._rows(n, interpret(graph, in_order(graph, sample.inputs)), GRAPH))

    def _report(self, done: int) -> None:
        self.event("certify", done, 3 * len(self.samples) + 1)

    def _file(self, n: int, k: int) -> Path:
        return self.folder / f"{n}-{k}.npy"


def recheck(manifest: Manifest, model: Path, options: CompileOptions) -> list[str]:
    """Certify a model anew, and return the differences from a library's certificate; the library does not run.

    `options`: options that its manifest lacks. UsageError for a library without a certificate, CorruptError if
    compiling the model gives another hash, and the errors of certifying.
    """
    recorded = manifest.json.get("certificate")
    if not isinstance(recorded, dict):
        raise UsageError(
            "verify: --recheck needs a library that was compiled with --certify, got one that was not",
            advice="compile it with --certify, or check its provenance: aot provenance",
        )
    certificate = cast(Json, recorded)
    if certificate.get("version") != CERTIFICATE or not isinstance(certificate.get("noise"), int):
        raise CorruptError(
            f"verify: the certificate must have version {CERTIFICATE}, got {str(certificate.get('version'))[:20]}"
        )
    recorded_options = options_of(manifest, options)
    built = alone(model, recorded_options).built
    if built.manifest["hash"] != manifest.json["hash"]:
        raise CorruptError(f"verify: compiling {model} must give the library's hash, got another: it is of other files")
    fresh = certify(model, recorded_options, built, min(int(certificate["noise"]), MAX_NOISE))
    return list(_changes(certificate, fresh.json, ""))


def _changes(recorded: object, fresh: object, where: str) -> Iterator[str]:
    """Yield a line for each entry of a certificate that has changed; errors may differ, within their bounds."""
    match recorded, fresh:
        case dict(), dict():
            one, other = cast(Json, recorded), cast(Json, fresh)
            for key in sorted({*one, *other} - {"errors", "error", "largest", "beyond", "sensitive", GRAPH, CODE}):
                yield from _changes(one.get(key), other.get(key), f"{where}.{key}" if where else key)
        case list(), list():
            for n, pair in enumerate(zip_longest(cast("list[object]", recorded), cast("list[object]", fresh))):
                yield from _changes(*pair, f"{where}[{n}]")
        case _ if recorded != fresh:
            yield f"{where}: {str(recorded)[:80]} in the certificate, {str(fresh)[:80]} here"
        case _:
            pass


def _accepted(graph: Graph, sample: Sample) -> list[Array] | None:
    """Return the results of a model for a sample; None if the model refuses the sample."""
    try:
        return interpret(graph, in_order(graph, sample.inputs))
    except AotError:
        return None


def _layers_json(rows: Sequence[Row]) -> Json:
    """Return errors of layers in execution order, and the hash of their names: few bytes for each."""
    errors = [None if row.found is None else row.found.error for row in rows]
    known = [(error, row.name) for error, row in zip(errors, rows, strict=True) if error is not None]
    largest, name = max(known, default=(0.0, ""))
    return {
        "count": len(rows),
        "names": sha256("\n".join(row.name for row in rows).encode()).hexdigest(),
        "errors": [None if error is None else _short(error) for error in errors],
        "beyond": sum(not row.agrees for row in rows),
        "largest": name,
        "error": _short(largest),
    }


def _short(error: float) -> float | str:
    """Return an error with two digits; an infinite one is the text `inf`."""
    return float(f"{error:.1e}") if math.isfinite(error) else "inf"


def _storable(array: Array) -> Array:
    """Return an array as one that a .npy file can hold: short floats as f32, strings as fixed text."""
    return (
        array.astype(np.float32) if array.dtype.kind == "V" else array.astype(str) if array.dtype == object else array
    )


def _loaded(built: Built | Levels) -> CompiledModel:
    """Load the code into this process; PlatformError if it is for another one."""
    one = built.best if isinstance(built, Levels) else built
    missing = missing_features(cast("Sequence[str]", one.manifest["features"]))
    if one.arch != machine_name() or missing:
        got = ", ".join(missing) if one.arch == machine_name() else one.arch
        raise PlatformError(f"certify: the target must be one that this machine runs, got {got}")
    return mapped(lambda: built)


def _silent(stage: str, done: int, total: int) -> None:
    del stage, done, total
