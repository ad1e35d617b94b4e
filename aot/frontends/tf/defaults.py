"""Defaults of attributes: files leave out those that have the default of the operation's definition.

`defaults.txt` has a line for each operation that is read, in TensorFlow's words; tests/frontends/tf/make_defaults.py
makes it from TensorFlow's own definitions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def _lines() -> dict[str, str]:
    text = files(__package__ or "").joinpath("defaults.txt").read_text("utf-8")
    return {kind: rest for kind, _, rest in (line.partition(" ") for line in text.splitlines())}


@cache
def defaults_of(kind: str) -> Mapping[str, Any]:
    """Return the defaults of an operation's attributes: numbers, texts, names of types, lists, None for any shape."""
    pairs = (part.partition("=") for part in _lines().get(kind, "").split())
    return {name: json.loads(value) for name, _, value in pairs}
