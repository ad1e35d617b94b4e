"""Certificates: what they hold, which faults they find and name, and that another machine can repeat them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from typer.testing import CliRunner, Result

from aot import cli
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.types import Array
from aot.opset.elementwise.activation import Relu
from aot.options import CompileOptions
from aot.runtime.arrays.files import Arrays
from aot.runtime.errors import CorruptError, UsageError
from aot.runtime.loading.library import read_manifest
from aot.runtime.model import CompiledModel
from aot.tools.comparing import certify as certifying
from aot.tools.comparing.certify import certify
from aot.tools.comparing.edges import moved, samples
from aot.tools.comparing.sides import Reference, results
from tests.tools.comparing.test_compare import network

NEGATES = """
class NegateProducts:
    def __call__(self, graph):
        for node in list(graph.nodes.values()):
            if node.type == "MatMul":
                data = node.source(1).node
                negated = graph.add(data.op, name="negated", origin=data.origin, data=-data.data)
                node.in_port(1).get_connection().set_source(negated.out_port(0))
                return True
        return False
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli.app, [str(a) for a in arguments])


def text_model(path: Path, text: str) -> Path:
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}'), path)
    return path


def certificate_of(library: Path) -> dict[str, Any]:
    found = read_manifest(library).json["certificate"]
    assert isinstance(found, dict)
    return found


def test_it_is_in_the_manifest_and_changes_no_hash(tmp_path: Path) -> None:
    model, library, plain = network(tmp_path / "m.onnx"), tmp_path / "m.so", tmp_path / "plain.so"
    done = run("compile", model, "-o", library, "--certify-samples", 3)
    assert done.exit_code == 0, done.output
    assert run("compile", model, "-o", plain).exit_code == 0
    assert read_manifest(library).json["hash"] == read_manifest(plain).json["hash"]
    found = certificate_of(library)
    kinds = [s["kind"] for s in found["samples"]]
    assert kinds[:3] == ["zeros", "negative zeros", "ones"] and kinds[-3:] == ["noise 0", "noise 1", "noise 2"]
    assert all(len(s["inputs"]) == len(s["outputs"]) == 64 for s in found["samples"])
    assert found["verdict"] == "equal within bounds" and found["layers"]["beyond"] == 0
    assert found["layers"]["count"] == len(found["layers"]["errors"]) >= 5
    assert 0 <= found["outputs"]["out"]["code"] < 1e-5
    assert len(json.dumps(found)) < 4000
    told = [line for line in run("info", library).output.splitlines() if "certified" in line or "  layers" in line]
    assert len(told) == 2 and "9 samples" in told[0]
    again = tmp_path / "again.so"
    run("compile", model, "-o", again, "--certify-samples", 3)
    assert again.read_bytes() == library.read_bytes()


def test_a_wrong_rewrite_is_named(tmp_path: Path) -> None:
    (tmp_path / "wrong" / "middle").mkdir(parents=True)
    (tmp_path / "wrong" / "middle" / "negate.py").write_text(NEGATES)
    done = run(
        "compile",
        network(tmp_path / "m.onnx"),
        "-o",
        tmp_path / "m.so",
        "--certify",
        "--extensions",
        tmp_path / "wrong",
    )
    assert done.exit_code == 1 and not (tmp_path / "m.so").exists()
    assert "rewrite" in done.output and "NegateProducts" in done.output, done.output
    assert "output 'out'" in done.output


def test_a_wrong_layer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of Relu is that of the identity; its reference is right."""
    monkeypatch.setattr(Relu, "scalar", lambda self, x: x)
    done = run("compile", network(tmp_path / "m.onnx"), "-o", tmp_path / "m.so", "--certify")
    assert done.exit_code == 1 and not (tmp_path / "m.so").exists()
    assert "layer 'r'" in done.output


@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_differences_that_roundings_make_are_told(
    tmp_path: Path, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The difference of nearly equal numbers, a million times as large: a sum in another order is beyond the bound."""
    text = "m (float[1,4] x) => (float[1,4] y) { s = Sub(x, c) y = Mul(s, m) }"
    path = text_model(tmp_path / "m.onnx", text)
    model = onnx.load(path)
    near = np.nextafter(np.float32(1), np.float32(2)) + np.zeros((1, 4), np.float32)
    model.graph.initializer.extend([numpy_helper.from_array(near, "c"), numpy_helper.from_array(near * 1e6, "m")])
    onnx.save(model, path)
    code = results

    def rounded(made: CompiledModel, inputs: Arrays) -> list[Array]:
        """Code that rounds its input by one unit in the last place, or is wrong where numbers are plain, too."""
        return code(made, moved(inputs)) if factor == 1 else [factor * array for array in code(made, inputs)]

    monkeypatch.setattr(certifying, "results", rounded)
    made = certify(path, CompileOptions(), stages(path).built)
    marked = [one["kind"] for one in made.json["samples"] if "sensitive" in one]
    if factor == 1:
        assert made.fault is None and marked == ["ones"]
    else:
        assert made.fault is not None and "sample 'zeros'" in made.fault


