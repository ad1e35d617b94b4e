"""A conversation with a language model: its messages as tokens. Only new tokens are computed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import cast

from aot.runtime.atomic import replacing
from aot.runtime.errors import UsageError
from aot.runtime.generation.generator import Generator
from aot.runtime.generation.sampling import Sampling
from aot.runtime.regular import read_file
from aot.text.speed import Speed
from aot.text.stream import Stream
from aot.text.template import ChatTemplate
from aot.text.tokenizers.tokenizer import Tokenizer


class Chat:
    """A conversation, which keeps all messages."""

    def __init__(
        self, generator: Generator, tokenizer: Tokenizer, template: ChatTemplate, *, system: str | None = None
    ) -> None:
        self._generator, self._tokenizer, self._template = generator, tokenizer, template
        self.speed: Speed | None = None  # of the last answer
        self._is_ended = False
        self._first = [] if system is None else [{"role": "system", "content": system}]
        self.messages = list(self._first)

    def reset(self, system: str | None = None) -> None:
        """Forget all messages but the system's, which `system` replaces."""
        if system is not None:
            self._first = [{"role": "system", "content": system}]
        self.messages = list(self._first)

    def end(self) -> None:
        """End the answer that is being made with its next token; a handler of signals may call it."""
        self._is_ended = True

    def save(self, path: Path) -> None:
        """Write all messages as JSON."""
        with replacing(path) as file:
            file.write_text(json.dumps(self.messages, indent=1, ensure_ascii=False) + "\n", "utf-8")

    def load(self, path: Path) -> None:
        """Replace all messages by those that `save` wrote; UsageError for another file."""
        try:
            value: object = json.loads(read_file(path, "chat"))
        except (ValueError, RecursionError):
            value = None
        messages = cast("list[object]", value) if isinstance(value, list) else [None]
        for one in messages:
            texts = cast("dict[object, object]", one).values() if isinstance(one, dict) else [None]
            if not (isinstance(one, dict) and one.keys() == {"role", "content"} and all(type(v) is str for v in texts)):
                raise UsageError(f"chat: {path.name}: must be a list of messages with role and content, got other JSON")
        self.messages = cast("list[dict[str, str]]", messages)

    def say(
        self, text: str, tokens: int, sampling: Sampling, write: Callable[[str], object], stop: Iterable[int] = ()
    ) -> str:
        """Return the answer to a message, of at most `tokens` tokens; `write` gets it as it comes.

        After an error the conversation is as it was before.
        """
        messages = [*self.messages, {"role": "user", "content": text}]
        ids = self._tokenizer.begin(self._template.render(messages))
        if not ids:
            raise UsageError("chat: the template must make a text of the messages, got none")
        ends = frozenset((*stop, *self._tokenizer.stop))
        parts: list[str] = []

        def take(part: str) -> None:
            parts.append(part)
            write(part)

        stream = Stream(self._tokenizer, take)
        speed = self.speed = Speed(stream.add)
        self._is_ended = False

        def goes_on(token: int) -> bool:
            speed.add(token)
            return not self._is_ended

        self._generator.generate(self._tokens_to_feed(ids), tokens, sampling, ends, goes_on)
        if last_text := stream.rest():
            take(last_text)
        answer = "".join(parts)
        self.messages = [*messages, {"role": "assistant", "content": answer}]
        return answer

    def _tokens_to_feed(self, ids: Sequence[int]) -> list[int]:
        """Truncate the generator to the tokens that `ids` begins with; return the tokens to feed, one at least."""
        pairs = zip(self._generator.tokens, ids, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        fed = min(same, len(ids) - 1)
        self._generator.truncate(fed)
        return list(ids[fed:])
