"""Archives that are damaged or made to harm: refused by the right error, quickly, and nothing of them is run."""

from __future__ import annotations

import copy
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aot.frontends import read_model
from aot.runtime.errors import AotError, BudgetError, CorruptError, ModelError, UnsupportedError
from aot.tools.check import check
from tests.frontends.onnx.models import converted
from tests.frontends.pt2.archives import MODEL, entries, packed
from tests.frontends.pt2.test_operations import FAMILIES, contents

PATHS = {p.stem: p for p in FAMILIES}
WEIGHT = "data/weights/weight_0"
META = {"as_int": 1 << 40}


def parts(family: str, name: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, bytes]]:
    """The program of a case, what it says of its weights, their elements."""
    data, cases = contents(PATHS[family])
    found = next(c for c in cases if c["name"] == name)["fixed"]
    stored = {path: data[place : place + count] for path, (place, count) in found["data"].items()}
    return copy.deepcopy(found["program"]), copy.deepcopy(found["configs"]), stored


def files() -> dict[str, bytes]:
    """A convolution with weights."""
    return entries(*parts("neural", "conv2d.default-0"))


def changed(change: Callable[[dict[str, Any]], None]) -> Callable[[], bytes]:
    """An archive whose program is changed."""

    def made() -> bytes:
        program, configs, stored = parts("neural", "conv2d.default-0")
        change(program)
        return packed(entries(program, configs, stored))

    return made


def weighted(change: Callable[[dict[str, Any]], None]) -> Callable[[], bytes]:
    """An archive whose weights are described otherwise."""

    def made() -> bytes:
        program, configs, stored = parts("neural", "conv2d.default-0")
        change(next(iter(configs["weights"]["config"].values())))
        return packed(entries(program, configs, stored))

    return made


def graph(program: dict[str, Any]) -> dict[str, Any]:
    return program["graph_module"]["graph"]


def node(program: dict[str, Any]) -> dict[str, Any]:
    return graph(program)["nodes"][0]


def one_input(program: dict[str, Any], target: str) -> None:
    """Let the node be another operation that gets its first input alone."""
    given = node(program)["inputs"][0] | {"name": "self" if "bucketize" in target else "elements"}
    node(program).update(target=f"torch.ops.aten.{target}", inputs=[given])


BODY: dict[str, Any] = {
    "as_graph": {"name": "g", "graph": {"inputs": [], "outputs": [], "nodes": [], "tensor_values": {}}}
}


def region(program: dict[str, Any], kind: str, arguments: list[dict[str, Any]]) -> None:
    """Let the node be an operation with sub-graphs."""
    inputs = [{"name": "", "arg": argument} for argument in arguments]
    node(program).update(target=f"torch.ops.higher_order.{kind}", inputs=inputs)


def window(program: dict[str, Any]) -> None:
    """Let the node be a window of so many elements that no memory holds them."""
    inputs = [{"name": "window_length", "arg": {"as_int": 1 << 40}}]
    node(program).update(target="torch.ops.aten.kaiser_window.default", inputs=inputs)


