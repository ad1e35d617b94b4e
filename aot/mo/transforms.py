"""Model Optimizer's own transformations, as places in the order that extensions refer to by class.

Most classes here change nothing: the conversions and passes of this compiler do the transformation's work, or it is
not needed. Others have code, in `aot.mo.transformations`, which extensions may call, and which runs in its place if an
extension comes after it in the same phase.

`transforms.txt` says where each is, of which kind it is, and which it ran before (<) and after (>):

    module class,class kind [<later,...] [>earlier,...] [off] [old]
    kind: module module         of one class of that name each, without anything else

`<` and `>` that are left out are those of the kind; `old`: earlier releases had it, so that it may be imported, but
takes no part in the order. Source: Model Optimizer 2024.6, asked by making each class.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.mo.implemented import code_of
from aot.mo.refused import reasons
from aot.mo.utils.error import Error

ROOTS = ("openvino.tools.mo", "mo", "extensions")  # names of Model Optimizer's package
_IDS = {  # attributes `id` of its transformations
    "reshape_interpolate_through_concat",
    "reshape_interpolate_wa",
    "lstm_to_tensor_iterator",
    "gru_and_rnn_to_tensor_iterator",
}
_TABLE = Path(__file__).with_suffix(".txt")
_PHASES = ("front", "middle", "back")
_TF = "aot.mo.front.tf.replacement"
_FRONT = "aot.mo.front.common.replacement"
_KINDS = {
    "F": (_FRONT, "FrontReplacementPattern"),
    "FS": (_FRONT, "FrontReplacementSubgraph"),
    "FO": (_FRONT, "FrontReplacementOp"),
    "FG": (_TF, "FrontReplacementFromConfigFileGeneral"),
    "FC": (_TF, "FrontReplacementFromConfigFileSubGraph"),
    "FCO": (_TF, "FrontReplacementFromConfigFileOp"),
    "M": ("aot.mo.middle.replacement", "MiddleReplacementPattern"),
    "B": ("aot.mo.middle.replacement", "BackReplacementPattern"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """A transformation; None for `before` and `after`: those of its kind."""

    module: str
    name: str
    kind: str
    before: tuple[str, ...] | None
    after: tuple[str, ...] | None
    enabled: bool
    old: bool  # earlier releases had it


@cache
def rows() -> dict[str, Row]:
    """Return the transformations by `module.class`."""
    by_name: dict[str, Row] = {}
    for line in re.sub(r"\n +", " ", _TABLE.read_text("ascii")).splitlines():
        kind, colon, modules = line.partition(":")
        entries = [[m, m.rpartition(".")[2], kind] for m in modules.split()] if colon else [line.split()]
        for module, names, kind, *rest in entries:
            neighbours = {word[0]: tuple(filter(None, word[1:].split(","))) for word in rest if word[0] in "<>"}
            flags = neighbours.get("<"), neighbours.get(">"), "off" not in rest, "old" in rest
            by_name |= {f"{module}.{name}": Row(module, name, kind, *flags) for name in names.split(",")}
    return dict(sorted(by_name.items(), key=lambda item: item[1].module))


@cache
def in_module(module: str) -> tuple[str, ...]:
    """Return the names of a module's transformations, `front.pass_separator` for instance."""
    return tuple(row.name for row in rows().values() if row.module == module)


@cache
def _modules() -> dict[str, list[str]]:
    """Return the modules of a transformation's name; those that serve every framework first."""
    modules: dict[str, list[str]] = {}
    for row in sorted(rows().values(), key=lambda r: (r.module.count("."), r.module)):
        modules.setdefault(row.name, []).append(row.module)
    return modules


def placeholder(name: str, module: str | None = None) -> type[Any]:
    """Return the class of a transformation; KeyError for one that Model Optimizer does not have."""
    return _class(f"{_modules()[name][0] if module is None else module}.{name}")


def is_known(name: str) -> bool:
    """True for the id, the name, or the module and name of a transformation of Model Optimizer's."""
    module, _, own = name.rpartition(".")
    roots = ("", *_PHASES, *(root.partition(".")[0] for root in ROOTS))
    return name in _IDS or (own in _modules() and module.partition(".")[0] in roots)


def is_placeholder(cls: type[Any]) -> bool:
    """True for a class of this table."""
    return "place" in vars(cls)


def has_code(cls: type[Any]) -> bool:
    """True for a class of this table that does the work of Model Optimizer's."""
    return is_placeholder(cls) and code_of(f"{cls.place.module}.{cls.__name__}") is not None


@cache
def _class(key: str) -> type[Any]:
    row = rows()[key]
    home, base_name = _KINDS[row.kind]
    base = getattr(import_module(home), base_name)
    code = code_of(key)

    rule = "this transformation of Model Optimizer is a place in the order only, and cannot run"

    def refuse(self: Any, graph: Any) -> None:
        raise Error("{}: {}: {}", key, rule, "; ".join(reasons(key)))

    def absent(self: Any, name: str) -> None:
        raise AttributeError(f"{key} has no {name}: {rule}: {'; '.join(reasons(key))}")

    namespace: dict[str, Any] = {
        "__module__": f"openvino.tools.mo.{row.module}",
        "__doc__": "A place in the order." if code is None else code.__doc__,
        "enabled": row.enabled,
        "place": row,
    }
    if code is None:
        namespace["find_and_replace_pattern"], namespace["__getattr__"] = refuse, absent
    if row.before is not None:
        namespace["run_before"] = _listed(row.before)
    if row.after is not None:
        namespace["run_after"] = _listed(row.after)
    return type(row.name, (base,) if code is None else (code, base), namespace)


def _listed(names: tuple[str, ...]) -> Any:
    def listed(self: Any) -> list[Any]:
        return [placeholder(name) for name in names if name in _modules()]

    return listed


@cache
def placeholders(framework: str) -> tuple[type[Any], ...]:
    """Return the classes of all transformations that take part for a framework, `onnx` or `tf`."""
    others = {"tf", "onnx", "kaldi", "caffe"} - {framework}
    selected = [row for row in rows().values() if not row.old and not others & set(row.module.split("."))]
    return tuple(placeholder(row.name, row.module) for row in selected)
