"""Messages of a chat and the functions that it may call, checked and as chat templates take them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from aot.serve.json_texts import json_tree
from aot.serve.openai.fields import FieldError, check_others, list_of, object_of

MAX_MESSAGES, MAX_TOOLS = 4096, 128
ASSISTANT, TOOL = "assistant", "tool"  # roles of messages with calls, and with their results
# Values of messages that are sent back.
NEUTRAL: dict[str, tuple[object, ...]] = {"tool_calls": ([],), "annotations": ([],), "logprobs": ([],)}
NO_CALL, ANY_CALL, MUST_CALL = "none", "auto", "required"  # values of `tool_choice`


def messages_of(value: object) -> list[dict[str, object]]:
    """Return messages; FieldError for those that are none, or that have fields which templates do not see."""
    messages = list_of(value)
    if not 1 <= len(messages) <= MAX_MESSAGES:
        raise FieldError("messages", f"a list of 1 to {MAX_MESSAGES} messages", f"{len(messages)} of them")
    return [_message(n, one) for n, one in enumerate(messages)]


def tools_of(tree: Mapping[str, object]) -> tuple[dict[str, object], ...]:
    """Return the functions that an answer may call; none if `tool_choice` is none."""
    value = tree.get("tools")
    functions = list_of(value)
    if value is not None and (not isinstance(value, list) or len(functions) > MAX_TOOLS):
        raise FieldError("tools", f"a list of at most {MAX_TOOLS} functions", json.dumps(value))
    tools = tuple(_tool(n, one) for n, one in enumerate(functions))
    return () if tree.get("tool_choice") == NO_CALL else tools


def called_of(tree: Mapping[str, object], tools: tuple[dict[str, object], ...]) -> tuple[dict[str, object], ...]:
    """Return the functions that an answer must call one of: by `tool_choice`, all, the one that it names, or none."""
    value = tree.get("tool_choice")
    if value in (None, NO_CALL, ANY_CALL):
        return ()
    if value == MUST_CALL and tools:
        return tools
    choice = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    inner = choice.get("function")
    name = cast("dict[str, object]", inner).get("name") if isinstance(inner, dict) else None
    result = tuple(tool for tool in tools if function_of(tool)["name"] == name)
    if choice.get("type") != "function" or not result:
        raise FieldError("tool_choice", "none, auto, required or a function of tools", json.dumps(value))
    return result


def function_of(tool: Mapping[str, object]) -> dict[str, object]:
    """Return name, description and parameters of a checked function."""
    return cast("dict[str, object]", tool["function"])


def _tool(n: int, value: object) -> dict[str, object]:
    field = f"tools[{n}]"
    tool = object_of(value, field)
    function = object_of(tool.get("function"), f"{field}.function")
    name = function.get("name")
    if tool.get("type") != "function" or not isinstance(name, str) or not name:
        raise FieldError(field, "a function with a name", json.dumps(value))
    object_of(function.get("parameters", {}), f"{field}.function.parameters")
    return tool


def _message(n: int, value: object) -> dict[str, object]:
    one = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    field, role, content = f"messages[{n}]", one.get("role"), one.get("content")
    if not isinstance(role, str) or not role:
        raise FieldError(f"{field}.role", "a text", role)
    calls = one.get("tool_calls") if role == ASSISTANT else None
    known = {ASSISTANT: ("tool_calls",), TOOL: ("tool_call_id", "name")}.get(role, ())
    check_others(f"{field}.", one, ("role", "content", *known), NEUTRAL)
    text = "" if content is None and calls else text_of(f"{field}.content", content, ("text",))
    message: dict[str, object] = {"role": role, "content": text}
    if calls:
        message["tool_calls"] = [_call(f"{field}.tool_calls", call) for call in list_of(calls)]
    return message | {name: text for name in known if isinstance(text := one.get(name), str)}


def _call(field: str, value: object) -> dict[str, object]:
    call = object_of(value, field)
    field = f"{field}.function"
    return call | {"function": call_of(field, object_of(call.get("function"), field))}


def call_of(field: str, function: Mapping[str, object]) -> dict[str, object]:
    """Return a call with its arguments as an object, as templates write them."""
    name, text = function.get("name"), function.get("arguments")
    if not isinstance(name, str) or not isinstance(text, str):
        raise FieldError(field, "a call of a function with a name and arguments", json.dumps(function))
    try:
        arguments = json_tree(text)
    except ValueError:
        raise FieldError(f"{field}.arguments", "JSON", text) from None
    return {"name": name, "arguments": arguments}


def text_of(field: str, content: object, kinds: tuple[str, ...]) -> str:
    """Return the text of a message: a text, or parts of types `kinds`."""
    if isinstance(content, str):
        return content
    rule = f"a text, or parts of type {' or '.join(kinds)}"
    if not isinstance(content, list):
        raise FieldError(field, rule, content)
    texts: list[str] = []
    for part in cast("list[object]", content):
        one = cast("dict[str, object]", part) if isinstance(part, dict) else {}
        text = one.get("text")
        if one.get("type") not in kinds or not isinstance(text, str):
            raise FieldError(field, rule, one.get("type"))
        check_others(f"{field}.", one, ("type", "text"), NEUTRAL)
        texts.append(text)
    return "".join(texts)
