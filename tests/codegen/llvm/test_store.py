"""The store of object code: whole entries of the user's, whatever happens to its files, and a bound of bytes."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from aot.codegen.llvm.object import store as stores
from aot.codegen.llvm.object.store import SHARES, Store, compiler_digest

KEY, OTHER = "ab" + 62 * "0", "ab" + 62 * "1"
ROOT = Path(__file__).parents[3]


def file_of(store: Store, key: str = KEY) -> Path:
    return store.folder / key[:2] / key


def made_older(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "a" / "kernels")
    made.put(KEY, b"code")
    return made


def test_entries_are_read_back(store: Store) -> None:
    assert store.get(KEY) == b"code" and store.get(OTHER) is None
    store.put(KEY, b"new")
    assert Store(store.folder).get(KEY) == b"new"
    assert store.folder.stat().st_mode & 0o777 == 0o700 and file_of(store).stat().st_mode & 0o777 == 0o600
    assert [entry.key for entry in store.entries()] == [KEY] and store.damaged() == []


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"E")


def open_to_others(path: Path) -> None:
    path.chmod(0o620)


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def other_entry(path: Path) -> None:
    path.rename(path.with_name(OTHER))


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


@pytest.mark.parametrize("damage", [cut, flip, open_to_others, link, fifo])
def test_a_damaged_entry_is_removed_and_made_again(store: Store, damage: Callable[[Path], None]) -> None:
    damage(file_of(store))
    assert store.get(KEY) is None and not os.path.lexists(file_of(store))
    store.put(KEY, b"code")
    assert store.get(KEY) == b"code"


def test_an_entry_is_not_taken_for_another_one(store: Store) -> None:
    other_entry(file_of(store))
    assert store.damaged() == [OTHER] and store.entries() == []


@pytest.mark.parametrize("place", ["folder", "share"])
@pytest.mark.parametrize("mode", [0o755, 0o770, None])
def test_a_folder_of_others_is_not_used(store: Store, place: str, mode: int | None) -> None:
    folder = store.folder if place == "folder" else store.folder / KEY[:2]
    if mode is None:
        folder.rename(folder.with_name("real"))
        folder.symlink_to("real")
    else:
        folder.chmod(mode)
    assert store.get(KEY) is None
    Store(store.folder).put(OTHER, b"more")
    assert not list(store.folder.glob(f"*/{OTHER}"))
    assert list(store.folder.glob(f"*/{KEY}")), "what is there is left alone"


def test_a_folder_of_another_user_is_not_used(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert store.get(KEY) is None and store.entries() == []


def test_least_recently_used_entries_are_evicted_first(tmp_path: Path) -> None:
    store = Store(tmp_path / "kernels", most_bytes=SHARES * 300)
    keys = [f"ab{n:02x}" + 60 * "0" for n in (1, 2, 3)]
    for age, key in zip((9000, 8000, 7000), keys, strict=True):
        store.put(key, bytes(60))
        made_older(file_of(store, key), age)
    assert store.get(keys[0]) is not None  # now the last used one
    store.put("ab00" + 60 * "0", bytes(60))
    assert {entry.key[2:4] for entry in store.entries()} == {"00", "01", "03"}
    store.put(KEY[:2] + 62 * "f", bytes(300))
    assert len(store.entries()) == 3, "an entry has its folder's share at most"
    assert {entry.key[2:4] for entry in store.shrink(most_bytes=100)} == {"01", "03"}
    assert [entry.key[2:4] for entry in store.entries()] == ["00"]


def test_files_of_dead_processes_are_removed(store: Store) -> None:
    old, new = (store.folder / KEY[:2] / name for name in (".old", ".new"))
    for path in (old, new):
        path.touch()
    made_older(old, 7200)
    assert len(store.entries()) == 1
    store.shrink()
    assert not old.exists() and new.exists() and store.get(KEY) == b"code"


def test_a_full_disk_is_not_told(store: Store) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        store.put(OTHER, bytes(1000))
        store.put(OTHER, b"")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in (store.folder / KEY[:2]).iterdir()] == [KEY], "and nothing is left of it"


WRITER = """import sys
from pathlib import Path
from aot.codegen.llvm.object.store import Store

store = Store(Path(sys.argv[1]))
print("ready", flush=True)
while True:
    for n in range(32):
        store.put(f"ab{n:062x}", bytes([n]) * 20000)"""


def test_writers_that_are_killed_leave_whole_entries(tmp_path: Path) -> None:
    words = [sys.executable, "-c", WRITER, str(tmp_path / "kernels")]
    writers = [subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE) for _ in range(2)]
    store, found = Store(tmp_path / "kernels"), 0
    for writer in writers:
        assert writer.stdout is not None and writer.stdout.readline()
    end = time.monotonic() + 60
    while found < 200 and time.monotonic() < end:
        for n in range(32):
            content = store.get(f"ab{n:062x}")
            assert content in (None, bytes([n]) * 20000)
            found += content is not None
    for writer in writers:
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
    assert found >= 200 and store.damaged() == []


def test_code_that_changes_while_a_process_runs_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler_digest.cache_clear()
    assert compiler_digest() is not None
    compiler_digest.cache_clear()
    monkeypatch.setattr(stores, "_IMPORTED", 0.0)
    assert compiler_digest() is None
    compiler_digest.cache_clear()
