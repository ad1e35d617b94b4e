"""Answers for systems that have no call for a thing, or need none: results are the same without it."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable
from pathlib import Path

CPUINFO = PROCESSORS = CACHES = CGROUP = Path(os.devnull)  # files of Linux


def refused_tiles(machine: str) -> str:
    """Return why the system gives no tile registers: none that is known here has a call for them."""
    return f"no such registers of {machine}"


def caches(folder: Path = CACHES) -> dict[str, int]:
    """Return nothing: the bytes of caches are not told."""
    del folder
    return {}


def processors() -> int:
    """Return the processors that the system runs on."""
    return os.cpu_count() or 1


def allowed_processors() -> set[int]:
    """Return all processors: a process cannot be kept from some."""
    return set(range(processors()))


def move_thread(allowed: Iterable[int]) -> bool:
    """Return False: the system chooses the processor of a thread."""
    del allowed
    return False


def place_of(processor: int, folder: Path = PROCESSORS) -> tuple[int, int]:
    """Return socket and core of a processor: a core of its own."""
    del folder
    return 0, processor


def memory_limit(root: Path = CGROUP) -> int | None:
    """Return None: there are no control groups."""
    del root
    return None


def cgroup_quota(proc: Path = CGROUP, root: Path = CGROUP) -> float | None:
    """Return None: there are no control groups."""
    del proc, root
    return None


def map_file(descriptor: int, offset: int, address: int, size: int) -> None:
    """Raise OSError: libraries for the system hold their weights."""
    raise OSError(f"weights: cannot be mapped at {address:#x} from byte {offset}, {size} bytes of file {descriptor}")


def prefer_large_pages(address: int, size: int) -> None:
    """Leave the size of pages to the system."""
    del address, size


def enter_pages(address: int, size: int) -> bool:
    """Return False: pages are entered by their first use."""
    del address, size
    return False


def small_pages(count: int) -> mmap.mmap:
    """Return `count` zeros; a page takes memory once it is touched. OSError or OverflowError."""
    return mmap.mmap(-1, count)


def join_pages(memory: mmap.mmap) -> None:
    """Leave the size of pages to the system."""
    del memory


def release(mapping: mmap.mmap, first: int, size: int) -> None:
    """Leave pages of files to the system, which takes them back when memory is short."""
    del mapping, first, size
