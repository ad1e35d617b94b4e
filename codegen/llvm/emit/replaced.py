"""State of the emitter that holds for some instructions, such as the vector axis, and is then restored."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def replaced(owner: object, **values: object) -> Generator[None]:
    """Set attributes of `owner`, and restore them at the end."""
    saved = {name: getattr(owner, name) for name in values}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in saved.items():
            setattr(owner, name, value)
