"""Calls in answers: the forms of templates, however the text is cut, and texts that are no calls."""

from __future__ import annotations

import json

import pytest

from aot.text.tool_calls import Calls, form_of

BODY = '{"name": "f", "arguments": {"x": 1}}'
CALL, CALL_OF_G = ("f", {"x": 1}), ("g", {})


@pytest.mark.parametrize(
    ("text", "shown", "calls"),
    [
        (f"Well.<tool_call>\n{BODY}\n</tool_call>", "Well.", [CALL]),
        (f'<tool_call>{BODY}</tool_call>\n<tool_call>{{"name": "g"}}</tool_call>', "", [CALL, CALL_OF_G]),
        (f"<|tool_call|>[{BODY}]", "", [CALL]),
        (f'[TOOL_CALLS][{BODY}, {{"name": "g", "arguments": {{}}}}]', "", [CALL, CALL_OF_G]),
        ('{"name": "f", "parameters": {"x": 1}}', "", [CALL]),
        ('<|python_tag|>{"name": "f", "parameters": {"x": 1}}', "", [CALL]),
        (f" [{BODY}]", "", [CALL]),
        ('{"name": "h", "arguments": {}}', '{"name": "h", "arguments": {}}', []),
        ("<tool_call>{broken", "<tool_call>{broken", []),
        ("a < b <tool", "a < b <tool", []),
        ("2 {3}", "2 {3}", []),
        ("[" * 2000, "[" * 2000, []),
        ("", "", []),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 5000])
def test_calls_are_taken_out_of_the_text(text: str, shown: str, calls: list[object], size: int) -> None:
    held = Calls(["f", "g"])
    parts = [held.add(text[at : at + size]) for at in range(0, len(text), size)]
    rest, found = held.rest()
    assert "".join(parts) + rest == shown
    assert [(call.name, json.loads(call.arguments)) for call in found] == calls


def test_text_without_calls_is_not_held_back() -> None:
    held = Calls(["f"])
    assert [held.add(part) for part in ("One", " <to", "y>")] == ["One", " ", "<toy>"]


@pytest.mark.parametrize(
    ("template", "begin", "key"),
    [
        ("{{ '<tool_call>' }}", "<tool_call>", "arguments"),
        ("[TOOL_CALLS]", "[TOOL_CALLS]", "arguments"),
        ('<|python_tag|> {"name": n, "parameters": p}', "", "parameters"),
        ("{{ messages }}", "", "arguments"),
    ],
)
def test_templates_say_how_calls_are_written(template: str, begin: str, key: str) -> None:
    assert (form_of(template).begin, form_of(template).key) == (begin, key)
