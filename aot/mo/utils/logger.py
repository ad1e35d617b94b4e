"""Logging as extensions set it up. The root logger is the program's: nothing here changes it but by its level."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

State = tuple[int, list[Any], list[Any]]


def init_logger(lvl: str, silent: bool) -> None:
    """Set the level of messages; `silent`: errors alone."""
    logging.getLogger("aot.mo").setLevel("ERROR" if silent else lvl)


def get_logger_state() -> State:
    """Return level, filters and handlers of the root logger."""
    logger = logging.getLogger()
    return logger.level, list(logger.filters), list(logger.handlers)


def restore_logger_state(state: State) -> None:
    """Set level, filters and handlers of the root logger."""
    logger = logging.getLogger()
    logger.setLevel(state[0])
    logger.filters, logger.handlers = list(state[1]), list(state[2])


def progress_bar(function: Callable[..., Any]) -> Callable[..., None]:
    """Return a function that calls `function`: the compiler itself shows the progress."""

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> None:
        function(*args, **kwargs)

    return wrapper
