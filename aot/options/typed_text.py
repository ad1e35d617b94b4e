"""Writes `aot/options/typed.py`: the keywords of `compile_model` as type checkers and editors need them.

python -m aot.options.typed_text
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from aot.options.declaration import Keyword
from aot.options.table import CompileOptions, options

FILE = Path(__file__).with_name("typed.py")
HEAD = '''"""Keywords of `compile_model`, for type checkers: made of the table by `python -m aot.options.typed_text`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, TypedDict

from numpy.typing import NDArray

from aot.options.texts import Nested


class CompileKeywords(TypedDict, total=False):
    """Keywords of `compile_model` and `stages`, which win over those of `options`. Absent keywords have their defaults.

    `shapes`: for each dimension of an input a number, a name or `?` (as in the file): `{"x": (1, 3, "h", "?")}` or
    `{"x": "1,3,h,?"}`. `dims`: for names of dimensions a size, or the least and the greatest one: `{"h": (1, 640)}`
    or `{"h": "1..640"}`; None as the greatest one: no bound. `values`: inputs that become constants.
    `layouts`: the layout in which an input is given: `{"x": "NHWC"}`. `mean`, `scale`: of an input, one number or one
    for each channel: `{"x": (123.7, 116.3, 103.5)}`. `specialise`: sizes of dimensions that get a version of their
    own: `{"batch": (1, 8)}`. `max_memory`: bytes, or a text such as `2GB`. The others are as in CompileOptions.
    """

'''


def text() -> str:
    """Return the text of the file."""
    rows = options()
    forms = [(f.name, rows[f.name].keyword, f.type) for f in fields(CompileOptions)]
    lines = [f"    {name}: {form.type if isinstance(form, Keyword) else own}\n" for name, form, own in forms if form]
    return HEAD + "".join(lines)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
