"""Files of TensorFlow Lite: names, sizes, signatures, weights in all their forms, and files that lie."""

from __future__ import annotations

import struct
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

import aot
from aot.frontends import read_model
from aot.frontends.unsupported import UnconvertedError
from aot.runtime.errors import AotError, CorruptError, UsageError
from tests.frontends.onnx.models import converted, run
from tests.frontends.tflite.models import Net, Op, Tensor, constant, model

ADD = [Op("ADD", [0, 1], [2], "Add")]


def saved(folder: Path, made: bytes) -> Path:
    path = folder / "m.tflite"
    path.write_bytes(made)
    return path


def sum_of(x: Tensor, y: Tensor, **more: Any) -> bytes:
    return model(Net([x, y, Tensor("sum", "f32", list(x.shape))], ADD, [0], [2]), **more)


def with_signatures() -> bytes:
    nets = [
        Net([Tensor("x", "f32", [2]), constant("c", np.float32([k, k])), Tensor("sum", "f32", [2])], ADD, [0], [2])
        for k in (1, 2)
    ]
    keys = [(key, k, {"image": 0}, {"scores": 2}) for k, key in enumerate(("serving_default", "other"))]
    return model(*nets, signatures=keys)


@pytest.mark.parametrize(("signature", "wanted"), [(None, 1.0), ("serving_default", 1.0), ("other", 2.0)])
def test_signature_gives_names_and_the_sub_graph(signature: str | None, wanted: float, tmp_path: Path) -> None:
    compiled = aot.compile_model(saved(tmp_path, with_signatures()), signature=signature)
    assert [i.name for i in compiled.inputs] == ["image"]
    assert compiled(image=np.zeros(2, np.float32))["scores"].tolist() == [wanted, wanted]


def test_unknown_signature_is_an_error_of_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="serving_default, other, got 'third'"):
        read_model(saved(tmp_path, with_signatures()), signature="third")


@pytest.mark.parametrize(
    ("signature", "sizes"), [((-1, 3), (1, 3)), ((1, -1), (1, "x.d1")), ((-1, -1), ("x.d0", "x.d1")), ((), (1, 3))]
)
def test_batch_is_that_of_the_file_and_other_open_sizes_vary(signature: Any, sizes: Any, tmp_path: Path) -> None:
    file = sum_of(Tensor("x", "f32", [1, 3], signature=signature), constant("c", np.float32(1)))
    found = read_model(saved(tmp_path, file)).parameters[0].out_port(0).shape
    assert tuple(d if isinstance(d, int) else getattr(d, "name", "") for d in found) == sizes


