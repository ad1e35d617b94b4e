"""`aot check`: the layers that cannot be compiled."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace

from aot.commands.line import arguments as arg
from aot.commands.line.declared import Exit, echo
from aot.commands.output import echo_json
from aot.options import CompileOptions
from aot.runtime.errors import UnsupportedError


def check(
    model: arg.Model,
    options: CompileOptions,
    quiet: arg.Quiet = False,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Say which layers of a model cannot be compiled, and why. Nothing is compiled."""
    from aot.commands.line.progress import Watch
    from aot.tools.check import check as check_model

    with Watch(None if quiet else sys.stderr) as watch:
        findings = check_model(model, replace(options, on_event=watch))
    if as_json:
        echo_json({"supported": not findings, "unsupported": [asdict(f) for f in findings]})
    else:
        echo("\n".join(map(str, findings)) or f"{model}: all layers can be compiled")
    if findings:
        raise Exit(UnsupportedError.exit_code)
