"""Metadata of a model's file for people: licence, author, description."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

NAMES = ("author", "authors", "copyright", "description", "licence", "license", "license_name", "model_author", "url")
MAX_LENGTH = 500  # characters of a text


def about(rt_info: Mapping[str, object]) -> dict[str, str]:
    """Return the graph's metadata strings with keys that end in one of `NAMES`, by key; long ones are truncated."""
    return {name: value[:MAX_LENGTH] for name, value in flat(rt_info) if _last(name) in NAMES and value}


def flat(rt_info: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the strings of nested metadata with their keys, joined by dots."""
    for key, value in rt_info.items():
        if isinstance(value, Mapping):
            yield from flat(cast("Mapping[str, object]", value), f"{prefix}{key}.")
        elif isinstance(value, str):
            yield prefix + key, value


def _last(name: str) -> str:
    return name.rpartition(".")[2].lower().replace(" ", "_")
