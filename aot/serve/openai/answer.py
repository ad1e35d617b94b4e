"""One answer of a language model: steps on the threads of the server, texts in its event loop.

Sequences take turns: a step, some hundred tokens of a prompt or one of the answer, is a task of its own, and the next
one waits after those of other sequences and models. Where the model's rows may have lengths of their own, answers go
on together once their prompts are computed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

from aot.codegen.dataclass import dataclass
from aot.runtime.arrays.tensors import Array
from aot.runtime.generation.generator import Generator
from aot.runtime.generation.token_loop import Continuation
from aot.runtime.inference.executor import Executor
from aot.serve.openai.continuous_batch import ContinuousBatch
from aot.serve.openai.token_sampler import SampledToken, TokenSampler
from aot.text.encoder_decoder_loop import EncoderDecoderLoop
from aot.text.look_up import followed
from aot.text.prefix_cache import PrefixCache
from aot.text.stream import Stream
from aot.text.tokenizers.tokenizer import Tokenizer

CHUNK = 256  # tokens of a prompt that are computed in one step
STOP, LENGTH = "stop", "length"  # why an answer ends


@dataclass(slots=True)
class Delta:
    """New text of an answer; `reason` is set in the last one.

    `tokens`: of the answer so far. `logprobs`: new tokens whose probabilities were requested.
    """

    text: str
    tokens: int
    reason: str | None = None
    logprobs: tuple[SampledToken, ...] = ()


class Answer:
    """The steps of one answer, on a sequence of its own."""

    def __init__(
        self,
        sequence: Generator | EncoderDecoderLoop,
        text: StopTextFilter,
        executor: Executor,
        ids: Sequence[int],
        continuation: Continuation,
        sampler: TokenSampler,
        *,
        batch: ContinuousBatch | None = None,
        prefix_cache: PrefixCache | None = None,
        adapter: bytes = b"",
        ahead: int = 0,
    ) -> None:
        """`text`: of the answer. `ids`: the prompt. `continuation`: gets the answer's tokens, of `sampler`.

        `prefix_cache`: keys and values of prompts that were computed before; `adapter`: a digest of the sequence's.
        `ahead`: tokens that followed the last ones before, which a step computes at once where they come again.
        """
        self._sequence, self._executor, self._batch, self._prefix_cache = sequence, executor, batch, prefix_cache
        self._adapter, self._ahead = adapter, ahead
        self.known = 0  # tokens of the prompt that were not computed again
        self._left, self._made = list(ids), continuation
        self._sampler = sampler
        self._cancelled = False
        self._loop = asyncio.get_running_loop()
        self._deltas: asyncio.Queue[Delta | BaseException] = asyncio.Queue()
        self._idle = asyncio.Event()
        self._text = text

    @property
    def is_done(self) -> bool:
        """True if no step runs or waits: the sequence may be used again."""
        return self._idle.is_set()

    async def deltas(self) -> AsyncGenerator[Delta]:
        """Yield the answer piece by piece; when the caller stops, so do the steps."""
        self._executor.submit(self._step)
        try:
            while True:
                delta = await self._deltas.get()
                if isinstance(delta, BaseException):
                    raise delta
                yield delta
                if delta.reason is not None:
                    return
        finally:
            self._cancelled = True
            await self._idle.wait()  # the sequence is another's then

    def _step(self) -> None:
        """Compute one step alone; called by the executor."""
        try:
            goes_on = not self.leaves() and self._fed()
        except BaseException as error:  # the request gets it
            self.fail(error)
            return
        if goes_on and self._batch is not None and self._made.tokens:
            self._batch.join(self)
        elif goes_on:
            self._executor.submit(self._step)

    def _fed(self) -> bool:
        """Feed tokens; True if the answer goes on."""
        if self._made.tokens and self._ahead:
            return self._checked(self.generator)
        if self._prefix_cache is not None and not self._sequence.tokens:
            self.known = self._prefix_cache.begin(self.generator, self._left, self._adapter)
            self._left = self._left[self.known :]
        fed, self._left = self._left[:CHUNK], self._left[CHUNK:]
        logits = self._sequence.feed(fed)
        if self._left:
            return True
        is_prompt = not self._made.tokens
        goes_on = self.take(logits)
        if is_prompt and goes_on:
            self._keep()
        return goes_on

    def _checked(self, generator: Generator) -> bool:
        """Feed the next token and those that followed it before, and take the ones that agree."""
        past = len(generator.tokens)
        left = self._made.max_tokens - len(self._made.tokens) - 1
        drafts = followed([*generator.tokens, self.token], min(self._ahead, left))
        deltas: list[Delta] = []
        for logits, draft in zip(generator.feed_all([self.token, *drafts]), [*drafts, None], strict=True):
            deltas.append(self._next(logits))
            if deltas[-1].reason is not None or self.token != draft:
                break
        generator.truncate(past + len(deltas))
        return self._told(deltas)

    @property
    def generator(self) -> Generator:
        """The sequence, of a model that continues a text."""
        assert isinstance(self._sequence, Generator)
        return self._sequence

    @property
    def token(self) -> int:
        """The token to append, once the prompt is computed."""
        return self._left[0]

    def leaves(self) -> bool:
        """Return True if the answer was cancelled; its end is reported then."""
        if self._cancelled:
            self._tell(None, last=True)
        return self._cancelled

    def take(self, logits: Array) -> bool:
        """Choose the next token from its logits and tell the text; False if it was the last one."""
        return self._told([self._next(logits)])

    def _told(self, deltas: Sequence[Delta]) -> bool:
        """Tell pieces of the answer; False if the last one ends it."""
        ended = deltas[-1].reason is not None
        if ended:
            self._keep()  # before its end is reported: then another answer gets the sequence
        for delta in deltas:
            self._tell(delta, last=delta.reason is not None)
        return not ended

    def _keep(self) -> None:
        """Keep the tokens: other requests may begin with them."""
        if self._prefix_cache is not None:
            self._prefix_cache.keep(self.generator, self._adapter)

    def fail(self, error: BaseException) -> None:
        """Tell an error, which ends the answer."""
        self._tell(error, last=True)

    def _next(self, logits: Array) -> Delta:
        """Choose the next token, and return the text that no later token can change."""
        token = self._sampler.choose(logits)
        goes_on = self._made.take(token.token)
        count = len(self._made.tokens)
        if token.token in self._made.stop:
            return Delta(self._text.rest(), count, STOP)
        text, ended = self._text.add(token.token)
        logprobs = () if token.log is None else (token,)
        if ended:
            return Delta(text, count, STOP, logprobs)
        if self._sampler.is_done or not goes_on:
            return Delta(text + self._text.rest(), count, STOP if self._sampler.is_done else LENGTH, logprobs)
        self._left = [token.token]
        return Delta(text, count, None, logprobs)

    def _tell(self, delta: Delta | BaseException | None, *, last: bool) -> None:
        def hand_over() -> None:
            if delta is not None:
                self._deltas.put_nowait(delta)
            if last:
                self._idle.set()

        self._loop.call_soon_threadsafe(hand_over)


class StopTextFilter:
    """Text of tokens; a possible beginning of a text that ends the answer is held back."""

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str], *, begins: bool = False) -> None:
        """`stop`: texts that end the answer. `begins`: its tokens begin a text, they continue none."""
        self._stop, self._deltas, self._text = stop, list[str](), ""
        self._stream = Stream(tokenizer, self._deltas.append, begins=begins)
        self._ended = False

    def add(self, token: int) -> tuple[str, bool]:
        """Return the new text, and True if a text of `stop` has come, which is left out."""
        self._stream.add(token)
        return self._taken()

    def rest(self) -> str:
        """Return the text that is still held back, at the end of an answer."""
        if self._ended:
            return ""
        self._deltas.append(self._stream.rest())
        text, ended = self._taken()
        return text if ended else text + self._text

    def _taken(self) -> tuple[str, bool]:
        self._text += "".join(self._deltas)
        self._deltas.clear()
        positions = [at for s in self._stop if (at := self._text.find(s)) >= 0]
        if positions:
            self._ended = True
            taken, self._text = self._text[: min(positions)], ""
            return taken, True
        held_back = max((_begun(self._text, s) for s in self._stop), default=0)
        taken, self._text = self._text[: len(self._text) - held_back], self._text[len(self._text) - held_back :]
        return taken, False


def _begun(text: str, stop: str) -> int:
    """Return the length of the longest end of a text that `stop` begins with."""
    return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)
