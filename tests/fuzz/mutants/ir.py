"""Mutants of OpenVINO IR: elements, attributes, edges, ports, shapes and types of the XML, and bytes of both files."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

from lxml import etree

from tests.fuzz.case import Case
from tests.fuzz.mutants.changes import REALS, WORDS, changed_bytes, compile_and_run, drawn_changes, number
from tests.fuzz.reduce import fewest
from tests.fuzz.seeds import ir_seed
from tests.fuzz.server import Outcome
from tests.properties.drawing import Draw, random_draw

TYPES = (
    "f32",
    "f64",
    "f16",
    "bf16",
    "i64",
    "i32",
    "i16",
    "i8",
    "u64",
    "u32",
    "u16",
    "u8",
    "u4",
    "u1",
    "i4",
    "nf4",
    "f8e4m3",
    "boolean",
    "string",
    "dynamic",
)
Tree = etree._Element


def _all(root: Tree, *tags: str) -> list[Tree]:
    return [e for e in root.iter() if isinstance(e.tag, str) and (not tags or e.tag in tags)]


def _some(d: Draw, root: Tree, *tags: str) -> Tree | None:
    found = [e for e in _all(root, *tags) if e.getparent() is not None]
    return d.pick(found) if found else None


def _remove(d: Draw, root: Tree) -> None:
    found = _some(d, root, *d.pick([(), ("layer",), ("edge",), ("port",), ("dim",), ("data", "rt_info")]))
    if found is not None:
        found.getparent().remove(found)


def _double(d: Draw, root: Tree) -> None:
    found = _some(d, root, *d.pick([(), ("layer",), ("edge",), ("port",), ("dim",)]))
    if found is not None:
        found.addnext(copy.deepcopy(found))


def _swap(d: Draw, root: Tree) -> None:
    """Two elements of one kind change places, contents and all."""
    tag = d.pick(["layer", "edge", "port", "data", "input", "output", "body"])
    a, b = _some(d, root, tag), _some(d, root, tag)
    if a is None or b is None or a is b or a in list(b.iterancestors()) or b in list(a.iterancestors()):
        return
    x, y = copy.deepcopy(a), copy.deepcopy(b)
    a.getparent().replace(a, y)
    b.getparent().replace(b, x)


def _move(d: Draw, root: Tree) -> None:
    """An element goes into another one."""
    a, b = _some(d, root), _some(d, root)
    if a is None or b is None or a is b or a in list(b.iterancestors()):
        return
    b.append(copy.deepcopy(a))


def _other(d: Draw, old: str) -> str:
    """Another value for an attribute: as numbers, lists of numbers and words are written."""
    parts = old.split(",")
    try:
        numbers = [int(p) for p in parts]
    except ValueError:
        return d.pick([*WORDS, *TYPES, *(repr(x) for x in REALS), str(number(d)), old.upper(), f"{old},{old}"])
    match d.integer(0, 4):
        case 0:
            del numbers[d.integer(0, len(numbers) - 1)]
        case 1:
            numbers.append(number(d))
        case 2:
            return d.pick([*WORDS, "?", "1..5", "?,?", "nan"])
        case _:
            k = d.integer(0, len(numbers) - 1)
            numbers[k] = number(d, numbers[k])
    return ",".join(map(str, numbers))


def _attribute(d: Draw, root: Tree) -> None:
    found = _some(d, root, *d.pick([(), ("data",), ("data",), ("edge",), ("layer",), ("port",), ("input", "output")]))
    if found is None or not found.attrib:
        return
    name = d.pick(sorted(found.attrib))
    match d.integer(0, 6):
        case 0:
            del found.attrib[name]
        case 1:
            other = _some(d, root, found.tag)
            if other is not None and other.attrib:
                found.attrib[name] = other.attrib[d.pick(sorted(other.attrib))]
        case _:
            found.attrib[name] = _other(d, found.attrib[name])


def _type(d: Draw, root: Tree) -> None:
    """Another element type, of data or of a port."""
    found = [e for e in _all(root, "data") if "element_type" in e.attrib or "destination_type" in e.attrib]
    if found:
        chosen = d.pick(found)
        name = "element_type" if "element_type" in chosen.attrib else "destination_type"
        chosen.attrib[name] = d.pick(TYPES)


def _shape(d: Draw, root: Tree) -> None:
    """Another shape of a parameter or constant, or another dimension of a port."""
    found = [e for e in _all(root, "data") if "shape" in e.attrib]
    if found and d.flag():
        chosen = d.pick(found)
        chosen.attrib["shape"] = _other(d, chosen.attrib["shape"] or "1")
    elif (dim := _some(d, root, "dim")) is not None:
        dim.text = str(number(d, int(dim.text or 0) if (dim.text or "").lstrip("-").isdigit() else 0))


def _edge(d: Draw, root: Tree) -> None:
    """An input reads another output."""
    a, b = _some(d, root, "edge"), _some(d, root, "edge")
    if a is not None and b is not None:
        for name in d.pick([("from-layer", "from-port"), ("to-layer", "to-port"), ("from-port",), ("to-port",)]):
            if name in b.attrib:
                a.attrib[name] = b.attrib[name]


def _kind(d: Draw, root: Tree) -> None:
    """A layer becomes one of another type or version."""
    found, other = _some(d, root, "layer"), _some(d, root, "layer")
    if found is None or other is None:
        return
    if d.flag():
        found.attrib["version"] = f"opset{d.integer(0, 17)}"
    else:
        names = ["Add", "Concat", "Reshape", "MatMul", "Loop", "If", "TensorIterator", "Result", "Parameter", "Const"]
        found.attrib["type"] = d.pick([*names, "ReadValue", "Assign", "ShapeOf", other.attrib.get("type", "")])


MUTATIONS: tuple[Callable[[Draw, Tree], None], ...] = (
    _remove,
    _double,
    _swap,
    _move,
    _attribute,
    _attribute,
    _attribute,
    _type,
    _shape,
    _shape,
    _edge,
    _edge,
    _kind,
)


def mutate(case: Case, seeds: Sequence[int]) -> Case:
    """One mutation for each seed; those of bytes come last."""
    xml, weights = case.files["model.xml"], case.files["model.bin"]
    root = etree.fromstring(xml)
    draws = [random_draw(s) for s in seeds]
    raw = [d for d in draws if not d.integer(0, 9)]
    for d in draws:
        if d not in raw:
            d.pick(MUTATIONS)(d, root)
    xml = etree.tostring(root)
    for d in raw:
        if d.integer(0, 3):
            xml = changed_bytes(d, xml)
        else:
            weights = changed_bytes(d, weights)
    return Case({"model.xml": xml, "model.bin": weights})


class IrMutants:
    """Mutation fuzzer of OpenVINO IR."""

    name = "ir"

    def draw(self, seed: int) -> Case:
        d = random_draw(seed)
        base = ir_seed(d.integer(0, 1 << 20))
        return mutate(base, drawn_changes(d))

    def judge(self, case: Case) -> Outcome:
        return compile_and_run(case)

    def smallest(self, case: Case, holds: Callable[[Case], bool]) -> Case:
        """Remove the elements and attributes that the fault does not need."""
        try:
            root = etree.fromstring(case.files["model.xml"])
        except etree.XMLSyntaxError:
            return case
        elements = [e for e in root.iter() if e is not root]
        places = {id(e): k for k, e in enumerate(root.iter())}
        atoms = [(places[id(e)], "") for e in elements]
        atoms += [(places[id(e)], name) for e in root.iter() if isinstance(e.tag, str) for name in e.attrib]

        def without(left: Sequence[tuple[int, str]]) -> Case:
            made, kept = copy.deepcopy(root), set(left)
            for k, e in enumerate(list(made.iter())):
                if isinstance(e.tag, str):
                    for name in [n for n in e.attrib if (k, str(n)) not in kept]:
                        del e.attrib[name]
                if k and (k, "") not in kept and (parent := e.getparent()) is not None:
                    parent.remove(e)
            return Case({**case.files, "model.xml": etree.tostring(made)}, case.facts)

        small = without(fewest(atoms, lambda left: holds(without(left))))
        bare = Case({**small.files, "model.bin": b""}, small.facts)
        return bare if holds(bare) else small
