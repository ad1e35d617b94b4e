"""Files of PaddlePaddle: pairs, folders, names, weights, and what is wrong with some."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aot
from aot.compilation.cache import files_of
from aot.frontends import framework_of, read_model
from aot.ir.interpret import interpret
from aot.runtime.errors import AotError, BudgetError, CorruptError, UnsupportedError, UsageError
from tests.frontends.paddle.case import stored
from tests.frontends.paddle.cases import CASES
from tests.frontends.paddle.test_operations import converted, written
from tests.fuzz.mutants.paddle import weighted

X = np.ones((2, 3), np.float32)
RIGHT = X + np.arange(6, dtype=np.float32).reshape(2, 3)


def files(folder: Path, stem: str = "inference") -> Path:
    """Write x + w, and return the program."""
    for name, data in weighted().items():
        (folder / name.replace("model", stem)).write_bytes(data)
    return folder / f"{stem}.json"


def test_a_network_is_read_from_either_file_and_from_its_folder(tmp_path: Path) -> None:
    model = files(tmp_path)
    for path in (model, model.with_suffix(".pdiparams"), tmp_path):
        graph = converted(path)
        assert [n.name for n in graph.parameters] == ["x"] and graph.results[0].out_port(0).names == ("y",)
        np.testing.assert_array_equal(interpret(graph, [X])[0], RIGHT)
        assert framework_of(path) == "paddle" and len(files_of(path)) == 2
    other = model.with_suffix(".pdiparams").rename(tmp_path / "other.pdiparams")
    assert read_model(model, weights=other).nodes
    with pytest.raises(UsageError, match=r"inference\.pdiparams"):
        read_model(model)
    with pytest.raises(UsageError, match=r"other\.json or other\.pdmodel"):
        read_model(other)


def test_a_network_is_compiled(tmp_path: Path) -> None:
    np.testing.assert_array_equal(aot.compile_model(files(tmp_path))(X)["y"], RIGHT)


def test_sizes_of_inputs_may_vary(tmp_path: Path) -> None:
    model = files(tmp_path)
    model.write_text(model.read_text().replace('"1.a_intarray", "D": [2, 3]', '"1.a_intarray", "D": [-1, 3]'))
    (given,) = read_model(model).parameters
    assert [getattr(n, "name", n) for n in given.out_port(0).shape] == ["x.d0", 3]


def _operation(program: Any, kind: str) -> Any:
    return next(op for op in program["program"]["regions"][0]["blocks"][0]["ops"] if op["#"] == kind)


def _nested(program: Any) -> None:
    op = _operation(program, "1.add")
    inner = dict(op)
    for _ in range(40):
        inner = dict(op, regions=[{"blocks": [{"args": [], "ops": [inner]}]}])
    op["regions"] = inner["regions"]


def _set(kind: str, key: str, value: Any) -> Callable[[Any], None]:
    return lambda program: _operation(program, kind).__setitem__(key, value)


WRONG: tuple[tuple[Callable[[Any], None], type[AotError], str], ...] = (
    (_set("1.add", "I", [{"%": 2}, {"%": 9}]), CorruptError, "must give value 9"),
    (_set("1.add", "I", [{"%": 3}, {"%": 1}]), CorruptError, "must give value 3"),
    (_set("1.add", "I", [{"%": 2}]), AotError, "1 inputs do not fit it"),
    (_set("1.add", "#", "1.fft_c2c"), UnsupportedError, "fft_c2c in 'fft_c2c.2': there is no conversion"),
    (_set("1.fetch", "A", []), CorruptError, "must be a program of PaddlePaddle"),
    (lambda p: p["base_code"].update(version=99), CorruptError, "versions up to 5"),
    (lambda p: p["program"]["regions"].append({}), CorruptError, "must be a program"),
    (_nested, CorruptError, "blocks can have at most 32 levels"),
)


@pytest.mark.parametrize(("change", "error", "rule"), WRONG, ids=[rule for _, _, rule in WRONG])
def test_invalid_programs_are_refused(
    tmp_path: Path, change: Callable[[Any], None], error: type[AotError], rule: str
) -> None:
    model = files(tmp_path)
    program = json.loads(model.read_text())
    change(program)
    model.write_text(json.dumps(program))
    with pytest.raises(error, match=rule):
        converted(model)


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    weights = files(tmp_path).with_suffix(".pdiparams")
    whole = weights.read_bytes()
    changed = (
        (whole[:-1], r"w: a tensor of \[2, 3\] must lie in the file"),
        (whole + b"\0", "1 tensors fill the file"),
        (whole[:10], "the file must have a tensor"),
        (b"\1" + whole[1:], "version 0 of tensors"),
        (whole[:4] + b"\xff" * 8 + whole[12:], "lists of lengths must lie in the file"),
        (whole[:16] + b"\xff\xff\xff\x7f" + whole[20:], "a description must lie in the file"),
        (whole.replace(b"\x08\x05\x10\x02", b"\x08\x63\x10\x02"), "a type and sizes from 0 on, got 99"),
    )
    for data, rule in changed:
        weights.write_bytes(data)
        with pytest.raises(CorruptError, match=rule):
            read_model(weights)


def test_a_block_within_itself_is_refused(tmp_path: Path) -> None:
    path = written(next(case for case in CASES if case.name == "while"), "pdmodel", tmp_path)
    path.write_bytes(
        path.read_bytes().replace(b"\x0a\x09sub_block\x10\x08\x60\x01", b"\x0a\x09sub_block\x10\x08\x60\x00")
    )
    with pytest.raises(CorruptError, match="a block within block 0 must stand behind it, got 0"):
        read_model(path)


def test_a_damaged_program_of_version_2_is_refused(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == "concat")
    assert "pdmodel" in stored()[case.name]
    path = written(case, "pdmodel", tmp_path)
    whole = path.read_bytes()
    for data in (
        whole[:-1],
        whole[: len(whole) // 2],
        b"\x0a\xff\xff\xff\xff\x0f",
        b"\x0b\x01",
        b"\xff" * 12,
        b"\x20\x01",
    ):
        path.write_bytes(data)
        with pytest.raises((CorruptError, BudgetError)):
            read_model(path)
