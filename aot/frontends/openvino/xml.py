"""The elements of an IR file as plain records: syntax is checked, meaning is not."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from pathlib import Path

from lxml import etree

from aot.codegen.dataclass import dataclass
from aot.runtime.errors import CorruptError

Element = etree._Element  # lxml has no public name for it

MAX_XML_BYTES = 512 << 20  # bytes of XML at most; real files stay below 100 MB, because weights are elsewhere
HUGE_XML_BYTES = 8 << 20  # bytes of XML above which libxml2's own limits on long texts are lifted
MAX_ID = 1 << 62

# Information of a Convert to its own type: it rounds a short float that fusion would keep in f32
ROUNDED = "rounded"
SIZES = "sizes"  # information of an input: names of its dynamic dimensions, `batch,,,`


@dataclass(frozen=True, slots=True)
class OutputPort:
    """An output port of a layer; `names`: names of the tensor."""

    id: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """A `<layer>`; `element` is read for layers with bodies only."""

    id: int
    name: str
    type: str
    version: str
    data: dict[str, str]
    inputs: tuple[int, ...]
    outputs: tuple[OutputPort, ...]
    output_names: tuple[str, ...]
    rt_info: dict[str, dict[str, str]]
    element: Element


@dataclass(frozen=True, slots=True)
class Edge:
    from_layer: int
    from_port: int
    to_layer: int
    to_port: int


@dataclass(frozen=True, slots=True)
class Network:
    """A `<net>` or a body."""

    layers: tuple[Layer, ...]
    edges: tuple[Edge, ...]


def parse(path: Path) -> Element:
    """Return the root of an XML file. CorruptError if it is not plain XML: entities and document types are refused."""
    size = path.stat().st_size
    if size > MAX_XML_BYTES:
        raise CorruptError(f"{path.name}: XML can have at most {MAX_XML_BYTES} bytes, got {size}")
    text = _in_utf8(path.read_bytes(), path.name)
    if b"\0" in text or b"<!DOCTYPE" in text or b"<!ENTITY" in text:
        raise CorruptError(
            f"{path.name}: must be XML in UTF-8 or UTF-16 without document type and entities, got something else"
        )
    parser = etree.XMLParser(
        encoding="utf-8",  # whatever encoding the file declares: another one could hide a document type
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        remove_comments=True,
        remove_pis=True,
        huge_tree=size > HUGE_XML_BYTES,
    )
    try:
        return etree.fromstring(text, parser)
    except etree.XMLSyntaxError as error:
        raise CorruptError(f"{path.name}: not well-formed XML: {error}") from error


def _in_utf8(text: bytes, name: str) -> bytes:
    """Return XML in UTF-8; it is in UTF-16 if it begins with that encoding's byte order mark, or with `<`."""
    encodings = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", b"<\0": "utf-16-le", b"\0<": "utf-16-be"}
    try:
        return text.decode(encodings[text[:2]]).encode() if text[:2] in encodings else text
    except UnicodeError as error:
        raise CorruptError(f"{name}: not well-formed XML: {error}") from error


def network(element: Element, where: str) -> Network:
    """Return layers and edges of a `<net>` or body; ids are checked to be unique in it."""
    layers = tuple(_layer(e) for e in _below(element, "layers", "layer"))
    if not layers:
        raise CorruptError(f"{where}: a network needs layers, got none")
    seen: dict[int, str] = {}
    for layer in layers:
        if layer.id in seen:
            raise CorruptError(f"{where}: layers {seen[layer.id]!r} and {layer.name!r} have the same id {layer.id}")
        seen[layer.id] = layer.name
    return Network(layers, tuple(_edge(e, where) for e in _below(element, "edges", "edge")))


def integer(element: Element, key: str, what: str, default: int | None = None) -> int:
    """Return an integer attribute of an element; CorruptError if it is none."""
    text = element.get(key)
    if text is None and default is not None:
        return default
    try:
        value = int(text or "", 10)
    except ValueError:
        value = MAX_ID
    if not -MAX_ID < value < MAX_ID:
        raise CorruptError(f"{what}: {key} must be an integer, got {_short(text)}")
    return value


def split_names(text: str | None) -> tuple[str, ...]:
    r"""Split `a,b\,c` into `a` and `b,c`."""
    if not text:
        return ()
    parts = text.replace("\\,", "\0").split(",")
    return tuple(dict.fromkeys(p.replace("\0", ",") for p in parts if p))


def join_names(names: Iterable[str]) -> str:
    """Join names with commas, the inverse of `split_names`."""
    return ",".join(name.replace(",", "\\,") for name in names)


def rt_info(element: Element) -> dict[str, object]:
    """Return the model's free information: nested elements with `value`s; `<info name= value=/>` for other keys."""
    information: dict[str, object] = {}
    stack = [(element, information)]
    while stack:
        parent, target = stack.pop()
        for child in parent:
            key = child.get("name", child.tag) if child.tag == "info" else child.tag
            if len(child):
                below: dict[str, object] = {}
                target[str(key)] = below
                stack.append((child, below))
            else:
                target[str(key)] = child.get("value", dict(child.attrib) or "")
    return information


def _layer(element: Element) -> Layer:
    name = element.get("name") or f"layer {element.get('id')}"
    id = integer(element, "id", f"layer {name!r}")
    data = element.find("data")
    inputs = tuple(integer(p, "id", f"layer {name!r}: port") for p in _below(element, "input", "port"))
    ports = list(_below(element, "output", "port"))
    outputs = tuple(OutputPort(integer(p, "id", f"layer {name!r}: port"), split_names(p.get("names"))) for p in ports)
    ids = [*inputs, *(p.id for p in outputs)]
    if len(set(ids)) != len(ids):
        raise CorruptError(f"layer {name!r}: port ids must differ, got {ids}")
    return Layer(
        id=id,
        name=name,
        type=element.get("type", ""),
        version=element.get("version", ""),
        data={} if data is None else dict(data.attrib),
        inputs=inputs,
        outputs=outputs,
        output_names=split_names(element.get("output_names")),
        rt_info=_attributes(*reversed(ports), element),
        element=element,
    )


def _attributes(*elements: Element) -> dict[str, dict[str, str]]:
    """Return the attributes of a layer and its output ports; the layer's own take precedence."""
    attributes: dict[str, dict[str, str]] = {}
    for element in elements:
        for e in _below(element, "rt_info", "attribute"):
            attributes[e.get("name", "")] = {k: v for k, v in e.attrib.items() if k != "name"}
    return attributes


def _edge(element: Element, where: str) -> Edge:
    keys = ("from-layer", "from-port", "to-layer", "to-port")
    return Edge(*(integer(element, key, f"{where}: edge") for key in keys))


def _below(element: Element, group: str, tag: str) -> Iterator[Element]:
    for parent in element.iterchildren(group):
        yield from parent.iterchildren(tag)


def _short(text: str | None) -> str:
    return "nothing" if text is None else repr(text if len(text) <= 60 else text[:57] + "...")
