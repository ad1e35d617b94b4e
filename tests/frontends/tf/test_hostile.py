"""Damaged and hostile files of TensorFlow are refused by class, in bounded time and memory."""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aot
from aot.frontends.tf.files.checkpoint import Checkpoint
from aot.frontends.tf.files.crc32c import crc32c
from aot.runtime.errors import AotError, BudgetError, CorruptError, ModelError, UnsupportedError
from tests.frontends.tf import bundles
from tests.frontends.tf.graphs import FLOAT, INT32, function, graph, messages, saved_model, tensor, written

RELU = ("Relu", "y", "x", {"T": FLOAT})
Make = Callable[[], Any]


def calls(*names: str) -> Any:
    made = graph(("PartitionedCall", "y", "x", {"f": names[0]}))
    for name, callee in pairwise(names):
        function(made, name, ("PartitionedCall", "y", "a", {"f": callee}), returns="y:output:0")
    return made


def doubling(depth: int) -> Any:
    """Each function calls the next one twice: 2^depth nodes once they are inlined."""
    made = graph(("PartitionedCall", "y", "x", {"f": "f0"}))
    for k in range(depth):
        pair = (
            ("PartitionedCall", "b", "a", {"f": f"f{k + 1}"}),
            ("PartitionedCall", "y", "b:output:0", {"f": f"f{k + 1}"}),
        )
        function(made, f"f{k}", *pair, returns="y:output:0")
    function(made, f"f{depth}", ("Relu", "y", "a", {"T": FLOAT}), returns="y:activations:0")
    for one in made.library.function:
        for inner in one.node_def:
            inner.attr["Tout"].list.type.append(FLOAT)
    made.node[1].attr["Tout"].list.type.append(FLOAT)
    return made


def with_outputs(made: Any) -> Any:
    for inner in [*made.node, *(n for f in made.library.function for n in f.node_def)]:
        if inner.op == "PartitionedCall":
            inner.attr["Tout"].list.type.append(FLOAT)
    return made


def loop(*nodes: tuple[Any, ...]) -> Any:
    return graph(("Enter", "e", "x", {"frame_name": b"f"}), *nodes)


def entering(depth: int) -> Any:
    """Loops within loops."""
    enters = [("Enter", f"e{k + 1}", f"e{k}" if k else "x", {"frame_name": f"f{k}".encode()}) for k in range(depth)]
    return graph(*enters, ("Relu", "y", f"e{depth}"))


