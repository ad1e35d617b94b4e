"""Compiled models, arrays and errors described in words; nothing here prints."""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from aot.runtime.arrays.strings import joined
from aot.runtime.errors import (
    AotError,
    BudgetError,
    CancelledError,
    CorruptError,
    MissingError,
    ModelError,
    PlatformError,
    UnsupportedError,
    UsageError,
)
from aot.runtime.loading.manifest import Manifest
from aot.runtime.loading.weights import beside
from aot.runtime.machine import missing_features, refused_tiles
from aot.runtime.machines import architecture_of

SHOWN = 4  # layers that a note names
LONG = 60  # characters of a layer's name in a note; TensorFlow Lite joins those of all layers that it fuses
_STEPS_BY_NUMBER = {  # by errno
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "free space there, or write to another disk"),
    **dict.fromkeys((errno.EADDRINUSE, errno.EADDRNOTAVAIL), "choose another --port or --host"),
}
_NEXT_STEPS: tuple[tuple[type[Exception], str], ...] = (  # the first class that fits
    (UsageError, "aot info MODEL shows its inputs and their sizes"),
    (UnsupportedError, "aot check MODEL lists what cannot be compiled, aot ops the operations that can be"),
    (CorruptError, "make or copy the file again; aot info FILE says what is in it"),
    (ModelError, "export the model again, or give its inputs other sizes: --shape, --dim"),
    (MissingError, "install what is missing, then run the command again"),
    (
        PlatformError,
        "compile for the machine where it runs, there or by --target; aot info MODEL.so says what it needs",
    ),
    (CancelledError, "run it again"),
    (BudgetError, "free memory, or compile a smaller model"),
    (MemoryError, "free memory, or compile a smaller model"),
    (OSError, "check the path and its permissions"),
)
_BUG = "this is a bug of aot: run it again with --debug and report what it prints"


def error_text(error: Exception) -> str:
    """Return an error's message and its notes, one per line."""
    match error:
        case OSError(strerror=str(reason)):
            where = "" if error.filename is None else f"{error.filename}: "
            text = f"{where}{reason[:1].lower()}{reason[1:]}"
        case AotError() | OSError():
            text = str(error)
        case _:
            text = f"{type(error).__name__}: {error}"
    advice = error.advice if isinstance(error, AotError) else ""  # `hint` returns it
    notes: list[str] = getattr(error, "__notes__", [])
    return "\n  ".join([text, *(note for note in notes if note != advice)])


def hint(error: Exception, command: str = "") -> str:
    """Return the next step that the user can take after an error, of a command of `aot` if one is named."""
    if isinstance(error, AotError) and error.advice:
        return error.advice
    if isinstance(error, BudgetError) and "--max-" in str(error):
        return "if the model is one that you trust, raise the limit: --max-memory 8GB, --max-seconds 600"
    if isinstance(error, OSError) and error.errno in _STEPS_BY_NUMBER:
        return _STEPS_BY_NUMBER[error.errno]
    if command and isinstance(error, UsageError):
        return f"aot {command} --help says what is accepted"
    return next((step for kind, step in _NEXT_STEPS if isinstance(error, kind)), _BUG)


def escape_unprintable(*streams: TextIO) -> None:
    """Let streams escape characters of names in files that the terminal cannot show, instead of raising."""
    for stream in streams:
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def summary(array: NDArray[Any]) -> dict[str, object]:
    """Return type and shape; range and mean of numbers; the index of the largest element of a vector."""
    kind = "string" if array.dtype == object else array.dtype
    facts: dict[str, object] = {"type": f"{kind}{list(array.shape)}"}
    if array.size and array.dtype.kind in "fiub":
        wide = array.astype(np.float64)
        facts |= {"min": float(wide.min()), "max": float(wide.max()), "mean": float(wide.mean())}
        if array.ndim and array.size == array.shape[-1] > 1:
            facts["argmax"] = int(wide.argmax())
    return facts


