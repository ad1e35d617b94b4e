"""Model Optimizer's extractors, and ours of their names: which attributes they set on the same messages.

    python -m benchmarks.model_optimizer.extractors FILE

FILE is what `ask_extractors.py` writes. A difference is printed with its two values, theirs first.
"""

from __future__ import annotations

import argparse
import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
from onnx import NodeProto

from aot.frontends.tf.files.messages import NodeDef
from aot.mo.extracted.classes import extractor
from aot.mo.graph.graph import Graph, Node
from benchmarks.model_optimizer.ask_extractors import node_of, plain_attributes

FUNCTIONS = ("infer", "type_infer", "reverse_infer", "operation", "rt_info")  # of the class, on whichever node


def ours(row: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes that our extractor sets, in the form of the file."""
    framework = row["module"].split(".")[1]
    message: Any = (NodeProto if framework == "onnx" else NodeDef)()
    message.ParseFromString(base64.b64decode(row["message"]))
    return plain_attributes(
        extractor(row["module"], row["class"]), node_of(Graph(), Node, message, framework, row["opset"])
    )


def plain(value: Any) -> Any:
    """Return a value without its element type, where the value alone counts."""
    if isinstance(value, dict):
        held: Any = value.get("array", value.get("class", value))
        return plain(held) if held is not value else value
    return [plain(v) for v in value] if isinstance(value, list) else value


def same(one: Any, other: Any) -> bool:
    one, other = plain(one), plain(other)
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return bool(np.isclose(one, other, rtol=1e-6))
    return one == other or (isinstance(one, dict) and isinstance(other, dict) and "object" in one and "object" in other)


def differences(row: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the attributes that differ: theirs and ours."""
    theirs, found = ({k: v for k, v in attrs.items() if k not in FUNCTIONS} for attrs in (row["attrs"], ours(row)))
    return {n: (v, found.get(n, "absent")) for n, v in theirs.items() if n not in found or not same(v, found[n])}


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare Model Optimizer's extractors with ours.")
    parser.add_argument("file", type=Path)
    found: dict[str, dict[str, Any]] = {}  # the first difference of each extractor
    for line in parser.parse_args().file.read_text().splitlines():
        row = json.loads(line)
        if row["message"] and "error" not in row["attrs"]:
            label = f"{row['module']}.{row['class']}"
            found[label] = found.get(label) or differences(row)
    for label, different in found.items():
        if different:
            print(f"{label}: {different}")
    print(f"{sum(not d for d in found.values())} of {len(found)} extractors set the same attributes")


if __name__ == "__main__":
    main()
