"""`aot compare`: a compiled model against a reference, layer by layer; and `aot run --expect`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from aot.commands.line import arguments as arg
from aot.commands.line.declared import Exit, argument, echo, option
from aot.commands.output import echo_json
from aot.commands.samples import samples
from aot.options import CompileOptions
from aot.options.texts import names_of
from aot.runtime.arrays.files import Arrays, read_arrays
from aot.runtime.errors import UsageError
from aot.runtime.inference.outputs import find
from aot.runtime.loading.manifest import TensorInfo
from aot.tools.comparing.difference import bound_of, difference, numbers

DIFFERENT = 1  # exit code of commands that compare, as that of cmp and diff


class Against(StrEnum):
    REFERENCE, ONNXRUNTIME, OPENVINO = "reference", "onnxruntime", "openvino"


def compare(
    model: arg.Model,
    other: Annotated[Path | None, argument(exists=True, help="m.so, or another model; default: MODEL")] = None,
    data: arg.Samples = None,
    against: Annotated[
        Against, option(help="Reference that computes the expected results from MODEL")
    ] = Against.REFERENCE,
    bound: arg.Bound = None,
    layers: Annotated[bool, option("--layers", help="Compare all layers even if the outputs agree")] = False,
    keep: Annotated[str | None, option(metavar="LAYER,...", help="Compare only these layers")] = None,
    threads: arg.Threads = None,
    *,
    options: CompileOptions,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Find the first layer that differs from a reference. Exit code 1 if one does."""
    from aot.tools.comparing.compare import compare as compare_models

    comparison = compare_models(
        model,
        other,
        samples(data, model, options.signature),
        against=against.value,
        bound=bound,
        layers=layers,
        keep=names_of(keep),
        threads=threads,
        options=options,
    )
    if as_json:
        echo_json(comparison.as_json())
    else:
        echo(comparison.text(layers or keep is not None))
    if not comparison.agrees:
        raise Exit(DIFFERENT)


def differences(infos: tuple[TensorInfo, ...], outputs: Arrays, expected: Path, bound: float | None) -> list[str]:
    """Return a line for each output that is not as the file has it: an .npz by names, or an .npy of the only output.

    UsageError for a file that has an array which is no output, or none.
    """
    loaded = read_arrays(expected)
    if not isinstance(loaded, dict):
        if len(infos) != 1:
            raise UsageError(f"--expect: the file must be an .npz for {len(infos)} outputs, got {expected}")
        loaded = {infos[0].name: loaded}
    if not loaded:
        raise UsageError(f"--expect: the file must have at least one output, got none in {expected}")
    lines: list[str] = []
    for name, array in loaded.items():
        info = infos[find("--expect", infos, name)]
        pair = numbers(array, info.dtype), numbers(outputs[info.name], info.dtype)
        agreement = difference(*pair, bound_of(info.dtype, bound))
        if not agreement.agrees:
            lines.append(f"{name}: {agreement}, bound {agreement.bound:g}")
    return lines
