"""`aot bench`: a model's time, and the time of its kernels against the machine's limits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

import aot
import runtime
from aot import cli
from aot.codegen.llvm.host import parse_target
from aot.codegen.llvm.peak import PeakLoops
from aot.compilation.search.examples import example_inputs
from aot.runtime.inference.agreement import size_at
from aot.runtime.measuring import load, profile
from aot.runtime.measuring.roofline import Roofline
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


@pytest.mark.parametrize(
    ("sizes", "shown"), [([], "at n=1, "), (["--shape", "8,n"], "at n=1, "), (["--dim", "n=5"], "at n=5, ")]
)
def test_bench_says_sizes_and_rates_of_a_varying_model(sizes: list[str], shown: str, tmp_path: Path) -> None:
    text = "m (float[8,n] x) => (float[8,8] z) { t = Transpose(x) z = MatMul(x, t) }"
    text = f'<ir_version: 10, opset_import: ["": 21]> {text}'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    aot.stages(tmp_path / "m.onnx").built.write_shared(tmp_path / "m.so")
    out = bench(tmp_path / "m.so", *sizes)
    assert shown in out and " inferences/s, " in out and " GFLOP/s; " in out


def test_work_of_varying_calls_follows_the_sizes() -> None:
    values = {"n": 4, "x.d0": 3}
    found = [size_at(s, values) for s in (7, {"symbol": "n"}, {"expr": "n * 2 + x.d0"}, {"expr": "m"}, None)]
    assert found == [7, 4, 11, None, None]


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


def test_percentiles_and_rate_of_requests_at_once(library: Path) -> None:
    assert "p90 " in bench(library) and "p99 " in bench(library)
    lines = bench(library, "--requests", 3).splitlines()
    assert len(lines) == 2 and "requests 3: " in lines[1] and "inferences/s; p50 " in lines[1]
    facts = json.loads(bench(library, "--requests", 3, "--json"))
    (found,) = facts["loads"]
    assert found["requests"] == 3 and found["inferences"] >= 3 * load.ROUNDS
    assert found["throughput"] == pytest.approx(found["inferences"] / found["seconds"])
    ordered = [*found["percentiles"].values(), found["longest"]]
    assert ordered == sorted(ordered) and list(found["percentiles"]) == ["p50", "p90", "p95", "p99"]


def test_models_are_compared_in_turns(library: Path, tmp_path: Path) -> None:
    built(chain(calls=3)).write_shared(tmp_path / "other.so")
    lines = bench(library, "--against", tmp_path / "other.so", "--against", library).splitlines()
    assert [line.split(": ")[0] for line in lines[1:]] == list(map(str, (library, tmp_path / "other.so", library)))
    assert "of the first's rate" in lines[2] and "of the first's rate" not in lines[1]


def test_a_trace_has_each_call_inside_of_its_inference(library: Path, tmp_path: Path) -> None:
    bench(library, "--trace", tmp_path / "t.json", "--requests", 2)
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    assert {e["tid"] for e in spans} == {0, 1} and {e["cat"] for e in spans} == {"inference", "kernel"}
    outer = [e for e in spans if e["cat"] == "inference"]
    inner = [e for e in spans if e["cat"] == "kernel"]
    assert inner and len(inner) <= 5 * len(outer)
    for e in inner:
        around = [o for o in outer if o["tid"] == e["tid"] and o["ts"] - 1 <= e["ts"] <= o["ts"] + o["dur"] + 1]
        assert around and e["args"]["layers"], e
    names = [e["args"]["name"] for e in events if e["ph"] == "M"]
    assert names == [str(library), "request 0", "request 1"]


def test_energy_is_that_of_all_packages_where_it_can_be_read(tmp_path: Path) -> None:
    assert load.joules(tmp_path) is None
    for name, energy in (("intel-rapl:0", 2_000_000), ("intel-rapl:1", 500_000), ("intel-rapl:0:0", 7)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "energy_uj").write_text(f"{energy}\n")
    assert load.joules(tmp_path) == 2.5
    made = load.Load(1, np.array([0.001, 0.003]), 0.004, 0.02)
    assert str(made).endswith("; 10 mJ an inference") and made.as_json()["energy"] == 0.01
