"""Options of a compilation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import cast

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.precision import precision_of
from aot.runtime.arrays.files import read_arrays
from aot.runtime.errors import UsageError

Event = Callable[[str, int, int], None]  # stage, steps done, steps in all
ACTIVATIONS = ("f32", "int8")
Nested = bool | int | float | tuple["Nested", ...]  # a tensor's elements, nested as its shape is


class Stage(StrEnum):
    """Stages that a compilation can show."""

    IMPORTED, OPTIMIZED, STEPS, GROUPS = "imported", "optimized", "steps", "groups"
    LOOPS, LLVM, ASM = "loops", "llvm", "asm"


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """`target`: `native`, `x86-64-v2`, `-v3`, `-v4`, `-v4-bf16`, `-v4-amx`, `aarch64`, or levels as `x86-64-v2,v3`.

    `cores`: for which schedules have units enough, None: those of this machine for `native`, else 2;
    `shapes`: an input and, for each dimension, a number, a name or `?` for the file's; `dims`: a name with its
    least and greatest value (see `aot.passes.front.input_shapes`); `values`: inputs that become constants;
    `cut`: tensors or layers that become the inputs, and those that become the outputs, either of which may be empty;
    `feeds`: constants that become inputs, which may be left out;
    `specialise`: names of dims and sizes that there are versions for, besides the general one. `signature`: which one
    of a SavedModel of TensorFlow, None: the default one; `layouts`: pairs of an
    input's name and the layout its data comes in, `NHWC`; `mean`, `scale`: an input by name or position, "" for all of
    floats, with a number for each of its channels or one for all: means are subtracted, then it is divided by scales;
    `reverse_channels`: inputs whose channels come in the opposite order, "" for all images of three; `seed`: of the
    numbers that ONNX's random operations draw, which are refused without one; `level`: None leaves LLVM's passes out,
    which run over drivers and scalar kernels; `external_weights`: in a file beside the library, instead of inside;
    `small_weights`: none are transformed for Winograd, which makes them up to 4 times as large, and those that bytes
    or f16 hold lie so even where conversions cost time; `plain_products`: sums of products as they are written, without
    Winograd and Strassen, which round more and carry NaN and infinities from an element to others;
    `disable_layout_change`: Transposes stay where a NHWC network has them, for comparison; `max_context`: tokens that
    the variables of a language model have room for from the first call on, and keep at most; `last_logits`: a language
    model gives the logits of the last token of a call only; `row_lengths`: rows of its batches, a token each, have
    lengths of their own, told by `attention_mask`; `precision`: the type in
    which layers compute, `f32`, `bf16` or `f16`, or by patterns of names, `bf16,stem=f32,head.*=f32`; `fast_math`: sums
    of products of bf16 may round as is fastest on the target, differently on others; `activations`: `int8`
    rounds the data of products with weights of 8 bits to 8 bits, with a scale for each 64 numbers, or `f32`; `tune`:
    seconds to measure schedules for on this machine; `tune_file`: where the fastest ones are kept, and taken from;
    `kernel_cache`: the folder in which object code is kept, `off`, or None: `aot.compilation.kernel_cache` says it;
    `print_after`: names of passes, or `all`, whose result
    goes to `on_dump`; `stop_after_rewrite`, `stop_after_lowering`: after so many rewrites of the graph, or lowering
    passes, only required passes run; `verify`: check the steps after each lowering pass;
    `on_event(stage, done, total)` reports progress; `save_temps`: a folder for every stage's text;
    `max_memory`: bytes that compiling may add to the process; `max_seconds` that it may take; None: as suits a model
    of that size (`aot.compilation.limits.budget`), BudgetError beyond; `hard_limits`: the process is ours, and gets
    limits of the system while it compiles; `extensions`: a folder of operations and passes of the user's, whose code
    runs (see `aot.extensions.folder`), or several with commas between them; `transformations_config`: files with
    attributes of Model Optimizer's transformations in it; `enable_transforms`, `disable_transforms`: classes of it by
    `id` or name.
    """

    target: str = "native"
    cores: int | None = None
    layouts: tuple[tuple[str, str], ...] = ()
    mean: tuple[tuple[str | int, tuple[float, ...]], ...] = ()
    scale: tuple[tuple[str | int, tuple[float, ...]], ...] = ()
    reverse_channels: tuple[str, ...] = ()
    shapes: tuple[tuple[str, tuple[int | str, ...]], ...] = ()
    dims: tuple[tuple[str, int, int | None], ...] = ()
    values: tuple[tuple[str, Nested], ...] = ()
    feeds: tuple[str, ...] = ()
    cut: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    specialise: tuple[tuple[str, tuple[int, ...]], ...] = ()
    signature: str | None = None
    seed: int | None = None
    level: int | None = 1
    external_weights: bool = False
    small_weights: bool = False
    plain_products: bool = False
    disable_layout_change: bool = False
    max_context: int | None = None
    last_logits: bool = False
    row_lengths: bool = False
    precision: str = "f32"
    fast_math: bool = False
    activations: str = "f32"
    max_memory: int | None = None
    max_seconds: float | None = None
    hard_limits: bool = False
    tune: float | None = None
    tune_file: Path | None = None
    kernel_cache: Path | None = None
    extensions: Path | None = None
    transformations_config: tuple[Path, ...] = ()
    enable_transforms: tuple[str, ...] = ()
    disable_transforms: tuple[str, ...] = ()
    print_after: tuple[str, ...] = ()
    stop_after_rewrite: int | None = None
    stop_after_lowering: int | None = None
    verify: bool = False
    save_temps: Path | None = None
    on_event: Event | None = None
    on_dump: Callable[[str, str], None] | None = None

    def __post_init__(self) -> None:
        for name in ("feeds", "reverse_channels"):
            names: object = getattr(self, name)
            if not isinstance(names, tuple) or not all(isinstance(n, str) for n in cast("tuple[object, ...]", names)):
                raise UsageError(f"CompileOptions: {name} is a tuple of names, got {names!r}")
        for name in ("mean", "scale"):
            numbers: object = getattr(self, name)
            if not isinstance(numbers, tuple) or not all(map(_is_numbers, cast("tuple[object, ...]", numbers))):
                raise UsageError(f"CompileOptions: {name} is a tuple of pairs of an input and numbers, got {numbers!r}")
        for name in ("layouts", "shapes", "dims", "values", "specialise"):
            given: object = getattr(self, name)
            if not isinstance(given, tuple) or not all(map(_is_named, cast("tuple[object, ...]", given))):
                raise UsageError(f"CompileOptions: {name} is a tuple of tuples that begin with a name, got {given!r}")
        if self.activations not in ACTIVATIONS:
            raise UsageError(f"CompileOptions: activations are {' or '.join(ACTIVATIONS)}, got {self.activations!r}")
        plain = precision_of(self.precision).is_plain
        if self.tune is not None and not plain:
            raise UsageError(f"CompileOptions: tune is for layers in f32, got precision {self.precision}")
        for name, least in (("max_memory", self.max_memory), ("max_seconds", self.max_seconds), ("cores", self.cores)):
            if least is not None and least <= 0:
                raise UsageError(f"CompileOptions: {name} is more than 0, got {least}")


def _is_numbers(entry: object) -> bool:
    pair: list[object] = list(cast("tuple[object, ...]", entry)) if isinstance(entry, tuple) else []
    if len(pair) != 2 or not isinstance(pair[0], str | int) or not isinstance(pair[1], tuple):
        return False
    numbers = cast("tuple[object, ...]", pair[1])
    return bool(numbers) and all(isinstance(n, int | float) for n in numbers)


def _is_named(entry: object) -> bool:
    return isinstance(entry, tuple) and len(cast("tuple[object, ...]", entry)) > 1 and isinstance(entry[0], str)


def shapes_of(given: Iterable[str] | None) -> tuple[tuple[str, tuple[int | str, ...]], ...]:
    """`x=1x3x640x640` or `x=batch,3,?,?`: numbers, names and `?`; or `x[1,3,8,8],y[1]`. `1,3,8,8`: of the only input.

    The only input's name is empty. UsageError for other texts.
    """
    found: list[tuple[str, tuple[int | str, ...]]] = []
    for text in (part for whole in given or () for part in _bracketed(whole)):
        name, _, shape = text.rpartition("=")
        parts = shape.split(",") if "," in shape else re.split(r"(?<=[\d?])x(?=[\d?])", shape)
        wrong = [p for p in parts if shape and not re.fullmatch(r"\d{1,15}|\?|-1|[A-Za-z_][\w.]*", p)]
        if wrong or ("=" not in text and not re.search(r"[\d?,]", shape)):
            raise UsageError(f"shape: INPUT=SHAPE, for example x=1x3x640x640 or x=batch,3,?,?, got {text}")
        found.append((name, tuple(int(p) if p.isdigit() else "?" if p == "-1" else p for p in parts if p)))
    return tuple(found)


def _bracketed(text: str) -> list[str]:
    """Return the parts of `x[1,3],y[1]` as `x=1,3` and `y=1`; a text without brackets is its own part."""
    if not re.fullmatch(r"[^\[\]=]*\[[^\[\]]*\](,[^\[\]=]*\[[^\[\]]*\])*", text):
        return [text]
    return [
        f"{name.strip()}={sizes.replace(' ', '')}" for name, sizes in re.findall(r",?([^\[\]]*)\[([^\[\]]*)\]", text)
    ]


def cut_of(given: str | None) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """`a,b:c`, `a:` or `:c`: inputs and outputs. UsageError for other texts."""
    if given is None:
        return None
    sides = [tuple(name.strip() for name in side.split(",") if name.strip()) for side in given.split(":")]
    if len(sides) != 2 or not any(sides):
        rule = "cut: INPUT,..:OUTPUT,.., for example conv1:relu7 or :pool3; CompileOptions(cut=...) for names with ':'"
        raise UsageError(f"{rule}, got {given}")
    return sides[0], sides[1]


def dims_of(given: Iterable[str] | None) -> tuple[tuple[str, int, int | None], ...]:
    """`batch`, `batch=1..64`, `batch=1..` or `batch=8`. UsageError for other texts."""
    found: list[tuple[str, int, int | None]] = []
    for text in given or ():
        match = re.fullmatch(r"([A-Za-z_][\w.]*)(?:=(\d{1,15})(?:(\.\.)(\d{1,15})?)?)?", text)
        if match is None or (match[4] is not None and int(match[4]) < int(match[2])):
            raise UsageError(f"dim: NAME=LEAST..GREATEST, for example batch=1..64, got {text}")
        low = int(match[2] or 0)
        found.append((match[1], low, int(match[4]) if match[4] else low if match[2] and not match[3] else None))
    return tuple(found)


def specialise_of(given: Iterable[str] | None) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """`batch=1,8`: a dimension's name and sizes. UsageError for other texts."""
    found: list[tuple[str, tuple[int, ...]]] = []
    for text in given or ():
        match = re.fullmatch(r"([A-Za-z_][\w.]*)=(\d{1,15}(?:,\d{1,15})*)", text)
        if match is None:
            raise UsageError(f"specialise: NAME=SIZE,SIZE, for example batch=1,8, got {text}")
        found.append((match[1], tuple(map(int, match[2].split(",")))))
    return tuple(found)