def manifest_text(manifest: Manifest, path: Path) -> str:
    tensors = [("input", joined(manifest.inputs)), ("output", joined(manifest.outputs))]
    lines = [f"{manifest.name}: compiled model, {size_text(path.stat().st_size)}, hash {manifest.json['hash']}"]
    optional = {info.name: ", optional" for info in manifest.inputs if info.default is not None}
    lines += [f"  {kind:9}{i.name}: {i}{optional.get(i.name, '')}" for kind, infos in tensors for i in infos]
    lines += [f"  about    {line}" for line in about_lines(manifest)]
    lines += [f"  size     {line}" for line in size_lines(manifest)]
    lines += [f"  computes {precision_text(manifest)}", *(f"  {line}" for line in cost_lines(manifest))]
    made_for = architecture_of(manifest.machine)
    needed = manifest.features if made_for is None else made_for.needed(manifest.features)
    lines += [f"  machine  {manifest.json['triple']}, needs {' '.join(needed) or 'no features'}"]
    levels = made_for.levels_that_run(manifest.features) if made_for is not None else []
    if levels and "levels" not in manifest.json:
        lines.append(f"  runs on  {', '.join(levels)}")
    lines += [f"  level    {line}" for line in level_lines(manifest)]
    lines += [f"  version  {line}" for line in version_lines(manifest)]
    where = f" in {beside(path).name}" if "external" in manifest.json else ""
    size = size_text(int(str(manifest.json["weights"])))
    lines += [f"  kernels  {len(manifest.calls)} calls, weights {size}{where}"]
    lines += [f"  note     {line}" for line in notes(manifest.json)]
    lines += [f"  {line}" for line in certificate_lines(manifest.json)]
    lines += [f"  made by  {_pairs(manifest.json['toolchain'])}", f"  options  {_pairs(manifest.json['options'])}"]
    return "\n".join(lines)


def precision_text(manifest: Manifest) -> str:
    """Return the types that layers compute in, and the bits of weights that have 8 or fewer."""
    types: list[str] = [str(manifest.options.get("precision", "f32"))]
    if (bits := manifest.json.get("weight_bits")) is not None:
        types.append(f"weights of {bits} bits")
    if (data := manifest.options.get("activations", "f32")) != "f32":
        types.append(f"data of {data} where they allow it")
    return ", ".join(types)


def costs(manifest: Manifest) -> dict[str, int | None]:
    """Return `work` in FLOP and `traffic` in bytes of an inference, `peak` bytes of weights and arena; None: not fixed.

    Of several versions, those of the general one.
    """
    versions = cast(list[dict[str, int]], manifest.json.get("versions", []))
    calls = cast(list[dict[str, object]], manifest.json["calls"])[versions[-1]["end"] if versions else 0 :]
    sizes: dict[str, int | None] = {}
    for key in ("work", "traffic"):
        values = [call.get(key) for call in calls]
        fixed = [value for value in values if isinstance(value, int)]
        sizes[key] = sum(fixed) if len(fixed) == len(values) else None
    arena, weights = manifest.json.get("arena"), manifest.json["weights"]
    return sizes | {"peak": arena + weights if isinstance(arena, int) and isinstance(weights, int) else None}


def cost_lines(manifest: Manifest) -> list[str]:
    """Return lines about work, traffic and memory, as far as they are fixed."""
    sizes, lines = costs(manifest), list[str]()
    if sizes["work"] is not None and sizes["traffic"] is not None:
        lines.append(f"work     {sizes['work'] / 1e6:.3f} MFLOP, traffic {sizes['traffic'] / 1e6:.3f} MB an inference")
    if sizes["peak"] is not None:
        weights, scratch = int(str(manifest.json["weights"])), manifest.json.get("scratch")
        more = f", {size_text(scratch)} for each thread" if isinstance(scratch, int) and scratch else ""
        lines.append(f"memory   weights {size_text(weights)}, arena {size_text(sizes['peak'] - weights)}{more}")
    return lines


def about_lines(manifest: Manifest) -> list[str]:
    """Return texts about the model that its file had: licence, author, description."""
    about = manifest.json.get("about")
    texts = cast(dict[str, object], about) if isinstance(about, dict) else {}
    return [f"{name}: {' '.join(str(text).split())}" for name, text in sorted(texts.items())]


def notes(manifest: Mapping[str, object]) -> list[str]:
    """Return notes about changes that the compiler made to numbers of the model, and about types that cost time."""
    count = manifest.get("denormals", 0)
    lines = [f"{count} denormal weights, below 1.2e-38, count as zero"] if count else []
    return lines + _narrowed(manifest) + _beyond_level(manifest) + _slow_types(manifest) + _in_floats(manifest)


def _beyond_level(manifest: Mapping[str, object]) -> list[str]:
    """Return a note if code for this machine asks for more than the nearest level has."""
    options = cast("Mapping[str, object]", manifest.get("options", {}))
    made_for = architecture_of(manifest.get("machine"))
    if options.get("target") != "native" or made_for is None:
        return []
    name, beyond = made_for.nearest_level(cast("list[str]", manifest.get("features", [])))
    if not beyond:
        return []
    asks = f"the code asks for {' '.join(beyond)}, which not all processors of {name} have"
    return [f"{asks}: with --target {name} it runs on all of them"]


def _narrowed(manifest: Mapping[str, object]) -> list[str]:
    """Return a note for each range of sizes that was asked for and that the model's file narrows."""
    symbols = {str(s["name"]): s for s in cast("list[dict[str, Any]]", manifest.get("symbols", []))}
    options = cast("Mapping[str, Any]", manifest.get("options", {}))
    lines: list[str] = []
    for name, least, most in cast("list[tuple[str, int, int | None]]", options.get("dims", [])):
        symbol = symbols.get(name)
        if symbol is None:
            continue
        high = symbol.get("max")
        if symbol["min"] > least > 0 or (high is not None and (most is None or high < most)):
            kept = range_text(symbol["min"], high)
            lines.append(f"{name} is {kept}, as the model's file has it, not {range_text(least, most)}")
    return lines


