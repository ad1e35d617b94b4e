"""The header for C++: the program of examples/cpp reads a digit; sizes that vary or are computed, pools, errors."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import onnx
import pytest
from typer.testing import CliRunner

from aot import cli
from tests.compilers import compiler

EXAMPLES = Path(__file__).parents[3] / "examples"
MODEL, SEVEN = EXAMPLES / "digits" / "model.xml", EXAMPLES / "digits" / "seven.npy"
TEXT = """<ir_version: 10, opset_import: ["": 21]> m (float[n,2] x) => (float[n,2] y, int64[2,k] where) {
    y = Add(x, x)
    where = NonZero(x)
}"""
PROGRAM = """
#include "one.hpp"
#include "digits.hpp"
#include <cstdio>
#include <thread>
#include <type_traits>

static void show(aot::Request &request, std::vector<float> values, std::int64_t rows) {
    std::vector<float> moved(values.size() + 1); // at an address that is no multiple of 64
    std::copy(values.begin(), values.end(), moved.begin() + 1);
    std::vector<aot::Output> found = request.infer({aot::Input(moved.data() + 1, {rows, 2})});
    std::printf("%ld,%ld:", (long)found[0].dims[0], (long)found[1].dims[1]);
    for (std::int64_t k = 0; k < found[0].count(); k++)
        std::printf(" %g", found[0].as<float>()[k]);
    for (std::int64_t k = 0; k < found[1].count(); k++)
        std::printf(" %ld", (long)found[1].as<std::int64_t>()[k]);
    std::printf("\\n");
}

template <typename Call> static void fails(Call call) {
    try {
        call();
        std::printf("no error\\n");
    } catch (const aot::Error &error) {
        std::printf("%s\\n", error.what());
    }
}

int main() {
    aot::Model digits(AOT_DIGITS);
    aot::Model model("./one.so", AOT_ONE_NAME);
    aot::Pool pool(digits, 2); // of another model
    aot::Request request(model, pool), other(model, pool);
    show(request, {1, 0}, 1);
    show(request, std::vector<float>(10, 3), 5);
    show(request, {}, 0);
    std::thread thread([&] { other.infer({aot::Input(nullptr, {0, 2})}); });
    thread.join();
    fails([&] { request.infer({}); });
    fails([&] { request.infer({aot::Input(nullptr, {1, 3})}); });
    fails([&] { request.infer({aot::Input(nullptr, {9, 2})}); });
    fails([&] { aot::Model("./one.so", "absent"); });
    fails([&] { model.map_weights("one.hpp"); });
    static_assert(!std::is_copy_constructible_v<aot::Request>);
    std::printf("%d\\n", digits.manifest()[0] == '{');
}
"""


def compiled(model: Path, output: Path, *options: str) -> None:
    arguments = ["compile", str(model), "-o", str(output), "--header", str(output.with_suffix(".hpp")), *options]
    result = CliRunner().invoke(cli.app, arguments)
    assert result.exit_code == 0, result.output


def built(folder: Path, program: str, *options: str) -> Path:
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror", "-pthread"]
    command = [*compiler("c++"), *flags, program, *options, "-ldl", "-o", "program"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "program"


@pytest.mark.slow
@pytest.mark.parametrize(("loaded", "external"), [(False, False), (True, True)])
def test_the_example_in_cpp_reads_the_digit(tmp_path: Path, loaded: bool, external: bool) -> None:
    library = tmp_path / ("digits.so" if loaded else "digits.o")
    compiled(MODEL, library, *(["--weights", "external"] if external else []))
    shutil.copy(EXAMPLES / "cpp" / "digits.cpp", tmp_path)
    program = built(tmp_path, "digits.cpp", "-DUSE_DLOPEN" if loaded else "digits.o")
    command = [program, SEVEN, "./digits.so", *(["./digits.weights"] if external else [])]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
    assert (ran.returncode, ran.stdout) == (0, "7\n"), ran.stderr
    wrong = subprocess.run([program, "digits.cpp", *command[2:]], cwd=tmp_path, capture_output=True, check=False)
    assert wrong.returncode == 1 and b"must be an image" in wrong.stderr


def test_sizes_pools_and_errors(tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(TEXT), tmp_path / "one.onnx")
    compiled(tmp_path / "one.onnx", tmp_path / "one.so", "--dim", "n=0..8")
    compiled(MODEL, tmp_path / "digits.o")
    (tmp_path / "program.cpp").write_text(PROGRAM)
    program = built(tmp_path, "program.cpp", "digits.o")
    ran = subprocess.run([program], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
    assert ran.returncode == 0, ran.stderr
    rows, columns = " 0 0 1 1 2 2 3 3 4 4", " 0 1 0 1 0 1 0 1 0 1"
    shown = ran.stdout.splitlines()
    assert shown[:3] == ["1,1: 2 0 0 0", f"5,10:{' 6' * 10}{rows}{columns}", "0,0:"]
    assert shown[3:5] == ["inputs: 1 must be given, got 0", "input 'x': must have the model's shape, got another"]
    assert "no error" not in shown[5:8] and "absent" in shown[6] and "must be the model's weights" in shown[7]
    assert shown[8:] == ["1"]
