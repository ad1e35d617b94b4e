"""Commands of an installed copy: right results, nothing on standard error, nothing imported from the working folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from aot.runtime.version import VERSION
from tests.frontends.onnx.models import save
from tests.frontends.tf.tf_models import calls_of, unpacked
from tests.frontends.tflite import stored_cases
from tests.installed.place import ROOT, SUITE, Installed, environment, silent
from tests.mo.test_examples import X, chain
from tests.text.talking import Talking

DIGITS, EXTENSIONS = ROOT / "examples" / "digits", ROOT / "examples" / "extensions"
Array = NDArray[Any]
SEVEN = np.array([3.0044498e-6, 1.3070714e-5, 0.014680582, 0.013177069, 1.134012e-4], np.float32)
SEVEN = np.append(SEVEN, np.float32([1.6028e-4, 5.8979587e-8, 0.9674213, 3.8288953e-3, 6.0230831e-4]))[
    None
]  # OpenVINO's
HELPERS = """
from aot.codegen.ir.loops import For, Kernel, Store, Var, dense
from aot.codegen.llvm.object.kernel_module import KernelModule
from aot.codegen.llvm.object import workers
from aot.codegen.target import Target
workers.WORTH_STARTING = 0
x, y, i = dense("x", 9), dense("y", 9), Var("i", 9)
kernels = [Kernel("k", (), (x, y), (For(i, (Store(y, (i,), x[i] * float(n)),)),)) for n in range(60)]
with workers.Workers(processes=2) as compiling:
    tasks = [compiling.submit(KernelModule(k, Target.parse("x86-64-v3"), None, False)) for k in kernels]
    for task in tasks:  # made by the other processes: this one compiles in `wait` only
        assert task.code.result(60).startswith(b"\\x7fELF")
print(len(compiling.running), {process.returncode for process in compiling.running})
"""
ALONE = """
import sys
import runtime, numpy as np
y = runtime.load(sys.argv[1], threads=1)(np.load(sys.argv[2]))[0]
print(y.argmax(), sorted({"llvmlite", "lxml", "typer", "ml_dtypes", "aot.codegen", "aot.frontends"} & set(sys.modules)))
import aot.runtime
assert aot.runtime is runtime
"""
PYTHON = """
import sys, numpy as np
import aot
image = np.load(sys.argv[2])
print(aot.compile_model(sys.argv[1])(image)[0].argmax(), aot.runtime.__name__, aot.__version__)
"""
TORCH = """
from importlib.metadata import entry_points
[found] = entry_points(group="torch_dynamo_backends", name="aot")
print(found.load().__name__)
import aot
try:
    aot.export(object(), ())
except aot.AotError as error:
    print(error)
