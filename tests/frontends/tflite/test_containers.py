"""Containers with networks, MediaPipe's `.task` and LiteRT-LM's `.litertlm`: listed, compiled, refused if hostile."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import flatbuffers
import numpy as np
import pytest
from typer.testing import CliRunner

import aot
from aot import cli
from aot.frontends import framework_of, read_model
from aot.runtime.errors import AotError, BudgetError, CorruptError, UnsupportedError, UsageError
from tests.frontends.tflite.models import Net, Op, Tensor, constant, model

X = np.float32([1, 2, 3])
BLOCK = 1 << 14
NETWORK, WEIGHTS, TOKENIZER, PROTO = 3, 7, 4, 5  # kinds of sections


def network(factor: float, signatures: Sequence[str] = ()) -> bytes:
    """x times a number; each signature has the next number."""
    nets = []
    for i in range(max(1, len(signatures))):
        tensors = [Tensor("x", "f32", [3]), constant("c", np.float32(factor + i)), Tensor("y", "f32", [3])]
        nets.append(Net(tensors, [Op("MUL", [0, 1], [2], "Mul")], [0], [2]))
    named = [(name, i, {"x": 0}, {"y": 2}) for i, name in enumerate(signatures)]
    return model(*nets, signatures=named)


def task(path: Path, entries: Mapping[str, bytes], packing: int = ZIP_STORED) -> Path:
    with ZipFile(path, "w", packing) as archive:
        for name, data in entries.items():
            info = ZipInfo(name)
            info.filename = name  # as it is: the class cleans it
            info.compress_type = packing
            archive.writestr(info, data)
    return path


def litert_lm(
    path: Path,
    sections: Sequence[tuple[int, Mapping[str, str], bytes]],
    about: Mapping[str, str] = MappingProxyType({}),
    places: Mapping[int, tuple[int, int]] = MappingProxyType({}),
    version: int = 1,
) -> Path:
    """A container; `places`: of sections that do not lie where their bytes do."""
    body, found = b"", list[tuple[int, int]]()
    for _, _, data in sections:
        begin = BLOCK + len(body)
        found.append((begin, begin + len(data)))
        body += data + bytes(-len(data) % BLOCK)
    b = flatbuffers.Builder(1024)
    parts = [
        table(b, (0, "offset", pairs(b, items)), (1, "Uint64", places.get(i, found[i])[0]),
              (2, "Uint64", places.get(i, found[i])[1]), (3, "Uint8", kind))
        for i, (kind, items, _) in enumerate(sections)
    ]  # fmt: skip
    listed = table(b, (0, "offset", vector(b, parts)))
    own = table(b, (0, "offset", pairs(b, about)))
    b.Finish(table(b, (0, "offset", own), (1, "offset", listed)))
    header = bytes(b.Output())
    start = b"LITERTLM" + struct.pack("<4IQ", version, 5, 2, 0, 32 + len(header)) + header
    path.write_bytes(start + bytes(BLOCK - len(start)) + body)
    return path


def table(b: flatbuffers.Builder, *fields: tuple[int, str, int]) -> int:
    b.StartObject(4)
    for slot, kind, value in fields:
        getattr(b, "PrependUOffsetTRelativeSlot" if kind == "offset" else f"Prepend{kind}Slot")(slot, value, 0)
    return b.EndObject()


def vector(b: flatbuffers.Builder, tables: Sequence[int]) -> int:
    b.StartVector(4, len(tables), 4)
    for made in reversed(tables):
        b.PrependUOffsetTRelative(made)
    return b.EndVector()


def pairs(b: flatbuffers.Builder, values: Mapping[str, str]) -> int:
    made = []
    for key, value in values.items():
        held = table(b, (0, "offset", b.CreateString(value)))
        made.append(table(b, (0, "offset", b.CreateString(key)), (1, "Uint8", 9), (2, "offset", held)))
    return vector(b, made)


def command(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(cli.app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result.stdout + result.stderr


def first(path: Path, **options: Any) -> list[float]:
    return aot.compile_model(path, **options)(X)[0].tolist()


@pytest.fixture
def hand(tmp_path: Path) -> Path:
    """Two networks, one of them with two signatures, and one in a container within."""
    inner = task(tmp_path / "inner", {"gesture.tflite": network(7)}).read_bytes()
    entries = {"detector.tflite": network(2), "marks.tflite": network(3, ["a", "b"]), "gesture.task": inner}
    return task(tmp_path / "hand.task", entries)


@pytest.mark.parametrize("packing", [ZIP_STORED, ZIP_DEFLATED])
@pytest.mark.parametrize("name", ["m.task", "m.zip"])
def test_only_network_of_a_task_is_compiled(name: str, packing: int, tmp_path: Path) -> None:
    path = task(tmp_path / name, {"net.tflite": network(2), "labels.txt": b"a\nb\n"}, packing)
    assert first(path) == [2, 4, 6]
    assert framework_of(path) == "tflite"
    text = command("info", path)
    assert (
        f"{name}: MediaPipe task, 2 sections" in text
        and "section net.tflite: TFLiteModel" in text
        and "section labels.txt: text" in text
    )
    assert "input   x: f32[3]" in text


def test_network_of_several_is_named_by_the_signature(hand: Path) -> None:
    """NETWORK, or NETWORK:SIGNATURE."""
    with pytest.raises(UsageError, match=r"networks detector\.tflite, marks\.tflite, gesture\.task/g"):
        aot.compile_model(hand)
    text = command("compile", hand, code=2)
    assert "--signature 'detector.tflite'" in text
    with pytest.raises(UsageError, match="got 'other'"):
        aot.compile_model(hand, signature="other")
    assert first(hand, signature="detector.tflite") == [2, 4, 6]
    assert first(hand, signature="marks.tflite:b") == [4, 8, 12]
    assert first(hand, signature="gesture.task/gesture.tflite") == [7, 14, 21]
    with pytest.raises(UsageError, match=r"marks.tflite has the signatures a, b, got 'c'"):
        aot.compile_model(hand, signature="marks.tflite:c")


def test_sections_are_listed_without_a_choice(hand: Path) -> None:
    facts = json.loads(command("info", hand, "--json"))
    assert [(s["name"], s["kind"]) for s in facts["sections"]] == [
        ("detector.tflite", "TFLiteModel"), ("marks.tflite", "TFLiteModel"),
        ("gesture.task/gesture.tflite", "TFLiteModel"),
    ]  # fmt: skip
    assert facts["sections"][0]["bytes"] == len(network(2)) and "network" not in facts
    chosen = json.loads(command("info", hand, "--json", "--signature", "marks.tflite:b"))
    assert chosen["network"]["name"] == "marks"


def test_sections_of_a_language_model_are_listed_and_compiled(tmp_path: Path) -> None:
    decode = {"model_type": "tf_lite_prefill_decode"}
    parts = [
        (PROTO, {}, b"proto"), (TOKENIZER, {}, b"words"), (NETWORK, decode, network(2, ["prefill", "decode"])),
        (NETWORK, {"model_type": "tf_lite_embedder"}, network(5)), (1, {}, b"one"), (1, {}, b"two"),
    ]  # fmt: skip
    path = litert_lm(tmp_path / "m.litertlm", parts, {"author": "A\x1b[2J"})
    text = command("info", path)
    assert "m.litertlm: LiteRT-LM 1.5.2, 6 sections" in text and "author: A [2J" in text
    assert "section SentencePiece tokenizer: SentencePiece tokenizer" in text
    assert "section data: data" in text and "section data 2: data" in text
    assert first(path, signature="tf_lite_prefill_decode:decode") == [3, 6, 9]
    assert first(path, signature="tf_lite_embedder") == [5, 10, 15]


def test_signature_is_that_of_the_only_network(tmp_path: Path) -> None:
    path = litert_lm(tmp_path / "m.litertlm", [(NETWORK, {"model_type": "main"}, network(2, ["a", "b"]))])
    assert (first(path), first(path, signature="b"), first(path, signature="main:b")) == (
        [2, 4, 6],
        [3, 6, 9],
        [3, 6, 9],
    )


def test_container_without_a_network_is_named_with_what_it_has(tmp_path: Path) -> None:
    path = task(tmp_path / "m.task", {"METADATA": b"1"})
    with pytest.raises(UnsupportedError, match=r"got none, only METADATA \(metadata\)"):
        aot.compile_model(path)
    weights = [(NETWORK, {"model_type": "a"}, network(2)), (WEIGHTS, {"model_type": "a"}, b"1")]
    with pytest.raises(UnsupportedError, match="weights in a section of their own"):
        aot.compile_model(litert_lm(tmp_path / "w.litertlm", weights))


@pytest.mark.parametrize(
    "name", ["/net.tflite", "../net.tflite", "a/net.tflite", "a\\net.tflite", "..", "a\x1b", "C:a"]
)
def test_names_that_are_paths_are_refused(name: str, tmp_path: Path) -> None:
    path = task(tmp_path / "m.task", {name: network(2)})
    with pytest.raises(CorruptError, match="names of entries must have no folders"):
        aot.compile_model(path)
    other = litert_lm(tmp_path / "m.litertlm", [(NETWORK, {"model_type": name.replace("\x1b", "/")}, network(2))])
    with pytest.raises(CorruptError, match="names of sections must be no paths"):
        aot.compile_model(other)


def test_entries_that_unpack_to_far_more_are_refused(tmp_path: Path) -> None:
    path = task(tmp_path / "m.task", {"net.tflite": network(2) + bytes(1 << 24)}, ZIP_DEFLATED)
    with pytest.raises(BudgetError, match="unpacks to at most 64 times its size"):
        aot.compile_model(path)


def test_containers_in_containers_end(tmp_path: Path) -> None:
    made = network(2)
    for name in ("net.tflite", "a.task", "b.task"):
        made = task(tmp_path / "m.task", {name: made}).read_bytes()
    with pytest.raises(BudgetError, match="at most 2 deep"):
        aot.compile_model(tmp_path / "m.task")


@pytest.mark.parametrize(
    ("begin", "end"), [(0, 100), (BLOCK, 1 << 40), (BLOCK + 9, BLOCK), (1 << 63, (1 << 64) - 1), (BLOCK, BLOCK + 2)]
)
def test_sections_lie_in_the_file_and_hold_what_they_say(begin: int, end: int, tmp_path: Path) -> None:
    made = litert_lm(tmp_path / "m.litertlm", [(NETWORK, {"model_type": "a"}, network(2))], places={0: (begin, end)})
    with pytest.raises(CorruptError, match=r"sections lie one behind another|must begin as a file"):
        aot.compile_model(made)


def test_sections_do_not_overlap(tmp_path: Path) -> None:
    parts = [(NETWORK, {"model_type": name}, network(2)) for name in "ab"]
    made = litert_lm(tmp_path / "m.litertlm", parts, places={1: (BLOCK + 8, BLOCK + 60)})
    with pytest.raises(CorruptError, match="sections lie one behind another"):
        aot.compile_model(made, signature="a")


def test_other_versions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorruptError, match="version 1 of LiteRT-LM's containers can be read, got 2"):
        aot.compile_model(litert_lm(tmp_path / "m.litertlm", [], version=2))


@pytest.mark.parametrize("name", ["m.litertlm", "m.task"])
def test_damaged_containers_are_refused_or_read(name: str, tmp_path: Path) -> None:
    """Each byte of the header, or of a small zip, is another one; the file is cut at each eighth place of it."""
    sections = [(NETWORK, {"model_type": "a"}, network(2)), (1, {}, b"data")]
    if name == "m.task":
        raw = task(tmp_path / name, {"net.tflite": network(2)[:40], "labels.txt": b"a"}).read_bytes()
    else:
        raw = litert_lm(tmp_path / name, sections, {"author": "me"}).read_bytes()
    path = tmp_path / name
    for at in range(min(len(raw), 420)):
        for made in (raw[:at], raw[:at] + bytes([raw[at] ^ 0xFF]) + raw[at + 1 :])[at % 8 > 0 :]:
            path.write_bytes(made)
            try:
                read_model(path)
            except AotError:
                continue
