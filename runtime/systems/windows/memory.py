"""Pages of memory: Windows has one size of them, and takes those of files back."""

from aot.runtime.systems.defaults import enter_pages, join_pages, map_file, prefer_large_pages, release, small_pages

__all__ = ["enter_pages", "join_pages", "map_file", "prefer_large_pages", "release", "small_pages"]