CASES: dict[str, tuple[Make, type[AotError], str]] = {
    "no nodes": (messages.GraphDef, CorruptError, "an empty file"),
    "no name": (lambda: graph(("Relu", "", "x")), CorruptError, "a node must have a name and an operation"),
    "two of a name": (lambda: graph(RELU, RELU), CorruptError, "have different names, got 'y' twice"),
    "no such input": (lambda: graph(("Relu", "y", "none")), CorruptError, "'y' reads 'none', which nothing makes"),
    "no such output": (lambda: graph(("Relu", "y", "x:3")), CorruptError, "but Placeholder has 1 outputs"),
    "no such control": (lambda: graph(("Relu", "y", "x", "^none")), CorruptError, "waits for 'none'"),
    "cycle": (lambda: graph(("Relu", "a", "b"), ("Relu", "b", "a"), ("Relu", "y", "b")), CorruptError, "cycle"),
    "no value": (
        lambda: graph(("Const", "c"), ("Add", "y", "x", "c")),
        CorruptError,
        "a Const must have the attribute value",
    ),
    "negative size": (
        lambda: graph(("Const", "c", {"value": tensor(FLOAT, [-2])}), ("Add", "y", "x", "c")),
        CorruptError,
        "sizes must be -1",
    ),
    "huge": (
        lambda: graph(("Const", "c", {"value": tensor(FLOAT, [1 << 30, 1 << 16])}), ("Add", "y", "x", "c")),
        BudgetError,
        "a constant can have at most",
    ),
    "short data": (
        lambda: graph(("Const", "c", {"value": tensor(FLOAT, [3], tensor_content=b"1234")}), ("Add", "y", "x", "c")),
        CorruptError,
        r"f32\[3\] must have 12 bytes, got 4",
    ),
    "long data": (
        lambda: graph(("Const", "c", {"value": tensor(INT32, [1], int_val=[1, 2])}), ("Add", "y", "x", "c")),
        CorruptError,
        "must have 1 elements, got 2",
    ),
    "no such function": (lambda: graph(("PartitionedCall", "y", "x", {"f": "g"})), UnsupportedError, "outputs"),
    "calls itself": (lambda: with_outputs(calls("f", "f")), CorruptError, "a function cannot call itself, got 'f'"),
    "call each other": (lambda: with_outputs(calls("f", "g", "f")), CorruptError, "cannot call itself"),
    "deep calls": (
        lambda: with_outputs(calls(*(f"f{k}" for k in range(300)))),
        CorruptError,
        "functions within functions",
    ),
    "many calls": (lambda: doubling(40), BudgetError, "nodes once functions are inlined"),
    "exit outside": (lambda: graph(("Exit", "y", "x")), UnsupportedError, "there is no conversion"),
    "loop without condition": (
        lambda: loop(("Merge", "m", "e", "n"), ("NextIteration", "n", "m"), ("Exit", "y", "m")),
        CorruptError,
        "it must have one LoopCond, got 0",
    ),
    "merge of one branch": (
        lambda: graph(("Switch", "s", "x", "x"), ("Relu", "a", "s:1"), ("Merge", "y", "a", "a")),
        CorruptError,
        "must join the branches of one condition",
    ),
    "switch of one input": (
        lambda: graph(("Switch", "s", "x"), ("Relu", "a", "s"), ("Relu", "b", "s:1"), ("Merge", "y", "a", "b")),
        CorruptError,
        "Switch must have two inputs",
    ),
    "loops within loops": (
        lambda: entering(40),
        CorruptError,
        "loops within loops",
    ),
    "if without branches": (lambda: graph(("If", "y", "x", "x", {"Tout": FLOAT})), CorruptError, "calls function ''"),
    "an unset variable": (
        lambda: graph(("VarHandleOp", "v"), ("ReadVariableOp", "r", "v"), ("Relu", "y", "r")),
        UnsupportedError,
        "it has no value: give",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_hostile_graphs_are_refused(name: str, tmp_path: Path) -> None:
    make, kind, rule = CASES[name]
    with pytest.raises(AotError, match=rule) as caught:
        _ = aot.stages(written(tmp_path, make())).optimized
    assert isinstance(caught.value, kind | ModelError)


@pytest.mark.parametrize(
    "data", [b"\x0a\xff\xff\xff\xff", b"\x0a\x02\x12\x80", b"\n" * 400], ids=["length", "cut", "text"]
)
def test_bytes_that_are_no_messages_are_refused(data: bytes, tmp_path: Path) -> None:
    for name in ("graph.pb", "graph.meta"):
        (tmp_path / name).write_bytes(data)
        with pytest.raises((CorruptError, UnsupportedError)):
            aot.read_model(tmp_path / name)


@pytest.mark.parametrize(
    "text", ["node { name: }", "node {" * 5000, "library { function {", "node { name: '\\xff' op: 'Relu' }"]
)
def test_texts_that_are_no_messages_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "graph.pbtxt"
    path.write_text(text)
    with pytest.raises(
        CorruptError,
        match=r"graph.pbtxt: must be a TensorFlow GraphDef in text|nodes|a node must have a name|an output",
    ):
        aot.read_model(path)


def test_the_time_for_many_calls_is_bounded(tmp_path: Path) -> None:
    path = written(tmp_path, doubling(2000))
    with pytest.raises(BudgetError, match="nodes once functions are inlined"):
        aot.read_model(path)


# ---- SavedModels


def test_signatures_of_sparse_tensors_are_refused(tmp_path: Path) -> None:
    folder = saved_model(tmp_path / "m", graph(RELU))
    model = messages.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    model.meta_graphs[0].signature_def["serving_default"].inputs["x"].coo_sparse.values_tensor_name = "x:0"
    (folder / "saved_model.pb").write_bytes(model.SerializeToString())
    with pytest.raises(UnsupportedError, match="dense, got a sparse or composite tensor"):
        aot.read_model(folder)


def test_several_graphs_and_newer_schemas_are_refused(tmp_path: Path) -> None:
    folder = saved_model(tmp_path / "m", graph(RELU))
    file = folder / "saved_model.pb"
    model = messages.SavedModel.FromString(file.read_bytes())
    model.meta_graphs.add().CopyFrom(model.meta_graphs[0])
    file.write_bytes(model.SerializeToString())
    with pytest.raises(UnsupportedError, match="one graph must have the tag 'serve'"):
        aot.read_model(folder)
    model.saved_model_schema_version = 2
    file.write_bytes(model.SerializeToString())
    with pytest.raises(UnsupportedError, match="schema 1"):
        aot.read_model(folder)


# ---- checkpoints


def entry(**fields: Any) -> bytes:
    values = {"dtype": FLOAT, "offset": 0, "size": 8, "crc32c": bundles.masked(DATA)} | fields
    shape = values.pop("shape", [2])
    made = messages.BundleEntry(**values)
    made.shape.SetInParent()
    for d in shape:
        made.shape.dim.add(size=d)
    return made.SerializeToString()


DATA = np.array([1, 2], np.float32).tobytes()
HEADER = messages.BundleHeader(num_shards=1).SerializeToString()


def checkpoint(folder: Path, value: bytes, header: bytes = HEADER, data: bytes = DATA) -> Path:
    (folder / "v.index").write_bytes(bundles.index([(b"", header), (b"w", value)]))
    (folder / "v.data-00000-of-00001").write_bytes(data)
    return folder / "v"


def test_checkpoints_are_read(tmp_path: Path) -> None:
    assert Checkpoint(checkpoint(tmp_path, entry())).read("w").tolist() == [1, 2]


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"offset": 4}, "lies inside of its file, which has 8 bytes, got offset 4 and size 8"),
        ({"offset": -1}, "lies inside of its file"),
        ({"offset": 2**62, "size": 2**62}, "lies inside of its file"),
        ({"size": -8}, "lies inside of its file"),
        ({"shard_id": 1}, "its file must be one of 1, got number 1"),
        ({"shard_id": -1}, "its file must be one of 1"),
        ({"crc32c": 1}, "have not the checksum"),
        ({"shape": [3]}, r"f32\[3\] must have 12 bytes, got 8"),
        ({"shape": [2**40, 2**40]}, "bytes, got 8"),
        ({"shape": [-1]}, "its shape must be known"),
        ({"dtype": 20}, "element type resource"),
        ({"dtype": 7}, "strings do not lie in memory"),
        ({"slices": [b"\n\0"]}, "variables in several parts"),
    ],
)
def test_entries_that_lie_are_refused(fields: dict[str, Any], rule: str, tmp_path: Path) -> None:
    found = Checkpoint(checkpoint(tmp_path, entry(**fields)))
    with pytest.raises((CorruptError, UnsupportedError), match=rule):
        found.read("w")


