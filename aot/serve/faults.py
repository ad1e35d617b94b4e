"""Errors of a server, and their codes in HTTP and gRPC."""

from __future__ import annotations

from aot.runtime.errors import AotError, BudgetError, CancelledError, UsageError


class UnknownModelError(UsageError):
    """There is no model, or no version, of that name."""


class TooLargeError(UsageError):
    """A request is larger than the server allows."""


class TokenError(UsageError):
    """A request has no token, or another one."""


class SlowError(UsageError):
    """A request did not arrive in time."""


class QueueFullError(AotError):
    """The queue of a model is full."""


class UnavailableError(AotError):
    """The model or the server is being stopped."""


class DeadlineError(AotError):
    """An inference did not end in time."""


_CODES: tuple[tuple[type[BaseException], int, str], ...] = (  # the first class that fits counts
    (UnknownModelError, 404, "NOT_FOUND"),
    (TooLargeError, 413, "RESOURCE_EXHAUSTED"),
    (TokenError, 401, "UNAUTHENTICATED"),
    (SlowError, 408, "DEADLINE_EXCEEDED"),
    (QueueFullError, 429, "RESOURCE_EXHAUSTED"),
    (UnavailableError, 503, "UNAVAILABLE"),
    (DeadlineError, 504, "DEADLINE_EXCEEDED"),
    (CancelledError, 504, "DEADLINE_EXCEEDED"),
    (BudgetError, 413, "RESOURCE_EXHAUSTED"),
    (UsageError, 400, "INVALID_ARGUMENT"),
)


def http_status(error: BaseException) -> int:
    """Return the status code of an error."""
    return next((status for kind, status, _ in _CODES if isinstance(error, kind)), 500)


def grpc_code(error: BaseException) -> str:
    """Return the name of gRPC's code for an error."""
    return next((code for kind, _, code in _CODES if isinstance(error, kind)), "INTERNAL")
