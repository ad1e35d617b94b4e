"""Speculative decoding: a small model proposes tokens, and the large one checks all of them in one call.

drafting = Drafting(Generator(large), Generator(small))
drafting.generate([1, 2, 3], tokens=64)      the tokens of the large model alone, to the bit
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from aot.runtime.errors import UsageError
from aot.runtime.generation.generator import Generator
from aot.runtime.generation.sampling import Sampler
from aot.runtime.generation.token_loop import Continuation, TokenLoop

AHEAD = 3  # proposals a call: with four tokens at once a decoder takes about twice the time of one


class Drafting(TokenLoop):
    """Two sequences of equal tokens; each token is chosen from logits of the large model, by the rules of sampling.

    So it does not depend on proposals of the small model, which only decide how many tokens a call gives. Logits of the
    large model are the same bits for one token and for several.
    """

    def __init__(self, large: Generator, small: Generator, ahead: int = AHEAD) -> None:
        """`ahead`: tokens that are proposed for a call, 1 or more. UsageError for models that do not go together."""
        if large.vocab_size != small.vocab_size:
            raise UsageError(
                f"draft: must have {large.vocab_size} tokens, as the large model has, got {small.vocab_size}"
            )
        if not large.gives_all_logits:
            raise UsageError("draft: the large model must give all logits, as by --all-logits, got the last")
        if ahead < 1:
            raise UsageError(f"draft: must propose 1 token or more, got {ahead}")
        self.large, self.small, self.ahead = large, small, ahead
        self.proposed = self.accepted = 0  # tokens, of all calls of `generate`

    def _continue(self, ids: Sequence[int], continuation: Continuation) -> None:
        sampler, logits = Sampler(continuation.sampling), self.large.feed(ids)
        goes_on = continuation.max_tokens > 0 and continuation.take(sampler.choose(logits))
        while goes_on:
            kept, token = len(self.large.tokens), continuation.tokens[-1]
            drafts = self._proposals(token, min(self.ahead, continuation.max_tokens - len(continuation.tokens) - 1))
            rows = self.large.feed_all([token, *drafts])
            agreed = 0
            try:
                for row, draft in zip(rows, [*drafts, None], strict=True):
                    goes_on = continuation.take(sampler.choose(row))
                    if not goes_on or continuation.tokens[-1] != draft:
                        break
                    agreed += 1
            finally:  # an error of the callback must not leave tokens that were only proposed
                self.large.truncate(kept + 1 + agreed)
            self.proposed, self.accepted = self.proposed + len(drafts), self.accepted + agreed

    def _proposals(self, token: int, count: int) -> list[int]:
        """Return greedy tokens of the small model after the tokens of the large one and `token`."""
        if count <= 0:
            return []
        whole, proposals = [*self.large.tokens, token], list[int]()
        pairs = zip(self.small.tokens, whole, strict=False)
        self.small.truncate(sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)))
        fed = whole[len(self.small.tokens) :]
        while len(proposals) < count:
            proposals.append(int(self.small.feed(fed).argmax()))
            fed = proposals[-1:]
        return proposals
