"""`aot.runtime`: the package `runtime`, which runs compiled models without the compiler.

This file is for the checkout. Where aot is installed, the package itself lies here.
"""

from typing import TYPE_CHECKING

from runtime.alias import alias

if TYPE_CHECKING:
    from runtime import *  # noqa: F403  # the names for type checkers

alias(__name__, "runtime")
