"""Sample inputs of commands: arrays by the names of a model's inputs."""

from __future__ import annotations

from pathlib import Path

from aot.runtime.arrays.files import Arrays, is_compiled, read_inputs


def samples(files: list[str] | None, model: Path, signature: str | None) -> Arrays | None:
    """Return the arrays of the files for the inputs of a model or a library; None without files."""
    if not files:
        return None
    if is_compiled(model):
        from aot.runtime.loading.library import read_manifest

        return read_inputs(files, [tensor.name for tensor in read_manifest(model).inputs])
    from aot.frontends import read_model

    return read_inputs(files, [node.name for node in read_model(model, signature=signature).parameters])