def names_of(given: str | None) -> tuple[str, ...]:
    """`A,B`: names with commas between them."""
    return tuple(filter(None, map(str.strip, (given or "").split(","))))


def values_of(given: Iterable[str] | None) -> tuple[tuple[str, Nested], ...]:
    """`k=3`, `flag=true`, `shape=[1,-1,64]` or `table=x.npy`. UsageError for other texts and unreadable files."""
    found: list[tuple[str, Nested]] = []
    for text in given or ():
        name, _, value = text.rpartition("=")
        try:
            found.append((name, _nested(_array(Path(value)) if value.endswith(".npy") else json.loads(value))))
        except UsageError:  # of a file, which it names
            raise
        except (ValueError, TypeError, RecursionError) as error:
            rule = "INPUT=VALUE, for example k=3, shape=[1,-1,64] or t=x.npy"
            raise UsageError(f"value: {rule}, got {text[:80]}") from error
    return tuple(found)


def bytes_of(given: str | None, option: str = "max-memory") -> int | None:
    """`500MB`, `2GB`, `1.5GiB` or a number of bytes. UsageError, beginning with `option`, for other texts."""
    if given is None:
        return None
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?)\s*([kKMGT]?)(i?)B?", given.strip())
    size = 0
    if match is not None:
        power = " KMGT".index(match[2].upper() or " ")
        size = int(float(match[1]) * (1024 if match[3] else 1000) ** power)
    if size <= 0:
        raise UsageError(f"{option}: a size, for example 500MB or 2GiB, got {given}")
    return size


