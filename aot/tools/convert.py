"""Converts a model to OpenVINO IR: its graph after the front phase and extensions, before it is simplified."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

from aot.compilation.outputs import check_outputs
from aot.compilation.session import Session
from aot.compilation.stages import extend, read
from aot.ir.graph import Graph
from aot.ir.scope import within
from aot.options import CompileOptions
from aot.options.table import options as rows
from aot.passes.middle.remove_dead_code import remove_dead_code
from aot.passes.run import run_passes
from aot.runtime.errors import UsageError
from aot.runtime.version import VERSION
from aot.writers.openvino import VERSIONS, write
from aot.writers.openvino.forms import fold_formless, give_forms

_LOG = logging.getLogger(__name__)
# options that the converted network depends on
SAID = tuple(name for name, row in rows().items() if "convert" in row.commands and not row.harmless)


def convert_model(
    model: str | Path | Graph,
    output: str | Path,
    options: CompileOptions | None = None,
    *,
    compress_to_f16: bool = False,
    ir_version: int = 11,
    static_shape: bool = False,
) -> None:
    """Write a model (.onnx, .xml or a graph) as OpenVINO IR: `output`, an .xml, and the .bin beside it, both or none.

    `compress_to_f16`: constants of f32 are stored as f16 where these hold them; `ir_version`: 10 or 11;
    `static_shape`: sizes that are fixed are constants, and loops of a fixed number of steps are written out, where else
    the file may be reshaped.
    Raises UsageError for a path that cannot be written, UnsupportedError if IR has no form for an operation, and
    the errors of `compile_model` for a wrong model.
    """
    options, path = options or CompileOptions(), Path(output)
    session = Session.of(model, replace(options, last_logits=bool(options.last_logits)))
    if path.suffix != ".xml":
        raise UsageError(f"convert: the output must be an .xml file, got {path}")
    if ir_version not in VERSIONS:
        raise UsageError(f"convert: the IR version must be one of {', '.join(map(str, VERSIONS))}, got {ir_version}")
    if options.feeds:
        raise UsageError(f"convert: IR has no inputs that may be left out, got feeds {', '.join(options.feeds)}")
    check_outputs((path, path.with_suffix(".bin")), model)
    graph = extend(session, read(session, model), not static_shape)
    if "conversion_parameters" not in graph.rt_info:
        graph.rt_info |= {"aot_version": VERSION, "conversion_parameters": _parameters(model, options, compress_to_f16)}
    with within(session.library.scope):  # the graph may have operations of extensions
        run_passes(graph, (give_forms, fold_formless, remove_dead_code))
        _warn_of_own(graph)
        write(graph, path, version=ir_version, half=compress_to_f16)


def _warn_of_own(graph: Graph) -> None:
    own = sorted({" of version ".join(n.op.own_layer[:2]) for n in graph.nodes.values() if n.op.own_layer is not None})
    if own:
        _LOG.warning("no operation set has %s: who reads the file must have it as an extension", ", ".join(own))


def _parameters(model: str | Path | Graph, options: CompileOptions, half: bool) -> Mapping[str, object]:
    """Facts about the conversion; without paths, so that the file is the same wherever it is made."""
    parameters: dict[str, object] = {} if isinstance(model, Graph) else {"input_model": Path(model).name}
    if half:
        parameters["compress_to_fp16"] = "True"
    for field in fields(options):
        value = getattr(options, field.name)
        if field.name in SAID and value != field.default:
            parameters[field.name] = value.name if isinstance(value, Path) else repr(value)
    return parameters
