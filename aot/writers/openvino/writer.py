"""Writes OpenVINO IR, versions 10 and 11.

Graph -> layers with ids in order (attributes, constants, port maps, bodies), edges -> .xml; constants -> .bin
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from lxml import etree

from aot.frontends.openvino.xml import Element
from aot.ir.graph import Graph
from aot.runtime.atomic import replacing
from aot.runtime.errors import UsageError
from aot.writers.openvino.bin_file import WeightsFile
from aot.writers.openvino.forms import refuse_formless
from aot.writers.openvino.layer_elements import Layers, legal

VERSIONS = (10, 11)
NAME = re.compile(r"(?!xml)[A-Za-z_][A-Za-z0-9_.-]*", re.IGNORECASE)


def write(graph: Graph, path: Path, *, version: int = 11, half: bool = False) -> None:
    """Write a graph without foreign operations to `path` and the `.bin` beside it, both or none.

    `half`: constants of f32 are stored as f16 if f16 holds them, and converted back by the network. UnconvertedError
    lists all nodes without a form in IR. OSError if the files cannot be written.
    """
    if version not in VERSIONS:
        raise UsageError(f"IR version: must be one of {', '.join(map(str, VERSIONS))}, got {version}")
    refuse_formless(graph)
    with _both(path) as (xml, weights):
        root = etree.Element("net", {"name": legal(graph.name), "version": str(version)})
        with weights.open("wb") as stream:
            Layers(WeightsFile(stream), half).add(root, graph)
        if graph.rt_info:
            _add_information(etree.SubElement(root, "rt_info"), graph.rt_info)
        etree.indent(root, "\t")
        with xml.open("wb") as stream:  # lxml reports no full disk if it opens the file itself
            etree.ElementTree(root).write(stream, xml_declaration=True, encoding="utf-8")


@contextmanager
def _both(path: Path) -> Generator[tuple[Path, Path]]:
    """Yield new files for an `.xml` and its `.bin`; the `.xml` is never visible beside the `.bin` of another one."""
    with replacing(path) as xml, replacing(path.with_suffix(".bin")) as weights:
        yield xml, weights
        path.unlink(missing_ok=True)


def _add_information(parent: Element, information: Mapping[str, object]) -> None:
    """Add the model's free information, the inverse of `xml.rt_info`."""
    for key, value in information.items():
        is_name = NAME.fullmatch(key) is not None and key != "info"
        element = etree.SubElement(parent, key) if is_name else etree.SubElement(parent, "info", {"name": legal(key)})
        if isinstance(value, Mapping) and value:
            _add_information(element, cast("Mapping[str, object]", value))
        else:
            element.set("value", "" if isinstance(value, Mapping) else legal(str(value)))
