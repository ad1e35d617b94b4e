"""Libraries that several tests need: a process compiles each of them once."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

from aot import compile_model
from aot.codegen.llvm.object import optimize

_COMPILED: dict[tuple[str, str, int], bytes] = {}


def library(model: Path | str, to: Path, **options: Any) -> Path:
    """Compile a model into the library `to`, unless this process has compiled the same bytes with the same options."""
    key = _digest(Path(model)), repr(sorted(options.items())), optimize.EFFORT
    if key not in _COMPILED:
        compile_model(model, **options).export_model(to)
        _COMPILED[key] = to.read_bytes()
    to.write_bytes(_COMPILED[key])
    return to


def _digest(model: Path) -> str:
    """Return a hash of the model, and of its weights in IR."""
    weights = model.with_suffix(".bin")
    parts = [model.read_bytes(), weights.read_bytes() if model.suffix == ".xml" and weights.exists() else b""]
    return sha256(b"".join(parts)).hexdigest()
