"""Answers as OpenAI writes them: whole or as server-sent events, with probabilities and calls; errors."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from aot.codegen.dataclass import dataclass
from aot.runtime.errors import AotError
from aot.serve.faults import UnknownModelError, http_status
from aot.serve.openai.answer import Delta
from aot.serve.openai.completion_request import CompletionRequest
from aot.serve.openai.fields import FieldError
from aot.serve.openai.messages import function_of
from aot.serve.openai.token_sampler import SampledToken
from aot.text.stream import BROKEN
from aot.text.tokenizers.tokenizer import Tokenizer
from aot.text.tool_calls import Call, Calls

CALLED = "tool_calls"  # why an answer ends that calls functions
DONE = b"data: [DONE]\n\n"
TYPES = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}

Deltas = AsyncGenerator[tuple[int, Delta]]  # of several answers, with their numbers


@dataclass(slots=True)
class Timings:
    """When the first of the answers to a request began, and when its first and its last text came, in seconds."""

    begin: float = 0.0
    first: float = 0.0
    last: float = 0.0

    def start(self) -> None:
        """Note that an answer begins, unless another one has."""
        self.begin = self.begin or time.monotonic()

    def came(self) -> None:
        """Note that new text has come."""
        self.last = time.monotonic()
        self.first = self.first or self.last

    def fields(self, known: int, prompt_tokens: int, generated: int) -> dict[str, object]:
        """Return times and speeds as llama.cpp's server writes them, for these numbers of tokens."""
        prompt, rest = max(self.first - self.begin, 1e-6), max(self.last - self.first, 1e-6)
        return {
            "cache_n": known,
            "prompt_n": prompt_tokens - known,
            "prompt_ms": round(prompt * 1e3, 3),
            "prompt_per_second": round((prompt_tokens - known) / prompt, 3),
            "predicted_n": generated,
            "predicted_ms": round(rest * 1e3, 3),
            "predicted_per_second": round(max(generated - 1, 0) / rest, 3),
        }


class CompletionFormat:
    """The answers to one request and their parts."""

    def __init__(self, request: CompletionRequest, prompt: Sequence[int], tokenizer: Tokenizer) -> None:
        """`prompt`: tokens of each prompt."""
        self.wanted, self.given = request, sum(prompt)
        chat = request.messages is not None
        self.known = [0] * len(prompt)  # tokens of each prompt that were computed before
        self.timings = Timings()
        kind = "chat.completion" if chat else "text_completion"
        self.kind, self.chunk = kind, "chat.completion.chunk" if chat else kind
        name = f"{'chatcmpl' if chat else 'cmpl'}-{uuid.uuid4().hex}"
        self._head: dict[str, object] = {"id": name, "created": int(time.time()), "model": request.model}
        self.choices = [Choice(request, n, chat, tokenizer) for n in range(len(prompt) * request.answers)]

    def whole(self) -> dict[str, object]:
        choices = [choice.whole() for choice in self.choices]
        usage, timings = self.usage(), self._timings()
        return {**self._head, "object": self.kind, "choices": choices, "usage": usage, "timings": timings}

    def begin(self) -> list[bytes]:
        """Return the events before the first part."""
        return []

    def events(self, number: int, delta: Delta) -> list[bytes]:
        """Take a part of an answer and return its events."""
        deltas = self.choices[number].deltas(delta)
        trees: list[dict[str, object]] = [{**self._head, "object": self.chunk, "choices": [one]} for one in deltas]
        if not self.wanted.usage and all(choice.reason is not None for choice in self.choices):
            trees[-1]["timings"] = self._timings()
        return [event(tree) for tree in trees]

    def end(self) -> list[bytes]:
        """Return the events after the last part."""
        if not self.wanted.usage:
            return [DONE]
        totals: dict[str, object] = {"choices": [], "usage": self.usage(), "timings": self._timings()}
        return [event({**self._head, "object": self.chunk, **totals}), DONE]

    def failed(self, error: AotError) -> list[bytes]:
        """Return the events of an error, which comes after the status was sent."""
        return [event(error_tree(error, http_status(error))), DONE]

    def usage(self) -> dict[str, object]:
        tokens = self.tokens
        counts = {"prompt_tokens": self.given, "completion_tokens": tokens, "total_tokens": self.given + tokens}
        return {**counts, "prompt_tokens_details": {"cached_tokens": sum(self.known)}}

    @property
    def tokens(self) -> int:
        """Tokens of all answers up to now."""
        return sum(choice.tokens for choice in self.choices)

    def _timings(self) -> dict[str, object]:
        return self.timings.fields(sum(self.known), self.given, self.tokens)


