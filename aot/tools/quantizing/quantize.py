"""Quantises a network to 8 bits by sample data: `aot quantize m.onnx --data x.npz -o m_int8.xml`.

1. Ranges: the data of each product in the samples.
2. Errors that quantisation causes in each product alone; their mean over channels is added to the results again.
3. Only with `max_error`: the error of the network's results that each product causes alone, from one more network whose
   input says which products are quantised. Products that cost much error for little arithmetic stay in f32.
4. The network is compiled, measured, and written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.compilation.search.costly_layers import LayerSearch, Samples, results, samples_of, work_of
from aot.ir.graph import Graph
from aot.ir.types import Array
from aot.opset.elementwise.quantization import FakeQuantize
from aot.options import CompileOptions
from aot.options.keywords import with_keywords
from aot.options.typed import CompileKeywords
from aot.passes.weights.rounding import round_channels
from aot.runtime.errors import UsageError
from aot.runtime.measuring import profile
from aot.runtime.model import CompiledModel
from aot.tools.convert import convert_model
from aot.tools.quantizing.changes import QUANTISED, Change, quantize, quantize_by_flags
from aot.tools.quantizing.choices import Ranges
from aot.tools.quantizing.network import Fault, Network
from aot.tools.quantizing.output import check_xml, here, without_interface
from aot.tools.quantizing.products import left_out, products_of
from aot.tools.quantizing.ranges import limits
from aot.tools.quantizing.report import F32, INT8, Quantized, QuantizedLayer, QuantizedOutput, compared, worst

SECONDS = 0.4  # seconds for which each network is timed
RECURRENT = "--weights int8 reaches recurrent layers: aot quantize MODEL --weights int8 -o m_int8.xml"
PERCENTILE = 99.99


def quantize_model(
    model: str | Path,
    data: Mapping[str, Array] | Array | Sequence[Mapping[str, Array] | Array],
    output: str | Path,
    options: CompileOptions | None = None,
    *,
    ranges: str = Ranges.MINMAX,
    percentile: float = PERCENTILE,
    max_error: float | None = None,
    **keywords: Unpack[CompileKeywords],
) -> Quantized:
    """Write a model as OpenVINO IR with products in 8 bits: `output`, an .xml, and the .bin beside it.

    `data`: an array for each input, by name, of its shape, or of one dimension more in front: several samples; or a
    list of them, whose sizes may differ. `ranges`: `minmax`, `percentile` (the middle `percentile` % of all values), or
    `entropy`. `max_error`: the largest difference of a result from f32, over the largest number of that output (of
    integers, the share that differ); layers that cost more than that together stay in f32.
    `keywords`, `options`: as for `compile_model`. UsageError for data that do not fit the inputs, and for a network
    without products of constant weights.
    """
    if max_error is not None and not max_error > 0:
        raise UsageError(f"quantize: max_error must be more than 0, got {max_error}")
    if not 50 < percentile <= 100:
        raise UsageError(f"quantize: percentile must be above 50 and at most 100, got {percentile}")
    if ranges not in set(Ranges):
        raise UsageError(f"quantize: ranges must be one of {', '.join(Ranges)}, got {ranges}")
    path = Path(output)
    check_xml(path, Path(model))
    several = data if isinstance(data, Sequence) else [data]
    run = _Run(Path(model), with_keywords(options, keywords), several, max_error)
    return run.run(path, Ranges(ranges), percentile)


class _Run:
    """One quantisation: the network, its samples, and the results that f32 gives for them."""

    def __init__(
        self,
        model: Path,
        options: CompileOptions,
        data: Sequence[Mapping[str, Array] | Array],
        max_error: float | None,
    ) -> None:
        self.model, self.max_error, self.observe = model, max_error, options.on_event
        self.given = here(options)
        self.plain = in_memory(stages(model, self.given).built, threads=1)
        self.samples: Samples = [s for one in data for s in samples_of("quantize", self.plain, one)]
        if not self.samples:
            raise UsageError("quantize: needs one sample or more, got none")
        self.wanted = [results(self.plain, s) for s in self.samples]
        graph = stages(model, self.given).converted
        products = products_of(graph)
        self.left_out = tuple(left_out(graph))
        if not products:
            rule = "a network with products of constant weights in f32, outside of recurrent layers, loops and branches"
            raise UsageError(f"{model.name}: quantize: {rule}, got none", advice=RECURRENT if self.left_out else "")
        self.network = Network(graph, products, without_interface(self.given))
        self.steps = 0

    def _report_step(self) -> None:
        self.steps += 1
        if self.observe is not None:
            self.observe("quantize", self.steps, 2 * len(self.samples))

    def run(self, path: Path, how: Ranges, percentile: float) -> Quantized:
        products = self.network.products
        seen = self.network.ranges(self.samples, how, percentile, self._report_step)
        ranges = [s.range(how, percentile) for s in seen]
        changes = [
            Change(
                None if isinstance(p.data.node.op, FakeQuantize) else limits(*range_),
                round_channels(p.weights, p.sums),
            )
            for p, range_ in zip(products, ranges, strict=True)
        ]
        faults = self.network.faults(changes, self.samples, self._report_step)
        changes = [replace(c, correction=f.mean) for c, f in zip(changes, faults, strict=True)]
        order, alone, long = self._costly(changes)
        quantized = self._quantized(changes, order[:long])
        outputs = self._outputs(quantized)
        while self.max_error is not None and long < len(order) and worst(outputs) > self.max_error:
            long = min(len(order), long + max(1, long // 4))
            quantized = self._quantized(changes, order[:long])
            outputs = self._outputs(quantized)
        graph = self._variant(changes, order[:long])
        graph.rt_info |= {"quantised": {"input_model": self.model.name, "samples": str(len(self.samples))}}
        convert_model(graph, path)
        return self._report(path, quantized, outputs, ranges, faults, alone, set(order[:long]))

    def _costly(self, changes: Sequence[Change]) -> tuple[list[int], list[float] | None, int]:
        """Return products in the order of their return to f32, their errors, and how many of them must return."""
        if self.max_error is None:
            return [], None, 0
        graph, products = self.network.variant()
        quantize_by_flags(graph, products, changes)
        model = self.network.compiled(graph, 1, plain_products=True)
        names = [p.layer for p in products]
        work = work_of(self.plain)
        search = LayerSearch(model, QUANTISED, names, self.samples, self.wanted, work, self._searched)
        alone = search.alone()
        order = search.order(alone)
        enough = search.all_changed() <= self.max_error
        return order, alone, 0 if enough else search.needed(order, self.max_error)

    def _searched(self, done: int, total: int) -> None:
        if self.observe is not None:
            self.observe("search", done + 1, total)

    def _variant(self, changes: Sequence[Change], long: Sequence[int]) -> Graph:
        """Return the network with the changes of all products except `long`."""
        graph, products = self.network.variant()
        quantize(graph, products, [None if k in set(long) else c for k, c in enumerate(changes)])
        return graph

    def _quantized(self, changes: Sequence[Change], long: Sequence[int]) -> CompiledModel:
        return self.network.compiled(self._variant(changes, long), 1)

    def _outputs(self, model: CompiledModel) -> tuple[QuantizedOutput, ...]:
        pairs = [(results(model, s), w) for s, w in zip(self.samples, self.wanted, strict=True)]
        return tuple(
            compared(info.name, [(y[info.name], w[info.name]) for y, w in pairs]) for info in self.plain.outputs
        )

    def _report(
        self,
        path: Path,
        model: CompiledModel,
        outputs: tuple[QuantizedOutput, ...],
        errors: Sequence[tuple[float, float]],
        faults: Sequence[Fault],
        alone: Sequence[float] | None,
        long: set[int],
    ) -> Quantized:
        rows = tuple(
            QuantizedLayer(
                p.layer, F32 if k in long else INT8, *errors[k], faults[k].decibels, None if alone is None else alone[k]
            )
            for k, p in enumerate(self.network.products)
        )
        before, after = (profile.measure(m, self.samples[0], SECONDS).least for m in (self.plain, model))
        return Quantized(rows, outputs, path.with_suffix(".bin").stat().st_size, before, after, self.left_out)
