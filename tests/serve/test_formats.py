"""Answers with a form: JSON, schemas, patterns, grammars, calls; probabilities, penalties, several answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from aot.runtime import Generator, Sampling, load
from aot.serve.openai.token_sampler import SamplingRules, TokenSampler
from aot.text.tokenizers.tokenizer import read_tokenizer
from tests.serve.conftest import listening
from tests.text.talking import Writing, compiled

pytest.importorskip("llguidance")

TOOL = {"name": "f", "parameters": {"type": "object", "properties": {"x": {"$ref": "#/$defs/d"}}, "required": ["x"]}}
TOOL["parameters"] |= {"additionalProperties": False, "$defs": {"d": {"type": "integer", "minimum": 0, "maximum": 9}}}
TOOLS = [{"type": "function", "function": TOOL}, {"type": "function", "function": {"name": "g"}}]
ASKED = [{"role": "user", "content": "1"}]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(Writing("qwen2", "Q8_0", words=260), tmp_path_factory.mktemp("formats"), "write")


@pytest.fixture(scope="module")
def url(library: Path) -> Iterator[str]:
    with listening(library, sequences=3, grpc_port=None) as server:
        yield f"http://127.0.0.1:{server.port}/v1"


def post(url: str, path: str, status: int = 200, **body: object) -> Any:
    body = {"model": "write", "temperature": 1, "max_tokens": 400, **body}
    found = httpx.post(f"{url}/{path}", json=body, timeout=60)
    assert found.status_code == status, found.text
    return found.json()


def events(url: str, path: str, **body: object) -> list[dict[str, Any]]:
    body = {"model": "write", "temperature": 0, "max_tokens": 40, "stream": True, **body}
    lines = httpx.post(f"{url}/{path}", json=body, timeout=60).text.splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]


WORD = {"type": "string", "maxLength": 6}
SCHEMAS: list[tuple[dict[str, Any], Any]] = [
    ({"type": "integer", "minimum": -5, "maximum": 300}, lambda v: isinstance(v, int) and -5 <= v <= 300),
    ({"enum": ["red", "green", 3, None]}, lambda v: v in ("red", "green", 3, None)),
    ({"type": "boolean"}, lambda v: isinstance(v, bool)),
    (WORD, lambda v: len(v) <= 6),
    ({"type": "string", "pattern": "^[a-c]{2,4}$"}, lambda v: re.fullmatch("[a-c]{2,4}", v)),
    ({"type": "string", "format": "date"}, lambda v: re.fullmatch(r"\d{4}-\d\d-\d\d", v)),
    ({"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3}, lambda v: 1 <= len(v) <= 3),
    ({"anyOf": [{"const": 1}, {"const": "one"}]}, lambda v: v in (1, "one")),
    (
        {
            "type": "object",
            "properties": {"a": WORD, "b": {"type": "array", "items": {"$ref": "#/$defs/p"}, "maxItems": 2}},
            "required": ["a", "b"],
            "additionalProperties": False,
            "$defs": {"p": {"type": "object", "properties": {"x": {"enum": [1, 2]}}, "additionalProperties": False}},
        },
        lambda v: v.keys() == {"a", "b"} and all(p in ({}, {"x": 1}, {"x": 2}) for p in v["b"]),
    ),
]


@pytest.mark.parametrize(("schema", "holds"), SCHEMAS, ids=[json.dumps(s)[:40] for s, _ in SCHEMAS])
def test_answers_follow_a_schema(url: str, schema: dict[str, Any], holds: Any) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}
    found = post(url, "chat/completions", messages=ASKED, response_format=form, n=4, seed=3)["choices"]
    assert [choice["finish_reason"] for choice in found] == ["stop"] * 4
    assert all(holds(json.loads(choice["message"]["content"])) for choice in found)


def test_answers_follow_a_regular_expression_and_grammars(url: str) -> None:
    for field, text in (
        ("regex", "[0-9]{2}-(yes|no)"),
        ("grammar", 'root ::= [0-9] [0-9] "-" ("yes" | "no")'),
        ("grammar", 'start: /[0-9]{2}/ "-" ("yes" | "no")'),
    ):
        found = [post(url, "completions", prompt="1", seed=n, **{field: text})["choices"][0]["text"] for n in range(4)]
        assert all(re.fullmatch("[0-9]{2}-(yes|no)", text) for text in found)
    begun = post(url, "completions", prompt="1", response_format={"type": "json_object"}, max_tokens=3)["choices"][0]
    assert begun["text"][0] == "{" and (begun["finish_reason"] == "length" or json.loads(begun["text"]) == {})


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"regex": "[0-"}, "regex"),
        ({"regex": ""}, "a text"),
        ({"grammar": "x y ("}, "GBNF"),
        ({"grammar": "start: " + "(" * 20_000 + '"a"' + ")" * 20_000}, "too deeply nested"),
        ({"regex": "(" * 20_000 + ")" * 20_000}, "regex"),
        ({"regex": "a", "grammar": "b"}, "regex: must be left out beside another form"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": 3}}}}, "array of strings"),
        ({"response_format": {"type": "json_schema"}}, "an object"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"$ref": "http://a/b"}}}}, "a/b"),
    ],
)
def test_wrong_grammars_are_refused(url: str, body: dict[str, Any], text: str) -> None:
    assert text in post(url, "completions", 400, prompt="1", **body)["error"]["message"]


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "f"}}])
def test_a_call_that_must_be_made(url: str, choice: Any) -> None:
    tools = TOOLS[:1]
    found = post(url, "chat/completions", messages=ASKED, tools=tools, tool_choice=choice)["choices"][0]
    (call,) = found["message"]["tool_calls"]
    assert (found["finish_reason"], found["message"]["content"]) == ("tool_calls", None)
    assert (call["type"], call["function"]["name"]) == ("function", "f")
    assert json.loads(call["function"]["arguments"]).keys() == {"x"}
    streamed = events(url, "chat/completions", messages=ASKED, tools=tools, tool_choice=choice, max_tokens=200)
    (told,) = [d["tool_calls"] for e in streamed if "tool_calls" in (d := e["choices"][0]["delta"])]
    assert told[0]["index"] == 0 and json.loads(told[0]["function"]["arguments"]).keys() == {"x"}
    assert streamed[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert "".join(e["choices"][0]["delta"].get("content", "") for e in streamed) == ""
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    back = [*ASKED, said, {"role": "tool", "tool_call_id": call["id"], "content": "7"}]
    assert post(url, "chat/completions", messages=back, tools=tools, max_tokens=2)["usage"]["completion_tokens"] <= 2


def test_a_response_calls_functions_and_follows_a_schema(url: str) -> None:
    tools: list[Any] = [{"type": "function", **TOOL, "strict": True}]
    choice = {"type": "function", "name": "f"}
    asked: dict[str, Any] = {"max_tokens": None, "max_output_tokens": 200, "tools": tools, "tool_choice": choice}
    found = post(url, "responses", input="1", **asked)
    (call,) = found["output"]
    assert (call["type"], call["name"], found["tools"], found["status"]) == ("function_call", "f", tools, "completed")
    assert json.loads(call["arguments"]).keys() == {"x"}
    streamed = events(url, "responses", input="1", **asked)
    kinds = ["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"]
    assert [e["type"].removeprefix("response.") for e in streamed][2:] == [*kinds, "completed"]
    assert streamed[-1]["response"]["output"] == [streamed[-2]["item"]]
    back = [*ASKED, call, call, {"type": "function_call_output", "call_id": call["call_id"], "output": "7"}]
    said = {"id": "c", "type": "function", "function": {"name": "f", "arguments": call["arguments"]}}
    chat: list[Any] = [*ASKED, {"role": "assistant", "tool_calls": [said, said]}, {"role": "tool", "content": "7"}]
    counts = post(url, "responses", input=back, max_tokens=None, max_output_tokens=1)["usage"]
    expected = post(url, "chat/completions", messages=chat, max_tokens=1)["usage"]["prompt_tokens"]
    assert counts["input_tokens"] == expected
    form = {"format": {"type": "json_schema", "name": "s", "schema": {"enum": ["red", 3]}}}
    (message,) = post(url, "responses", input="1", text=form, max_tokens=None)["output"]
    assert json.loads(message["content"][0]["text"]) in ("red", 3)


def test_wrong_tools_are_refused(url: str) -> None:
    for body, field in (
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0]"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "h"}}}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": "required", "regex": "a"}, "tool_choice"),
    ):
        assert post(url, "chat/completions", 400, messages=ASKED, **body)["error"]["param"] == field


def test_probabilities_are_those_of_the_logits(url: str, library: Path) -> None:
    found = post(url, "completions", prompt="12", temperature=0, max_tokens=3, logprobs=2)["choices"][0]["logprobs"]
    generator, words = Generator(load(library, threads=1)), read_tokenizer(library)
    logits, offset = generator.feed(words.encode("12")).astype(np.float64), 0
    for n in range(3):
        logs = logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()
        token = int(logs.argmax())
        assert found["token_logprobs"][n] == pytest.approx(logs[token])
        assert max(found["top_logprobs"][n].values()) == pytest.approx(logs[token])
        assert found["text_offset"][n] == offset
        offset += len(found["tokens"][n])
        logits = generator.feed([token]).astype(np.float64)
    chat = post(url, "chat/completions", messages=ASKED, logprobs=True, top_logprobs=3, max_tokens=2)["choices"][0]
    for one in chat["logprobs"]["content"]:
        top = [other["logprob"] for other in one["top_logprobs"]]
        assert len(top) == 3 and top == sorted(top, reverse=True) and one["logprob"] <= top[0]


def test_biases_and_least_probabilities_change_the_choice(url: str) -> None:
    def tokens(**more: object) -> list[str]:
        more = {"temperature": 0, "max_tokens": 12, "logprobs": 0, **more}
        return post(url, "completions", prompt="12", **more)["choices"][0]["logprobs"]["tokens"]

    assert tokens(logit_bias={"65": 100}, max_tokens=4) == ["A"] * 4
    assert tokens(min_p=1, temperature=1) == tokens()
    assert tokens(temperature=1, seed=1) != tokens(temperature=1, seed=2)


@pytest.mark.parametrize(
    ("rules", "tokens"),
    [
        ({}, [0, 0, 0, 0]),
        ({"presence_penalty": 1.0}, [0, 1, 0, 0]),
        ({"frequency_penalty": 1.0}, [0, 1, 0, 2]),
        ({"repetition_penalty": 2.0}, [0, 1, 0, 0]),  # token 2 lies in the prompt
        ({"bias": {2: 1.5}}, [2, 2, 2, 2]),
    ],
)
def test_penalties_change_the_choice(rules: dict[str, Any], tokens: list[int]) -> None:
    sampler = TokenSampler(SamplingRules(Sampling(), **rules), [2])
    logits = np.array([2.0, 1.25, 1.0, -1.0], np.float32)
    assert [sampler.choose(logits).token for _ in range(4)] == tokens


def test_several_answers_have_seeds_of_their_own(url: str) -> None:
    body = {"prompt": "12", "max_tokens": 8}
    found = post(url, "completions", n=3, seed=5, **body)
    texts = [choice["text"] for choice in found["choices"]]
    assert texts == [post(url, "completions", seed=5 + n, **body)["choices"][0]["text"] for n in range(3)]
    assert [choice["index"] for choice in found["choices"]] == [0, 1, 2]
    streamed = events(url, "completions", n=3, seed=5, temperature=1, **body)
    parts = [e["choices"][0] for e in streamed]
    assert ["".join(p["text"] for p in parts if p["index"] == n) for n in range(3)] == texts