def duplicated() -> bytes:
    made = io.BytesIO(packed(files()))
    with zipfile.ZipFile(made, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr(f"m/{MODEL}", b"{}")
    return made.getvalue()


def bomb() -> bytes:
    return packed(files() | {"data/weights/zeros": bytes(1 << 28)}, compression=zipfile.ZIP_DEFLATED)


def nested(depth: int) -> bytes:
    return packed(files() | {MODEL: b"[" * depth + b"]" * depth})


def flipped() -> bytes:
    """One byte of a weight differs from its checksum."""
    whole = bytearray(packed(files()))
    at = whole.index(files()[WEIGHT][:16])
    whole[at] ^= 1
    return bytes(whole)


def recursive() -> bytes:
    """Branches within branches, deeper than any program has."""
    program, configs, stored = parts("neural", "conv2d.default-0")
    empty = graph(program) | {"inputs": [], "outputs": [], "nodes": [], "tensor_values": {}}
    inner = empty
    for _ in range(40):
        boxes = [{"as_graph": {"name": "g", "graph": g}} for g in (inner, empty)]
        named = [{"name": "", "arg": a} for a in ({"as_bool": True}, *boxes, {"as_tensors": []})]
        made = {"target": "torch.ops.higher_order.cond", "inputs": named, "outputs": [], "metadata": {}, "name": "c"}
        inner = empty | {"nodes": [made]}
    graph(program)["nodes"] = inner["nodes"]
    return packed(entries(program, configs, stored))


def evil_sizes(program: dict[str, Any]) -> None:
    for meta in graph(program)["tensor_values"].values():
        meta["sizes"] = [{"as_expr": {"expr_str": "__import__('os').abort()"}}] * 4


def without(name: str) -> Callable[[], bytes]:
    return lambda: packed({k: v for k, v in files().items() if k != name})


ARCHIVES: dict[str, tuple[Callable[[], bytes], type[AotError], str]] = {
    "another archive version": (lambda: packed(files() | {"archive_version": b"1"}), UnsupportedError, "version 0"),
    "another schema": (changed(lambda p: p["schema_version"].update(major=9)), UnsupportedError, "version 8 .* got 9"),
    "another byte order": (lambda: packed(files() | {"byteorder": b"big"}), UnsupportedError, "low byte"),
    "two models": (lambda: packed(files() | {"models/b.json": b"{}"}), UnsupportedError, "one model"),
    "a path upwards": (lambda: packed(files() | {"../x": b""}), CorruptError, "folder"),
    "another folder": (lambda: packed(files() | {"a": b""}).replace(b"m/a", b"n/a"), CorruptError, "folder"),
    "a name twice": (duplicated, CorruptError, "twice"),
    "a bomb": (bomb, BudgetError, "unpacks"),
    "deep JSON": (lambda: nested(100_000), CorruptError, "no JSON"),
    "a flipped bit": (flipped, CorruptError, "checksum"),
    "half a file": (lambda: packed(files())[:-200], AotError, "damaged|zip"),
    "no program": (lambda: packed(files() | {MODEL: b"{}"}), CorruptError, "schema_version"),
    "a long number": (lambda: packed(files() | {MODEL: b"1" * 9000}), CorruptError, "no JSON"),
    "no weight": (without(WEIGHT), CorruptError, "weight_0"),
    "a weight elsewhere": (weighted(lambda w: w.update(path_name="../x")), CorruptError, "name of an entry"),
    "a pickled weight": (weighted(lambda w: w.update(use_pickle=True)), UnsupportedError, "pickled"),
    "a large weight": (weighted(lambda w: w["tensor_meta"]["sizes"].__setitem__(0, META)), CorruptError, "lie in"),
    "a stretched weight": (
        weighted(lambda w: w["tensor_meta"].update(sizes=[META], strides=[{"as_int": 0}])),
        BudgetError,
        "at most",
    ),
    "a negative offset": (
        weighted(lambda w: w["tensor_meta"].update(storage_offset={"as_int": -1})),
        CorruptError,
        "lie in",
    ),
    "an unknown type": (weighted(lambda w: w["tensor_meta"].update(dtype=99)), CorruptError, "element types"),
    "an unknown value": (
        changed(lambda p: node(p)["inputs"][0]["arg"]["as_tensor"].update(name="z")),
        CorruptError,
        "z",
    ),
    "an argument twice": (changed(lambda p: node(p)["inputs"].append(node(p)["inputs"][0])), CorruptError, "twice"),
    "an unknown tag": (changed(lambda p: node(p)["inputs"][0].update(arg={"as_z": 1})), CorruptError, "as_z"),
    "no union": (changed(lambda p: node(p)["inputs"][0].update(arg={})), CorruptError, "union"),
    "a text for a list": (changed(lambda p: graph(p).update(nodes="x")), CorruptError, "list"),
    "outputs that are missing": (changed(lambda p: node(p).update(outputs=[])), CorruptError, "conv2d"),
    "no operand": (
        changed(lambda p: node(p).update(target="torch.ops.aten.mm.default", inputs=node(p)["inputs"][:1])),
        ModelError,
        "mm.default: an operand must be given",
    ),
    "no boundaries": (changed(lambda p: one_input(p, "bucketize.Tensor")), ModelError, "self must be given"),
    "no elements": (changed(lambda p: one_input(p, "isin.Tensor_Tensor")), ModelError, "test_elements must be given"),
    "a window without end": (
        changed(window),
        UnsupportedError,
        "windows have up to 16777216 elements, got 1099511627776",
    ),
    "an evil size": (changed(evil_sizes), UnsupportedError, "symbols"),
    "a type that is missing": (
        changed(lambda p: region(p, "out_dtype", [])),
        CorruptError,
        "a type, got None and None",
    ),
    "branches that are missing": (changed(lambda p: region(p, "cond", [BODY] * 5)), CorruptError, "4 arguments, got 5"),
    "states that are missing": (
        changed(lambda p: region(p, "while_loop", [BODY] * 5)),
        CorruptError,
        "4 arguments, got 5",
    ),
    "no rows for an output": (
        changed(lambda p: region(p, "associative_scan", [BODY, {"as_tensors": []}])),
        CorruptError,
        "1 tensors like its outputs, got 0",
    ),
    "branches without end": (recursive, AotError, "levels|no JSON"),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_archive_is_refused(name: str, tmp_path: Path) -> None:
    made, error, text = ARCHIVES[name]
    path = tmp_path / "m.pt2"
    path.write_bytes(made())
    with pytest.raises(error, match=text) as caught:
        converted(path)
    assert caught.value.exit_code != 1


def test_samples_are_never_read(tmp_path: Path) -> None:
    """The pickle in an archive may hold anything."""
    path = tmp_path / "m.pt2"
    path.write_bytes(packed(files() | {"data/sample_inputs/model.pt": b"cos\nabort\n(tR."}))
    assert read_model(path).results


def test_all_unsupported_operations_are_listed_with_their_lines(tmp_path: Path) -> None:
    def change(program: dict[str, Any]) -> None:
        first = node(program)
        trace = 'File "/code/net.py", line 7, in forward\n    y = own(x)\n'
        first |= {"target": "torch.ops.mine.own.default", "metadata": {"stack_trace": trace}}

    path = tmp_path / "m.pt2"
    path.write_bytes(changed(change)())
    found = check(path)
    assert "mine::own.default" in str(found)
    assert "net.py:7: y = own(x)" in str(found)
