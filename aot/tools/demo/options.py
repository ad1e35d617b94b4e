"""Options of pages, as the command line takes them."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    CLASSES, BOXES, CHAT, SEARCH = "classes", "boxes", "chat", "search"


class Options(NamedTuple):
    """Options of a page; `top`: the most rows that are shown, `tokens`: the longest answer."""

    labels: list[str]
    top: int | None  # None: the usual number
    tokens: int
