"""`CustomLayersMapping.xml` of `-k`: types of Caffe's layers that keep their type, with the fields of one message.

    <CustomLayers>
      <CustomLayer NativeType="Shifted" hasParam="true" protoParamName="power_param"/>
    </CustomLayers>

The attributes are texts, as the file of a network has them. The blobs are inputs after the bottoms.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from aot.frontends.caffe.kinds import blob_name
from aot.mo.front.caffe.blobs import collect_attributes, embed_input
from aot.mo.front.extractor import FrontExtractorOp
from aot.mo.ops.registered import REGISTERED
from aot.mo.utils.error import Error

SPECIAL = (
    "id",
    "name",
    "precision",
    "type",
    "layer",
    "value",
    "shape",
    "op",
    "kind",
    "infer",
)  # attributes that every node has
CUSTOM_LAYERS = ".xml"  # suffix, where configuration files of transformations have another one
FLAGS = {"true": True, "false": False}


def load_layers_xml(file_name: str | Path) -> dict[str, dict[str, str]]:
    """Return the layers of a file by their types; Error for a file that is no such list."""
    name = Path(file_name).name
    try:
        listed = list(ElementTree.parse(file_name).getroot())
    except (OSError, ElementTree.ParseError, UnicodeError) as error:
        raise Error("-k: {} is a list of CustomLayer in XML, got {}", name, str(error)[:100]) from error
    layers: dict[str, dict[str, str]] = {}
    for child in listed:
        kind, flag = child.get("NativeType"), FLAGS.get(child.get("hasParam", "").lower())
        if child.tag != "CustomLayer" or not kind or flag is None or (flag and not child.get("protoParamName")):
            rule = "a CustomLayer has NativeType, hasParam (true or false) and, if that is true, protoParamName"
            raise Error("-k: {}: {}, got {} {}", name, rule, child.tag, dict(child.attrib))
        if kind in layers:
            raise Error("-k: {}: a type is listed once, got {} again", name, kind)
        layers[kind] = dict(child.attrib)
    return layers


def proto_extractor(
    pb: Any,
    model_pb: Any,
    mapping: dict[str, str],
    disable_omitting_optional: bool = False,
    enable_flattening_nested_params: bool = False,
) -> dict[str, Any]:
    """Return the attributes of a layer that is listed: the fields of its message, and how its file has them.

    A field with the name of an attribute that every node has gets a number after its name.
    """
    del model_pb
    if not FLAGS[mapping["hasParam"].lower()]:
        return {}
    param = getattr(pb, mapping["protoParamName"], None)
    if param is None:
        raise ValueError(f"Layer {pb.type} has no attribute {mapping['protoParamName']}")
    fields = collect_attributes(
        param,
        disable_omitting_optional=disable_omitting_optional,
        enable_flattening_nested_params=enable_flattening_nested_params,
    )
    renamed = {f"{name}{i}" if name in SPECIAL else name: fields[name] for i, name in enumerate(fields)}
    keys = [own if own == name else (name, own) for name, own in zip(fields, renamed, strict=True)]
    return {"IE": [("layer", ["name", "type"], [("data", keys, []), "@ports", "@consts"])], **renamed}


def extractor_of(kind: str, mapping: dict[str, str]) -> type[Any]:
    """Return the extractor of a type of layers that is listed."""

    def extract(cls: type[Any], node: Any) -> bool:
        attrs = proto_extractor(node.pb, node.model_pb, mapping)
        for i, blob in enumerate(node.model_pb.blobs if node.model_pb else ()):
            embed_input(attrs, len(node.pb.bottom) + i, f"_custom_blob_{i}", blob.data, blob_name(i))
        own = REGISTERED.get(kind)
        if own is not None:
            own.update_node_stat(node)
        for name, value in {"type": kind, "op": kind, **attrs}.items():
            node[name] = value
        return True

    return type(
        f"{kind}CustomLayer", (FrontExtractorOp,), {"op": kind, "enabled": True, "extract": classmethod(extract)}
    )


def custom_layers(files: Iterable[Path]) -> dict[str, type[Any]]:
    """Return the extractors of the layers that files list, by type."""
    return {kind: extractor_of(kind, row) for file in files for kind, row in load_layers_xml(file).items()}
