"""The digest that a compiled model contains of itself, so that damage is detected before the system maps the file."""

from __future__ import annotations

from pathlib import Path

from aot.runtime.abi import SEAL_SECTION, WEIGHTS_SECTION
from aot.runtime.loading.binary_file import BinaryFile, binary_file


def digest_of(file: BinaryFile) -> bytes:
    """Return the SHA-256 of all but the seal and the weights, which are large and have their own hash."""
    has_weights = any(section.name == WEIGHTS_SECTION for section in file.sections)
    return file.digest(without=(SEAL_SECTION, WEIGHTS_SECTION) if has_weights else (SEAL_SECTION,))


def is_whole(file: BinaryFile) -> bool:
    """True if the file's digest is the one in its seal."""
    return file.section(SEAL_SECTION) == digest_of(file)


def seal(path: Path) -> None:
    """Write the digest of the file into its seal."""
    with path.open("r+b") as stream:
        file = binary_file(stream, path.name)
        digest = digest_of(file)
        stream.seek(file.find(SEAL_SECTION).offset)
        stream.write(digest)
