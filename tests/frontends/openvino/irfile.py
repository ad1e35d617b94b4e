"""Writes small IR files for tests: layers as lines of text, edges as `1.0->2.0`."""

from __future__ import annotations

from pathlib import Path


def ports(kind: str, *ids: int | str) -> str:
    """`<input>` or `<output>` with ports; `"1 names"` gives names to one."""
    made = []
    for id in ids:
        number, _, names = str(id).partition(" ")
        made.append(f'<port id="{number}"' + (f' names="{names}"' if names else "") + "/>")
    return f"<{kind}>{''.join(made)}</{kind}>" if made else ""


def layer(
    id: int,
    name: str,
    type: str,
    version: str = "opset1",
    *,
    inputs: tuple[int | str, ...] = (),
    outputs: tuple[int | str, ...] = (),
    extra: str = "",
    more: str = "",
    **data: str,
) -> str:
    attributes = "".join(f' {k.replace("__", "-")}="{v}"' for k, v in data.items())
    body = (f"<data{attributes}/>" if data else "") + extra + ports("input", *inputs) + ports("output", *outputs)
    return f'<layer id="{id}" name="{name}" type="{type}" version="{version}"{more}>{body}</layer>'


def network(layers: list[str], edges: str = "", *, tag: str = "net", more: str = "") -> str:
    """`edges`: `0.0->1.0 1.1->2.0`."""
    made = []
    for edge in edges.split():
        source, target = edge.split("->")
        (a, b), (c, d) = source.split("."), target.split(".")
        made.append(f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>')
    head = ' name="m" version="11"' if tag == "net" else ""
    return f"<{tag}{head}><layers>{''.join(layers)}</layers><edges>{''.join(made)}</edges>{more}</{tag}>"


def write(folder: Path, xml: str, weights: bytes | None = b"") -> Path:
    path = folder / "m.xml"
    path.write_text(xml, encoding="utf-8")
    if weights is not None:
        path.with_suffix(".bin").write_bytes(weights)
    return path


def parameter(id: int = 0, name: str = "x", shape: str = "2,3", element_type: str = "f32", names: str = "x") -> str:
    return layer(id, name, "Parameter", outputs=(f"0 {names}",), shape=shape, element_type=element_type)


def constant(id: int, name: str, element_type: str, shape: str, offset: int, size: int) -> str:
    place = {"offset": str(offset), "size": str(size)}
    return layer(id, name, "Const", outputs=(0,), element_type=element_type, shape=shape, **place)


def result(id: int, name: str = "y", more: str = "") -> str:
    return layer(id, name, "Result", inputs=(0,), more=more)
