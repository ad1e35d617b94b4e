"""The command line on the digits example: results, files, exit codes."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import aot as package
from aot import cli
from aot.commands.compile import MAX_KERNELS
from aot.commands.line import command
from aot.commands.output import JSON_VERSION
from aot.compilation import kernel_cache
from aot.runtime.abi import ABI_VERSION
from aot.runtime.describe import hint
from aot.runtime.errors import BudgetError, CorruptError, InternalError, PlatformError, UnsupportedError, UsageError
from aot.runtime.version import VERSION
from tests.archives import arrays_of

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
MODEL, SEVEN = DIGITS / "model.xml", DIGITS / "seven.npy"


def aot(*arguments: object, code: int = 0) -> Result:
    """Run a command and check its exit code."""
    result = CliRunner().invoke(cli.app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("digits") / "digits.so"
    aot("compile", MODEL, "-o", path)
    return path


def test_compile_prints_stages_size_and_time(tmp_path: Path) -> None:
    result = aot("compile", MODEL, "-o", tmp_path / "m.so", "--time-passes", "--save-temps", tmp_path / "temps")
    assert "m.so: " in result.stdout and "compiled in" in result.stdout
    kernels = re.findall(r": written in ([\d.]+) ms, compiled by LLVM in ([\d.]+) ms", result.stdout)
    spent = [float(text) + float(code) for text, code in kernels]
    assert len(spent) == MAX_KERNELS
    assert all(one >= other - 0.2 for one, other in pairwise(spent))  # they are rounded
    stages = [line.split()[0] for line in result.stderr.splitlines()]
    assert stages == ["read", "optimize", "lower", "compile", "link"]
    assert len(list((tmp_path / "temps").iterdir())) >= 4


def test_compile_twice_gives_equal_bytes(library: Path, tmp_path: Path) -> None:
    aot("compile", MODEL, "-o", tmp_path / "again.so")
    assert (tmp_path / "again.so").read_bytes() == library.read_bytes()


@pytest.mark.parametrize("arguments", [["run", "LIBRARY", SEVEN], ["info", "LIBRARY"], ["--help"]])
def test_libraries_run_without_the_compiler(library: Path, arguments: list[object]) -> None:
    words = [str(library if a == "LIBRARY" else a) for a in arguments]
    script = """import sys, cli
try:
    cli.app(sys.argv[1:])