def _with_compression(data: bytes) -> bytes:
    at = len(bundles.block([(b"", HEADER), (b"w", entry())]))
    return data[:at] + b"\1" + data[at + 1 :]


INDEX = bundles.index([(b"", HEADER), (b"w", entry())])
INDICES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "must end with a certain number"),
    "cut": (INDEX[: len(INDEX) // 2], "must end with a certain number"),
    "no block": (b"\xff" * 40 + INDEX[-8:], "a number can have at most 10 bytes|a block must lie inside"),
    "block far away": (
        bundles.varint(2**60) * 4 + b"\0" * 8 + INDEX[-8:],
        "a block must lie inside|must end with|a number",
    ),
    "damaged": (bytes([INDEX[0] ^ 1]) + INDEX[1:], "has not its checksum"),
    "compressed": (_with_compression(INDEX), "without compression can be read, got kind 1"),
    "shards": (
        bundles.index([(b"", messages.BundleHeader(num_shards=2**30).SerializeToString())]),
        "1 to 16384 shards",
    ),
    "big-endian": (
        bundles.index([(b"", messages.BundleHeader(num_shards=1, endianness=1).SerializeToString())]),
        "little-endian",
    ),
    "no message": (bundles.index([(b"", b"\xff\xff")]), "must be a TensorFlow BundleHeaderProto, got other bytes"),
}


@pytest.mark.parametrize("name", INDICES)
def test_damaged_indices_are_refused(name: str, tmp_path: Path) -> None:
    data, rule = INDICES[name]
    (tmp_path / "v.index").write_bytes(data)
    with pytest.raises((CorruptError, UnsupportedError), match=rule):
        Checkpoint(tmp_path / "v")


def test_keys_that_grow_are_refused(tmp_path: Path) -> None:
    """Each key begins with all of the one before: a small file would fill the memory."""
    entries = bytearray(b"\0" + bundles.varint(60_000) + b"\0" + b"k" * 60_000)
    for size in range(60_000, 63_000):
        entries += bundles.varint(size) + b"\1\0k"
    body = bytes(entries) + struct.pack("<II", 0, 1)
    table = bundles.block([(b"z", bundles.varint(0) + bundles.varint(len(body)))])
    first = bundles.ended(body)
    handles = bundles.varint(0) * 2 + bundles.varint(len(first)) + bundles.varint(len(table))
    (tmp_path / "v.index").write_bytes(
        first + bundles.ended(table) + handles.ljust(40, b"\0") + struct.pack("<Q", bundles.MAGIC)
    )
    with pytest.raises(CorruptError, match="the keys can have at most"):
        Checkpoint(tmp_path / "v")


@pytest.mark.parametrize("size", [0, 1, 9, 16383, 16384, 16385, 50_001])
def test_checksums_of_lanes_are_those_of_bytes(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    assert crc32c(data) == crc ^ 0xFFFFFFFF
    assert crc32c(b"123456789") == 0xE3069283


def test_names_of_nodes_are_not_paths(tmp_path: Path) -> None:
    made = graph(("Relu", "../../y", "x", {"T": FLOAT}))
    found = aot.read_model(written(tmp_path, made))
    assert [r.out_port(0).names for r in found.results] == [("../../y", "../../y:0")]