WEIGHTS = np.float32([[1, 0, 0, 2], [0, 0, 0, 0], [0, 3, 0, 0]])
PLACES = ([0, 2, 2, 3], [0, 3, 1])  # of the elements that are not 0, row by row
FORMS = {
    "dense": constant("w", WEIGHTS),
    "rows": Tensor(
        "w", "f32", [3, 4], np.float32([1, 2, 3]), sparsity={"order": [0, 1], "blocks": [], "axes": [3, PLACES]}
    ),
    "blocks": Tensor(
        "w",
        "f32",
        [3, 4],
        np.float32([1, 0, 0, 2, 0, 3]),
        sparsity={"order": [0, 1, 2], "blocks": [1], "axes": [3, ([0, 2, 2, 3], [0, 1, 0]), 2]},
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_sparse_weights_are_those_of_the_dense_tensor(form: str, tmp_path: Path) -> None:
    tensors = [Tensor("x", "f32", [3, 4]), FORMS[form], Tensor("d", "f32", [3, 4]), Tensor("y", "f32", [3, 4])]
    ops = [Op("DENSIFY", [1], [2], "Densify"), Op("ADD", [0, 2], [3], "Add")]
    file = saved(tmp_path, model(Net(tensors, ops, [0], [3])))
    np.testing.assert_array_equal(run(file, np.zeros((3, 4), np.float32))[0], WEIGHTS)


def test_weights_of_16_and_of_4_bits_are_numbers(tmp_path: Path) -> None:
    halves = constant("h", np.float16([0.5, -2, 3]))
    nibbles = Tensor("n", "i4", [3], bytes([0x9F, 0x07]), scales=[0.5], zeros=[0])  # -1, -7, 7
    tensors = [Tensor("x", "f32", [3]), halves, nibbles, *(Tensor(n, "f32", [3]) for n in "abcy")]
    ops = [
        Op("DEQUANTIZE", [1], [3]),
        Op("DEQUANTIZE", [2], [4]),
        Op("ADD", [0, 3], [5], "Add"),
        Op("ADD", [5, 4], [6], "Add"),
    ]
    found = run(saved(tmp_path, model(Net(tensors, ops, [0], [6]))), np.zeros(3, np.float32))[0]
    assert found.tolist() == [0.0, -5.5, 6.5]


def test_all_operations_that_are_not_supported_are_in_one_error(tmp_path: Path) -> None:
    tensors = [Tensor(n, "f32", [2]) for n in "xabc"]
    ops = [Op("CUSTOM.Own", [0], [1]), Op("SKIP_GRAM", [1], [2]), Op("CUSTOM.Other", [2], [3])]
    with pytest.raises(UnconvertedError) as error:
        converted(saved(tmp_path, model(Net(tensors, ops, [0], [3]))))
    assert [p.kind for p in error.value.problems] == ["CUSTOM.Own", "SKIP_GRAM", "CUSTOM.Other"]
    assert error.value.exit_code == 3


@pytest.mark.parametrize(("kind", "wanted"), [("ADD", [4, 6]), ("MUL", [3, 8]), ("SQUARED_DIFFERENCE", [4, 4])])
def test_number_of_an_operation_in_the_newer_field_alone_counts(kind: str, wanted: list[float], tmp_path: Path) -> None:
    tensors = [Tensor("x", "f32", [2]), constant("c", np.float32([3, 4])), Tensor("y", "f32", [2])]
    file = saved(tmp_path, model(Net(tensors, [Op(kind, [0, 1], [2])], [0], [2]), newer=True))
    assert run(file, np.float32([1, 2]))[0].tolist() == wanted


@pytest.mark.parametrize("newer", [False, True])
@pytest.mark.parametrize("name", ["DISPATCH_OP", "edgetpu-custom-op", "ethos-u"])
def test_code_of_another_processor_is_refused_by_name(name: str, newer: bool, tmp_path: Path) -> None:
    tensors = [Tensor("x", "f32", [2]), Tensor("y", "f32", [2])]
    file = saved(tmp_path, model(Net(tensors, [Op(f"CUSTOM.{name}", [0], [1])], [0], [1]), newer=newer))
    with pytest.raises(UnconvertedError, match=f"CUSTOM.{name}.*compile the file that it was made of"):
        converted(file)


def test_operator_that_reads_a_variable_leaves_it_alone(tmp_path: Path) -> None:
    """An input, and a tensor that nothing writes and that is 0."""
    shown = [Tensor("x", "f32", [2]), Tensor("v", "f32", [2], variable=True), Tensor("y", "f32", [2])]
    ops = [Op("SUB", [0, 1], [2], "Sub")]
    file = saved(tmp_path, model(Net(shown, ops, [0, 1], [2])))
    assert run(file, np.float32([3, 4]), np.float32([1, 1]))[0].tolist() == [2, 3]
    assert run(saved(tmp_path, model(Net(shown, ops, [0], [2]))), np.float32([3, 4]))[0].tolist() == [3, 4]


def test_data_of_a_recurrent_layer_may_be_a_variable(tmp_path: Path) -> None:
    """x is marked as one and is an input; the state is kept."""
    weights = [constant(n, np.eye(1, dtype=np.float32)) for n in ("w", "r")]
    tensors = [Tensor("x", "f32", [1, 1], variable=True), *weights, constant("b", np.float32([0]))]
    tensors += [Tensor("h", "f32", [1, 1], variable=True), Tensor("y", "f32", [1, 1])]
    compiled = aot.compile_model(saved(tmp_path, model(Net(tensors, [Op("RNN", range(5), [5], "RNN")], [0], [5]))))
    assert [compiled(np.float32([[x]]))[0].item() for x in (1, 2, 4)] == [1, 3, 7]


def test_operator_that_writes_a_variable_keeps_it(tmp_path: Path) -> None:
    """v is what the last inference left when it is read, and what it is now when it is read again."""
    tensors = [Tensor("x", "f32", [1]), Tensor("v", "f32", [1], variable=True), *(Tensor(n, "f32", [1]) for n in "ab")]
    ops = [Op("ADD", [0, 1], [2], "Add"), Op("NEG", [2], [1]), Op("SUB", [2, 1], [3], "Sub")]
    compiled = aot.compile_model(saved(tmp_path, model(Net(tensors, ops, [0], [2, 3]))))
    found = [[v.item() for v in compiled(np.float32([x])).values()] for x in (1, 5, 0)]
    assert found == [[1, 2], [4, 8], [-4, -8]]


X = Tensor("x", "f32", [2])
C = constant("c", np.float32([1, 2]))
SUM = Tensor("sum", "f32", [2])
BROKEN = {
    "an input that is no tensor": Net([X, C, SUM], [Op("ADD", [0, 9], [2], "Add")], [0], [2]),
    "an output that is no tensor": Net([X, C, SUM], [Op("ADD", [0, 1], [7], "Add")], [0], [2]),
    "a tensor that nothing gives": Net([X, C, SUM], [Op("ADD", [0, 2], [2], "Add")], [0], [2]),
    "data that does not fit": Net([X, Tensor("c", "f32", [2], b"\0" * 7), SUM], ADD, [0], [2]),
    "a negative size": Net([X, Tensor("c", "f32", [-2], b"\0" * 8), SUM], ADD, [0], [2]),
    "scales of no axis": Net([X, Tensor("c", "i8", [2], b"\0\0", scales=[1, 2, 3]), SUM], ADD, [0], [2]),
    "no outputs": Net([X], [], [0], []),
    "a sub-graph in itself": Net([X, SUM], [Op("CALL", [0], [1], "Call", {"Subgraph": 0})], [0], [1]),
    "a sub-graph that is not there": Net([X, SUM], [Op("CALL", [0], [1], "Call", {"Subgraph": 5})], [0], [1]),
    "sparse data out of range": Net(
        [
            X,
            Tensor("c", "f32", [2], np.float32([1]), sparsity={"order": [0], "blocks": [], "axes": [([0, 1], [5])]}),
            SUM,
        ],
        ADD,
        [0],
        [2],
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_files_that_lie_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(CorruptError, match=r"m\.tflite"):
        converted(saved(tmp_path, model(BROKEN[name])))


def outcome(path: Path) -> int:
    """The exit code that reading a file ends with."""
    try:
        converted(path)
    except AotError as error:
        return error.exit_code
    return 0


@pytest.mark.parametrize("word", [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_words_that_are_wrong_are_refused_or_read(word: int, tmp_path: Path) -> None:
    """Each word of a small file in turn: offsets, lengths and numbers that point anywhere."""
    file = sum_of(Tensor("x", "f32", [2]), C)
    for at in range(0, len(file) - 3, 4):
        changed = file[:at] + struct.pack("<I", word) + file[at + 4 :]
        if changed[4:8] != b"TFL3":
            continue
        assert outcome(saved(tmp_path, changed)) in {0, 3, 4, 6}, at


def test_files_that_end_early_are_refused(tmp_path: Path) -> None:
    file = sum_of(Tensor("x", "f32", [2]), C)
    for size in range(8, len(file) - 16, 16):
        assert outcome(saved(tmp_path, file[:size])) in {3, 4}, size


def test_files_packed_with_a_model_are_shown(tmp_path: Path) -> None:
    with ZipFile(made := BytesIO(), "w") as archive:
        archive.writestr("labels.txt", "cat\ndog\n")
    file = saved(tmp_path, sum_of(Tensor("x", "f32", [2]), C, description="pets") + made.getvalue())
    about = read_model(file).rt_info["about"]
    assert about == {"description": "pets", "files": "labels.txt (2 lines)"}
