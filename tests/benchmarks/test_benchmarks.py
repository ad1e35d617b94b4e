"""The benchmark on a tiny model, and its arithmetic; no times are asserted."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import aot
from benchmarks.compilation.compiling import compile_apart
from benchmarks.networks.folder import Folder, largest_error, placed
from benchmarks.networks.op_models import Case, Given
from benchmarks.timing.report import geometric_mean, markdown, spread
from benchmarks.timing.rounds import ratios

ROOT = Path(__file__).parent.parent.parent


def test_ratio_takes_the_fastest_peer_of_each_round_by_medians() -> None:
    ours = [[2.0, 1.0, 9.0], [4.0]]
    peers = [[[3.0], [20.0]], [[5.0], [6.0, 6.0]]]
    assert ratios(ours, peers) == [1.5, 1.5]


def test_spread_gives_median_and_percentiles() -> None:
    assert spread([float(x) for x in range(11)]) == {"median": 5.0, "p10": 1.0, "p90": 9.0}


def test_geometric_mean_leaves_out_what_was_not_measured() -> None:
    rows: list[dict[str, object]] = [{"threads": 1, "ratio": 2.0}, {"threads": 1, "ratio": 0.5}, {"threads": 1}]
    assert geometric_mean(rows, 1) == pytest.approx(1.0)
    assert math.isnan(geometric_mean(rows, 2))


def test_error_is_relative_to_the_largest_output() -> None:
    expected = [np.array([0.0, -4.0], np.float32)]
    assert largest_error([np.array([1.0, -4.0], np.float32)], expected) == 0.25
    assert largest_error([np.array([np.nan, 0.0], np.float32)], expected) == math.inf
    assert largest_error([np.zeros(3, np.float32)], expected) == math.inf


def test_inputs_find_their_ports_by_name_or_else_by_order() -> None:
    assert placed([{"a"}, {"b", "c"}], {"c": 1, "a": 2}) == {1: 1, 0: 2}
    assert placed([{"x:0"}], {"x": 1}) == {0: 1}


def test_folder_must_hold_a_model(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"model\.xml"):
        Folder(tmp_path).check()


def test_table_names_what_failed_and_what_is_slower() -> None:
    rows: list[dict[str, object]] = [
        {"model": "slow", "threads": 1, "ratio": 0.5, "ratio_p10": 0.4, "ratio_p90": 0.6},
        {"model": "broken", "threads": 1, "failed": ["ours: compile: no"]},
    ]
    text = markdown(rows)
    assert "geometric mean of the ratios 0.50; below 1: slow" in text
    assert "- broken, 1T: ours: compile: no" in text


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("openvino", reason="the extra `bench` is not installed")
    from benchmarks.models import make  # noqa: PLC0415  (needs OpenVINO)

    return make("mlp", tmp_path_factory.mktemp("models"))


def test_flops_are_the_textbooks(model: Path) -> None:
    from benchmarks.networks.flops import gflop  # noqa: PLC0415

    assert gflop(model / "model.xml", {"x": (1, 784)}) * 1e9 == 2 * (784 * 512 + 512 * 512 + 512 * 10)


@pytest.mark.slow
def test_two_rounds_of_a_small_model(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    command = [sys.executable, "-m", "benchmarks", str(model), "--threads", "1", "--rounds", "2", "--json", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert "best peer / ours" in done.stdout
    (row,) = json.loads(out.read_text())["rows"]
    assert row["model"] == "mlp" and len(row["ratios"]) == 2
    assert row["ours_error"] < 1e-5
    measured = ("ours_min_ms", "openvino_min_ms", "peak_gflops", "cpu_ratio", "compile_s", "so_mb", "ours_rss_mb")
    assert min(row[key] for key in measured) > 0


def test_a_model_that_does_not_compile_is_told(tmp_path: Path) -> None:
    (tmp_path / "model.xml").write_text("<net/>")
    with pytest.raises(RuntimeError, match="compile: "):
        compile_apart(tmp_path / "model.xml", tmp_path / "m.so")


def test_the_plot_is_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `bench` is not installed")
    from benchmarks.timing.plot import draw  # noqa: PLC0415

    row: dict[str, object] = {"model": "m", "threads": 1, "ratio": 1.5, "ratio_p10": 1.4, "ratio_p90": 1.6}
    draw([row], tmp_path / "ratios.svg")
    assert (tmp_path / "ratios.svg").read_text().startswith("<?xml")


def test_sizes_of_an_operation_may_vary(tmp_path: Path) -> None:
    given = np.linspace(0, 1, 24, dtype=np.float32).reshape(2, 3, 4)
    case = Case("Add", 1, [Given(given), np.ones(4, np.float32)])
    shapes: list[object] = []
    for vary in (False, True):
        case.write(tmp_path / "model", vary)
        model = aot.compile_model(tmp_path / "model.xml")
        shapes.append([str(n) for n in model.inputs[0].shape])
        np.testing.assert_array_equal(model(given)[0], given + 1)
    assert shapes == [["2", "3", "4"], ["in0.d0", "3", "in0.d2"]]
