"""WebAssembly modules: their structure, what is refused, and what they compute in Node.js: the bytes of x86-64-v2."""

from __future__ import annotations

import ctypes
import json
import re
import runpy
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.support.wait import WebDriverWait

import runtime
from aot.codegen.llvm.build import build
from aot.codegen.llvm.callers import files_for_callers, loader_files
from aot.codegen.llvm.object import optimize
from aot.codegen.target import Target
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.graph import Graph
from aot.options import CompileOptions
from aot.runtime import abi
from aot.runtime.arrays.tensors import Array
from aot.runtime.errors import CorruptError, PlatformError, UnsupportedError, UsageError
from aot.runtime.loading.foreign.wasm import WasmFile
from aot.runtime.loading.library import read_manifest, verify
from aot.runtime.model import CompiledModel
from tests.browser import chromium, served
from tests.codegen.llvm.test_cross import QUANTISED
from tests.codegen.web import Call, run_in_node
from tests.dynamic.loops import NETWORKS as LOOPS
from tests.frontends.gguf.networks import Network
from tests.lowering.numbers.short_networks import CASES as SHORT
from tests.lowering.quantized import data
from tests.networks import NETWORKS
from tests.passes.check import graph_of, values
from tests.programs import chain

DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "model.xml"


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wasm") / "m.wasm"
    build(chain(), Target.parse("wasm")).write_shared(path)
    return path


def test_sections(module: Path) -> None:
    with module.open("rb") as stream:
        file = WasmFile(stream, "m.wasm")
        weights = np.frombuffer(file.section(abi.WEIGHTS_SECTION), np.float32)
    assert weights[16] == 2
    assert verify(module).json["triple"] == "wasm32-unknown-unknown-wasm"


def test_equal_bytes(module: Path, tmp_path: Path) -> None:
    build(chain(), Target.parse("wasm")).write_shared(tmp_path / "other.wasm")
    assert module.read_bytes() == (tmp_path / "other.wasm").read_bytes()


