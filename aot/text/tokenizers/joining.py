"""The algorithm that byte-level BPE and SentencePiece's BPE have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush


def joined(parts: Sequence[str], rank: Callable[[str, str], float | None]) -> list[str]:
    """Join the two neighbours of the least rank, the first of equal ones, until no neighbours have a rank.

    Time is n log n in the number of parts.
    """
    texts, last = list(parts), len(parts)
    before, after = list(range(-1, last - 1)), list(range(1, last + 1))
    queue: list[tuple[float, int, int, int]] = []  # rank, places of both, length of what they make

    def offered(left: int, right: int) -> tuple[float, int, int, int] | None:
        if left < 0 or right >= last or (merge_rank := rank(texts[left], texts[right])) is None:
            return None
        return merge_rank, left, right, len(texts[left]) + len(texts[right])

    queue += [one for left in range(last - 1) if (one := offered(left, left + 1)) is not None]
    heapify(queue)
    while queue:
        _, left, right, length = heappop(queue)
        if not texts[left] or after[left] != right or len(texts[left]) + len(texts[right]) != length:
            continue  # one of them has been joined to another since
        texts[left], texts[right] = texts[left] + texts[right], ""
        following = after[left] = after[right]
        if following < last:
            before[following] = left
        for one in (offered(before[left], left), offered(left, following)):
            if one is not None:
                heappush(queue, one)
    return [text for text in texts if text]
