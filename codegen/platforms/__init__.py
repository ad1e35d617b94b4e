"""Operating systems as code and files are made for them, a file each."""

from aot.codegen.platforms.linux import LINUX
from aot.codegen.platforms.platform import Platform
from aot.runtime.errors import UnsupportedError

PLATFORMS: dict[str, Platform] = {known.name: known for known in (LINUX,)}


def platform_of(triple: str) -> Platform:
    """Return the platform of a triple; UnsupportedError if none is known by its name."""
    found = next((PLATFORMS[part] for part in triple.split("-") if part in PLATFORMS), None)
    if found is None:
        raise UnsupportedError(f"target: the system is one of {', '.join(PLATFORMS)}, got {triple}")
    return found


__all__ = ["LINUX", "PLATFORMS", "Platform", "platform_of"]
