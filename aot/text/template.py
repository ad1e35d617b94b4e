"""Chat templates: messages as the text that a model was trained on, by a template of Jinja that its file has.

Templates come with models, so they are not trusted: they are rendered in a sandbox, in a process of their own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, cast

from aot.runtime.errors import MissingError, UsageError

WORKER = Path(__file__).with_name("render_worker.py")
MAX_SOURCE = 1 << 20  # characters of a template: known ones have less than 20000
# For an answer, the time in which other processes run included. Windows has no other limit of the worker's time.
SECONDS = 10.0 if sys.platform == "win32" else 60.0

SYSTEM, DEVELOPER = "system", "developer"  # roles of instructions; newer clients send the second
USER = "user"
REFUSED = "_RefusedError: "  # what errors of `raise_exception` begin with
ABSENT: dict[str, None] = {"tools": None, "documents": None}  # templates ask for them, as transformers defines them

Message = Mapping[str, object]


class TemplateError(UsageError):
    """A chat template refuses the messages, is none, or takes too much time or memory."""


class RefusalError(TemplateError):
    """A chat template itself refuses the messages."""


class ChatTemplate:
    """A template that is rendered by a process, which starts with the first text."""

    def __init__(self, source: str, marks: Mapping[str, str] | None = None) -> None:
        """`marks`: texts of tokens by the names that templates have for them, `bos_token` and `eos_token`."""
        if len(source) > MAX_SOURCE:
            raise TemplateError(f"chat template: must have at most {MAX_SOURCE} characters, got {len(source)}")
        if find_spec("jinja2") is None:
            raise MissingError("chat template: needs the package jinja2: pip install 'aot[text]'")
        self._source, self._marks = source, dict(marks or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._at_end: weakref.finalize[..., Any] | None = None
        self._lock = threading.Lock()

    @property
    def source(self) -> str:
        """The template."""
        return self._source

    def render(self, messages: Sequence[Message], *, answer: bool = True, tools: Sequence[Message] = ()) -> str:
        """Return the text of messages, which have `role` and `content`; `answer`: the model is asked to answer them.

        `tools`: functions that it may call. A template that does not name the role `developer` gets `system` in its
        place; one that refuses or drops a message of the system, as Gemma 2's does, gets it before the user's words.
        TemplateError if the template cannot make a text of them.
        """
        variables = {**ABSENT, **self._marks, "messages": self._known(messages), "add_generation_prompt": answer}
        if tools:
            variables["tools"] = list(tools)
        with self._lock:
            if self._process is None:
                self._process = self._started()
                self._asked(self._process, self._source)
            return self._with_system(self._process, variables)

    def _with_system(self, process: subprocess.Popen[bytes], variables: Mapping[str, Any]) -> str:
        """Return the text of messages, which has the words of a first message of the system."""
        first, *others = variables["messages"] or [{"role": ""}]
        if first["role"] != SYSTEM or not isinstance(first["content"], str):
            return self._asked(process, variables)
        try:
            text = self._asked(process, variables)
        except RefusalError:
            text = ""
        if text and all(word in text for word in first["content"].split()):
            return text
        return self._asked(process, {**variables, "messages": _before_user(first["content"], others)})

    def _known(self, messages: Sequence[Message]) -> list[Message]:
        """Return the messages with roles that the template knows."""
        if DEVELOPER in self._source:
            return list(messages)
        return [{**message, "role": SYSTEM} if message["role"] == DEVELOPER else message for message in messages]

    def close(self) -> None:
        """End the process; the next text starts another one."""
        with self._lock:
            self._end()

    def _started(self) -> subprocess.Popen[bytes]:
        """Start a process, which ends with this template at the latest."""
        # -I: nothing of the working folder; folders of this process come last, where jinja2 may be a user's package
        command = [sys.executable, "-I", str(WORKER), *filter(None, sys.path)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self._at_end = weakref.finalize(self, _ended, process)
        return process

    def _end(self) -> None:
        self._process = None
        if self._at_end is not None:
            self._at_end()

    def _asked(self, process: subprocess.Popen[bytes], value: object) -> str:
        """Send a line and return the text of the answer; the process is ended if there is none."""
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(value).encode() + b"\n")
            process.stdin.flush()
            line = _line(process, process.stdout, SECONDS)
        except (OSError, EOFError):
            self._end()
            raise TemplateError(f"chat template: must be rendered in {SECONDS:g} s, got one that takes more") from None
        answer = cast("dict[str, str]", json.loads(line))
        if "error" in answer:
            if self._source is value:
                self._end()
            kind = RefusalError if answer["error"].startswith(REFUSED) else TemplateError
            raise kind(f"chat template: {answer['error'].removeprefix(REFUSED)}")
        return answer["text"]


def _before_user(system: str, others: Sequence[Message]) -> list[Message]:
    """Put the system's text before the text of the first message, if it is the user's."""
    given = others[0]["content"] if others and others[0]["role"] == USER else None
    if isinstance(given, list):
        content: object = [{"type": "text", "text": f"{system}\n\n"}, *cast("list[object]", given)]
    else:
        content = system if given is None else f"{system}\n\n{given}"
    return [{"role": USER, "content": content}, *(others if given is None else others[1:])]


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def _line(process: subprocess.Popen[bytes], stream: IO[bytes], seconds: float) -> bytes:
    """Read a line; EOFError if the other side has ended, as it does after `seconds`."""
    alarm = threading.Timer(seconds, process.kill)
    alarm.start()
    try:
        line = stream.readline()
    finally:
        alarm.cancel()
    if not line.endswith(b"\n"):
        raise EOFError
    return line


__all__ = ["ChatTemplate", "Message", "TemplateError"]