def _array(path: Path) -> object:
    found = read_arrays(path)
    return found.tolist() if isinstance(found, np.ndarray) else found


def _nested(value: object) -> Nested:
    if isinstance(value, list):
        return tuple(map(_nested, cast("list[object]", value)))
    if not isinstance(value, bool | int | float):
        raise TypeError("numbers and booleans only")
    return value


def layouts_of(given: Iterable[str] | None) -> tuple[tuple[str, str], ...]:
    """`x=NHWC`, or `x(nchw->nhwc)` and `nchw->nhwc` for the only input, as pairs; UsageError for other texts."""
    pairs: list[tuple[str, str]] = []
    for text in given or ():
        match = re.fullmatch(r"(?:(.+)=([A-Za-z]+)|(?:(.+)\()?[A-Za-z]+->([A-Za-z]+)\)?)", text)
        if match is None:
            raise UsageError(f"layout: INPUT=LAYOUT, for example x=NHWC, got {text}")
        pairs.append((match[1] or match[3] or "", (match[2] or match[4]).upper()))
    return tuple(pairs)


def channels_of(given: str | None, option: str) -> tuple[tuple[str | int, tuple[float, ...]], ...]:
    """`image[123.7,116.3,103.5],depth[127]`, `[1,2,3],[4]` by position, or `127.5` for all. UsageError for others."""
    if given is None:
        return ()
    text = given.strip().translate(str.maketrans("()", "[]"))
    try:
        if "[" not in text:
            return (("", tuple(map(float, text.split(",")))),)
        if not re.fullmatch(r"[^\[\]]*\[[^\[\]]+\](,[^\[\],][^\[\]]*\[[^\[\]]+\]|,\[[^\[\]]+\])*", text):
            raise ValueError
        groups = re.findall(r",?([^\[\]]*)\[([^\[\]]+)\]", text)
        read = [(name.strip() or i, tuple(map(float, numbers.split(",")))) for i, (name, numbers) in enumerate(groups)]
        return tuple(read)
    except ValueError:
        rule = f"{option}: INPUT[NUMBER,..],.. or [NUMBER,..] or NUMBER, for example image[123.7,116.3,103.5]"
        raise UsageError(f"{rule}, got {given}") from None