def test_recheck_says_what_differs(tmp_path: Path) -> None:
    model, library = network(tmp_path / "m.onnx"), tmp_path / "m.so"
    assert run("compile", model, "-o", library, "--certify").exit_code == 0
    done = run("verify", library, "--recheck", model)
    assert done.exit_code == 0 and "its certificate" in done.output

    built = stages(model, CompileOptions()).built
    forged = certificate_of(library)
    forged["samples"][2]["outputs"] = "0" * 64
    replace(built, manifest=built.manifest | {"certificate": forged}).write_shared(library)
    done = run("verify", library, "--recheck", model)
    assert done.exit_code == 1 and "samples[2].outputs: 0000" in done.output

    other = network(tmp_path / "other.onnx", 1.5)
    assert run("verify", library, "--recheck", other).exit_code == CorruptError.exit_code
    run("compile", model, "-o", library)
    assert run("verify", library, "--recheck", model).exit_code == UsageError.exit_code


@pytest.mark.parametrize("forged", [{"version": 9}, {"version": 1, "noise": "many"}, [], {"version": 1, "noise": -1}])
def test_certificates_of_others_are_untrusted(tmp_path: Path, forged: Any) -> None:
    model, library = network(tmp_path / "m.onnx"), tmp_path / "m.so"
    built = stages(model, CompileOptions()).built
    replace(built, manifest=built.manifest | {"certificate": forged}).write_shared(library)
    assert run("info", library).exit_code == run("verify", library, "--recheck", model).exit_code == 4


def test_nan_and_infinity_where_no_operation_mixes_elements(tmp_path: Path) -> None:
    plain = text_model(
        tmp_path / "p.onnx", "p (float[n,3] x, float[n,3] z) => (float[n,3] y) { a = Add(x, z) y = Relu(a) }"
    )
    mixed = text_model(tmp_path / "q.onnx", "q (float[2,3] x, float[3,2] z) => (float[2,2] y) { y = MatMul(x, z) }")
    found: dict[str, list[str]] = {}
    for model in (plain, mixed):
        built = stages(model, CompileOptions()).built
        made = certify(model, CompileOptions(), built)
        assert made.fault is None
        found[model.stem] = [s["kind"] for s in made.json["samples"]]
    assert {"nan", "infinity"} <= set(found["p"])
    assert not {"nan", "infinity"} & set(found["q"])
    assert "largest 1e+18" in found["q"]


def test_samples_have_sizes_and_integers_that_the_model_accepts(tmp_path: Path) -> None:
    text = "m (float[n,3] x, int64[2] to) => (float[a,b] y) { y = Reshape(x, to) }"
    model = text_model(tmp_path / "m.onnx", text)
    options = CompileOptions()
    code = in_memory(stages(model, options).built)
    drawn = list(samples(Reference(model, options).graph(), code.inputs, code.manifest.rules, 2))
    assert [s.kind for s in drawn][-2:] == ["noise 0", "noise 1"]
    assert drawn[-1].inputs["x"].shape[0] > drawn[-2].inputs["x"].shape[0]
    made = certify(model, options, stages(model, options).built)
    assert made.fault is None
    assert "ones, integers 0" in [s["kind"] for s in made.json["samples"]]


def test_code_for_another_machine_cannot_be_certified(tmp_path: Path) -> None:
    done = run("compile", network(tmp_path / "m.onnx"), "-o", tmp_path / "m.o", "--target", "aarch64", "--certify")
    assert done.exit_code == 5 and "this machine runs" in done.output
