"""Data files beside a model: only ordinary files inside of the model's folder are read, within their bounds."""

from __future__ import annotations

import mmap
from pathlib import Path, PurePosixPath, PureWindowsPath

from aot.runtime.errors import CorruptError


class ExternalData:
    """The files in the folder of a model; each is mapped once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._maps: dict[Path, memoryview] = {}

    def read(self, tensor: str, location: str, offset: int, length: int | None) -> memoryview:
        """Return `length` bytes at `offset` (None: the rest of the file).

        CorruptError for a path that leaves the folder, by its text or by a link, and for bytes beyond the end of the
        file.
        """
        path = self._inside(tensor, location)
        if path not in self._maps:
            self._maps[path] = _mapped(path)
        data = self._maps[path]
        count = len(data) - offset if length is None else length
        if offset < 0 or count < 0 or offset + count > len(data):
            raise CorruptError(
                f"tensor {tensor!r}: data must be inside of {location!r}, which has {len(data)} bytes, "
                f"got offset {offset} and length {count}"
            )
        return data[offset : offset + count]

    def _inside(self, tensor: str, location: str) -> Path:
        rule = f"tensor {tensor!r}: external data must be a file in the model's folder"
        pure = PurePosixPath(location)
        absolute = pure.is_absolute() or bool(PureWindowsPath(location).drive)
        if not location or "\0" in location or absolute or ".." in pure.parts:
            raise CorruptError(f"{rule}, got {location[:80]!r}")
        try:
            path = (self.folder / pure).resolve(strict=True)
        except (OSError, RuntimeError) as error:
            raise CorruptError(f"{rule}, got {location[:80]!r}: there is none") from error
        if not path.is_relative_to(self.folder) or not path.is_file():
            raise CorruptError(f"{rule}, got {location[:80]!r}, which leads elsewhere")
        return path


def _mapped(path: Path) -> memoryview:
    with path.open("rb") as file:
        if not path.stat().st_size:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