def _in_floats(manifest: Mapping[str, object]) -> list[str]:
    """Return a note for each reason why products compute in f32, although data in 8 bits were asked for."""
    lines: list[str] = []
    for why, layers in cast("Mapping[str, list[str]]", manifest.get("in_floats", {})).items():
        some = ", ".join(n if len(n) <= LONG else f"{n[:LONG]}…" for n in layers[:SHOWN])
        some += f" and {len(layers) - SHOWN} more" if len(layers) > SHOWN else ""
        lines.append(f"computed in f32, not in int8, since {why}" + (f": {some}" if some else ""))
    return lines


def _slow_types(manifest: Mapping[str, object]) -> list[str]:
    """Return a note if layers sum in the order of tile registers where there are none, so that bits are the same."""
    options = cast("Mapping[str, object]", manifest.get("options", {}))
    levels = cast("list[Mapping[str, object]]", manifest.get("levels", [manifest]))
    tiles = any("amx-bf16" in cast("list[str]", level.get("features", [])) for level in levels)
    types = set(re.split("[,=]", str(options.get("precision", "f32"))))
    if "bf16" not in types or tiles or options.get("fast_math"):
        return []
    return [
        "bf16 may take 2.6 times as long as f32 without tile registers, for the same bits everywhere: see --fast-math"
    ]


def certificate_lines(manifest: Mapping[str, object]) -> list[str]:
    """Return two lines about the certificate, if the library has one: results and samples, then layers."""
    certificate = manifest.get("certificate")
    if not isinstance(certificate, dict):
        return []
    facts = cast(dict[str, Any], certificate)
    samples, layers = cast(list[dict[str, object]], facts["samples"]), cast(dict[str, Any], facts["layers"])
    sides = cast("list[dict[str, object]]", list(facts["outputs"].values()))
    graph, code = (max((float(str(side[key])) for side in sides), default=0.0) for key in ("graph", "code"))
    inner = f", largest error {float(layers['error']):.1e} in {layers['largest']!r}" if layers["count"] else ""
    beyond = f", {layers['beyond']} beyond their bound" if layers["beyond"] else ""
    return [
        f"certified {facts['verdict']}: {len(samples)} samples, error of the graph {graph:.1e}, of the code {code:.1e}",
        f"layers   {layers['count']} compared{inner}{beyond}",
    ]


def _pairs(facts: object) -> str:
    """Join the pairs that have values."""
    return ", ".join(f"{name} {value}" for name, value in sorted(cast(dict[str, object], facts).items()) if value)


def range_text(low: int, high: int | None) -> str:
    """Return a range as text: `1 to 64`, or `1 or more`."""
    return f"{low} or more" if high is None else f"{low} to {high}"


def size_lines(manifest: Manifest) -> list[str]:
    """Return lines about sizes: those of inputs with their ranges, data-dependent ones with their first capacities."""
    symbols = cast(list[dict[str, Any]], manifest.json["symbols"])
    lines = [f"{symbol['name']}: {range_text(symbol['min'], symbol.get('max'))}" for symbol in symbols]
    rooms = {c["of"]: c["initial"] for c in cast(list[dict[str, Any]], manifest.json["capacities"])}
    for name in manifest.late:
        room = f", memory for {rooms[name]} at first" if name in rooms else ""
        lines.append(f"{name}: computed by the model{room}")
    return lines


def level_lines(manifest: Manifest) -> list[str]:
    """Return lines about instruction sets, if the file has code for several, and whether this machine supports them."""
    lines: list[str] = []
    for level in cast(list[dict[str, object]], manifest.json.get("levels", [])):
        missing = missing_features(cast(list[str], level["features"]))
        state = f"this machine lacks {' '.join(missing)}" if missing else "runs here"
        if not missing and level.get("tiles") and (why := refused_tiles()):
            state = f"the system refuses tile registers: {why}"
        lines.append(f"{level['target']}, {level['calls']} calls: {state}")
    return lines


def version_lines(manifest: Manifest) -> list[str]:
    """Return lines about sizes with specialised code, if there is any, in the order of trial."""
    versions = cast(list[dict[str, Any]], manifest.json.get("versions", []))
    sizes = [", ".join(f"{name}={size}" for name, size in v["sizes"].items()) for v in versions]
    lines = [f"{text}: {v['end'] - v['first']} calls" for text, v in zip(sizes, versions, strict=True)]
    return [*lines, f"all other sizes: {len(manifest.calls) - versions[-1]['end']} calls"] if versions else []


def size_text(size: float) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"
