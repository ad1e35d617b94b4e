"""Lets sizes of the network in a folder vary: `python -m benchmarks.vary FOLDER OUT [--shape INPUT=?,3,?,?]...`.

Without --shape, the first dimension of every input. Where a Reshape has such a size as a number, it copies it from what
it reads, as exporters write it for sizes that vary. Expected outputs are OpenVINO's.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from benchmarks.networks.copies import save
from benchmarks.networks.folder import Folder


def vary(folder: Folder, shapes: dict[str, str]) -> ov.Model:
    """The network of a folder, with `?` in the shapes of its inputs."""
    model = ov.Core().read_model(folder.xml)
    wanted: dict[int, ov.PartialShape] = {}
    for i, port in enumerate(model.inputs):
        known = [str(d) for d in port.get_partial_shape()]
        named = {*port.get_names(), port.get_node().get_friendly_name()} & set(shapes)
        given = shapes[named.pop()].split(",") if named else ["?", *known[1:]] if known and not shapes else known
        wanted[i] = ov.PartialShape([-1 if d == "?" else int(d) for d in given])
    reshapes = [n for n in model.get_ordered_ops() if n.get_type_name() == "Reshape"]
    before = [n.input_value(0).get_partial_shape() for n in reshapes]
    model.reshape(wanted)
    for node, shape in zip(reshapes, before, strict=True):
        if shape.is_static and _copies(node, list(shape.to_shape())):
            model.validate_nodes_and_infer_types()
    return model


def _copies(node: ov.Node, before: list[int]) -> bool:
    """In a Reshape's pattern, sizes that it reads and that vary now become 0: it copies them.

    If others vary too, the pattern's largest number becomes -1. `before`: what it read.
    """
    data, pattern = node.input_value(0), node.input_value(1).get_node()
    if pattern.get_type_name() != "Constant" or data.get_partial_shape().rank.is_dynamic:
        return False
    old = pattern.get_data().astype(np.int64)
    free = {k for k, d in enumerate(data.get_partial_shape()) if d.is_dynamic}
    copied = {k for k, n in enumerate(old) if k in free and before[k] == n}
    new = np.array([0 if k in copied else n for k, n in enumerate(old)], np.int64)
    if free - copied and new.min(initial=0) >= 0:
        new[new.argmax()] = -1
    if (new == old).all():
        return False
    made = ops.reshape(data, ops.constant(new), special_zero=True)
    made.set_friendly_name(node.get_friendly_name())
    for target in node.output(0).get_target_inputs():
        target.replace_source_output(made.output(0))
    return True


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vary", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--shape", action="append", default=[], metavar="INPUT=?,3,?,?", help="? for what varies")
    args = parser.parse_args()
    folder = Folder(args.folder)
    folder.check()
    shapes = dict(text.rsplit("=", 1) for text in args.shape)
    save(vary(folder, shapes), folder, args.out, "benchmarks.vary")


if __name__ == "__main__":
    main()
