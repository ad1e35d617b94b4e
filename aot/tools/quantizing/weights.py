"""Weights of language models in 8 or 4 bits: `aot quantize m.xml --weights int4 --group 64 -o m_int4.xml`.

Activations stay in f32. Scales are those of least squared error; with data, columns of a product's weights make up for
the errors of those before them (`compensated.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Unpack

from aot.compilation.driver import stages
from aot.ir.graph import Graph, OutPort
from aot.ir.types import Array
from aot.opset.products.matmul import MatMul
from aot.options import CompileOptions, Event
from aot.options.keywords import with_keywords
from aot.options.typed import CompileKeywords
from aot.passes.weights.matrices import Matrix, SmallWeights, round_matrix, sorted_matrices
from aot.runtime.errors import UsageError
from aot.tools.convert import convert_model
from aot.tools.quantizing.compensated import Compensation
from aot.tools.quantizing.moments import batches, second_moments
from aot.tools.quantizing.output import check_xml, here, without_interface


def quantize_weights(
    model: str | Path,
    output: str | Path,
    options: CompileOptions | None = None,
    *,
    bits: int = 4,
    group: int = 64,
    data: Sequence[Mapping[str, Array] | Array] = (),
    **keywords: Unpack[CompileKeywords],
) -> list[SmallWeights]:
    """Write a model as OpenVINO IR with matrices of weights as integers of 4 or 8 bits: an .xml and a .bin.

    Each `group` elements of a row have a scale and a zero point (0: the whole row; also where rows are no multiple of
    `group`). Embeddings, the last product and recurrent layers have 8 bits, the latter with a scale for each row.
    `data`: samples, as for `quantize_model`, by which columns make up for the errors of others; of a stateful decoder
    `input_ids` are enough. Matrices that lie in so few bits already stay as they are. UsageError for other bits, and
    for a network without matrices of constant weights.
    """
    if bits not in (4, 8):
        raise UsageError(f"quantize: weights must be of 4 or 8 bits, got {bits}")
    if group < 0 or group % 2:
        raise UsageError(f"quantize: a group must be an even number of weights, or 0 for a row, got {group}")
    path, source = Path(output), Path(model)
    check_xml(path, source)
    given_options = with_keywords(options, keywords)
    local_options = here(given_options)
    graph = stages(source, local_options).converted
    matrices, rows = sorted_matrices(graph, bits)
    if not matrices:
        raise UsageError(f"{source.name}: quantize: the network must have matrices of constant weights, got none")
    rounded = [m for m in matrices if m not in rows]
    gathered = {m.name for m in rounded if not isinstance(m.node.op, MatMul)}  # Gather's: the file has them once
    measured = [m for m in rounded if m.name not in gathered] if data else []
    rows |= {m: round_matrix(graph, m, group) for m in rounded if m not in measured}
    for matrix, row in _replace_by_data(
        graph, measured, group, without_interface(local_options), data, given_options.on_event
    ):
        rows[matrix] = row
        if given_options.on_event is not None:
            given_options.on_event("round", len(rows), len(matrices))
    graph.rt_info |= {"quantised": {"input_model": source.name, "bits": str(bits), "group": str(group)}}
    convert_model(graph, path)
    return [rows[m] for m in matrices]


def _replace_by_data(
    graph: Graph,
    matrices: Sequence[Matrix],
    group: int,
    options: CompileOptions,
    data: Sequence[Mapping[str, Array] | Array],
    observe: Event | None,
) -> Iterator[tuple[Matrix, SmallWeights]]:
    """Let products read small weights, batch by batch; a batch sees data that earlier batches changed."""
    consumers: dict[OutPort, list[Matrix]] = {}
    for matrix in matrices:
        consumers.setdefault(matrix.data, []).append(matrix)
    for ports in batches(consumers):
        for port, moments in zip(ports, second_moments(graph, ports, options, data, observe), strict=True):
            compensation = Compensation(moments)
            yield from ((m, round_matrix(graph, m, group, compensation.round)) for m in consumers[port])
