"""Options made of others: without what only shows, or with what variables of the environment say."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from aot.options.commands import LOOKS
from aot.options.rules import AUTO, EXACT
from aot.options.table import CompileOptions, options
from aot.options.texts import names_of


def silent(given: CompileOptions, **changes: Any) -> CompileOptions:
    """Return options with `changes` that compile without reports, texts, limits of the process and measuring."""
    defaults = CompileOptions()
    shown = [name for name, row in options().items() if row.harmless == LOOKS]
    return replace(given, **{name: getattr(defaults, name) for name in (*shown, "hard_limits", "tune")}, **changes)


def with_exact_data(given: CompileOptions) -> CompileOptions:
    """Return options with data in f32 where their type was left to the weights: for errors against f32."""
    return replace(given, activations=EXACT) if given.activations == AUTO else given


def with_environment(given: CompileOptions) -> CompileOptions:
    """Return options for extensions with the names that variables of the environment have, where they are None."""
    return given if given.extensions is None else replace(given, **switches(given))


def switches(given: CompileOptions) -> dict[str, Any]:
    """Return the names of transformations by option, of the environment if an option is None."""
    variables = {row.environment: (name, getattr(given, name)) for name, row in options().items() if row.environment}
    return {name: names_of(os.environ.get(at)) if own is None else own for at, (name, own) in variables.items()}
