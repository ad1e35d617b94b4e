"""Requests to `/v1/responses`. A conversation is a list of items: messages, calls of functions, their results."""

from __future__ import annotations

import json
from collections.abc import Mapping

from aot.serve.openai.completion_request import (
    COMMON,
    WITHOUT_EFFECT,
    CompletionRequest,
    grammar_of,
    model_of,
    sampling_rules_of,
    schema_of,
    start_of,
    stops_of,
    tokens_of,
    usage_of,
)
from aot.serve.openai.fields import FieldError, check_others, flag_of, list_of, object_of
from aot.serve.openai.messages import ASSISTANT, MAX_MESSAGES, TOOL, call_of, called_of, text_of, tools_of

FOLLOWED = ("input", "instructions", "max_output_tokens", "tools", "tool_choice", "text")  # and the common ones
NEUTRAL: dict[str, tuple[object, ...]] = {  # values that ask for what is done anyway
    "store": (False,),
    "background": (False,),
    "truncation": ("disabled",),
    "include": ([], ["reasoning.encrypted_content"]),
    "top_logprobs": (0,),
}
KEPT = ("previous_response_id", "conversation")  # fields that name conversations of before
TEXTS = ("input_text", "output_text")
MESSAGE, CALL, RESULT = "message", "function_call", "function_call_output"
# Fields of each type of item that are followed; and fields of all items, which items of an answer have, too.
FIELDS = {MESSAGE: ("role", "content"), CALL: ("call_id", "name", "arguments"), RESULT: ("call_id", "output")}
SENT_BACK = ("type", "id", "status")


def responses_request_of(tree: Mapping[str, object]) -> CompletionRequest:
    """Return a request; FieldError for a field that is missing, of another type or range, or not supported."""
    for field in KEPT:
        if tree.get(field) is not None:
            rule = "left out (no answers are stored: `input` holds the whole conversation)"
            raise FieldError(field, rule, json.dumps(tree[field]))
    known = (*COMMON, *FOLLOWED, *(field for field in WITHOUT_EFFECT if field not in NEUTRAL))
    check_others("", tree, known, NEUTRAL)
    nested = {"tools": _nested(tree.get("tools")), "tool_choice": _choice(tree.get("tool_choice"))}
    tools = tools_of(nested)
    called = called_of(nested, tools)
    usage_of(tree.get("stream_options"))
    return CompletionRequest(
        model_of(tree),
        (),
        _messages(tree),
        tokens_of(tree, "max_output_tokens", None),
        sampling_rules_of(tree, None),
        stops_of(tree.get("stop")),
        flag_of(tree, "stream"),
        usage=True,
        tools=tools,
        called=called,
        grammar=grammar_of(tree, _schema(tree.get("text")), called),
        text_field="input",
        tokens_field="max_output_tokens",
        start=start_of(tree),
    )


def _messages(tree: Mapping[str, object]) -> list[dict[str, object]]:
    """Return `instructions` and the items as messages; a call belongs to the message of the assistant before it."""
    given, instructions = tree.get("input"), tree.get("instructions")
    if instructions is not None and not isinstance(instructions, str):
        raise FieldError("instructions", "a text", json.dumps(instructions))
    items = [{"role": "user", "content": given}] if isinstance(given, str) else list_of(given)
    if not 1 <= len(items) <= MAX_MESSAGES:
        raise FieldError("input", f"a text, or a list of 1 to {MAX_MESSAGES} items", json.dumps(given))
    messages: list[dict[str, object]] = [] if instructions is None else [{"role": "system", "content": instructions}]
    for n, item in enumerate(items):
        message = _message(f"input[{n}]", object_of(item, f"input[{n}]"))
        if "tool_calls" in message and messages and messages[-1]["role"] == ASSISTANT:
            calls = [*list_of(messages[-1].get("tool_calls")), *list_of(message["tool_calls"])]
            messages[-1] = {**messages[-1], "tool_calls": calls}
        else:
            messages.append(message)
    return messages


def _message(field: str, item: dict[str, object]) -> dict[str, object]:
    """Return an item as a message."""
    kind = item.get("type", MESSAGE)
    if not isinstance(kind, str) or kind not in FIELDS:
        raise FieldError(f"{field}.type", " or ".join(FIELDS), json.dumps(kind))
    check_others(f"{field}.", item, (*FIELDS[kind], *SENT_BACK), {})
    if kind == MESSAGE:
        content = text_of(f"{field}.content", item.get("content"), TEXTS)
        return {"role": _text(field, item, "role"), "content": content}
    name = _text(field, item, "call_id")
    if kind == RESULT:
        return {"role": TOOL, "content": text_of(f"{field}.output", item.get("output"), TEXTS), "tool_call_id": name}
    call = {"id": name, "type": "function", "function": call_of(field, item)}
    return {"role": ASSISTANT, "content": "", "tool_calls": [call]}


def _text(field: str, item: Mapping[str, object], name: str) -> str:
    text = item.get(name)
    if not isinstance(text, str) or not text:
        raise FieldError(f"{field}.{name}", "a text", json.dumps(text))
    return text


def _nested(value: object) -> object:
    """Return functions as chats have them, where name and parameters lie in an object of their own."""
    return [_function(f"tools[{n}]", tool) for n, tool in enumerate(list_of(value))] or value


def _function(field: str, value: object) -> dict[str, object]:
    tool = object_of(value, field)
    check_others(f"{field}.", tool, ("type", "name", "description", "parameters", "strict"), {})
    parameters = tool.get("parameters")
    function = {name: tool[name] for name in ("name", "description") if tool.get(name) is not None}
    function |= {} if parameters is None else {"parameters": object_of(parameters, f"{field}.parameters")}
    return {"type": tool.get("type"), "function": function}


def _choice(value: object) -> object:
    """Return `tool_choice` as chats have it."""
    if value is None or isinstance(value, str):
        return value
    named = object_of(value, "tool_choice")
    return {"type": named.get("type"), "function": {"name": named.get("name")}}


def _schema(value: object) -> dict[str, object] | None:
    """Return the JSON schema that `text` asks for."""
    if value is None:
        return None
    text = object_of(value, "text")
    check_others("text.", text, ("format",), {"verbosity": ("medium",)})
    return None if text.get("format") is None else schema_of(text["format"], "text.format", flat=True)
