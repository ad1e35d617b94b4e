"""Bodies that clients of a server may send: right ones with fields, values and bytes changed."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

PATHS = ("/v1/completions", "/v1/chat/completions", "/v1/responses", "/v2/models/{infer}/infer")
CHAT = {
    "messages": [{"role": "user", "content": "1+2="}, {"role": "assistant", "content": [{"type": "text", "text": "3"}]}]
}
ITEMS: dict[str, Any] = {
    "model": "{language}",
    "instructions": "1",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "1+2="}]},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "3"},
    ],
    "max_output_tokens": 2,
    "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
    "text": {"format": {"type": "text"}},
}
PLAIN: dict[str, Any] = {
    "model": "{language}",
    "max_tokens": 2,
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": 3,
    "seed": 1,
    "stop": ["9"],
    "stream": False,
    "stream_options": {"include_usage": True},
}
INFER: dict[str, Any] = {
    "id": "1",
    "parameters": {"binary_data_output": False},
    "inputs": [{"name": "{input}", "shape": "{shape}", "datatype": "FP32", "data": "{data}", "parameters": {}}],
    "outputs": [{"name": "{output}", "parameters": {"binary_data": False}}],
}
EMBEDDINGS = "/v1/embeddings"
EMBED: dict[str, Any] = {"model": "{encoder}", "input": ["w5 w40", "w7"], "encoding_format": "float", "user": "me"}
RERANK = "/v1/rerank"
ORDER: dict[str, Any] = {
    "model": "{ranker}",
    "query": "w5 w40",
    "documents": ["w7", {"text": "w9 w8"}],
    "top_n": 2,
    "return_documents": True,
}
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3.5, 1e308, -1e-300, 2**31, 2**63, 2**64, 10**400, float("nan"), float("inf")),
    *(
        "",
        "a",
        "\ud83d",
        "\udcff",
        "\0",
        "\U0001f600",
        "1" * 10_000,
        "../../etc/passwd",
        "{{ 7 * 7 }}",
        "{%",
        "<|im_end|>",
    ),
    *(
        [],
        {},
        [[]],
        [{}],
        [None],
        [1] * 1000,
        ["a"] * 1000,
        [[1, 2], [3]],
        [-1],
        [2**70],
        [0.5],
        ["a", 1],
        {"a": {"b": []}},
    ),
)
FIELDS = (
    *(
        "n",
        "min_p",
        "logprobs",
        "echo",
        "best_of",
        "logit_bias",
        "tools",
        "response_format",
        "guided_json",
        "user",
        "x" * 500,
    ),
    *(
        "messages",
        "prompt",
        "suffix",
        "__proto__",
        "__class__",
        "sequence_id",
        "shared_memory_region",
        "classification",
    ),
    *("binary_data_size", "binary_data", "timeout", "priority"),
)


def bodies(seed: int, names: dict[str, Any], paths: tuple[str, ...] = PATHS) -> Iterator[tuple[str, bytes]]:
    """Yield `paths` and bodies without end.

    `names`: the language model or the encoder, and model, input, shape and output to infer.
    """
    chance = random.Random(seed)
    while True:
        path = chance.choice(paths)
        whole = copy.deepcopy(_right(path))
        whole = _named(whole, copy.deepcopy(names))
        for _ in range(chance.choice((0, 1, 1, 1, 2, 3))):
            _change(whole, chance)
        text = json.dumps(whole).encode()
        if chance.random() < 0.15:
            text = _cut(text, chance)
        yield path.format(infer=names.get("infer")), text


def _right(path: str) -> dict[str, Any]:
    """Return a body that a path answers."""
    if "infer" in path:
        return INFER
    if path == EMBEDDINGS:
        return EMBED
    if path == RERANK:
        return ORDER
    if "responses" in path:
        return ITEMS
    return PLAIN | (CHAT if "chat" in path else {"prompt": "1+2="})


def _named(value: Any, names: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {k: _named(v, names) for k, v in value.items()}
    if isinstance(value, list):
        return [_named(v, names) for v in value]
    return names.get(value[1:-1], value) if isinstance(value, str) and value.startswith("{") else value


def _change(whole: Any, chance: random.Random) -> None:
    """Change, remove, add or repeat something anywhere."""
    places = list(_places(whole))
    parent, key = chance.choice(places)
    kind = chance.randrange(5)
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent, dict):
        parent[chance.choice(FIELDS)] = chance.choice(VALUES)
    elif kind == 2 and isinstance(parent, list):
        parent.extend(copy.deepcopy(parent[key]) for _ in range(chance.choice((1, 3, 500))))
    elif kind == 3:
        parent[key] = [parent[key]] if chance.random() < 0.5 else {"a": parent[key]}
    else:
        parent[key] = copy.deepcopy(chance.choice(VALUES))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(items):
        yield value, key
        if isinstance(inner, dict | list) and len(inner) < 50:
            yield from _places(inner)


def _cut(text: bytes, chance: random.Random) -> bytes:
    """Cut, repeat, nest or overwrite bytes."""
    kind, at = chance.randrange(5), chance.randrange(len(text))
    if kind == 0:
        return text[:at]
    if kind == 1:
        return text[:at] + bytes([chance.randrange(256)]) + text[at + 1 :]
    if kind == 2:
        return b"[" * 50_000 + text
    if kind == 3:
        return text + text
    return text.decode().encode(chance.choice(("utf-16", "utf-32", "utf-8-sig")))
