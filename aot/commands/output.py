"""Output of commands for programs."""

from __future__ import annotations

import json

from aot.commands.line.declared import echo

JSON_VERSION = 1  # raised with every change that an older reader would misread


def echo_json(facts: dict[str, object]) -> None:
    """Print facts and the version of their form as JSON."""
    echo(json.dumps({"version": JSON_VERSION, **facts}, indent=1, default=str))
