"""The operations that can be compiled, as a table: `aot ops` prints it, and docs/use/models/ops.md is made from it."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Sequence

from aot.codegen.dataclass import dataclass
from aot.frontends.onnx.registry import CONVERSIONS
from aot.frontends.operations import FORMATS, Page
from aot.ir.op import Op, op_form
from aot.ir.registry import EXTENSION, all_operations, opsets_of
from aot.runtime.errors import UsageError

TITLE = """# Operations

Every definition of OpenVINO's operation sets that can be compiled; made by `aot ops --markdown`.

- **Opsets**: the sets that first registered a definition with this meaning; `extension`: OpenVINO does not have it.
- **Form**: how it runs, see [Add an operation](../../develop/add-an-op.md). `graph`: it only holds a graph together.
- **Elements** of the first input. `float`: f64, f32, f16, bf16; `integer`: i8 to i64, u8 to u64; `number`: both;
  `any`: boolean too, and strings where elements are only moved. Packed and f8 types are storage: Convert reads them.
- **ONNX**: conversions of the ONNX front end use it.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A definition of an operation with its abilities."""

    type: str
    opsets: tuple[int, ...]
    form: str
    elements: str
    frontends: tuple[str, ...]
    meaning: str

    @property
    def versions(self) -> str:
        return ", ".join(str(n) if n else EXTENSION for n in self.opsets)


def operations() -> list[Row]:
    """Return all definitions that stand in files, by type and operation set; others are made by passes."""
    used = set(_used_by_onnx())
    classes = [cls for cls in all_operations().values() if cls.opset]
    return [_row(cls, cls in used) for cls in sorted(classes, key=lambda c: (c.type.lower(), opsets_of(c)))]


def _row(cls: type[Op], onnx: bool) -> Row:
    meaning = (cls.__doc__ or "").partition("\n")[0]
    frontends = ("openvino", "onnx") if onnx else ("openvino",)
    return Row(cls.type, opsets_of(cls), op_form(cls), cls.elements.value, frontends, meaning)


def _used_by_onnx() -> Iterator[type[Op]]:
    """Operations that the modules of conversions build, or have in a table of names."""
    for module in {conversion.__module__ for conversion in CONVERSIONS.load().values()}:
        calls = re.findall(r'\bbuild\.(\w+)|"(\w+)"', inspect.getsource(sys.modules[module]))
        names = {built or quoted for built, quoted in calls}
        for name, value in vars(sys.modules[module]).items():
            names |= {str(own) for own in value.values()} if name.isupper() and hasattr(value, "values") else set()
        yield from (cls for name, cls in all_operations().items() if name in names)


def page_of(name: str) -> Page:
    """Return the operations of another format; UsageError if there is none of that name."""
    if name not in FORMATS:
        raise UsageError(f"--format: must be one of {', '.join(FORMATS)}, got {name}")
    return FORMATS[name]()


def text(rows: Sequence[Row]) -> str:
    """Columns for a terminal."""
    lines = [f"{'type':40} {'opsets':8} {'form':12} {'elements':16} {'ONNX':4} meaning"]
    lines += [
        f"{r.type:40} {r.versions:8} {r.form:12} {r.elements:16} {'yes' if 'onnx' in r.frontends else '':4} {r.meaning}"
        for r in rows
    ]
    return "\n".join([*lines, count(rows)])


def count(rows: Sequence[Row]) -> str:
    """Number of entries."""
    own = [r for r in rows if r.versions == EXTENSION]
    rest = [r for r in rows if r not in own]
    count = f"{len({r.type for r in rest})} operations, {sum(len(r.opsets) for r in rest)} versioned definitions"
    return f"{count}; {len(own)} that OpenVINO does not have" if own else count


def markdown(rows: Sequence[Row]) -> str:
    """Return the page docs/use/models/ops.md."""
    lines = [TITLE, f"{count(rows)}.\n", "| type | opsets | form | elements | ONNX | meaning |", "|--|--|--|--|--|--|"]
    for r in rows:
        onnx, meaning = "yes" if "onnx" in r.frontends else "", r.meaning.replace("|", "\\|").replace("*", "\\*")
        lines.append(f"| {r.type} | {r.versions} | {r.form} | {r.elements} | {onnx} | {meaning} |")
    return "\n".join(lines)
