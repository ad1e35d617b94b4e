"""Search for the layers that bf16 costs too much accuracy, by sample data: `--precision auto --data x.npz`.

1. The network in f32 gives the results that errors are measured against. If the one in bf16 is near enough: done.
2. One more network in f32 rounds the operands of layer k to bf16 where input `rounded` says so for k:
       MatMul(x, w)   ->   MatMul(Select(rounded[k], bf16(x), x), Select(rounded[k], bf16(w), w))
   An inference for each layer tells the error that this layer causes in the results.
3. Layers stay in f32 in the order of their squared error over their arithmetic: as many as the network of step 2 needs.
   If the network itself, which also stores values between products in 16 bits, has larger errors, only the other
   products are in bf16, then fewer and fewer of them. Without success, all layers stay in f32.

The time that layers take is reported but decides nothing, so that equal data give equal libraries.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from aot.codegen.dataclass import dataclass
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.compilation.search.costly_layers import LayerSearch, errors_of, results, samples_of, work_of
from aot.compilation.session import Session
from aot.compilation.stages import build, lower, optimize, read, schedule
from aot.ir.build import Builder
from aot.ir.copies import copy_graph
from aot.ir.graph import Graph, InPort, OutPort
from aot.ir.types import Array
from aot.opset.control.infrastructure import Parameter
from aot.opset.products.convolution import Convolution, GroupConvolution
from aot.opset.products.deconvolution import ConvolutionBackpropData, GroupConvolutionBackpropData
from aot.opset.products.matmul import MatMul
from aot.options import CompileOptions
from aot.options.derived import silent, with_exact_data
from aot.options.typed import CompileKeywords
from aot.precision import BF16, F32
from aot.runtime.abi import DType
from aot.runtime.errors import UsageError
from aot.runtime.measuring import profile
from aot.runtime.model import CompiledModel

PRODUCTS = (MatMul, Convolution, GroupConvolution, ConvolutionBackpropData, GroupConvolutionBackpropData)
ROUNDED = "aot.rounded"  # the input whose flags say which layers round
SECONDS = 0.2  # seconds for which each network is timed


@dataclass(frozen=True, slots=True)
class LayerError:
    """A layer of products: error of the results if it alone rounds, its type, seconds in f32 and as compiled."""

    layer: str
    error: float
    precision: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class FoundPrecision:
    """`precision` for the compiler; `errors` of outputs, over their largest number; seconds of an inference.

    `layers`: those of products, as they are kept in f32 first; empty if all layers may round.
    """

    precision: str
    errors: dict[str, float]
    layers: tuple[LayerError, ...]
    seconds_f32: float
    seconds: float

    def __str__(self) -> str:
        lines = [
            f"precision {self.precision}",
            f"  {self.seconds * 1e3:.4g} ms, in f32 {self.seconds_f32 * 1e3:.4g} ms",
        ]
        lines += [f"  output {name}: error {error:.2g}" for name, error in self.errors.items()]
        lines += [
            f"  {x.error:8.2g}  {x.precision:4}  {x.before * 1e6:8.1f} -> {x.after * 1e6:.1f} us  {x.layer}"
            for x in self.layers
        ]
        return "\n".join(lines)


def find_precision(
    model: str | Path,
    data: Mapping[str, Array] | Array,
    options: CompileOptions | None = None,
    *,
    max_error: float = 1e-2,
    **keywords: Unpack[CompileKeywords],
) -> FoundPrecision:
    """Return the precision with as many layers in bf16 as `max_error` allows.

    `data`: an array for each input, by name, of its shape, or of one dimension more in front: several samples.
    `max_error`: the largest difference of a result in f32, over the largest number of that output; of integers, the
    share that differ. `keywords`, `options`: as for `compile_model`; patterns in their precision hold in any case. The
    networks run here, on one thread, whatever the target is. UsageError for data that do not fit the inputs.
    """
    if not max_error > 0:
        raise UsageError(f"precision: max_error must be more than 0, got {max_error}")
    return _Search(model, stages(model, options, **keywords).options, max_error, data).run()


class _Search:
    def __init__(
        self, model: str | Path, options: CompileOptions, max_error: float, data: Mapping[str, Array] | Array
    ) -> None:
        _, _, self.fixed = (options.precision or F32).partition(",")
        self.model, self.max_error = model, max_error
        self.observe = options.on_event
        self.options = silent(with_exact_data(options), target="native", specialise=(), tune_file=None)
        self.event(0, 1)
        self.plain = self.compiled(F32)
        self.samples = samples_of("precision", self.plain, data)
        self.wanted = [results(self.plain, s) for s in self.samples]

    def event(self, done: int, total: int) -> None:
        if self.observe is not None:
            self.observe("precision", done, total)

    def compiled(self, precision: str) -> CompiledModel:
        compilation = stages(self.model, replace(self.options, precision=precision))
        return in_memory(compilation.built, threads=1)

    def text(self, long: Sequence[str]) -> str:
        """Return the precision that keeps the layers `long` in f32."""
        parts = (BF16, *(f"{pattern_of(name)}={F32}" for name in long), *([self.fixed] if self.fixed else []))
        return ",".join(parts)

    def errors(self, model: CompiledModel) -> dict[str, float]:
        """Return the largest error of each output over all samples."""
        return errors_of(model, self.samples, self.wanted)

    def run(self) -> FoundPrecision:
        short = self.compiled(self.text(()))
        errors = self.errors(short)
        if max(errors.values(), default=0.0) <= self.max_error:
            return self.measured(self.text(()), short, errors, ())
        layers, emulated = self.emulated()
        if not layers:
            return self.measured(F32, self.plain, dict.fromkeys(errors, 0.0), ())
        work = work_of(self.plain)
        search = LayerSearch(emulated, ROUNDED, layers, self.samples, self.wanted, work, self.event)
        alone = search.alone()
        order = search.order(alone)
        ranked = tuple((layers[k], alone[k]) for k in order)
        names = [layers[k] for k in order]
        for count, precision in self.attempts(search.needed(order, self.max_error), names):
            candidate = self.compiled(precision)
            errors = self.errors(candidate)
            if max(errors.values()) <= self.max_error:
                return self.measured(precision, candidate, errors, ranked, count)
        plain = ",".join((F32, *([self.fixed] if self.fixed else [])))
        candidate = self.compiled(plain)
        return self.measured(plain, candidate, self.errors(candidate), ranked, len(order))

    def attempts(self, count: int, names: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Yield counts of layers that stay in f32 with precisions: the first names these, others the layers in bf16."""
        if count < len(names):
            yield count, self.text(names[:count])
        while count < len(names):
            short = (f"{pattern_of(name)}={BF16}" for name in names[count:])
            yield count, ",".join((F32, *short, *([self.fixed] if self.fixed else [])))
            count += max(1, count // 2)

    def emulated(self) -> tuple[list[str], CompiledModel]:
        """Return the layers with products, and a network with the input `ROUNDED`: it selects the layers that round."""
        options = replace(self.options, precision=F32, plain_products=True)
        session = Session.of(self.model, options)
        optimized = optimize(session, read(session, self.model))
        graph = copy_graph(optimized.graph)
        layers = round_by_flags(graph)
        optimized = replace(optimized, graph=graph)
        scheduled = schedule(session, optimized, lower(session, optimized))
        return layers, in_memory(build(session, optimized, scheduled), threads=1)

    def measured(
        self,
        precision: str,
        model: CompiledModel,
        errors: dict[str, float],
        ranked: tuple[tuple[str, float], ...],
        long: int = 0,
    ) -> FoundPrecision:
        self.event(1, 1)
        before, after = (profile.measure(m, self.samples[0], SECONDS) for m in (self.plain, model))
        times = [_times(p) for p in (before, after)]
        rows = tuple(
            LayerError(name, error, F32 if n < long else BF16, *(t.get(name, 0.0) for t in times))
            for n, (name, error) in enumerate(ranked)
        )
        return FoundPrecision(precision, errors, rows, before.least, after.least)


def _times(measurement: profile.ModelProfile) -> dict[str, float]:
    """Return the least seconds of each layer, with those that run in one kernel."""
    times: dict[str, float] = {}
    for call in measurement.calls:
        for layer in call.layers:
            times[layer] = times.get(layer, 0.0) + call.least
    return times


def pattern_of(name: str) -> str:
    """Return a pattern that matches a layer's name; a comma, which separates patterns, is any character."""
    return glob.escape(name).replace(",", "?")


def round_by_flags(graph: Graph) -> list[str]:
    """Let products round their operands where the input `ROUNDED` is set for their layer; return the layers."""
    ports_of: dict[str, list[InPort]] = {}
    for node in graph.order():
        if isinstance(node.op, PRODUCTS) and node.out_port(0).type.dtype is DType.F32:
            name = node.origin.layers[0] if node.origin.layers else node.name
            ports_of.setdefault(name, []).extend((node.in_port(0), node.in_port(1)))
    if not ports_of:
        return []
    build = Builder(graph)
    flags = build(Parameter(DType.BOOL, (len(ports_of),)), name=ROUNDED)
    for k, ports in enumerate(ports_of.values()):
        flag = build.Gather(flags, build.const(k, DType.I64), build.const(0, DType.I64))
        for port in ports:
            port.connect(_rounded(build, flag, port.data))
    return list(ports_of)


def _rounded(build: Builder, flag: OutPort, x: OutPort) -> OutPort:
    short = build.Rounded(build.Convert(x, destination_type=DType.BF16))
    return build.Select(flag, build.Convert(short, destination_type=DType.F32), x)
