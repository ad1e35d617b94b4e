"""Errors that extensions raise."""

from __future__ import annotations

from aot.runtime.errors import UsageError


class BasicError(UsageError):
    """Error with a format for the others as its first argument: `Error("{} has no name", id)`."""

    def __str__(self) -> str:
        if len(self.args) <= 1:
            return super().__str__()
        return str(self.args[0]).format(*self.args[1:])


class FrameworkError(BasicError):
    """The model's framework failed."""


class Error(BasicError):
    """The user can correct it."""


class InferenceError(Error, AssertionError):
    """The inputs of a node do not fit its operation. Model Optimizer raised either class, and extensions catch it."""


class InternalError(BasicError):
    """The user cannot correct it."""


class AbsentError(AttributeError, KeyError):
    """A node has no attribute of this name. It is found as either class, so `getattr(node, name, default)` works."""

    def __str__(self) -> str:
        return AttributeError.__str__(self)
