"""The loop inside of a library: the tokens of Python's loop, what ends it, and what it refuses."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from aot import compile_model
from aot.cli import app
from aot.runtime import Generator, Sampling, load
from aot.runtime.abi import (
    ABI_VERSION,
    ERROR_LOGITS,
    ERROR_SAMPLING,
    ERROR_TEXTS,
    ERROR_TOKENS,
    QUERY_PREFIX,
    Generation,
    Table,
)
from aot.runtime.errors import UsageError
from aot.runtime.generation.compiled_loop import CompiledLoop, loop_of
from tests.compilers import compiler
from tests.frontends.gguf.networks import WORDS, Network
from tests.libraries import library

EXAMPLE = Path("examples/c/story.c")
IDS = [5, 1, 40, 7, 7, 63, 2]
WAYS = [
    Sampling(),
    Sampling(1.0, seed=2**40 + 5),
    Sampling(0.8, top_k=20, top_p=0.9, seed=3),
    Sampling(2.0, top_p=0.5, seed=9),
    Sampling(5.0, top_k=7, seed=1),
    Sampling(1e-300, seed=1),
]


class Loop:
    """`generate` and `forget` of a library, and the sequence between calls."""

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))
        query = self.library[QUERY_PREFIX + load(path).manifest.tag]
        query.restype = ctypes.c_void_p
        self.table = Table.from_address(query(ABI_VERSION))
        self.state = Generation(top_p=1.0, threads=1)

    def __call__(
        self,
        ids: Sequence[int],
        tokens: int,
        how: Sampling = WAYS[0],
        stop: Sequence[int] = (),
        on_token: Callable[[int], int] = lambda token: 0,
    ) -> list[int]:
        """Return the tokens that it gave to its callback; AssertionError, with the code, for an error."""
        made: list[int] = []

        def told(user: int, token: int) -> int:
            del user
            made.append(token)
            return on_token(token)

        callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64)(told)
        given, ends = (np.array(numbers, np.int64) for numbers in (ids, stop))
        self.state.ids, self.state.count, self.state.most = given.ctypes.data, len(given), tokens
        self.state.stop, self.state.stop_count = ends.ctypes.data, len(ends)
        self.state.on_token = ctypes.cast(callback, ctypes.c_void_p)
        for name in ("temperature", "top_k", "top_p", "seed"):
            setattr(self.state, name, getattr(how, name))
        code = self._call(self.table.generate, ctypes.c_int32)
        assert code == 0, ERROR_TEXTS[code]
        assert self.state.made == len(made)
        return made

    def forget(self) -> None:
        self._call(self.table.forget, None)
        assert not self.state.sequence

    def _call(self, function: int, result: type[ctypes.c_int32] | None) -> int:
        return ctypes.CFUNCTYPE(result, ctypes.c_void_p)(function)(ctypes.addressof(self.state))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loop")
    Network("llama", "Q4_0").write(folder / "story.gguf")
    given = ["compile", str(folder / "story.gguf"), "-o", str(folder / "story.so"), "--header", str(folder / "story.h")]
    made = CliRunner().invoke(app, given)
    assert made.exit_code == 0, made.output
    return folder


@pytest.fixture
def loop(folder: Path) -> Loop:
    return Loop(folder / "story.so")


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_its_tokens_are_those_of_pythons_loop(folder: Path, loop: Loop, how: Sampling) -> None:
    generator = Generator(load(folder / "story.so", threads=2))
    for count in (1, 7, 600):  # more than one chunk of a prompt
        ids = np.random.default_rng(count).integers(0, WORDS, count).tolist()
        assert loop(ids, 30, how) == generator.generate(ids, 30, how)
    loop.forget()
    assert loop(IDS, 9, how) == Generator(load(folder / "story.so")).generate(IDS, 9, how)
    loop.forget()


def test_it_ends_at_stop_tokens_and_where_the_callback_says(loop: Loop) -> None:
    whole = loop(IDS, 12)
    loop.forget()
    assert loop(IDS, 12, stop=[64, whole[4]]) == whole[: whole.index(whole[4]) + 1]
    loop.forget()
    assert loop(IDS, 12, on_token=lambda token: int(token == whole[2])) == whole[: whole.index(whole[2]) + 1]
    assert loop(IDS, 0) == []
    loop.forget()
    loop.forget()


@pytest.mark.parametrize(
    ("ids", "change", "error"),
    [
        ([], {}, ERROR_TOKENS),
        ([1, WORDS], {}, ERROR_TOKENS),
        ([1, -1], {}, ERROR_TOKENS),
        ([1], {"temperature": float("nan")}, ERROR_SAMPLING),
        ([1], {"temperature": float("inf")}, ERROR_SAMPLING),
        ([1], {"top_p": 0.0}, ERROR_SAMPLING),
        ([1], {"top_k": -1}, ERROR_SAMPLING),
    ],
)
def test_invalid_requests_are_refused(loop: Loop, ids: list[int], change: dict[str, float], error: int) -> None:
    how = Sampling()
    for name, value in change.items():
        object.__setattr__(how, name, value)
    with pytest.raises(AssertionError, match=ERROR_TEXTS[error]):
        loop(ids, 3, how)
    text = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_int32)(loop.table.error_text)(error)
    assert text.decode() == ERROR_TEXTS[error]


def test_logits_that_are_no_numbers_end_it(tmp_path: Path) -> None:
    network = Network("llama", "F32")
    kind, shape, raw = network.tensors["output_norm.weight"]
    network.tensors["output_norm.weight"] = (kind, shape, np.full(len(raw) // 4, np.nan, np.float32).tobytes())
    compile_model(network.write(tmp_path / "m.gguf")).export_model(tmp_path / "m.so")
    loop = Loop(tmp_path / "m.so")
    with pytest.raises(AssertionError, match=ERROR_TEXTS[ERROR_LOGITS]):
        loop([1], 3)
    loop.forget()


def test_other_models_have_no_loop(tmp_path: Path) -> None:
    library("examples/digits/model.xml", tmp_path / "m.so")
    table = Loop(tmp_path / "m.so").table
    assert (table.generate, table.forget) == (None, None)


def test_the_example_in_c(folder: Path) -> None:
    shutil.copy(EXAMPLE, folder)
    command = [*compiler("cc"), "-Wall", "-Wextra", "-Werror", "story.c", "-o", "story", "-ldl"]
    subprocess.run(command, cwd=folder, check=True)
    given = ["./story", "./story.so", "20", "0.8", "3", *map(str, IDS)]
    found = subprocess.run(given, cwd=folder, check=True, capture_output=True, text=True).stdout
    wanted = Generator(load(folder / "story.so")).generate(IDS, 20, Sampling(0.8, seed=3))
    assert list(map(int, found.split())) == wanted
    given[-1] = str(WORDS)
    refused = subprocess.run(given, cwd=folder, check=False, capture_output=True, text=True)
    assert (refused.returncode, refused.stderr.strip()) == (1, ERROR_TEXTS[ERROR_TOKENS])


@pytest.mark.parametrize("how", WAYS[:3], ids=str)
def test_python_drives_it(folder: Path, how: Sampling) -> None:
    model = load(folder / "story.so", threads=2)
    own, generator, told = loop_of(model, how), Generator(model), list[int]()
    assert isinstance(own, CompiledLoop)
    for count in (1, 300):  # more than one chunk of a prompt
        ids = np.random.default_rng(count).integers(0, WORDS, count).tolist()
        told.clear()
        wanted = generator.generate(ids, 20, how)
        assert own.generate(ids, 20, how, on_token=told.append) == told == wanted
    assert own.generate(IDS, 9, on_token=lambda token: False) == generator.generate(IDS, 1)
    assert own.generate(IDS, 0) == []


def test_it_raises_what_a_callback_raises(folder: Path) -> None:
    own = loop_of(load(folder / "story.so"), WAYS[0])

    def fail(token: int) -> None:
        raise KeyError(token)

    with pytest.raises(KeyError):
        own.generate(IDS, 9, on_token=fail)
    with pytest.raises(UsageError, match=f"{ERROR_TEXTS[ERROR_TOKENS]}, got 1 to {WORDS}"):
        own.generate([1, WORDS], 9)
    with pytest.raises(UsageError, match=f"{ERROR_TEXTS[ERROR_TOKENS]}, got none"):
        own.generate([], 9)


def test_a_signal_ends_it(folder: Path) -> None:
    program = """
import os, signal, sys
from aot.runtime import Sampling, load
from aot.runtime.generation.compiled_loop import loop_of

def told(token):
    os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    loop_of(load(sys.argv[1]), Sampling()).generate([5, 1], 400, on_token=told)
except KeyboardInterrupt:
    print("interrupted")
"""
    found = subprocess.run(
        [sys.executable, "-c", program, folder / "story.so"], check=True, capture_output=True, text=True
    )
    assert (found.stdout, found.stderr) == ("interrupted\n", "")


def test_a_sequence_that_has_no_room_is_refused(tmp_path: Path) -> None:
    model = compile_model(Network("llama", "Q4_0").write(tmp_path / "m.gguf"), max_context=40)
    with pytest.raises(UsageError, match="generate: sequences that the model has room for, got one of 41 tokens"):
        loop_of(model, WAYS[0]).generate([1] * 30, 20)


def test_python_draws_by_seeds_that_it_does_not_take(folder: Path) -> None:
    assert isinstance(loop_of(load(folder / "story.so"), Sampling(1.0, seed=1 << 64)), Generator)
