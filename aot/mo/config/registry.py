"""The entries of all configuration files of one compilation."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from aot.mo.config.descriptor import CustomReplacementDescriptor
from aot.mo.config.schema import read_entries

Entries = Mapping[str, list[CustomReplacementDescriptor]]

_CURRENT: ContextVar[Entries] = ContextVar("entries")


def parse_custom_replacement_config_file(file_name: str) -> list[CustomReplacementDescriptor]:
    """Return the entries of a file; errors name the file, the entry and the field."""
    entries = read_entries(Path(file_name))
    return [CustomReplacementDescriptor.create_instance(e["match_kind"], e["id"], e) for e in entries]


def entries_of(files: Iterable[Path]) -> dict[str, list[CustomReplacementDescriptor]]:
    """Return the entries of files by their id."""
    descriptors: dict[str, list[CustomReplacementDescriptor]] = {}
    for file in files:
        for entry in parse_custom_replacement_config_file(str(file)):
            descriptors.setdefault(entry.replacement_id, []).append(entry)
    return descriptors


@contextmanager
def entries(new_entries: Entries) -> Generator[None]:
    """Let transformations find these entries."""
    token = _CURRENT.set(new_entries)
    try:
        yield
    finally:
        _CURRENT.reset(token)


class CustomReplacementRegistry:
    """Gives the entries of the compilation that runs."""

    def get_custom_replacement_description(self, replacement_id: str) -> Any:
        """Return the entries with an id; None if there are none."""
        return self.registry.get(replacement_id)

    def get_all_replacements_descriptions(self) -> list[CustomReplacementDescriptor]:
        return [entry for group in self.registry.values() for entry in group]

    @property
    def registry(self) -> Entries:
        return _CURRENT.get({})
