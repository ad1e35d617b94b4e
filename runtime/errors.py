"""Errors, one tree.

AotError
|- UsageError          the caller's mistake: a wrong argument, dtype or shape                   exit code 2
|  `- BusyError        the request is running
|- CancelledError      an inference was given up                                                exit code 1
|- ModelError          the model is wrong: a rule of an operation or of the graph is broken     exit code 4
|  |- ShapeError       an operation's inputs do not fit it
|  `- CorruptError     a file is damaged, truncated or hostile
|- UnsupportedError    the model is valid, but this compiler does not support it                           exit code 3
|- PlatformError       wrong machine, wrong ABI                                                 exit code 5
|  `- MissingError     a linker or a package that is not installed
|- BudgetError         over a limit of time, memory or size                                     exit code 6
`- InternalError       our bug                                                                  exit code 1
   |- PassError        a pass broke the graph
   `- ScheduleError    a schedule does not fit its definition
"""


class AotError(Exception):
    """Root of all errors that this project raises on purpose.

    `advice`: the next step, if the error has a more specific one than its class; it is a note of the error, too.
    """

    exit_code = 1
    advice = ""

    def __init__(self, *args: object, advice: str = "") -> None:
        super().__init__(*args)
        if advice:
            self.advice = advice
            self.add_note(advice)


class UsageError(AotError, ValueError):
    """The caller's mistake: a wrong argument, dtype or shape."""

    exit_code = 2


class BusyError(UsageError):
    """The request is running."""


class CancelledError(AotError):
    """The inference was given up by `cancel()`."""


class ModelError(AotError):
    """The model breaks a rule of an operation or of the graph."""

    exit_code = 4


class ShapeError(ModelError):
    """The inputs of an operation do not fit it."""


class CorruptError(ModelError):
    """A file is damaged, truncated or hostile."""


class UnsupportedError(AotError):
    """The model is valid, but this compiler does not support it."""

    exit_code = 3


class PlatformError(AotError):
    """Wrong machine or wrong ABI version."""

    exit_code = 5


class MissingError(PlatformError):
    """A required linker or package is not installed."""


class BudgetError(AotError):
    """A limit of time, memory or size is exceeded."""

    exit_code = 6


class InternalError(AotError):
    """A bug of this project."""


class PassError(InternalError):
    """A pass failed or left a broken graph."""


class ScheduleError(InternalError):
    """A schedule does not fit its definition."""