finally:
    print("imported", sorted({"aot.compilation.driver", "aot.opset", "llvmlite", "lxml", "rich"} & set(sys.modules)))"""
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "imported []"


def test_all_that_the_package_names_is_there() -> None:
    assert all(getattr(package, name) is not None for name in package.__all__)
    with pytest.raises(AttributeError, match="no attribute 'compile_modell'"):
        getattr(package, "compile_modell")  # noqa: B009


def test_compile_json(tmp_path: Path) -> None:
    facts = json.loads(aot("compile", MODEL, "-o", tmp_path / "m.so", "--json").stdout)
    assert facts["version"] == JSON_VERSION
    assert facts["bytes"] == (tmp_path / "m.so").stat().st_size
    assert facts["manifest"]["inputs"][0]["name"] == "image"


def test_compile_prints_the_graph_after_passes(tmp_path: Path) -> None:
    out = aot("compile", MODEL, "-o", tmp_path / "m.so", "--print-after", "all").stdout
    assert out.count("# after ") > 1 and "Convolution" in out and "# after assign_layouts" in out


def test_compile_can_stop_early(tmp_path: Path) -> None:
    assert "Convolution" in aot("compile", MODEL, "-o", tmp_path / "m.so", "--stop-after", "imported").stdout
    assert not (tmp_path / "m.so").exists()


@pytest.mark.parametrize("threads", [1, 2])
def test_every_digit_is_read_right(library: Path, tmp_path: Path, threads: int) -> None:
    digits = arrays_of(DIGITS / "digits.npz")
    for image, label in zip(digits["images"], digits["labels"], strict=True):
        np.save(tmp_path / "image.npy", image[None])
        aot("run", library, tmp_path / "image.npy", "-o", tmp_path / "out.npy", "--threads", threads)
        assert np.load(tmp_path / "out.npy").argmax() == label


def test_run_in_memory_gives_the_bits_of_the_file(library: Path, tmp_path: Path) -> None:
    aot("run", library, f"image={SEVEN}", "-o", tmp_path / "a.npz")
    aot("run", MODEL, SEVEN, "-o", tmp_path / "b.npz")
    a, b = arrays_of(tmp_path / "a.npz"), arrays_of(tmp_path / "b.npz")
    assert list(a) == list(b)
    assert all(np.array_equal(a[name], b[name]) for name in a)


def test_run_prints_a_summary_and_times(library: Path) -> None:
    out = aot("run", library, SEVEN, "--repeat", 3).stdout
    assert "float32[1, 10]" in out and "argmax 7" in out and "3 runs" in out
    facts = json.loads(aot("run", library, SEVEN, "--json", "--repeat", 3).stdout)
    assert len(facts["milliseconds"]) == 3


def test_run_takes_an_archive(library: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", image=np.load(SEVEN))
    assert "argmax 7" in aot("run", library, tmp_path / "all.npz").stdout


def test_run_names_the_input_that_is_wrong(library: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 1, 8, 9), np.float32))
    assert "image" in aot("run", library, tmp_path / "x.npy", code=2).stderr
    assert "image" in aot("run", library, code=2).stderr
    aot("run", library, SEVEN, SEVEN, code=2)
    aot("run", library, MODEL, code=2)
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04cut")
    aot("run", library, tmp_path / "cut.npz", code=2)
    aot("run", library, tmp_path / "absent.npy", code=2)
    aot("run", library, SEVEN, "-o", tmp_path / "out.txt", code=2)


def test_run_does_not_unpickle(library: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{}]), allow_pickle=True)
    aot("run", library, tmp_path / "x.npy", code=2)


def test_info_describes_libraries_and_models(library: Path) -> None:
    text = aot("info", library).stdout
    assert "image: f32[1,1,8,8]" in text and "f32[1,10]" in text
    assert json.loads(aot("info", library, "--json").stdout)["abi"] == ABI_VERSION
    assert "3 Convolution" in aot("info", MODEL).stdout
    assert json.loads(aot("info", MODEL, "--json").stdout)["inputs"] == {"image": "f32[1,1,8,8]"}


@pytest.mark.parametrize(
    ("stage", "word"),
    [
        ("imported", "Convolution"),
        ("optimized", "Convolution"),
        ("steps", "(ReduceMean)"),
        ("groups", "["),
        ("loops", "for "),
        ("llvm", "define "),
        ("asm", ".text"),
    ],
)
def test_dump_prints_each_stage(stage: str, word: str) -> None:
    assert word in aot("dump", MODEL, "--stage", stage).stdout


def test_dump_of_a_kernel_needs_kernels() -> None:
    for stage in ("imported", "groups"):
        assert "--kernel needs --stage" in aot("dump", MODEL, "--stage", stage, "--kernel", "k0", code=2).stderr


def test_dump_of_steps_after_a_lowering_pass() -> None:
    before, after = (aot("dump", MODEL, "--stage", "steps", "--after", p).stdout for p in ("define", "fuse_steps"))
    assert before.count("(Relu)") > after.count("(Relu)") == 0
    assert "one of define, fuse_steps" in aot("dump", MODEL, "--stage", "steps", "--after", "absent", code=2).stderr
    assert "--after needs" in aot("dump", MODEL, "--after", "fuse_steps", code=2).stderr


def test_dump_of_groups_says_why_schedules_were_chosen() -> None:
    plain, verbose = (aot("dump", MODEL, "--stage", "groups", *more).stdout for more in ((), ("-v",)))
    reasons = [line for line in verbose.splitlines() if line.startswith("    why: ")]
    assert [line for line in verbose.splitlines() if line not in reasons] == plain.splitlines()
    assert any("a product: lanes" in r for r in reasons) and any("register tile of" in r for r in reasons)
    refused = aot("dump", MODEL, "--stage", "loops", "-v", code=2).stderr
    assert "--verbose needs --stage groups, got loops" in refused


def test_passes_are_timed_and_checked(tmp_path: Path) -> None:
    out = aot("compile", MODEL, "-o", tmp_path / "m.so", "--timings", "--verify").stdout
    assert all(name in out for name in ("canonicalize: ", "assign_layouts: ", "narrow_constants: "))


def test_ops_lists_the_operations() -> None:
    assert "MatMul" in aot("ops").stdout
    rows = json.loads(aot("ops", "--json").stdout)["operations"]
    expected = {"type": "MatMul", "opsets": [1], "form": "ComputeOp", "elements": "number"}
    assert expected.items() <= next(r for r in rows if r["type"] == "MatMul").items()


def test_pre_processing_is_in_the_library(tmp_path: Path) -> None:
    given = ("--mean_values", "image[0.5]", "--scale", "2", "--layout", "image=NHWC")
    aot("compile", MODEL, "-o", tmp_path / "m.so", *given)
    out = aot("info", tmp_path / "m.so").stdout
    assert "image: f32[1,8,8,1]" in out
    assert "mean [['image', [0.5]]]" in out
    wrong = aot("compile", MODEL, "-o", tmp_path / "m.so", "--reverse_input_channels", code=2).stderr
    assert "--reverse-channels: needs an input of rank 4 with 3 channels, got image [1,1,8,8]" in wrong


@pytest.mark.slow
def test_shapes_and_layouts_as_model_optimizer_spells_them(tmp_path: Path) -> None:
    for given in (("--input_shape", "[3,1,8,8]"), ("--shape", "image[3,1,8,8]"), ("--shape", "image=3x1x8x8")):
        aot("compile", MODEL, "-o", tmp_path / "m.so", *given, "--layout", "image(nchw->nhwc)")
        assert "image: f32[3,8,8,1]" in aot("info", tmp_path / "m.so").stdout
    aot("compile", MODEL, "-o", tmp_path / "m.so", "--layout", "nchw->nhwc")
    assert "image: f32[1,8,8,1]" in aot("info", tmp_path / "m.so").stdout
    wrong = aot("compile", MODEL, "--layout", "x(nchw)", code=2).stderr
    assert "INPUT=LAYOUT, for example x=NHWC, got x(nchw)" in wrong


def test_usage_errors(tmp_path: Path) -> None:
    aot("compile", tmp_path / "absent.xml", code=2)
    aot("compile", MODEL, "--layout", "NHWC", code=2)
    aot("compile", MODEL, "--target", "pdp11", "-o", tmp_path / "m.so", code=2)
    aot("compile", MODEL, "-o", tmp_path / "absent" / "m.so", code=2)


def test_corrupt_files(library: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.xml"
    broken.write_text(MODEL.read_text()[:5000])
    assert "next: " in aot("compile", broken, "-o", tmp_path / "m.so", code=4).stderr
    (tmp_path / "short.so").write_bytes(library.read_bytes()[:3000])
    aot("run", tmp_path / "short.so", SEVEN, code=4)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyError("x"), 1),
        (InternalError("x"), 1),
        (UsageError("x"), 2),
        (OSError("x"), 2),
        (UnsupportedError("x"), 3),
        (CorruptError("x"), 4),
        (PlatformError("x"), 5),
        (BudgetError("x"), 6),
        (MemoryError(), 6),
    ],
)
def test_exit_codes(error: Exception, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    error.add_note("in layer 'conv1'")
    assert command.report(error, "compile") == code
    printed = capsys.readouterr().err
    assert printed.startswith("error: ") and "in layer 'conv1'" in printed and "next: " in printed


@pytest.mark.parametrize(
    ("number", "step"), [(errno.ENOSPC, "free space"), (errno.EADDRINUSE, "--port"), (errno.EACCES, "permissions")]
)
def test_errors_of_the_system_have_a_next_step(number: int, step: str) -> None:
    assert step in hint(OSError(number, os.strerror(number)))


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    result = aot("compile", MODEL, "--layout", "NHWC", "--debug", code=2)
    assert "Traceback" in result.stderr


def test_a_library_of_another_network_is_no_language_model(library: Path) -> None:
    for command_line in (("generate", library, "hi"), ("chat", library, "hi"), ("generate", library, "1", "--ids")):
        error = aot(*command_line, code=2).stderr
        assert "a language model must have input_ids" in error and "got image" in error


def test_version_is_printed() -> None:
    assert aot("--version").stdout.strip() == VERSION


def test_outputs_are_checked_before_the_work(library: Path, tmp_path: Path) -> None:
    for wrong in (tmp_path / "absent" / "m.so", tmp_path, Path("/dev/null")):
        assert str(wrong) in aot("compile", MODEL, "-o", wrong, code=2).stderr.splitlines()[0]
    for header in (tmp_path / "absent" / "m.h", tmp_path / "m.mjs"):
        late = aot("compile", MODEL, "-o", tmp_path / "m.so", "--header", header, code=2)
        assert "read  " not in late.stderr and not (tmp_path / "m.so").exists()
    error = aot("run", library, tmp_path / "absent.npy", "-o", tmp_path / "absent" / "x.npz", code=2).stderr
    assert "must be in a folder that exists" in error
    assert "or for noise --shape or --dim, got none" in aot("run", library, code=2).stderr


def test_the_model_is_not_overwritten(tmp_path: Path) -> None:
    for name in ("model.xml", "model.bin"):
        (tmp_path / name).write_bytes((DIGITS / name).read_bytes())
    for name in ("model.xml", "model.bin"):
        error = aot("compile", tmp_path / "model.xml", "-o", tmp_path / "." / name, code=2).stderr
        assert "must be another file than those that are read" in error
        assert (tmp_path / name).read_bytes() == (DIGITS / name).read_bytes()


def test_names_that_no_pass_and_no_kernel_has(tmp_path: Path) -> None:
    error = aot("compile", MODEL, "-o", tmp_path / "m.so", "--print-after", "absent", code=2).stderr
    assert "canonicalize" in error and "got absent" in error
    error = aot("dump", MODEL, "--stage", "loops", "--kernel", "absent", code=2).stderr
    assert "k0_parameter" in error and "got absent" in error


def test_events_reach_their_totals(tmp_path: Path) -> None:
    lines = aot("compile", MODEL, "-o", tmp_path / "m.so").stderr.splitlines()
    done = [line.split()[1].split("/") for line in lines]
    assert len(done) == 5 and all(a == b for a, b in done)


def test_info_and_library_call_outputs_the_same(tmp_path: Path) -> None:
    aot("compile", MODEL, "-o", tmp_path / "m.so", "--weights", "external")
    before = json.loads(aot("info", MODEL, "--json").stdout)["outputs"]
    assert list(before) == [t["name"] for t in json.loads(aot("info", tmp_path / "m.so", "--json").stdout)["outputs"]]
    assert " in m.weights" in aot("info", tmp_path / "m.so").stdout
    (tmp_path / "m.weights").unlink()
    assert "m.weights: the weights of " in aot("run", tmp_path / "m.so", SEVEN, code=2).stderr


def test_info_reads_objects_to_link(tmp_path: Path) -> None:
    aot("compile", MODEL, "-o", tmp_path / "m.o")
    aot("compile", MODEL, "-o", tmp_path / "m.so")
    shown = [aot("info", tmp_path / name).stdout.splitlines()[1:] for name in ("m.o", "m.so")]
    assert shown[0] == shown[1]
    assert "must be a shared object, got an object to link" in aot("run", tmp_path / "m.o", SEVEN, code=4).stderr


@pytest.mark.parametrize(
    ("content", "code", "text"),
    [
        (b"", 4, "empty file"),
        (b"\x7fELF....", 2, "next: run it: aot run"),
        (b"\n<\x0a\x08binary", 4, "must be a TensorFlow GraphDef, got other bytes"),
    ],
)
def test_files_that_are_no_model(tmp_path: Path, content: bytes, code: int, text: str) -> None:
    (tmp_path / "m.pb").write_bytes(content)
    assert text in aot("compile", tmp_path / "m.pb", code=code).stderr


def test_external_weights_are_those_of_one_target(tmp_path: Path) -> None:
    options = ("--weights", "external", "--target", "x86-64-v2,v3")
    error = aot("compile", MODEL, "-o", tmp_path / "m.so", *options, code=3).stderr
    assert "external weights need one target" in error and "lower" not in error


def test_a_linker_that_is_missing_is_missed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aot.codegen.llvm.linking.linker.shutil.which", lambda name: None)
    monkeypatch.setattr("aot.codegen.llvm.linking.linker.find_spec", lambda name: None)
    error = aot("compile", MODEL, "-o", tmp_path / "m.so", code=5).stderr
    assert error.startswith("error: link: ") and "next: install what is missing" in error
    aot("compile", MODEL, "-o", tmp_path / "m.o")


def test_kernels_that_are_kept_are_looked_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernel_cache.VARIABLE, str(tmp_path / "kernels"))
    assert aot("cache").output.endswith(": 0 entries, 0.0 kB\n")
    aot("compile", MODEL, "-o", tmp_path / "m.so")
    entries = list((tmp_path / "kernels").glob("*/*"))
    assert f": {len(entries)} entries" in aot("cache").output
    entries[0].write_bytes(b"")
    assert f": {len(entries) - 1} entries" in (checked := aot("cache", "verify").output)
    assert "; 1 were damaged and are removed" in checked
    assert ": 0 entries, 0.0 kB; " in aot("cache", "gc", "--max-bytes", "0").output
    aot("compile", MODEL, "-o", tmp_path / "m.so", "--kernel-cache", "off")
    assert ": 0 entries" in aot("cache").output
    monkeypatch.setenv(kernel_cache.VARIABLE, "off")
    assert aot("cache").output == "kernels: none are kept (AOT_KERNEL_CACHE=off)\n"


def test_a_reader_that_has_enough_ends_a_command_without_a_word() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    words = [sys.executable, "-m", "aot", "dump", DIGITS / "model.xml"]
    done = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")
