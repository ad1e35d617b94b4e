"""Speculative decoding without a small model: the text itself proposes tokens.

looking = LookUp(Generator(model))
looking.generate([1, 2, 3], tokens=64)      the tokens of the model alone, to the bit
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.runtime.generation.drafting import Drafting
from aot.runtime.generation.generator import Generator

AHEAD_IN_TEXT = 7  # proposals a call: they cost nothing, and eight tokens at once take little longer than four
SIZES = (3, 2)  # tokens at the end of a text that are looked for in it: the first number that is found


class LookUp(Drafting):
    """A sequence; the tokens that followed the last ones where they stood before are proposed, and checked."""

    def __init__(self, model: Generator, ahead: int = AHEAD_IN_TEXT) -> None:
        """`ahead`: tokens that are proposed for a call, 1 or more. UsageError for a model without all logits."""
        super().__init__(model, model, ahead)

    def _proposals(self, token: int, count: int) -> list[int]:
        return followed([*self.large.tokens, token], count)


def followed(tokens: Sequence[int], count: int) -> list[int]:
    """Return up to `count` tokens that followed the last earlier occurrence of a text's end; [] without one."""
    text = np.array(tokens, np.int64)
    for size in SIZES if count > 0 else ():
        if len(text) > size:
            before = np.lib.stride_tricks.sliding_window_view(text[:-1], size)
            positions = np.flatnonzero((before == text[-size:]).all(1))
            if len(positions):
                return text[positions[-1] + size :][:count].tolist()
    return []
