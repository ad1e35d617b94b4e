"""`import runtime` where aot is installed: another name of `aot.runtime`, hidden by a project's own `runtime`."""

from typing import TYPE_CHECKING

from aot.runtime.alias import alias

if TYPE_CHECKING:
    from aot.runtime import *  # noqa: F403  # the names for type checkers

alias(__name__, "aot.runtime")
