"""Pages that are mapped before they are used."""

from __future__ import annotations

import mmap
import resource
from pathlib import Path

import numpy as np

from aot.runtime.loading.pages import populate

SIZE = 16 << 20


def faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def test_pages_of_a_file_are_mapped_at_once(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(bytes(SIZE))
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), SIZE, prot=mmap.PROT_READ) as mapped:
        pages = np.frombuffer(mapped, np.uint8)[:: mmap.PAGESIZE]
        done = populate(pages.ctypes.data + 100, SIZE - 100)
        before = faults()
        assert not pages.any()
        few = SIZE // mmap.PAGESIZE // 32  # a fault enters 16 pages where nothing has been mapped
        assert not done or faults() - before < few
        del pages


def test_memory_that_is_not_there_is_left_alone() -> None:
    assert not populate(0, 1 << 20)
