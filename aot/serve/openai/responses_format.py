"""Answers of `/v1/responses`: items, whole or as named events.

response.created, .in_progress -> the message: its beginning, parts of its text, its end -> calls -> response.completed
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import cast

from aot.runtime.errors import AotError
from aot.serve.faults import http_status
from aot.serve.openai.answer import LENGTH, Delta
from aot.serve.openai.completion_format import CompletionFormat, event, name_of
from aot.serve.openai.completion_request import CompletionRequest
from aot.serve.openai.messages import ASSISTANT
from aot.serve.openai.responses_request import CALL, MESSAGE
from aot.text.tokenizers.tokenizer import Tokenizer
from aot.text.tool_calls import Call

RUNS, WHOLE, CUT, FAILED = "in_progress", "completed", "incomplete", "failed"  # states of an answer and its items
CODES = {429: "rate_limit_exceeded"}  # codes of errors during a streamed answer, by HTTP status
# Fields of a request that its answer repeats, with the values of those that are left out.
REPEATED: dict[str, object] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "user": None,
}
# Fields that have the same value in all answers.
FIXED: dict[str, object] = {
    "background": False,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "store": False,
    "truncation": "disabled",
}


class ResponsesFormat(CompletionFormat):
    """The answer to one request: a message, calls, or both."""

    def __init__(
        self, tree: Mapping[str, object], request: CompletionRequest, prompt: Sequence[int], tokenizer: Tokenizer
    ) -> None:
        """`tree`: the request. `prompt`: tokens of the prompt."""
        super().__init__(request, prompt, tokenizer)
        (self._choice,) = self.choices
        sampling = request.rules.sampling
        repeated = {k: default if tree.get(k) is None else tree[k] for k, default in REPEATED.items()}
        self._facts: dict[str, object] = {
            "id": name_of("resp"),
            "object": "response",
            "created_at": int(time.time()),
            "model": request.model,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            **repeated,
            **FIXED,
        }
        self._name = name_of("msg")
        self._began = False  # the start of the message was sent
        self._count = 0  # of events

    def whole(self) -> dict[str, object]:
        choice = self._choice
        state = CUT if choice.reason == LENGTH else WHOLE
        message = [self._message(state, [_text(choice.text)])] if choice.text or not choice.calls else []
        return self._answer(state, [*message, *map(_call, choice.calls)])

    def usage(self) -> dict[str, object]:
        return {
            "input_tokens": self.given,
            "input_tokens_details": {"cached_tokens": sum(self.known)},
            "output_tokens": self.tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": self.given + self.tokens,
        }

    def begin(self) -> list[bytes]:
        answer = self._answer(RUNS, [])
        return [self._event("created", response=answer), self._event("in_progress", response=answer)]

    def events(self, number: int, delta: Delta) -> list[bytes]:
        del number
        text = self._choice.take(delta)
        return [*self._first(), self._of_text("output_text.delta", delta=text, logprobs=[])] if text else []

    def end(self) -> list[bytes]:
        answer = self.whole()
        events = list[bytes]()
        for n, item in enumerate(cast("list[dict[str, object]]", answer["output"])):
            events += self._of_call(n, item) if item["type"] == CALL else self._last(item)
        return [*events, self._event(str(answer["status"]), response=answer)]

    def failed(self, error: AotError) -> list[bytes]:
        status = http_status(error)
        code = CODES.get(status, "invalid_prompt" if status < 500 else "server_error")
        answer = self._answer(FAILED, []) | {"error": {"code": code, "message": str(error)}}
        return [self._event(FAILED, response=answer)]

    def _answer(self, state: str, items: Sequence[dict[str, object]]) -> dict[str, object]:
        return {
            **self._facts,
            "status": state,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if state == CUT else None,
            "output": items,
            "usage": self.usage() if state in (WHOLE, CUT) else None,
        }

    def _message(self, state: str, content: Sequence[dict[str, object]]) -> dict[str, object]:
        return {"type": MESSAGE, "id": self._name, "status": state, "role": ASSISTANT, "content": content}

    def _first(self) -> list[bytes]:
        """Return the events of the message's beginning, once."""
        if self._began:
            return []
        self._began = True
        added = self._event("output_item.added", output_index=0, item=self._message(RUNS, []))
        return [added, self._of_text("content_part.added", part=_text(""))]

    def _last(self, message: dict[str, object]) -> list[bytes]:
        text = self._choice.text
        return [
            *self._first(),
            self._of_text("output_text.done", text=text, logprobs=[]),
            self._of_text("content_part.done", part=_text(text)),
            self._event("output_item.done", output_index=0, item=message),
        ]

    def _of_call(self, n: int, call: dict[str, object]) -> list[bytes]:
        """Return the events of a call, item `n` of the answer."""
        text, output = call["arguments"], {"output_index": n}
        inner = {**output, "item_id": call["id"]}
        return [
            self._event("output_item.added", **output, item={**call, "status": RUNS, "arguments": ""}),
            self._event("function_call_arguments.delta", **inner, delta=text),
            self._event("function_call_arguments.done", **inner, name=call["name"], arguments=text),
            self._event("output_item.done", **output, item=call),
        ]

    def _of_text(self, kind: str, **fields: object) -> bytes:
        return self._event(kind, item_id=self._name, output_index=0, content_index=0, **fields)

    def _event(self, kind: str, **fields: object) -> bytes:
        """Return an event with its name and number."""
        kind, number = f"response.{kind}", self._count
        self._count += 1
        return f"event: {kind}\n".encode() + event({"type": kind, "sequence_number": number, **fields})


def _text(text: str) -> dict[str, object]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _call(call: Call) -> dict[str, object]:
    names = {"id": name_of("fc"), "call_id": name_of("call")}
    return {"type": CALL, **names, "status": WHOLE, "name": call.name, "arguments": call.arguments}
