"""Makes aot/frontends/tf/defaults.txt: what attributes are where a file leaves them out.

    python -m tests.frontends.tf.make_defaults      needs TensorFlow 2.21; not run by the tests

A line is an operation that the front end reads, and its attributes that have a default in TensorFlow's own table.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tensorflow.python.framework import op_def_registry

from aot.frontends.operations import tensorflow
from aot.frontends.tf import defaults
from aot.frontends.tf.files.element_types import type_name


def plain(value: Any) -> Any:
    """An attribute as JSON: types by their names, shapes as lists, null for a shape of unknown rank."""
    kind = value.WhichOneof("value")
    if kind == "list":
        return next(([one(kind.name, v) for v in values] for kind, values in value.list.ListFields()), [])
    return one(kind, getattr(value, kind))


def one(kind: str, value: Any) -> Any:
    """One value of a field of AttrValue."""
    if kind == "s":
        return value.decode()
    if kind == "type":
        return type_name(value)
    if kind == "shape":
        return None if value.unknown_rank else [d.size for d in value.dim]
    return value


def line(kind: str) -> str:
    """The line of an operation in the table."""
    definition = op_def_registry.get(kind)
    given = {a.name: plain(a.default_value) for a in definition.attr if a.HasField("default_value")}
    return " ".join([kind, *(f"{k}={json.dumps(v, separators=(',', ':'))}" for k, v in sorted(given.items()))])


if __name__ == "__main__":
    known = sorted(kind for kind in tensorflow().kinds if op_def_registry.get(kind) is not None)
    path = Path(defaults.__file__).with_suffix(".txt")
    path.write_text("".join(f"{line(kind)}\n" for kind in known))
    sys.stdout.write(f"{path.name}: {len(known)} operations, {path.stat().st_size} bytes\n")
