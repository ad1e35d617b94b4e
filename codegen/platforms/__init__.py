"""Operating systems as code and files are made for them, a file each."""

from aot.codegen.platforms.android import ANDROID
from aot.codegen.platforms.linux import LINUX
from aot.codegen.platforms.macos import MACOS
from aot.codegen.platforms.platform import Format, Platform
from aot.codegen.platforms.wasm import WASM
from aot.codegen.platforms.windows import WINDOWS
from aot.runtime.errors import UnsupportedError
from aot.runtime.machine import system_of
from aot.runtime.systems import SYSTEM

PLATFORMS: dict[str, Platform] = {known.name: known for known in (LINUX, WINDOWS, ANDROID, MACOS, WASM)}


def platform_of(triple: str) -> Platform:
    """Return the platform of a triple; UnsupportedError if none is known by its name."""
    platform = PLATFORMS.get(system_of(triple))
    if platform is None:
        raise UnsupportedError(f"target: the system must be one of {', '.join(PLATFORMS)}, got {triple}")
    return platform


def platform_named(target: str) -> Platform:
    """Return the platform of a target's name, which begins with the system's but on Linux; `native` is this system."""
    if target == "native":
        return PLATFORMS[SYSTEM]
    return next((known for known in PLATFORMS.values() if known.prefix and target.startswith(known.prefix)), LINUX)


__all__ = [
    "ANDROID",
    "LINUX",
    "MACOS",
    "PLATFORMS",
    "WASM",
    "WINDOWS",
    "Format",
    "Platform",
    "platform_named",
    "platform_of",
]
