"""Arguments of a node: constants as Python values, values of the graph as inputs of a foreign operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.frontends.pt2.files.element_types import COMPLEX, ELEMENT_TYPES
from aot.frontends.pt2.files.schema import Table, elements, real, union, whole, wrong
from aot.frontends.pt2.registry import Argument
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import CorruptError

LISTS = {
    "as_tensors": "as_tensor",
    "as_ints": "as_int",
    "as_floats": "as_float",
    "as_bools": "as_bool",
    "as_strings": "as_string",
    "as_sym_ints": "as_sym_int",
    "as_sym_floats": "as_sym_float",
    "as_sym_bools": "as_sym_bool",
    "as_optional_tensors": "as_optional_tensor",
    "as_int_lists": "as_ints",
    "as_float_lists": "as_floats",
    "as_nested_tensors": "as_tensors",
}
SYMBOLIC = {"as_sym_int": "int", "as_sym_float": "float", "as_sym_bool": "bool"}
IGNORED = ("as_device", "as_layout", "as_memory_format")  # where elements lie changes no number
CONTIGUOUS = ""


@dataclass(slots=True)
class Arguments:
    """Reads the arguments of one node. `find(name)` gives values of the graph.

    `ports` are the inputs so far, `names` their names in the file.
    """

    find: Callable[[str], OutPort]
    ports: list[OutPort] = field(default_factory=list[OutPort])
    names: list[str] = field(default_factory=list[str])

    def read(self, value: Any, where: str) -> Any:
        """Return the argument that a union stands for. CorruptError for a tag that there is not."""
        tag, found = union(value, where)
        return self._tagged(tag, found, where)

    def _tagged(self, tag: str, found: Any, where: str) -> Any:
        if tag in LISTS:
            return tuple(self._tagged(LISTS[tag], v, where) for v in elements(found, where))
        if tag == "as_none":
            return None
        if tag in SYMBOLIC:
            return self._symbolic(SYMBOLIC[tag], found, where)
        if tag == "as_tensor":
            return self._input(Table(found, where).text("name"), "tensor")
        if tag == "as_optional_tensor":
            return self.read(found, where)
        if tag in IGNORED:
            return CONTIGUOUS
        return _constant(tag, found, where)

    def _symbolic(self, kind: str, value: Any, where: str) -> Any:
        tag, found = union(value, where)
        if tag == "as_name":
            if not isinstance(found, str):
                wrong(found, str, where)
            return self._input(found, kind)
        return _constant(tag, found, where)

    def _input(self, name: str, kind: str) -> Argument:
        self.ports.append(self.find(name))
        self.names.append(name)
        return Argument(len(self.ports) - 1, kind)


def _constant(tag: str, found: Any, where: str) -> Any:
    match tag:
        case "as_int":
            return whole(found, where)
        case "as_float":
            return real(found, where)
        case "as_bool":
            return _plain(found, bool, where)
        case "as_string" | "as_operator":
            return _plain(found, str, where)
        case "as_scalar_type":
            return _type(whole(found, where), where)
        case "as_complex":
            parts = Table(found, where)
            return complex(*(real(parts.value(k), where) for k in ("real", "imag")))
        case _:
            raise CorruptError(f"{where}: arguments of this kind cannot be read, got {tag}")


def _plain(value: Any, kind: type[Any], where: str) -> Any:
    if not isinstance(value, kind):
        wrong(value, kind, where)
    return value


def _type(code: int, where: str) -> DType | str | None:
    """Return an element type; the name of a complex one."""
    if not code:
        return None
    if code in COMPLEX:
        return COMPLEX[code]
    if code not in ELEMENT_TYPES:
        raise CorruptError(f"{where}: an element type, got {code}")
    return ELEMENT_TYPES[code]
