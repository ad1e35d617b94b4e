"""Everything that this package asks of the operating system: a folder for each; a process takes its own.

loading     opens and replaces files, maps an open library into the process, and unloads it
memory      maps weights, enters pages into the page table, gives them back
processor   features, caches, processors that this process may use, memory, control groups

What a system has no call for does nothing (`defaults`): it makes code faster, or reports a limit.
"""

import sys

from aot.runtime.errors import PlatformError

if sys.platform == "win32":
    from aot.runtime.systems import defaults as memory
    from aot.runtime.systems.windows import loading, processor

    SYSTEM = "windows"
elif sys.platform == "darwin":
    from aot.runtime.systems import defaults as memory
    from aot.runtime.systems.linux import loading
    from aot.runtime.systems.macos import processor

    SYSTEM = "macos"
elif sys.platform == "linux":
    from aot.runtime.systems.linux import loading, memory, processor

    SYSTEM = "linux"
else:
    raise PlatformError(f"runtime: the system must be Linux, macOS or Windows, got {sys.platform}")

__all__ = ["SYSTEM", "loading", "memory", "processor"]
