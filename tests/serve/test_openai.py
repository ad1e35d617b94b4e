"""OpenAI's API of `aot serve`: answers are those of a generator, whole and streamed; limits; clients that go."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from aot.runtime import Generator, Sampling, load
from aot.runtime.arrays.tensors import Array
from aot.serve.openai.admission_queue import AdmissionQueue
from aot.text.tokenizers.tokenizer import read_tokenizer
from tests import libraries
from tests.serve.conftest import DIGITS, listening
from tests.text import talking

CLIENT = httpx.Client(limits=httpx.Limits(max_keepalive_connections=0))  # making one takes longer than most requests


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return talking.library(tmp_path_factory.mktemp("openai"))


@pytest.fixture(scope="module")
def url(library: Path) -> Iterator[str]:
    with listening(library, sequences=2, queue=2, max_context=100, grpc_port=None) as server:
        yield f"http://127.0.0.1:{server.port}/v1"


def wanted(library: Path, text: str, count: int, sampling: Sampling | None = None) -> str:
    tokenizer = read_tokenizer(library)
    ids = tokenizer.encode(text)
    made = Generator(load(library, threads=1)).generate(ids, count, sampling or Sampling(), tokenizer.stop)
    return tokenizer.decode(made)


def post(url: str, path: str, **body: object) -> httpx.Response:
    return CLIENT.post(f"{url}/{path}", json={"model": "talk", "temperature": 0, **body}, timeout=60)


def events(response: httpx.Response) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def named(response: httpx.Response) -> list[dict[str, Any]]:
    """Return events, each of which has its type as its name."""
    pairs = [event.split("\n") for event in response.text.split("\n\n") if event]
    found = [json.loads(data.removeprefix("data: ")) for _, data in pairs]
    assert [name for name, _ in pairs] == [f"event: {event['type']}" for event in found]
    return found


def test_models_are_listed(url: str) -> None:
    found = httpx.get(f"{url}/models").json()
    assert [m["id"] for m in found["data"]] == ["talk"] and found["object"] == "list"
    assert httpx.get(f"{url}/models/talk").json()["object"] == "model"
    missing = httpx.get(f"{url}/models/other")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "model_not_found")


@pytest.mark.parametrize(
    ("more", "sampling"), [({}, None), ({"temperature": 1.5, "top_p": 0.9, "seed": 7}, Sampling(1.5, 0, 0.9, 7))]
)
def test_a_completion_is_that_of_the_generator(url: str, library: Path, more: Any, sampling: Sampling | None) -> None:
    expected = wanted(library, "1+2=", 8, sampling)
    found = post(url, "completions", prompt="1+2=", max_tokens=8, **more).json()
    assert (found["object"], found["choices"][0]["text"]) == ("text_completion", expected)
    assert found["usage"]["prompt_tokens"] == 4 and found["usage"]["completion_tokens"] <= 8
    assert post(url, "completions", prompt=[49, 43, 50, 61], max_tokens=8, **more).json()["choices"] == found["choices"]
    streamed = events(post(url, "completions", prompt="1+2=", max_tokens=8, stream=True, **more))
    assert "".join(e["choices"][0]["text"] for e in streamed) == expected
    counts = {name: found["timings"][name] for name in ("prompt_n", "cache_n", "predicted_n")}
    assert counts == {"prompt_n": 4, "cache_n": 0, "predicted_n": found["usage"]["completion_tokens"]}
    assert [e["timings"]["predicted_n"] for e in streamed if "timings" in e] == [counts["predicted_n"]]
    assert found["timings"]["prompt_ms"] > 0 and found["timings"]["predicted_per_second"] > 0
    assert [e["choices"][0]["finish_reason"] for e in streamed][-1] in ("stop", "length")


def test_each_prompt_gets_its_answers(url: str, library: Path) -> None:
    more = {"max_tokens": 6, "n": 2, "temperature": 1.5, "seed": 7}
    found = post(url, "completions", prompt=["1+2=", [51, 51]], **more).json()
    assert [choice["index"] for choice in found["choices"]] == [0, 1, 2, 3]
    expected = [wanted(library, text, 6, Sampling(1.5, seed=seed)) for text in ("1+2=", "33") for seed in (7, 8)]
    assert [choice["text"] for choice in found["choices"]] == expected
    assert found["usage"]["prompt_tokens"] == 6


def test_a_chat_is_rendered_by_the_models_template(url: str, library: Path) -> None:
    messages = [{"role": "system", "content": "0"}, {"role": "user", "content": [{"type": "text", "text": "12?"}]}]
    expected = wanted(library, "3:0;1:12?;2:", 6)
    found = post(url, "chat/completions", messages=messages, max_tokens=6).json()
    assert found["choices"][0]["message"] == {"role": "assistant", "content": expected}
    asked = {"stream": True, "stream_options": {"include_usage": True}, "max_completion_tokens": 6}
    streamed = events(post(url, "chat/completions", messages=messages, **asked))
    assert streamed[0]["choices"][0]["delta"]["role"] == "assistant"
    assert "".join(e["choices"][0]["delta"]["content"] for e in streamed[:-1]) == expected
    assert streamed[-1]["choices"] == [] and streamed[-1]["usage"] == found["usage"]
    assert {e["object"] for e in streamed} == {"chat.completion.chunk"}


def test_a_response_is_the_answer_of_a_chat(url: str, library: Path) -> None:
    expected = wanted(library, "3:0;1:12?;2:", 6)
    parts = [{"type": "input_text", "text": "1"}, {"type": "output_text", "text": "2?", "annotations": []}]
    asked: dict[str, Any] = {"instructions": "0", "max_output_tokens": 6, "metadata": {"a": "b"}}
    for given in ("12?", [{"role": "user", "content": parts}], [{"type": "message", "role": "user", "content": "12?"}]):
        found = post(url, "responses", input=given, **asked).json()
        (message,) = found["output"]
        assert (message["role"], message["content"][0]["text"]) == ("assistant", expected)
    assert (found["object"], found["metadata"], found["temperature"]) == ("response", {"a": "b"}, 0)
    chat = [{"role": "system", "content": "0"}, {"role": "user", "content": "12?"}]
    choice = post(url, "chat/completions", messages=chat, max_tokens=6).json()["choices"][0]
    cut = (found["status"], found["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert cut == (choice["finish_reason"] == "length") and found["status"] in ("completed", "incomplete")
    assert (found["usage"]["input_tokens"], found["usage"]["input_tokens_details"]) == (11, {"cached_tokens": 0})
    streamed = named(post(url, "responses", input="12?", stream=True, **asked))
    kinds = [e["type"].removeprefix("response.") for e in streamed if not e["type"].endswith("delta")]
    begun = ["created", "in_progress", "output_item.added", "content_part.added"]
    assert kinds == [*begun, "output_text.done", "content_part.done", "output_item.done", found["status"]]
    assert "".join(e["delta"] for e in streamed if e["type"] == "response.output_text.delta") == expected
    assert [e["sequence_number"] for e in streamed] == [*range(len(streamed))]
    last = streamed[-1]["response"]
    assert (last["status"], last["usage"], last["output"][0]["content"]) == (
        *(found["status"], found["usage"]),
        message["content"],
    )
    failed = named(post(url, "responses", input="12?", stream=True, logit_bias={"64": 1}))[-1]
    assert (failed["type"], failed["response"]["error"]["code"]) == ("response.failed", "invalid_prompt")


@pytest.mark.parametrize("rows", [False, True])
def test_beginnings_of_prompts_are_computed_once(tmp_path: Path, rows: bool) -> None:
    library = talking.library(tmp_path, row_lengths=rows)
    prompt = [49, 43, 50, 45] * 17
    answer = Generator(load(library, threads=1)).generate(prompt, 36)
    found: list[Any] = []
    for kept in (1 << 20, 0):
        with listening(library, prefix_cache=kept, max_context=110, grpc_port=None) as server:
            url = f"http://127.0.0.1:{server.port}/v1"
            for ids, most in ((prompt, 36), (prompt, 36), (prompt + answer, 4)):
                found.append(post(url, "completions", prompt=ids, max_tokens=most).json())
    texts = [one["choices"][0]["text"] for one in found]
    assert texts[:3] == texts[3:] and texts[0] == read_tokenizer(library).decode(answer)
    known = [one["usage"]["prompt_tokens_details"]["cached_tokens"] for one in found]
    assert known == [0, 64, 64 if rows else 96, 0, 0, 0]


def test_tokens_that_are_looked_up_change_no_answer(
    library: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    every, fed = talking.library(tmp_path, last_logits=False), list[int]()
    feed_all = Generator.feed_all

    def counted(self: Generator, ids: Sequence[int]) -> Array:
        fed.append(len(ids))
        return feed_all(self, ids)

    monkeypatch.setattr(Generator, "feed_all", counted)
    asked: list[dict[str, Any]] = [
        {"prompt": "1212121212", "max_tokens": 40},
        {"prompt": "1212121212", "max_tokens": 40, "temperature": 1.3, "seed": 5, "logprobs": 2},
        {"prompt": "11111", "max_tokens": 7, "stop": ["1", "2"]},
    ]
    found: list[list[Any]] = []
    for path, ahead in ((library, 3), (every, 3)):
        with listening(path, look_up=ahead, max_context=110, grpc_port=None) as server:
            url = f"http://127.0.0.1:{server.port}/v1"
            found.append([post(url, "completions", **one).json() for one in asked])
    assert [one["choices"] for one in found[0]] == [one["choices"] for one in found[1]]
    tokens = sum(one["usage"]["completion_tokens"] for one in found[1])
    assert max(fed) == 4 and len(fed) < tokens - len(asked)  # some proposals were right
    assert "talk: no tokens are looked up: it gives the last logits only (--all-logits)" in caplog.messages


def test_texts_that_end_an_answer_are_left_out(url: str, library: Path) -> None:
    whole = wanted(library, "9", 12)
    stop = whole[3:5]
    expected = whole[: whole.index(stop)]
    found = post(url, "completions", prompt="9", max_tokens=12, stop=["nothing", stop]).json()["choices"][0]
    assert (found["text"], found["finish_reason"]) == (expected, "stop")
    streamed = events(post(url, "completions", prompt="9", max_tokens=12, stop=stop, stream=True))
    assert "".join(e["choices"][0]["text"] for e in streamed) == expected


def test_requests_at_once_get_their_own_answers(url: str, library: Path) -> None:
    prompts = ["1", "22", "333", "4+4"]
    expected = [wanted(library, p, 10) for p in prompts]
    found: dict[str, str] = {}

    def ask(prompt: str) -> None:
        found[prompt] = post(url, "completions", prompt=prompt, max_tokens=10).json()["choices"][0]["text"]

    threads = [threading.Thread(target=ask, args=(p,)) for p in prompts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[p] for p in prompts] == expected


@pytest.mark.parametrize(
    ("path", "body", "status", "field", "text"),
    [
        ("completions", {"prompt": "1", "max_tokens": 0}, 400, "max_tokens", "an integer from 1"),
        ("completions", {"prompt": "1", "max_tokens": 200}, 400, "max_tokens", "at most 99 behind 1 tokens"),
        ("completions", {"prompt": "1" * 200}, 400, "prompt", "1 to 99 tokens"),
        ("completions", {"prompt": ""}, 400, "prompt", "got 0 tokens"),
        ("completions", {"prompt": ["1", []]}, 400, "prompt", "a text, a list of tokens, or a list of them"),
        ("completions", {"prompt": ["1"] * 6, "n": 3}, 400, "prompt", "for 16 answers at most, got 6 with 3 each"),
        ("completions", {"prompt": [1, 1 << 40]}, 400, None, "tokens must be 0 to 63"),
        ("completions", {"prompt": "1", "temperature": 3}, 400, "temperature", "a number from 0 to 2"),
        ("completions", {"prompt": "1", "top_p": 0}, 400, "top_p", "a number from 1e-06 to 1"),
        ("completions", {"prompt": "1", "n": 0}, 400, "n", "an integer from 1"),
        ("completions", {"prompt": "1", "logprobs": 6}, 400, "logprobs", "an integer from 0"),
        ("completions", {"prompt": "1", "logit_bias": {"64": 1}}, 400, None, "tokens must be 0 to 63, got 64"),
        ("completions", {"prompt": "1", "logit_bias": {"x": 1}}, 400, "logit_bias", "numbers from -100 to 100"),
        ("completions", {"prompt": "1", "logit_bias": {"1": 101}}, 400, "1", "a number from -100 to 100"),
        ("completions", {"prompt": "1", "stop": [""]}, 400, "stop", "1 to 4 texts"),
        ("completions", {"prompt": "1", "stream": 1}, 400, "stream", "true or false"),
        ("completions", {"prompt": "1", "model": "none"}, 404, None, "model 'none'"),
        ("chat/completions", {"messages": []}, 400, "messages", "a list of 1 to 4096 messages"),
        ("chat/completions", {"messages": [{"role": "user"}]}, 400, "messages[0].content", "a text"),
        ("chat/completions", {"messages": [{"role": "", "content": "1"}]}, 400, "messages[0].role", "a text"),
        (
            "chat/completions",
            {"messages": [{"role": "user", "content": "1"}], "tools": [1]},
            400,
            "tools[0]",
            "an object",
        ),
        ("responses", {}, 400, "input", "a text, or a list of 1 to 4096 items"),
        ("responses", {"input": [{"role": "user"}]}, 400, "input[0].content", "a text, or parts of type input_text"),
        ("responses", {"input": [{"type": "reasoning"}]}, 400, "input[0].type", "message or function_call or"),
        ("responses", {"input": [{"type": "function_call"}]}, 400, "input[0].call_id", "a text"),
        ("responses", {"input": "1", "instructions": 1}, 400, "instructions", "a text"),
        ("responses", {"input": "1", "max_output_tokens": 200}, 400, "max_output_tokens", "at most 94 behind 6 tokens"),
        (
            "responses",
            {"input": "1", "previous_response_id": "r"},
            400,
            "previous_response_id",
            "no answers are stored",
        ),
        ("responses", {"input": "1", "store": True}, 400, "store", "false or left out"),
        ("responses", {"input": "1", "max_tokens": 1}, 400, "max_tokens", "left out"),
        ("responses", {"input": "1", "text": {"format": {"type": "x"}}}, 400, "text.format", "of type text"),
        ("responses", {"input": "1", "tools": [{"type": "web_search"}]}, 400, "tools[0]", "a function with a name"),
    ],
)
def test_wrong_requests(url: str, path: str, body: Any, status: int, field: str | None, text: str) -> None:
    found = post(url, path, **body)
    error = found.json()["error"]
    assert (found.status_code, error["param"]) == (status, field)
    assert text in error["message"]
    assert error["type"] == ("not_found_error" if status == 404 else "invalid_request_error")
    assert httpx.post(f"{url}/{path}", content=b"{").status_code == 400


# By field: a value that would change an answer, and one that changes nothing; null changes nothing in any.
OTHERS: dict[str, tuple[object, object]] = {
    "best_of": (2, 1.0),
    "response_format": ({"type": "xml"}, {"type": "text"}),
    "n": (17, 1),
    "logit_bias": ([1], {}),
    "min_p": (2, 0),
    "repetition_penalty": (0, 1),
    "presence_penalty": (3, 0),
    "frequency_penalty": (-3, 0.0),
    "echo": (True, False),
    "top_logprobs": (1, 0),
    "suffix": ("x", ""),
    "tool_choice": ("required", "auto"),
    "modalities": (["text", "audio"], ["text"]),
    "min_tokens": (5, 0),
    "ignore_eos": (True, False),
    "stop_token_ids": ([3], []),
    "skip_special_tokens": (False, True),
    "use_beam_search": (True, False),
    "top_a": (0.5, None),
    "typical_p": (0.5, None),
    "mirostat": (2, None),
    "guided_json": ({"type": "object"}, None),
    "guided_regex": ("[0-9]", None),
    "guided_choice": (["a"], None),
    "prompt_logprobs": (1, None),
    "reasoning_effort": ("low", None),
    "chat_template": ("{{ 1 }}", None),
    "echo_": (True, None),
    "messages": ([{"role": "user", "content": "1"}], None),
    "user": (None, "me"),
    "metadata": (None, {"a": "b"}),
    "store": (None, True),
    "stream_options": ({"continuous_usage_stats": True}, {"include_obfuscation": False}),
}


def test_fields_that_would_change_an_answer_are_refused(url: str) -> None:
    plain = post(url, "completions", prompt="1", max_tokens=2).json()["choices"]
    for field, (changing, neutral) in OTHERS.items():
        for value in (neutral, None):
            found = post(url, "completions", prompt="1", max_tokens=2, **{field: value})
            assert (found.status_code, found.json().get("choices")) == (200, plain), field
        if changing is not None:
            found = post(url, "completions", prompt="1", max_tokens=2, **{field: changing})
            assert found.status_code == 400, field
            assert found.json()["error"]["param"].split(".")[0] == field
    message = {"role": "user", "content": "1"}
    for more in ({"name": "me"}, {"tool_calls": [{}]}, {"tool_call_id": "1"}):
        assert post(url, "chat/completions", messages=[message | more]).status_code == 400
    sent_back = message | {"refusal": None, "tool_calls": [], "annotations": []}
    assert post(url, "chat/completions", messages=[sent_back], max_tokens=1).status_code == 200


@pytest.mark.parametrize("half", [b"\\ud83d", b"\\ude00 x", b"\xed\xa0\xbd"])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("completions", b'{"model": "talk", "max_tokens": 1, "prompt": "%s"}'),
        ("completions", b'{"model": "talk", "max_tokens": 1, "prompt": ["%s"]}'),
        ("completions", b'{"model": "talk%s", "max_tokens": 1, "prompt": "1"}'),
        ("completions", b'{"model": "talk", "max_tokens": 1, "prompt": "1", "stop": "%s"}'),
        ("completions", b'{"model": "talk", "max_tokens": 1, "prompt": "1", "stop": ["a", "%s"]}'),
        ("completions", b'{"model": "talk", "max_tokens": 1, "prompt": "1", "%s": null}'),
        ("completions", b'{"model": "talk", "max_tokens": "%s", "prompt": "1"}'),
        ("chat/completions", b'{"model": "talk", "max_tokens": 1, "messages": [{"role": "%s", "content": "1"}]}'),
        ("chat/completions", b'{"model": "talk", "max_tokens": 1, "messages": [{"role": "user", "content": "%s"}]}'),
        (
            "chat/completions",
            b'{"model": "talk", "messages": [{"role": "user", "content": [{"type": "text", "text": "%s"}]}]}',
        ),
    ],
)
def test_halves_of_surrogate_pairs_are_no_texts(url: str, path: str, body: bytes, half: bytes) -> None:
    found = httpx.post(f"{url}/{path}", content=body % half, timeout=60)
    assert found.status_code == 400
    assert "half of a surrogate pair" in found.json()["error"]["message"]


def test_a_client_that_goes_frees_its_place(library: Path) -> None:
    with listening(library, sequences=1, max_context=100_000, grpc_port=None) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        long = {"model": "talk", "prompt": "1", "max_tokens": 100, "stream": True, "temperature": 0}
        for _ in range(3):
            with httpx.stream("POST", f"{url}/completions", json=long, timeout=60) as response:
                next(response.iter_raw())
        begin = time.monotonic()
        assert post(url, "completions", prompt="1", max_tokens=2).status_code == 200
        assert time.monotonic() - begin < 30


def test_too_many_requests_and_tokens_of_the_server(library: Path) -> None:
    with listening(library, sequences=1, queue=1, token="secret", grpc_port=None) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        refused = httpx.get(f"{url}/models")
        assert (refused.status_code, refused.json()["error"]["type"]) == (401, "authentication_error")
        head = {"authorization": "Bearer secret"}
        assert httpx.get(f"{url}/models", headers=head).status_code == 200
        body = {"model": "talk", "prompt": "1", "max_tokens": 120, "temperature": 0}
        codes: list[int] = []

        def ask() -> None:
            codes.append(httpx.post(f"{url}/completions", json=body, headers=head, timeout=60).status_code)

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(codes) <= {200, 429} and codes.count(200) >= 2


def test_a_stream_that_may_not_wait_gets_the_status(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AdmissionQueue, "_waiting", property(lambda _: 2, lambda *_: None), raising=False)
    refused = post(url, "completions", prompt="1", max_tokens=2, stream=True)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")


def test_an_answer_has_a_time(library: Path) -> None:
    with listening(library, answer_timeout=0.001, grpc_port=None) as server:
        found = post(f"http://127.0.0.1:{server.port}/v1", "completions", prompt="1", max_tokens=120)
        assert (found.status_code, found.json()["error"]["type"]) == (504, "server_error")
        assert "an answer must end in 0.001 s" in found.json()["error"]["message"]


def test_other_models_are_no_language_models(tmp_path: Path) -> None:
    libraries.library(DIGITS, tmp_path / "digits.so")
    with listening(tmp_path / "digits.so", grpc_port=None) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        assert httpx.get(f"{url}/models").json()["data"] == []
        found = post(url, "completions", prompt="1", model="digits")
        assert found.status_code == 400 and "must be a language model" in found.json()["error"]["message"]