class Choice:
    """One of the answers: its text, its calls, and why it ended."""

    def __init__(self, request: CompletionRequest, number: int, chat: bool, tokenizer: Tokenizer) -> None:
        self._number, self._chat, self._tokenizer = number, chat, tokenizer
        names = [str(function_of(tool)["name"]) for tool in request.tools]
        self._held = Calls(names) if names else None
        self._tells = request.rules.top_logprobs is not None
        self._texts, self._logprobs = list[str](), list[SampledToken]()
        self._began = False
        self._offset = 0  # characters of the tokens that were sent
        self.calls: list[Call] = []
        self.reason: str | None = None
        self.tokens = 0

    @property
    def text(self) -> str:
        """The text up to now, without calls."""
        return "".join(self._texts)

    def take(self, delta: Delta) -> str:
        """Take new text and return what of it belongs to no call."""
        self.tokens = delta.tokens
        text = delta.text if self._held is None else self._held.add(delta.text)
        if delta.reason is not None:
            self.reason = delta.reason
            if self._held is not None:
                rest, self.calls = self._held.rest()
                text += rest
            if self.calls:
                self.reason = CALLED
        self._texts.append(text)
        self._logprobs += delta.logprobs
        return text

    def whole(self) -> dict[str, object]:
        text = self.text
        calls = {"tool_calls": _calls(self.calls)} if self.calls else {}
        message = {"role": "assistant", "content": text or None if calls else text, **calls}
        return self._made({"message": message} if self._chat else {"text": text}, self._logprobs, self.reason)

    def deltas(self, delta: Delta) -> list[dict[str, object]]:
        """Take new text and return its chunks of a stream; none without text."""
        text = self.take(delta)
        if not (text or delta.logprobs or delta.reason is not None) and self._began:
            return []
        role = {} if self._began else {"role": "assistant"}
        self._began = True
        choice: dict[str, object] = {"delta": {**role, "content": text}} if self._chat else {"text": text}
        if not self.calls:
            return [self._made(choice, delta.logprobs, self.reason)]
        first = [self._made(choice, delta.logprobs, None)] if text or role or delta.logprobs else []
        numbered = [{"index": n, **call} for n, call in enumerate(_calls(self.calls))]
        return [*first, self._made({"delta": {"tool_calls": numbered}}, (), self.reason)]

    def _made(
        self, content: dict[str, object], logprobs: Sequence[SampledToken], reason: str | None
    ) -> dict[str, object]:
        logs = (self._chat_logs(logprobs) if self._chat else self._logs(logprobs)) if self._tells else None
        return {"index": self._number, **content, "logprobs": logs, "finish_reason": reason}

    def _chat_logs(self, logprobs: Sequence[SampledToken]) -> dict[str, object]:
        def entry(token: int, log: float | None) -> dict[str, object]:
            text = self._text(token)
            return {"token": text, "logprob": log, "bytes": None if BROKEN in text else list(text.encode())}

        return {
            "content": [
                {**entry(one.token, one.log), "top_logprobs": [entry(*other) for other in one.others]}
                for one in logprobs
            ]
        }

    def _logs(self, logprobs: Sequence[SampledToken]) -> dict[str, object]:
        tokens = [self._text(one.token) for one in logprobs]
        offsets = [self._offset + sum(map(len, tokens[:n])) for n in range(len(tokens))]
        self._offset += sum(map(len, tokens))
        return {
            "tokens": tokens,
            "token_logprobs": [one.log for one in logprobs],
            "top_logprobs": [{self._text(token): log for token, log in reversed(one.others)} for one in logprobs],
            "text_offset": offsets,
        }

    def _text(self, token: int) -> str:
        return self._tokenizer.inner.decode([token], begins=False)


async def merged(sources: Sequence[AsyncGenerator[Delta]]) -> Deltas:
    """Yield the parts of several answers as they come; an error of one ends all."""
    queue: asyncio.Queue[tuple[int, Delta | BaseException | None]] = asyncio.Queue()

    async def tell(number: int, source: AsyncGenerator[Delta]) -> None:
        try:
            async with aclosing(source):
                async for delta in source:
                    queue.put_nowait((number, delta))
            queue.put_nowait((number, None))
        except Exception as error:  # the caller gets it
            queue.put_nowait((number, error))

    tasks = [asyncio.create_task(tell(n, source)) for n, source in enumerate(sources)]
    left = len(tasks)
    try:
        while left:
            number, delta = await queue.get()
            if isinstance(delta, BaseException):
                raise delta
            if delta is None:
                left -= 1
            else:
                yield number, delta
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def whole(form: CompletionFormat, deltas: Deltas) -> dict[str, object]:
    """Return all answers, once they have ended."""
    async with aclosing(deltas):
        async for number, delta in deltas:
            form.choices[number].take(delta)
    return form.whole()


async def events(form: CompletionFormat, deltas: Deltas) -> AsyncGenerator[bytes]:
    """Yield server-sent events; an error is one, too."""
    try:
        for one in form.begin():
            yield one
        async with aclosing(deltas):
            async for number, delta in deltas:
                for one in form.events(number, delta):
                    yield one
        last = form.end()
    except AotError as error:
        last = form.failed(error)
    for one in last:
        yield one


def event(tree: object) -> bytes:
    """Return a server-sent event."""
    return b"data: " + json.dumps(tree, separators=(",", ":")).encode() + b"\n\n"


def name_of(kind: str) -> str:
    """Return a new name of an answer or a part of one."""
    return f"{kind}_{uuid.uuid4().hex[:24]}"


def _calls(calls: Sequence[Call]) -> list[dict[str, object]]:
    return [
        {
            "id": name_of("call"),
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in calls
    ]


def error_tree(error: Exception, status: int) -> dict[str, object]:
    """Return an error as OpenAI writes it."""
    kind = TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    field = error.field if isinstance(error, FieldError) else None
    code = "model_not_found" if isinstance(error, UnknownModelError) else None
    return {"error": {"message": str(error), "type": kind, "param": field, "code": code}}
