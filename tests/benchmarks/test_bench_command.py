"""`aot bench`: a model's time, and the time of its kernels against the machine's limits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import cli
import runtime
from codegen.llvm.host import parse_target
from codegen.llvm.peak import PeakLoops
from runtime.measuring import profile
from runtime.measuring.examples import example_inputs
from runtime.measuring.roofline import Roofline
from tests.programs import built, chain


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "chain.so"
    built(chain(calls=5)).write_shared(path)
    return path


def bench(*arguments: object) -> str:
    result = CliRunner().invoke(cli.app, ["bench", *map(str, arguments), "--seconds", "0.01", "--threads", "1"])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_bench_prints_one_line(library: Path) -> None:
    out = bench(library)
    assert len(out.splitlines()) == 1 and "1 threads: " in out and "5 calls" in out


def test_bench_takes_inputs(library: Path, tmp_path: Path) -> None:
    info = runtime.load(library).inputs[0]
    np.save(tmp_path / "x.npy", example_inputs((info,))[info.name])
    assert "5 calls" in bench(library, tmp_path / "x.npy")


@pytest.mark.slow
def test_bench_per_kernel_prints_a_row_for_each_call(library: Path) -> None:
    lines = bench(library, "--per-kernel").splitlines()
    assert lines[1].startswith("limits: ") and lines[2].split()[-1] == "layers"
    assert len(lines) == 3 + 5
    assert "3 more kernels" in bench(library, "--per-kernel", "--top", "2")


def test_calls_of_one_kernel_are_summed_up(library: Path) -> None:
    manifest = runtime.load(library).manifest
    times = np.array([[1e-3, 2e-3, 3e-3, 4e-3, 5e-3]])
    rows = [replace(row, kernel="k") for row in profile.call_profiles(manifest, times, None)]
    line = profile.table(profile.ModelProfile(0.0, 0.0, 1, None, tuple(rows))).splitlines()[1].split()
    assert line[:5] == ["100.0", "100.0", "5", "15000.0", "15000.0"]
    assert line[-2:] == ["k", "layer4"]


def test_bench_json_holds_every_call(library: Path) -> None:
    facts = json.loads(bench(library, "--per-kernel", "--json"))
    assert sorted(call["index"] for call in facts["calls"]) == list(range(5))
    medians = [call["median"] for call in facts["calls"]]
    assert medians == sorted(medians, reverse=True)
    assert sum(call["percent"] for call in facts["calls"]) == pytest.approx(100)
    assert facts["roofline"]["flops"] > 0 and facts["least"] > 0


def test_roofline_is_set_by_arithmetic_or_memory() -> None:
    roofline = Roofline(flops=100.0, bandwidth=((64, 50.0), (1 << 62, 10.0)))
    assert roofline.seconds(work=1000, traffic=20, footprint=64) == (10.0, False)
    assert roofline.seconds(work=10, traffic=50, footprint=64) == (1.0, True)
    assert roofline.seconds(work=10, traffic=50, footprint=65) == (5.0, True)


def test_peak_loops_do_the_work_they_say() -> None:
    target = parse_target("native")
    loops = PeakLoops(target)
    assert loops.multiply(10, threads=2) == 2 * loops.multiply(10)
    assert loops.multiply(10) % (2 * target.lanes_bytes // 4) == 0
    assert loops.flops(seconds=0.001) > 1e8
    assert loops.bandwidth(1 << 16, seconds=0.001) > 1e7