def test_unsupported_uses_are_refused(module: Path, tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="is compiled for wasm, this system is linux; compile it for linux"):
        runtime.load(module)
    built = build(chain(), Target.parse("wasm"))
    with pytest.raises(UnsupportedError, match=r"wasm has libraries only, m\.wasm, got an object to link"):
        built.write_object(tmp_path / "m.o")
    with pytest.raises(UsageError, match=r"a model for wasm has m\.mjs, m\.js, package\.json, got m\.h"):
        files_for_callers(Path("m.h"), built, "m", [module])
    with pytest.raises(UsageError, match=r"a package has its module in its folder, .*, got .*m\.wasm"):
        files_for_callers(tmp_path / "package.json", built, "m", [module])
    whole = module.read_bytes()
    for size in (4, 20, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut.wasm").write_bytes(whole[:size])
        with pytest.raises(CorruptError, match="must be a whole compiled model, got"):
            read_manifest(tmp_path / "cut.wasm")


def test_the_loader_has_the_numbers_of_the_abi() -> None:
    """It stays small, too: what it needs for a run is one file."""
    text = loader_files(Path("m.mjs"))[Path("m.mjs")]
    assert f"[{abi.ABI_VERSION}, {abi.MANIFEST_VERSION}, {abi.ERROR_CAPACITY}]" in text
    fields = re.findall(r"`(.*?)`", text, re.DOTALL)[0].split()
    rows = [(field[0], "p" if field[1] is ctypes.c_void_p else "i") for field in abi.Table._fields_]
    assert fields == [word for row in rows for word in row] and len(text) < 12_500


def compiled(path: Path, model: Callable[[], Graph | Path], target: str = "wasm", effort: Literal[0, 3] = 3) -> Path:
    """Write a module; `effort`: of LLVM, whose lowest takes a fourth of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimize, "EFFORT", effort)
        stages(model(), CompileOptions(target=target)).built.write_shared(path)
    return path


def here(model: Graph | Path, target: str = "x86-64-v2") -> CompiledModel:
    """Compile a model for this machine with LLVM's lowest effort: without fused multiply-adds it changes no bit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimize, "EFFORT", 0)
        return in_memory(stages(model, CompileOptions(target=target)).built)


def quantized(name: str) -> tuple[Callable[[], Graph], list[Array]]:
    make, shape = QUANTISED[name]
    return lambda: graph_of(make, shape), [data(*shape)]


def short(name: str) -> tuple[Callable[[], Graph], list[Array]]:
    make, shape = SHORT[name]
    return lambda: graph_of(make, shape), values(shape)


def plain(name: str) -> tuple[Callable[[], Graph], list[Array]]:
    make = NETWORKS[name]
    return make, values(make().parameters[0].out_port(0).type.static_shape)


MODELS: dict[str, tuple[Callable[[], Graph | Path], list[Array]]] = {
    "digits": (lambda: DIGITS, values((1, 1, 8, 8))),
    **{name: plain(name) for name in NETWORKS},
    **{name: quantized(name) for name in QUANTISED},
    "attention": short("attention"),
}


WITH_THREADS = ("mixed_types", "attention", "convolution")  # their kernels are those of one thread


@pytest.mark.slow
@pytest.mark.parametrize(("target", "threads", "names"), [("wasm", 1, MODELS), ("wasm-threads", 3, WITH_THREADS)])
def test_networks_compute_what_x86_computes(target: str, threads: int, names: Iterable[str], tmp_path: Path) -> None:
    """Byte by byte: instructions and vectors of both do the same."""
    jobs: list[tuple[str, list[Call]]] = []
    for name in names:
        model, inputs = MODELS[name]
        infos = read_manifest(compiled(tmp_path / f"{name}.wasm", model, target)).inputs
        jobs.append((f"{name}.wasm", [{info.name: x for info, x in zip(infos, inputs, strict=True)}] * 20))
    found = run_in_node(tmp_path, jobs, threads=threads)
    for name, answers in zip(names, found, strict=True):
        model, inputs = MODELS[name]
        host = here(model())(*inputs).to_tuple()
        for answer in answers:
            assert isinstance(answer, dict), f"{name}: {answer}"
            for one, wanted in zip(answer.values(), host, strict=True):
                np.testing.assert_array_equal(one, wanted, err_msg=name)


@pytest.mark.slow
def test_relaxed_multiply_adds(tmp_path: Path) -> None:
    """Sums of integers are exact; an engine rounds products of floats, or it does not."""
    jobs: list[tuple[str, list[Call]]] = []
    names = ("text", "matmul")
    for name in names:
        model, inputs = MODELS[name]
        infos = read_manifest(compiled(tmp_path / f"{name}.wasm", model, "wasm-relaxed")).inputs
        jobs.append((f"{name}.wasm", [{info.name: x for info, x in zip(infos, inputs, strict=True)}]))
    for name, (answer,) in zip(names, run_in_node(tmp_path, jobs, relaxed=True), strict=True):
        model, inputs = MODELS[name]
        host = here(model(), "x86-64-v3")(*inputs).to_tuple()
        assert isinstance(answer, dict), answer
        for found, wanted in zip(answer.values(), host, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=0 if name == "matmul" else 1e-5, atol=1e-6)


@pytest.mark.slow
def test_sizes_that_vary_and_variables(tmp_path: Path) -> None:
    """Node.js equals the runtime here, call after call: dynamic and computed sizes, loops, state until a reset."""
    networks = {name: LOOPS[name] for name in LOOPS}
    jobs: list[tuple[str, list[Call]]] = []
    for name, network in networks.items():
        infos = read_manifest(compiled(tmp_path / f"{name}.wasm", network.make, effort=0)).inputs
        calls = [{info.name: x for info, x in zip(infos, given, strict=True)} for given in network.inputs]
        jobs.append((f"{name}.wasm", [*calls, "reset", *calls]))
    for (name, network), answers in zip(networks.items(), run_in_node(tmp_path, jobs), strict=True):
        host = here(network.make())
        wanted = [host(*given).to_tuple() for given in network.inputs]
        for answer, outputs in zip(answers, [*wanted, *wanted], strict=True):
            assert isinstance(answer, dict), f"{name}: {answer}"
            for found, output in zip(answer.values(), outputs, strict=True):
                np.testing.assert_array_equal(found, output, err_msg=name)


@pytest.mark.slow
def test_a_language_model_draws_the_tokens_of_this_machine(tmp_path: Path) -> None:
    """In a worker each token comes as soon as it is drawn, so that a caller may stop long before the last one."""
    story = Network("llama", "Q4_0").write(tmp_path / "story.gguf")
    ids, generator = [5, 1, 40, 7, 7, 63, 2], runtime.Generator(here(story))
    wanted = [generator.generate(ids, 40)]
    wanted.append(generator.generate([wanted[0][-1]], 12, runtime.Sampling(0.8, seed=3)))
    calls: list[Call] = [{"ids": ids, "tokens": 40}]
    calls.append({"ids": wanted[0][-1:], "tokens": 12, "temperature": 0.8, "seed": 3})
    stopped: Call = {**calls[1], "ids": ids, "tokens": 1 << 20, "take": 5}
    compiled(tmp_path / "m.wasm", lambda: story)
    (found,) = run_in_node(tmp_path, [("m.wasm", [*calls, "reset", *calls])], threads=1)
    assert found == wanted * 2
    compiled(tmp_path / "t.wasm", lambda: story, "wasm-threads")
    (found,) = run_in_node(tmp_path, [("t.wasm", [*calls, "reset", *calls, stopped])], threads=2, worker=1)
    assert found[:4] == wanted * 2
    assert [len(tokens) for tokens in found[4:]] == [5]


def test_wrong_inputs_and_damaged_modules(module: Path, tmp_path: Path) -> None:
    """An error in a sentence for each, which names the input and what it must be."""
    whole = bytearray(module.read_bytes())
    weight, version = whole.rindex(np.float32(2).tobytes()), whole.index(b'"abi":') + 6
    for name, at, flipped in (
        ("weights", weight, 1),
        ("code", len(whole) // 9, 1),
        ("version", version, ord("4") ^ ord("9")),
    ):
        changed = bytearray(whole)
        changed[at] ^= flipped
        (tmp_path / f"{name}.wasm").write_bytes(changed)
    (tmp_path / "m.wasm").write_bytes(whole)
    (tmp_path / "cut.wasm").write_bytes(whole[:-7])
    (tmp_path / "text.wasm").write_text("no module")
    (info,) = read_manifest(module).inputs
    right = np.zeros([n for n in info.shape if isinstance(n, int)], np.float32)
    calls: list[Call] = [{info.name: right.astype(np.float64)}, {info.name: right[None, :1]}, {"other": right}, {}]
    names = ("m", "weights", "code", "version", "cut", "text")
    (wrong, *damaged) = run_in_node(tmp_path, [(f"{name}.wasm", calls) for name in names])
    shape = ",".join(map(str, right.shape))
    assert wrong == [
        f"input '{info.name}': expected f32[{shape}], got Float64Array, not Float32Array",
        f"input '{info.name}': expected f32[{shape}], got [1,1] of 1 elements",
        f"inputs: must be one of {info.name}, got 'other'",
        f"input '{info.name}': needs an array, got none",
    ]
    digest = "load: must have the digest it was written with, got another: it is damaged"
    kinds = {"weights": digest, "code": digest, "version": "load: abi version must be 4, got 9; "}
    kinds |= {"cut": "load: must be a whole compiled model, got one that is cut short"}
    kinds |= {"text": "load: must be a whole compiled model, got another file"}
    assert all(str(answers[0]).startswith(kinds[name]) for name, answers in zip(names[1:], damaged, strict=True)), (
        damaged
    )


@pytest.mark.parametrize(
    ("target", "threads", "worker"), [("wasm", 1, 0), ("wasm-threads", 2, 0), ("wasm-threads", 2, 1)]
)
def test_external_weights(target: str, threads: int, worker: int, tmp_path: Path) -> None:
    """They lie beside the module and have its digest; those of other models and damaged ones are refused."""
    image = np.load(DIGITS.with_name("seven.npy"))
    built = stages(DIGITS, CompileOptions(target=target, external_weights=True)).built
    for name in ("m", "none", "other", "flipped", "cut", "text"):
        built.write_shared(tmp_path / f"{name}.wasm")
    weights = (tmp_path / "m.weights").read_bytes()
    assert (tmp_path / "m.wasm").stat().st_size < 50_000 < len(weights)
    assert verify(tmp_path / "m.wasm").json["external"]
    (tmp_path / "none.weights").unlink()
    flipped = bytearray(weights)
    flipped[1 << 16] ^= 1
    other = weights.replace(b'"layout": "', b'"layout": "0', 1)[: len(weights)]
    damaged = {
        "flipped": flipped,
        "cut": weights[:-5],
        "text": b"no weights",
        "other": other.ljust(len(weights), b"\0"),
    }
    for name, contents in damaged.items():
        (tmp_path / f"{name}.weights").write_bytes(contents)
    jobs: list[tuple[str, list[Call]]] = [(f"{name}.wasm", [{"image": image}]) for name in ("m", "none", *damaged)]
    (right, *wrong) = run_in_node(tmp_path, jobs, threads=threads, worker=worker)
    wanted = here(DIGITS)(image)[0]
    (answer,) = right
    assert isinstance(answer, dict)
    np.testing.assert_array_equal(answer["probabilities"], wanted)
    rules = ["ENOENT: no such file", "weights: must be with the hash", f"weights: must be of {len(weights)} bytes, got"]
    rules += ["weights: must be weights of a compiled model, got another", "weights: must be those of this model, got"]
    for (text,), rule in zip(wrong, rules, strict=True):
        assert str(text).startswith(rule)


PROGRAM = """
import { readFile } from "node:fs/promises";
import { AotError, load } from "two-digits";
import { load as loadModule } from "two-digits/aot.mjs";
const net = await load();
const { buffer, byteOffset, length } = await readFile(process.argv[2]);
const { probabilities } = await net.run({ image: new Float32Array(buffer.slice(byteOffset, byteOffset + length)) });
console.log(probabilities.indexOf(Math.max(...probabilities)), AotError.name);
const away = await load({ worker: true });
const gone = new Float32Array(64);
structuredClone(gone, { transfer: [gone.buffer] });
for (const one of [net, away]) await one.run({ image: gone }).catch(({ message }) => console.log(message));
await away.run({ image: () => 0 }).catch(({ name }) => console.log(name));
const [late, wrong] = [away.run({ image: probabilities }), away.run({ other: probabilities })];
await late.catch(({ name, message }) => console.log(name, message));
await wrong.catch(({ name, message }) => console.log(name, message));
const ended = away.run({});
away.close();
await ended.catch(({ message }) => console.log(message));
await away.run({}).catch(({ message }) => console.log(message));
await loadModule().catch(({ name, message }) => console.log(name, message));
await loadModule([]).catch(({ name, message }) => console.log(name, message));
const [code, weights] = await Promise.all(process.argv.slice(3).map((path) => readFile(path)));
const { inputs } = await loadModule(new Blob([code]), { weights });
console.log(inputs[0].name);
await net.run().catch(({ message }) => console.log(message));
await net.run({ image: { data: gone, shape: 1 } }).catch(({ message }) => console.log(message));
net.close();
await net.run({ image: probabilities }).catch(({ message }) => console.log(message));
"""


@pytest.mark.slow
def test_a_package_of_npm(tmp_path: Path) -> None:
    """Packed, installed from the archive, and imported by its name; what the user wrote into package.json stays.

    The module is an address for Node.js, and so is that of its weights.
    """
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs npm")
    package, project = tmp_path / "package", tmp_path / "project"
    package.mkdir()
    project.mkdir()
    built = stages(DIGITS, CompileOptions(target="wasm", external_weights=True)).built
    module, weights = package / "Two digits.wasm", package / "Two digits.weights"
    built.write_shared(module)

    def written() -> dict[str, str]:
        texts = files_for_callers(package / "package.json", built, "digits", [module, weights])
        for path, text in texts.items():
            path.write_text(text)
        return {path.name: text for path, text in texts.items()}

    first = written()
    again = written()
    assert {*first} - {*again} == {"package.json"}
    run = partial(subprocess.run, capture_output=True, text=True, check=True, timeout=300)
    packed = run([npm, "pack", "--json"], cwd=package)
    (archive,) = json.loads(packed.stdout)
    assert {file["path"] for file in archive["files"]} == {*first, module.name, weights.name}
    (project / "package.json").write_text("{}")
    install = [npm, "install", "--offline", "--no-audit", "--no-fund", str(package / archive["filename"])]
    run(install, cwd=project)
    (project / "main.mjs").write_text(PROGRAM)
    (project / "seven").write_bytes(np.load(DIGITS.with_name("seven.npy")).tobytes())
    ran = run(["node", "main.mjs", "seven", module, weights], cwd=project)
    assert ran.stdout.splitlines() == [
        "7 AotError",
        *["input 'image': expected f32[1,1,8,8], got [1,1,8,8] of 0 elements"] * 2,
        "DataCloneError",
        "AotError input 'image': expected f32[1,1,8,8], got [1,10] of 10 elements",
        "AotError inputs: must be one of image, got 'other'",
        "the network must be open, got one that is closed",
        "run: the network must be open, got one that is closed",
        *["AotError load: needs an address, a Response, a Blob or bytes, got undefined"] * 2,
        "image",
        "input 'image': needs an array, got none",
        "input 'image': expected f32[1,1,8,8], got [] of 0 elements",
        "run: the network must be open, got one that is closed",
    ]


def test_the_example_of_wasmtime(tmp_path: Path) -> None:
    """Another engine, by its Python package; the same bytes."""
    pytest.importorskip("wasmtime", reason="needs the package wasmtime")
    module, image = compiled(tmp_path / "digits.wasm", lambda: DIGITS), np.load(DIGITS.with_name("seven.npy"))
    example = runpy.run_path(str(DIGITS.parents[1] / "wasmtime" / "digits.py"))
    wanted = here(DIGITS)(image)[0]
    np.testing.assert_array_equal(example["Network"](str(module)).run(image), wanted.ravel())


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from chromium()


PAGE = """<script type=module>
import { load } from "./model.mjs";
const seen = [];
const net = await load("digits.wasm", { ...OPTIONS, progress: (bytes, total) => seen.push([bytes, total]) });
const pixels = new Float32Array(await (await fetch("seven")).arrayBuffer());
let probabilities;
for (let k = 0; k < 100; k++) ({ probabilities } = await net.run({ image: pixels }));
const stop = new AbortController();
const ended = load("digits.wasm", { signal: stop.signal, progress: () => stop.abort() });
const { name } = await ended.catch((error) => error);
document.title = JSON.stringify([Array.from(probabilities), seen.at(-1), name]);
</script>"""


WORKERS = [(target, True, {"threads": 2, "worker": True}) for target in ("wasm", "wasm-threads")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "external", "flags"),
    [("wasm", True, {"threads": 2}), ("wasm-threads", False, {"threads": 2}), *WORKERS],
)
def test_a_page_reads_a_digit(browser: Any, target: str, external: bool, flags: object, tmp_path: Path) -> None:
    """Threads need the headers that isolate a page. A download is followed to its end, and another one is ended."""
    options = CompileOptions(target=target, external_weights=external)
    stages(DIGITS, options).built.write_shared(tmp_path / "digits.wasm")
    (tmp_path / "index.html").write_text(PAGE.replace("OPTIONS", json.dumps(flags)))
    for path, text in loader_files(Path("model.mjs")).items():
        (tmp_path / path).write_text(text)
    seven = np.load(DIGITS.with_name("seven.npy"))
    (tmp_path / "seven").write_bytes(seven.tobytes())
    with served(tmp_path) as address:
        browser.get(address)
        found, loaded, ended = json.loads(WebDriverWait(browser, 60).until(lambda page: page.title))
    wanted = here(DIGITS)(seven)[0]
    np.testing.assert_array_equal(np.array([found], np.float32), wanted)
    last = tmp_path / ("digits.weights" if external else "digits.wasm")
    assert (loaded, ended) == ([(size := last.stat().st_size), size], "AbortError")


@pytest.mark.slow
def test_the_example_reads_what_is_drawn(browser: Any, tmp_path: Path) -> None:
    compiled(tmp_path / "digits.wasm", lambda: DIGITS)
    (tmp_path / "index.html").write_text((DIGITS.parents[1] / "browser" / "index.html").read_text())
    for path, text in loader_files(tmp_path / "aot.mjs").items():
        path.write_text(text)
    with served(tmp_path) as address:
        browser.get_log("browser")  # of other pages
        browser.get(address)
        WebDriverWait(browser, 60).until(lambda page: page.execute_script("return document.body.dataset.ready"))
        pen, paper = ActionChains(browser, duration=20), browser.find_element("id", "paper")
        side = paper.size["width"]
        pen.move_to_element_with_offset(paper, 0, round(-0.35 * side)).click_and_hold()
        for down in (-0.2, 0.0, 0.2, 0.35):
            pen.move_to_element_with_offset(paper, 0, round(down * side))
        pen.release().perform()
        WebDriverWait(browser, 60).until(lambda page: page.find_element("id", "answer").text)
        assert browser.find_element("id", "answer").text == "1"
        assert browser.get_log("browser") == []
