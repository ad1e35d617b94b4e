"""Paths that quantisation writes, and options for networks with an interface that has been changed already."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from aot.compilation.outputs import check_outputs
from aot.options import CompileOptions
from aot.options.derived import silent
from aot.options.rules import EXACT
from aot.runtime.errors import UsageError
from aot.tools.convert import SAID


def check_xml(output: Path, model: Path) -> None:
    """Raise UsageError unless `output` is an .xml that can be written beside its .bin, and neither is the model."""
    if output.suffix != ".xml":
        raise UsageError(f"quantize: the output must be an .xml file, got {output}")
    check_outputs((output, output.with_suffix(".bin")), model)


def here(options: CompileOptions) -> CompileOptions:
    """Return options for compiling here, silently and with data in f32; UsageError for extensions: IR has none."""
    if options.extensions is not None:
        raise UsageError(
            "quantize: the model cannot have extensions, got some; next: aot convert --extensions, then this"
        )
    return silent(options, target="native", specialise=(), tune_file=None, activations=EXACT, last_logits=False)


def without_interface(options: CompileOptions) -> CompileOptions:
    """Return options for a graph that those about inputs, outputs and shapes have changed."""
    return replace(options, **{name: getattr(CompileOptions(), name) for name in (*SAID, "feeds")})
