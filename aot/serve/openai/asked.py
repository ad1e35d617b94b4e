"""Requests of OpenAI's API, checked: the fields that are known, their ranges, and those that are refused."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import cast

from aot.codegen.dataclass import dataclass
from aot.runtime.errors import UsageError
from aot.runtime.generation.sampling import Sampling

MOST_STOPS, MOST_STOP = 4, 256  # texts that end an answer, and their characters
MOST_MESSAGES = 4096
DEFAULT_TOKENS = 16  # of a completion, as OpenAI has it
# Fields that are followed; `prompt` and `messages` each in one of the two endpoints.
FOLLOWED = (
    *("model", "max_tokens", "max_completion_tokens", "temperature", "top_p", "top_k", "seed", "stop", "stream"),
    "stream_options",
)
# Fields that no answer depends on: whose request it is, how it is stored, cached and billed, and when its turn comes.
WITHOUT_EFFECT = (
    *("user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"),
    *("parallel_tool_calls", "prediction", "request_id", "priority"),
)
# Fields of OpenAI and of other servers that may have one of these values, which ask for what is done anyway. All other
# fields must be null or left out: they would be answered as if they had not been asked for.
NEUTRAL: dict[str, tuple[object, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "echo": (False,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "logit_bias": ({},),
    "suffix": ("",),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "min_p": (0,),
    "min_tokens": (0,),
    "repetition_penalty": (1,),
    "length_penalty": (1,),
    "ignore_eos": (False,),
    "use_beam_search": (False,),
    "include_stop_str_in_output": (False,),
    "stop_token_ids": ([],),
    "skip_special_tokens": (True,),
    "spaces_between_special_tokens": (True,),
    "add_generation_prompt": (True,),
    "continue_final_message": (False,),
}
NO_TOOLS: dict[str, tuple[object, ...]] = {"tool_calls": ([],), "annotations": ([],)}  # of messages sent back


class FieldError(UsageError):
    """A field of a request is wrong; `field` names it."""

    def __init__(self, field: str, rule: str, got: object) -> None:
        super().__init__(f"{field}: must be {rule}, got {str(got)[:60]}")
        self.field = field


@dataclass(frozen=True, slots=True)
class Asked:
    """A request. `prompt`: a text or tokens; `messages`: of a chat; `tokens`: at most, None: as many as fit."""

    model: str
    prompt: str | list[int] | None
    messages: list[dict[str, str]] | None
    tokens: int | None
    sampling: Sampling
    stop: tuple[str, ...]
    stream: bool
    usage: bool  # a stream ends with the numbers of tokens


def asked_of(tree: Mapping[str, object], *, chat: bool) -> Asked:
    """Return a request; FieldError for a field that is missing, of another type or range, or not supported."""
    known = (*FOLLOWED, *WITHOUT_EFFECT, "messages" if chat else "prompt")
    _check_others("", tree, known, NEUTRAL)
    model = tree.get("model")
    if not isinstance(model, str):
        raise FieldError("model", "the name of a model", model)
    messages = _messages(tree.get("messages")) if chat else None
    stream = _flag(tree, "stream")
    return Asked(
        model,
        None if chat else _prompt(tree.get("prompt")),
        messages,
        _tokens(tree, chat),
        Sampling(
            _real(tree, "temperature", 1.0, 0, 2),
            _whole(tree, "top_k", 0, 0, 1 << 31),
            _real(tree, "top_p", 1.0, 1e-6, 1),
            _whole(tree, "seed", 0, 0, 1 << 63),
        ),
        _stops(tree.get("stop")),
        stream,
        _usage(tree.get("stream_options")),
    )


def _check_others(
    where: str, tree: Mapping[str, object], known: Collection[str], neutral: Mapping[str, tuple[object, ...]]
) -> None:
    """Raise FieldError for a field that is not known, unless it is null or has a value that changes nothing."""
    for field, value in tree.items():
        allowed = neutral.get(field, ())
        same = any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in allowed)
        if field not in known and value is not None and not same:
            rule = f"{json.dumps(allowed[0])} or left out" if allowed else "left out"
            raise FieldError(f"{where}{field[:60]}", f"{rule} (others are not supported)", json.dumps(value))


def _usage(value: object) -> bool:
    if value is None:
        return False
    if not isinstance(value, dict):
        raise FieldError("stream_options", "an object", json.dumps(value))
    options = cast("dict[str, object]", value)
    _check_others("stream_options.", options, ("include_usage", "include_obfuscation"), {})
    return _flag(options, "include_usage")


def _tokens(tree: Mapping[str, object], chat: bool) -> int | None:
    field = "max_completion_tokens" if tree.get("max_completion_tokens") is not None else "max_tokens"
    if tree.get(field) is None:
        return None if chat else DEFAULT_TOKENS
    return _whole(tree, field, 0, 1, 1 << 31)


def _prompt(value: object) -> str | list[int]:
    if isinstance(value, str):
        return value
    found = _list(value)
    if len(found) == 1 and isinstance(found[0], str):
        return found[0]
    if not found or not all(isinstance(n, int) and not isinstance(n, bool) for n in found):
        raise FieldError("prompt", "one text, or a list of tokens", json.dumps(value))
    return cast("list[int]", found)


def _messages(value: object) -> list[dict[str, str]]:
    found = _list(value)
    if not 1 <= len(found) <= MOST_MESSAGES:
        raise FieldError("messages", f"a list of 1 to {MOST_MESSAGES} messages", f"{len(found)} of them")
    return [_message(n, one) for n, one in enumerate(found)]


def _message(n: int, value: object) -> dict[str, str]:
    one = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    role, content = one.get("role"), one.get("content")
    if not isinstance(role, str) or not role:
        raise FieldError(f"messages[{n}].role", "a text", role)
    _check_others(f"messages[{n}].", one, ("role", "content"), NO_TOOLS)
    if isinstance(content, list):
        content = _parts(n, cast("list[object]", content))
    if not isinstance(content, str):
        raise FieldError(f"messages[{n}].content", "a text, or parts of type text", content)
    return {"role": role, "content": content}


def _parts(n: int, parts: list[object]) -> str:
    texts: list[str] = []
    for part in parts:
        one = cast("dict[str, object]", part) if isinstance(part, dict) else {}
        text = one.get("text")
        if one.get("type") != "text" or not isinstance(text, str):
            raise FieldError(f"messages[{n}].content", "a text, or parts of type text", one.get("type"))
        _check_others(f"messages[{n}].content.", one, ("type", "text"), NO_TOOLS)
        texts.append(text)
    return "".join(texts)


def _stops(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    found = [value] if isinstance(value, str) else _list(value)
    texts = [text for text in found if isinstance(text, str) and 0 < len(text) <= MOST_STOP]
    if len(texts) != len(found) or not 1 <= len(texts) <= MOST_STOPS:
        raise FieldError("stop", f"1 to {MOST_STOPS} texts of 1 to {MOST_STOP} characters", json.dumps(value))
    return tuple(texts)


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _flag(tree: Mapping[str, object], field: str) -> bool:
    value = tree.get(field)
    if value is not None and not isinstance(value, bool):
        raise FieldError(field, "true or false", value)
    return bool(value)


def _whole(tree: Mapping[str, object], field: str, default: int, least: int, most: int) -> int:
    value = tree.get(field)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < most:
        raise FieldError(field, f"an integer from {least}", value)
    return value


def _real(tree: Mapping[str, object], field: str, default: float, least: float, most: float) -> float:
    value = tree.get(field)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise FieldError(field, f"a number from {least:g} to {most:g}", value)
    return float(value)
