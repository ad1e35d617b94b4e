"""Everything that this package asks of the operating system: a folder for each, of which a process takes its own.

loading     maps an open library into the process, and unloads it
memory      maps weights, enters pages into the page table
processor   features, caches, processors that this process may use, memory, control groups
"""

import sys

from aot.runtime.errors import PlatformError

if sys.platform != "linux":
    raise PlatformError(f"runtime: the system must be Linux, got {sys.platform}")

from aot.runtime.systems.linux import loading, memory, processor

__all__ = ["loading", "memory", "processor"]
