"""Calls of functions in answers, in the forms that chat templates teach models.

<tool_call>{"name": …, "arguments": {…}}</tool_call>      Hermes, Qwen, SmolLM;  <|tool_call|>[…] Granite, Phi
[TOOL_CALLS][{"name": …, "arguments": {…}}]               Mistral
{"name": …, "parameters": {…}}                            Llama 3
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import NamedTuple, cast

BARE = ("{", "[")  # an answer that begins so may be a call without marks


class CallForm(NamedTuple):
    """A form of calls in a template: marks around them, the name of arguments, and if calls are a list."""

    begin: str
    end: str
    key: str = "arguments"
    listed: bool = False


HERMES = CallForm("<tool_call>", "</tool_call>")
FORMS = (  # the first one whose mark is in a template
    HERMES,
    CallForm("<|tool_call|>", "<|/tool_call|>", listed=True),
    CallForm("[TOOL_CALLS]", "", listed=True),
    CallForm("<|python_tag|>", "", "parameters"),
)
PLAIN, LLAMA = CallForm("", ""), CallForm("", "", "parameters")


class Call(NamedTuple):
    """A call: the name of a function, and its arguments as JSON."""

    name: str
    arguments: str


def form_of(template: str) -> CallForm:
    """Return the form of calls in a template; JSON alone if it does not say."""
    call_form = next((form for form in FORMS if form.begin in template), PLAIN)
    is_llama = call_form.key == LLAMA.key or (call_form is PLAIN and '"parameters"' in template)
    return LLAMA if is_llama else call_form


class Calls:
    """Text of an answer; calls in it are held back until it ends."""

    def __init__(self, names: Collection[str]) -> None:
        """`names`: of the functions that may be called; other calls are text."""
        self._names = names
        self._text, self._holds, self._began = "", False, False

    def add(self, text: str) -> str:
        """Take new text and return what is no part of a call."""
        self._text += text
        if self._holds:
            return ""
        self._holds = not self._began and self._text.lstrip()[:1] in BARE
        positions = [at for form in FORMS if (at := self._text.find(form.begin)) >= 0]
        if self._holds or positions:
            self._holds = True
            return self._split(0 if not positions else min(positions))
        if not self._text.strip():
            return ""
        self._began = True
        return self._split(len(self._text) - max(_begun(self._text, form.begin) for form in FORMS))

    def rest(self) -> tuple[str, list[Call]]:
        """Return text that is held back, and the calls, at the end of an answer."""
        text, self._text = self._text, ""
        if not self._holds:
            return text, []
        calls = list(self._read(text))
        return ("", calls) if calls else (text, [])

    def _split(self, at: int) -> str:
        begin, self._text = self._text[:at], self._text[at:]
        return begin

    def _read(self, text: str) -> Iterator[Call]:
        """Yield the calls of a text: between the marks of its form, or all of it."""
        form = next((form for form in FORMS if form.begin in text), None)
        parts = [text] if form is None else text.split(form.begin)[1:]
        for part in parts:
            inner = part if form is None or not form.end else part.split(form.end)[0]
            try:
                tree: object = json.loads(inner)
            except (ValueError, RecursionError):
                continue
            for one in cast("list[object]", tree) if isinstance(tree, list) else [tree]:
                call = cast("dict[str, object]", one) if isinstance(one, dict) else {}
                name, arguments = call.get("name"), call.get("arguments", call.get("parameters", {}))
                if isinstance(name, str) and name in self._names:
                    yield Call(name, arguments if isinstance(arguments, str) else json.dumps(arguments))


def _begun(text: str, mark: str) -> int:
    """Return the length of the longest end of a text that a mark begins with."""
    return next((n for n in range(min(len(text), len(mark) - 1), 0, -1) if text.endswith(mark[:n])), 0)
