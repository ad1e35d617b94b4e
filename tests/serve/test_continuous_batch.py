"""Answers that go on together have the tokens that each would have alone; some end, fail or are given up earlier."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from aot.frontends.adapters import read_adapter
from aot.runtime import Executor, Generator, Sampling, load
from aot.runtime.arrays.tensors import Array
from aot.runtime.generation.sampling import Sampler
from aot.serve.openai.continuous_batch import ContinuousBatch
from aot.text.tokenizers.tokenizer import read_tokenizer
from tests.frontends.gguf.files import write
from tests.frontends.gguf.networks import WIDTH
from tests.serve.conftest import listening
from tests.serve.test_openai import post, wanted
from tests.text import talking

DEADLINE = 60.0  # seconds


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return talking.library(tmp_path_factory.mktemp("together"), row_lengths=True, lora_rank=2)


def adapter_of(path: Path, seed: int) -> Path:
    """Write an adapter in GGUF of one matrix, which changes all answers."""
    made = np.random.default_rng(seed).standard_normal((2, WIDTH)).astype(np.float32)
    matrices = {"a": made, "b": np.ascontiguousarray(made.T)}
    parts = {f"blk.0.ffn_down.weight.lora_{n}": ("F32", m.shape, m.tobytes()) for n, m in matrices.items()}
    return write(path, {"adapter.type": "lora", "adapter.lora.alpha": 9.0}, parts)


@pytest.fixture(scope="module")
def adapter(library: Path) -> Path:
    return adapter_of(library.with_name("a.gguf"), 1)


@pytest.fixture(scope="module")
def url(library: Path, adapter: Path) -> Iterator[str]:
    lora = {"signs": adapter}
    with listening(library, sequences=4, queue=16, max_context=100, grpc_port=None, lora=lora) as server:
        yield f"http://127.0.0.1:{server.port}/v1"


def test_requests_at_once_get_the_answers_that_they_get_alone(url: str, library: Path) -> None:
    asked = [("1" * n, 4 + n, Sampling(1.5, 0, 0.9, n) if n % 2 else Sampling()) for n in range(1, 9)]
    expected = [wanted(library, *one) for one in asked]
    found: dict[str, str] = {}

    def ask(prompt: str, count: int, how: Sampling) -> None:
        more = {"temperature": how.temperature, "top_p": how.top_p, "seed": how.seed}
        found[prompt] = post(url, "completions", prompt=prompt, max_tokens=count, **more).json()["choices"][0]["text"]

    threads = [threading.Thread(target=ask, args=one) for one in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[prompt] for prompt, _, _ in asked] == expected


def test_requests_choose_an_adapter(url: str, library: Path, adapter: Path) -> None:
    """Long beginnings are kept for each adapter alone, as the second request with each shows."""
    listed = [one["id"] for one in httpx.get(f"{url}/models").json()["data"]]
    assert listed == ["talk", "talk:signs"] and httpx.get(f"{url}/models/talk:signs").json()["id"] == "talk:signs"
    model, text = load(library, threads=1), read_tokenizer(library)
    ids = text.encode("1" * 40)
    alone = Generator(model, read_adapter(adapter, model.manifest)).generate(ids, 20, stop=text.stop)
    expected = {"talk": wanted(library, "1" * 40, 20), "talk:signs": text.decode(alone)}
    assert expected["talk"] != expected["talk:signs"]
    asked = [*expected] * 2
    told = [post(url, "completions", model=name, prompt="1" * 40, max_tokens=20).json() for name in asked]
    assert [(one["model"], one["choices"][0]["text"]) for one in told] == [(name, expected[name]) for name in asked]
    known = [one["usage"]["prompt_tokens_details"]["cached_tokens"] for one in told]
    assert known == [0, 0, 32, 32]
    assert post(url, "completions", model="talk:others", prompt="1").status_code == 404


def test_kept_beginnings_are_those_of_an_adapter_not_of_its_name(library: Path, tmp_path: Path) -> None:
    def cached(path: Path) -> int:
        options = {"grpc_port": None, "max_context": 100, "cache": tmp_path}
        with listening(library, lora={"signs": path}, **options) as server:
            url = f"http://127.0.0.1:{server.port}/v1"
            told = post(url, "completions", model="talk:signs", prompt="1" * 40, max_tokens=2).json()
        return told["usage"]["prompt_tokens_details"]["cached_tokens"]

    one, other = (adapter_of(tmp_path / f"{seed}.gguf", seed) for seed in (1, 2))
    assert [cached(one), cached(one), cached(other)] == [0, 32, 0]


def test_a_client_that_goes_leaves_the_others_alone(url: str, library: Path) -> None:
    body = {"model": "talk", "prompt": "12345", "max_tokens": 90, "stream": True, "temperature": 0}
    with httpx.stream("POST", f"{url}/completions", json=body, timeout=DEADLINE) as response:
        next(response.iter_bytes())
    assert post(url, "completions", prompt="9", max_tokens=9).json()["choices"][0]["text"] == wanted(library, "9", 9)


class Counted:
    """Member that wants `count` tokens; the logits of token `bad` are an error."""

    def __init__(self, generator: Generator, first: int, count: int, bad: int = -1) -> None:
        self.generator, self.token, self.tokens = generator, first, [first]
        self._count, self._bad, self._sampler = count, bad, Sampler(Sampling())
        self.gone, self.done, self.error = False, threading.Event(), None

    def leaves(self) -> bool:
        if self.gone:
            self.done.set()
        return self.gone

    def take(self, logits: Array) -> bool:
        if len(self.tokens) == self._bad:
            raise ValueError("bad")
        self.token = self._sampler.choose(logits)
        self.tokens.append(self.token)
        if len(self.tokens) == self._count:
            self.done.set()
        return len(self.tokens) < self._count

    def fail(self, error: BaseException) -> None:
        self.error: BaseException | None = error
        self.done.set()


def test_an_error_of_one_answer_ends_that_one_only(library: Path) -> None:
    model = load(library, threads=1)
    together, members = ContinuousBatch(model, Executor(2)), list[Counted]()
    for n, (count, bad) in enumerate(((20, -1), (20, 5), (3, -1), (12, -1))):
        generator = Generator(model)
        first = int(np.argmax(generator.feed([1 + n] * (n + 1))))
        members.append(Counted(generator, first, count, bad))
        together.join(members[-1])
    for member in members:
        assert member.done.wait(DEADLINE)
    for n, (member, count) in enumerate(zip(members, (20, 5, 3, 12), strict=True)):
        assert member.tokens == Generator(model).generate([1 + n] * (n + 1), count)
    assert [type(m.error) for m in members] == [type(None), ValueError, type(None), type(None)]


def test_an_error_of_a_step_ends_all_and_new_ones_begin_anew(library: Path) -> None:
    model = load(library, threads=1)
    together = ContinuousBatch(model, Executor(1))
    bad = Counted(Generator(model), 1, 9)  # a sequence without tokens
    together.join(bad)
    assert bad.done.wait(DEADLINE) and "one token or more" in str(bad.error)
    generator = Generator(model)
    good = Counted(generator, int(np.argmax(generator.feed([7]))), 6)
    together.join(good)
    assert good.done.wait(DEADLINE) and good.tokens == Generator(model).generate([7], 6)
