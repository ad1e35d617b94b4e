"""`generate`, as all loops over tokens have it, and the tokens that it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from aot.runtime.generation.sampling import Sampling

GREEDY = Sampling()


@dataclass(slots=True)
class Continuation:
    """Up to `max_tokens` tokens after a prompt, drawn by `sampling`; a token of `stop` is the last one."""

    max_tokens: int
    sampling: Sampling = GREEDY
    stop: frozenset[int] = frozenset()
    on_token: Callable[[int], object] | None = None
    tokens: list[int] = field(default_factory=list[int])

    def take(self, token: int) -> bool:
        """Append a token and give it to `on_token`, which may end the text; True if another token follows."""
        self.tokens.append(token)
        ended = self.on_token is not None and self.on_token(token) is False
        return not ended and token not in self.stop and len(self.tokens) < self.max_tokens


class TokenLoop(ABC):
    """A sequence of tokens that a language model continues."""

    def generate(
        self,
        ids: Sequence[int],
        tokens: int,
        sampling: Sampling = GREEDY,
        stop: Iterable[int] = (),
        on_token: Callable[[int], object] | None = None,
    ) -> list[int]:
        """Append `ids`, then up to `tokens` tokens; return these.

        It ends after a token of `stop`, which is returned, too, and where `on_token`, which gets each token at once,
        returns False. The last token is returned but not fed: append to it by another call. UsageError for `ids` that
        are no tokens of the model.
        """
        continuation = Continuation(tokens, sampling, frozenset(stop), on_token)
        self._continue(ids, continuation)
        return continuation.tokens

    @abstractmethod
    def _continue(self, ids: Sequence[int], continuation: Continuation) -> None:
        """Append `ids`, then tokens, if `made.max_tokens` is above 0: each one is taken, until no other follows."""
