"""Options of a compilation: `table` declares each of them once, for Python, the command line and what is recorded."""

from aot.options.table import CompileOptions, Event, Stage

__all__ = ["CompileOptions", "Event", "Stage"]
