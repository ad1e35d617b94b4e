"""Options of a compilation: `table` declares each of them once, for Python, the command line and what is recorded."""

from aot.options.stage import Event, Stage
from aot.options.table import CompileOptions

__all__ = ["CompileOptions", "Event", "Stage"]
