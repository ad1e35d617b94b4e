"""Readers of the texts that the command line has for options: `x=1x3x64x64`, `batch=1..64`, `2GB`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import cast

import numpy as np

from aot.options.rules import KINDS
from aot.runtime.arrays.files import read_arrays
from aot.runtime.errors import UsageError

PLACES = ("embedded", "external")  # places of weights: in the library, or in a file beside it
Nested = bool | int | float | tuple["Nested", ...]  # a tensor's elements, nested as its shape is


def shapes_of(given: Iterable[str] | None) -> tuple[tuple[str, tuple[int | str, ...]], ...]:
    """`x=1x3x640x640` or `x=batch,3,?,?`: numbers, names and `?`; or `x[1,3,8,8],y[1]`. `1,3,8,8`: of the only input.

    The only input's name is empty. UsageError for other texts.
    """
    shapes: list[tuple[str, tuple[int | str, ...]]] = []
    for text in (part for one in given or () for part in _bracketed(one)):
        name, _, shape = text.rpartition("=")
        parts = shape.split(",") if "," in shape else re.split(r"(?<=[\d?])x(?=[\d?])", shape)
        wrong = [p for p in parts if shape and not re.fullmatch(r"\d{1,15}|\?|-1|[A-Za-z_][\w.]*", p)]
        if wrong or ("=" not in text and not re.search(r"[\d?,]", shape)):
            raise UsageError(f"shape: must be INPUT=SHAPE, for example x=1x3x640x640 or x=batch,3,?,?, got {text}")
        shapes.append((name, tuple(int(p) if p.isdigit() else "?" if p == "-1" else p for p in parts if p)))
    return tuple(shapes)


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
    dims: list[tuple[str, int, int | None]] = []
    for text in given or ():
        match = re.fullmatch(r"([A-Za-z_][\w.]*)(?:=(\d{1,15})(?:(\.\.)(\d{1,15})?)?)?", text)
        if match is None or (match[4] is not None and int(match[4]) < int(match[2])):
            raise UsageError(f"dim: must be NAME=LEAST..GREATEST, for example batch=1..64, got {text}")
        low = int(match[2] or 0)
        dims.append((match[1], low, int(match[4]) if match[4] else low if match[2] and not match[3] else None))
    return tuple(dims)


def specialise_of(texts: Iterable[str] | None) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """`batch=1,8`: a dimension's name and sizes. UsageError for other texts."""
    versions: list[tuple[str, tuple[int, ...]]] = []
    for text in texts or ():
        match = re.fullmatch(r"([A-Za-z_][\w.]*)=(\d{1,15}(?:,\d{1,15})*)", text)
        if match is None:
            raise UsageError(f"specialise: must be NAME=SIZE,SIZE, for example batch=1,8, got {text}")
        versions.append((match[1], tuple(map(int, match[2].split(",")))))
    return tuple(versions)


def names_of(text: str | None) -> tuple[str, ...]:
    """`A,B`: names with commas between them."""
    return tuple(filter(None, map(str.strip, (text or "").split(","))))


def paths_of(text: str | None) -> tuple[Path, ...]:
    """`a.json,b.json`: files with commas between them."""
    return tuple(map(Path, names_of(text)))


def offsets_of(text: str) -> tuple[int, ...]:
    """`(4,2)` or `4,2`: a row and a column. UsageError for other texts."""
    match = re.fullmatch(r"\(?\s*(\d{1,9})\s*,\s*(\d{1,9})\s*\)?", text.strip())
    if match is None:
        raise UsageError(f"mean-file-offsets: must be (ROW,COLUMN), for example (16,16), got {text}")
    return int(match[1]), int(match[2])


def values_of(texts: Iterable[str] | None) -> tuple[tuple[str, Nested], ...]:
    """`k=3`, `flag=true`, `shape=[1,-1,64]` or `table=x.npy`. UsageError for other texts and unreadable files."""
    values: list[tuple[str, Nested]] = []
    for text in texts or ():
        name, _, value = text.rpartition("=")
        try:
            values.append((name, _nested(_array(Path(value)) if value.endswith(".npy") else json.loads(value))))
        except UsageError:  # of a file, which it names
            raise
        except (ValueError, TypeError, RecursionError) as error:
            rule = "INPUT=VALUE, for example k=3, shape=[1,-1,64] or t=x.npy"
            raise UsageError(f"value: {rule}, got {text[:80]}") from error
    return tuple(values)


def bytes_of(text: str | None, option: str = "max-memory") -> int | None:
    """`500MB`, `2GB`, `1.5GiB` or a number of bytes. UsageError, beginning with `option`, for other texts."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?)\s*([kKMGT]?)(i?)B?", text.strip())
    size = 0
    if match is not None:
        power = " KMGT".index(match[2].upper() or " ")
        size = int(float(match[1]) * (1024 if match[3] else 1000) ** power)
    if size <= 0:
        raise UsageError(f"{option}: must be a size, for example 500MB or 2GiB, got {text}")
    return size


def _array(path: Path) -> object:
    arrays = read_arrays(path)
    return arrays.tolist() if isinstance(arrays, np.ndarray) else arrays


def _nested(value: object) -> Nested:
    if isinstance(value, list):
        return tuple(map(_nested, cast("list[object]", value)))
    if not isinstance(value, bool | int | float):
        raise TypeError("numbers and booleans only")
    return value


def layouts_of(texts: Iterable[str] | None) -> tuple[tuple[str, str], ...]:
    """`x=NHWC`, or `x(nchw->nhwc)` and `nchw->nhwc` for the only input, as pairs; UsageError for other texts."""
    pairs: list[tuple[str, str]] = []
    for text in texts or ():
        match = re.fullmatch(r"(?:(.+)=([A-Za-z]+)|(?:(.+)\()?[A-Za-z]+->([A-Za-z]+)\)?)", text)
        if match is None:
            raise UsageError(f"layout: must be INPUT=LAYOUT, for example x=NHWC, got {text}")
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


def weights_of(text: str | None) -> tuple[bool, str | None]:
    """`embedded`, `external`, a type such as `int4`, or both with a comma: if they lie apart, and their type or None.

    UsageError for other texts.
    """
    words = [word.strip() for word in (text or "embedded").split(",")]
    placements, kinds = ([w for w in words if w in names] for names in (PLACES, KINDS))
    if len(placements) > 1 or len(kinds) > 1 or len(placements) + len(kinds) < len(words):
        raise UsageError(f"weights: {', '.join(PLACES)}, {', '.join(KINDS)}, or external,int4, got {text}")
    return placements == ["external"], kinds[0] if kinds else None