"""


TEMPLATE = """
from aot.text.template import ChatTemplate
print(ChatTemplate("{{ messages[0].content }}!").render([{"role": "user", "content": "7"}]))
"""

pytestmark = pytest.mark.slow


def digits(folder: Path) -> tuple[Path, Array, Array]:
    del folder
    return DIGITS / "model.xml", np.load(DIGITS / "seven.npy"), SEVEN


def exported(folder: Path) -> tuple[Path, Array, Array]:
    del folder
    return DIGITS / "model.pt2", np.load(DIGITS / "seven.npy"), SEVEN


def exchanged(folder: Path) -> tuple[Path, Array, Array]:
    e = np.exp(X)
    return save(folder, chain(("Softmax", ["x"], "y", {"axis": 1}))), X, e / e.sum((1, 2, 3), keepdims=True)


def tensorflow(folder: Path) -> tuple[Path, Array, Array]:
    inputs, outputs = calls_of("signatures")[0]
    return unpacked("signatures", folder), inputs["x"], outputs["y"]


def lite(folder: Path) -> tuple[Path, Array, Array]:
    case = stored_cases()["q_conv_i8_03"]
    (folder / "m.tflite").write_bytes(case["file"].tobytes())
    return folder / "m.tflite", case["x0"], case["y0"]


@pytest.mark.parametrize("case", [digits, exported, exchanged, tensorflow, lite])
def test_a_network_of_each_format(
    case: Callable[[Path], tuple[Path, Array, Array]], installed: Installed, project: Path
) -> None:
    path, x, y = case(project)
    np.save(project / "x.npy", x)
    assert installed.aot("compile", path, "-o", "m.so", "--quiet", cwd=project) == ""
    installed.aot("run", "m.so", "x.npy", "-o", "y.npy", cwd=project)
    found = np.load(project / "y.npy")
    assert (found.shape, found.dtype) == (y.shape, y.dtype)
    np.testing.assert_allclose(found, y, rtol=1e-5, atol=1e-6)


def test_a_language_model(installed: Installed, project: Path) -> None:
    """Tokens by the meaning of the network in f64; texts by the tokenizer and the template of the file."""
    network = Talking("qwen2", "Q8_0")
    network.write(project / "m.gguf")
    ids = [5, 1, 40]
    while len(ids) < 7:
        ids.append(int(network.logits(ids)[-1].argmax()))
    assert installed.aot("compile", "m.gguf", "-o", "m.so", "--quiet", cwd=project) == ""
    given = ("m.so", "5,1,40", "--ids", "--tokens", 4, "--quiet")
    assert installed.aot("generate", *given, cwd=project) == ",".join(map(str, ids[3:])) + "\n"
    prompt = ("m.so", "1:7;2:", "--tokens", 3, "--quiet")
    said = installed.aot("generate", *prompt, cwd=project)
    assert installed.aot("chat", "m.so", "7", "--tokens", 3, "--quiet", cwd=project) == said


@pytest.mark.parametrize("name", ["own_softmax", "decorators"])
def test_an_extension_folder(name: str, installed: Installed, project: Path) -> None:
    e = np.exp(X)
    step, y = {
        "own_softmax": (("Softmax", ["x"], "y", {"axis": 1}), e / e.sum(1, keepdims=True)),
        "decorators": (("ScaledTanh", ["x"], "y", {"scale": 3.0, "domain": "me"}), 3 * np.tanh(X)),
    }[name]
    save(project, chain(step))
    np.save(project / "x.npy", X)
    shutil.copytree(EXTENSIONS / name, project / "mine")
    given = ("model.onnx", "-o", "m.so", "--extensions", "mine", "--quiet")
    assert installed.aot("compile", *given, cwd=project) == ""
    installed.aot("run", "m.so", "x.npy", "-o", "y.npy", cwd=project)
    np.testing.assert_allclose(np.load(project / "y.npy"), y, rtol=1e-5)


def test_a_network_is_quantized(installed: Installed, project: Path) -> None:
    np.savez(project / "x.npz", image=np.load(DIGITS / "seven.npy"))
    installed.aot("quantize", DIGITS / "model.xml", "--data", "x.npz", "-o", "q.xml", "--quiet", cwd=project)
    installed.aot("compile", "q.xml", "-o", "q.so", "--quiet", "--header", "q.hpp", cwd=project)
    assert "argmax 7" in installed.aot("run", "q.so", DIGITS / "seven.npy", cwd=project)
    assert "namespace aot" in (project / "q.hpp").read_text()


def test_commands_upon_a_library(installed: Installed, project: Path) -> None:
    path = DIGITS / "model.xml"

    def aot(*args: object) -> str:
        return installed.aot(*args, cwd=project)

    aot("compile", path, "-o", "m.so", "--quiet")
    assert "agree: 1 outputs" in aot("compare", path, "m.so")
    aot("report", "m.so", "--model", path, "--seconds", 0.01, "-o", "r.html")
    page = (project / "r.html").read_text()
    assert page.startswith("<!doctype html>") and "<style>" in page and "<script>" in page
    (project / "p.json").write_text(aot("provenance", "m.so", "--model", path))
    aot("provenance", "m.so", "--model", path, "--check", "p.json")
    for words in (("check", path, "-q"), ("convert", path, "-o", "c.xml"), ("info", "m.so"), ("ops",)):
        assert aot(*words)


def test_a_server(installed: Installed, project: Path) -> None:
    """It says what it loads and that it stops, and nothing else."""
    installed.aot("compile", DIGITS / "model.xml", "-o", "m.so", "--quiet", cwd=project)
    command = [installed.folder / "bin" / "aot", "serve", "m.so", "--port", "0"]
    image = np.load(DIGITS / "seven.npy")
    given = {"name": "image", "shape": image.shape, "datatype": "FP32", "data": image.ravel().tolist()}
    with subprocess.Popen(
        command, cwd=project, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        address = process.stdout.readline().strip()
        asked = urllib.request.Request(f"{address}/models/m/infer", json.dumps({"inputs": [given]}).encode())
        with urllib.request.urlopen(asked, timeout=60) as answer:
            [output] = json.load(answer)["outputs"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        lines = process.stderr.read().splitlines()
    np.testing.assert_allclose(np.array(output["data"], np.float32), SEVEN[0], rtol=1e-5, atol=1e-6)
    assert [re.sub(r"^\S+ ", "", line) for line in lines] == [
        "info m version 1: loaded from m.so",
        "info stopping: 0 requests wait",
    ]


def test_other_processes_compile(installed: Installed, project: Path) -> None:
    assert installed.run("-c", HELPERS, cwd=project) == "2 {0}\n"


def test_the_runtime_imports_no_compiler(installed: Installed, project: Path) -> None:
    installed.aot("compile", DIGITS / "model.xml", "-o", "m.so", "--quiet", cwd=project)
    (project / "runtime.py").unlink()  # it would be the project's
    assert installed.run("-c", ALONE, "m.so", DIGITS / "seven.npy", cwd=project) == "7 []\n"


def test_python_and_other_ways_to_start(installed: Installed, project: Path) -> None:
    given = (DIGITS / "model.xml", DIGITS / "seven.npy")
    assert installed.run("-c", PYTHON, *given, cwd=project) == f"7 aot.runtime {VERSION}\n"
    assert installed.run("-m", "aot", "--version", cwd=project) == installed.aot("--version", cwd=project)
    asked = {"_AOT_COMPLETE": "complete_bash", "COMP_WORDS": "aot comp", "COMP_CWORD": "1"}
    assert installed.aot(cwd=project, **asked).split() == ["compile", "compare"]
    name, error = installed.run("-c", TORCH, cwd=project).splitlines()
    assert (name, "aot[torch]" in error) == ("aot_backend", find_spec("torch") is None)


def test_a_copy_that_only_pythonpath_names(installed: Installed, project: Path) -> None:
    """PYTHONPATH names the package; the process that renders chat templates does not read PYTHONPATH."""
    bare = project / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    path = os.pathsep.join(map(str, (installed.package.parent, SUITE)))
    assert silent(bare / "bin" / "python", "-c", TEMPLATE, cwd=project, PYTHONPATH=path) == "7!\n"
    assert silent(bare / "bin" / "python", "-c", HELPERS, cwd=project, PYTHONPATH=path) == "2 {0}\n"
