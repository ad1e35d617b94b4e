"""Model Optimizer's own extractors, as classes that an extension imports, calls and derives from.

    ConvFrontExtractor.extract(node)      # the attributes that `extracted` gives, and the defaults of Convolution
    node["dilation"] = ...                # the file's attribute changes with it

`classes.txt` says which there are: `MODULE:CLASS,CLASS=KIND` below their package, with the kind of operations in the
file where the name of the class does not say it. Source: Model Optimizer 2024.6. None
of them takes part itself: a node that no extractor of an extension takes has these attributes anyway.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from aot.ir.op import Foreign
from aot.mo.bridge.names import op_name
from aot.mo.bridge.node_records import KEPT
from aot.mo.extracted.messages import described
from aot.mo.extracted.nodes import extracted
from aot.mo.front.extractor import FrontExtractorOp
from aot.mo.ops.const import Const
from aot.mo.ops.registered import REGISTERED
from aot.opset.control.infrastructure import Constant

NOT_OF_THE_FILE = ("domain", "opset", "bottoms", "parameters", "unsupported")
FROM_FILE = "aot_extracted"  # attribute of a node: an extractor of this table has set the attributes
_TABLE = Path(__file__).with_suffix(".txt")


@cache
def _rows() -> dict[str, dict[str, str]]:
    """Return the kinds of operations by module and class."""
    rows: dict[str, dict[str, str]] = {}
    for line in re.sub(r"\n +", " ", re.sub(r",\n +", ",", _TABLE.read_text("ascii"))).splitlines():
        package, *modules = line.split()
        for module, names in (entry.split(":") for entry in modules):
            pairs = (name.partition("=") for name in names.split(","))
            kinds = {name: kind or re.sub(r"(Front)?Extractor(Op)?$", "", name) for name, _, kind in pairs}
            rows[f"{package}.{module}"] = kinds
    return rows


def modules() -> tuple[str, ...]:
    """Return the modules of extractors, `front.onnx.conv_ext` for instance."""
    return tuple(_rows())


def in_module(module: str) -> tuple[str, ...]:
    """Return the names of a module's extractors."""
    return tuple(_rows().get(module, ()))


@cache
def extractor(module: str, name: str) -> type[Any]:
    """Return the class of an extractor; KeyError for one that Model Optimizer does not have."""

    def extract(cls: type[Any], node: Any) -> bool:
        fill(node, module.split(".")[1], cls.op)
        return True

    members = {"op": _rows()[module][name], "enabled": True, "extract": classmethod(extract)}
    text = f"Sets the attributes of {members['op']} nodes of files."
    return type(name, (FrontExtractorOp,), {**members, "__doc__": text, "__module__": f"openvino.tools.mo.{module}"})


def fill(node: Any, framework: str, kind: str) -> None:
    """Set the attributes of a node of a framework's file as Model Optimizer's extractor of `kind` did.

    A kind that `extracted` does not know has the attributes of the file.
    """
    kept = getattr(node, KEPT, None)
    op = described(node, framework, kind) if kept is None else kept.node.op
    if not isinstance(op, Foreign):
        if isinstance(op, Constant):  # an input of the network has the attributes of a Parameter anyway
            Const.update_node_stat(node, {"value": node["value"]})
        return
    outputs = len(node.pb.output) if framework == "onnx" else len(node.out_ports()) if framework == "tf" else 1
    own = {name: value for name, value in op.attrs if name not in NOT_OF_THE_FILE}
    known = extracted(op, outputs)
    found: dict[str, Any] = {**(own if framework == "caffe" or not known else {}), **known, "op": op_name(op)}
    cls = REGISTERED.get(found["op"]) or REGISTERED.get(str(found.get("type")))
    if cls is not None:
        cls.update_node_stat(node, found)
    for name, value in {**({} if cls else found), FROM_FILE: True}.items():
        node[name] = value
