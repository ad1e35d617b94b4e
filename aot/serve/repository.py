"""The models of a server: found in files and folders, loaded, replaced without dropping a request, unloaded.

m.so                       model `m`, version 1
name=m.so                  model `name`, version 1
folder/m.so                as m.so
folder/name/2/any.so       model `name`, version 2: the layout of Triton and OpenVINO Model Server
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from urllib.parse import quote

from aot.codegen.dataclass import dataclass
from aot.runtime.errors import AotError, UsageError
from aot.runtime.inference.executor import Executor
from aot.runtime.loading.library import Pool, open_library
from aot.runtime.loading.weights import beside
from aot.runtime.machine import default_threads
from aot.runtime.model import CompiledModel
from aot.serve.faults import UnavailableError, UnknownModelError
from aot.serve.metrics import Metrics
from aot.serve.served_model import ServedModel
from aot.serve.settings import Settings
from aot.tools.supply import signature

_LOG = logging.getLogger(__name__)
_NAMED = re.compile(r"([^=/]+)=(.+)")

Files = dict[str, dict[str, Path]]  # by model and version
Stamp = tuple[tuple[int, int, int, int], ...]


@dataclass(slots=True)
class ModelVersion:
    """The file of a version of a model, with the loaded model, or the reason why there is none.

    `stamp`: of the files that were tried last; `error`: why they are refused. A model that was loaded before them may
    be served still.
    """

    path: Path
    stamp: Stamp = ()
    served: ServedModel | None = None
    reason: str = ""
    error: Exception | None = None

    def holds(self, stamp: Stamp, path: Path) -> bool:
        """True if these files were tried last, and no error of the system kept them from being read."""
        return (stamp, path) == (self.stamp, self.path) and not isinstance(self.error, OSError)


@dataclass(slots=True)
class Repository:
    """Models by name and version. `change` is called in the event loop, `find` anywhere."""

    sources: Sequence[str]
    settings: Settings
    metrics: Metrics = field(default_factory=Metrics)
    is_draining: bool = False  # not ready: the server is about to stop
    is_closed: bool = False
    _models: dict[str, dict[str, ModelVersion]] = field(default_factory=dict[str, dict[str, ModelVersion]])
    _unloaded: set[str] = field(default_factory=set[str])  # by request: not loaded again by polling
    _pool: Pool | None = None
    _threads: int = field(init=False)
    _changing: asyncio.Lock = field(default_factory=asyncio.Lock)
    executor: Executor = field(init=False)
    _closing: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    def __post_init__(self) -> None:
        self._threads = self.settings.threads or max(1, default_threads() // self.settings.workers)
        self.executor = Executor(self.settings.jobs or self._threads, "aot-serve")

    def find(self, name: str, version: str = "") -> ServedModel:
        """Return a loaded version, the latest by default; UnknownModelError if there is none."""
        versions = self.versions(name)
        entry = self._models.get(name, {}).get(version or (versions[-1] if versions else ""))
        if entry is None or entry.served is None:
            what = f"model '{name[:80]}'" + (f", version '{version[:20]}'" if version else "")
            raise UnknownModelError(f"{what}: must be one that is loaded, got none")
        return entry.served

    def versions(self, name: str) -> list[str]:
        """Return the loaded versions of a model, the latest last."""
        return sorted((v for v, p in self._models.get(name, {}).items() if p.served is not None), key=int)

    def loaded(self) -> list[ServedModel]:
        """Return all loaded versions of all models."""
        return [p.served for entries in self._models.values() for p in entries.values() if p.served is not None]

    def index(self) -> list[dict[str, str]]:
        """Return name, version, state and reason of each version that there is or was."""
        return [
            {
                "name": name,
                "version": version,
                "state": "READY" if entry.served is not None else "UNAVAILABLE",
                "reason": entry.reason,
            }
            for name, entries in sorted(self._models.items())
            for version, entry in sorted(entries.items(), key=lambda item: int(item[0]))
        ]

    async def change(self, name: str | None = None, *, again: bool = True) -> list[str]:
        """Load new and replaced versions, and unload removed ones: of the model `name`, or of all.

        Returns a sentence for each file that was tried and refused; a model loaded of it before is still served.
        `again`: files that were refused are tried again, though they are the same. Raises UnknownModelError if there
        is no file for `name`.
        """
        if name is not None:
            self._check_alone()
        async with self._changing:
            files = await asyncio.to_thread(scan, self.sources)
            if name is not None:
                if name not in files:
                    raise UnknownModelError(f"model '{name[:80]}': must have a file in the repository, got none")
                self._unloaded.discard(name)
            selected = {n: v for n, v in files.items() if n not in self._unloaded and name in (None, n)}
            problems: list[str] = []
            for model, versions in selected.items():
                for version, path in versions.items():
                    problem = await self._load(model, version, path, again)
                    problems += [problem] if problem else []
            for model in [n for n in self._models if name in (None, n)]:
                for version in self._models[model].keys() - selected.get(model, {}).keys():
                    self._retire(model, version, "there is no file any more")
            self.metrics.loaded.set(len(self.loaded()))
            return problems

    def _check_alone(self) -> None:
        """Raise UsageError in one of several processes: a request reaches one of them."""
        if self.settings.workers > 1:
            raise UsageError("load: must be by SIGHUP or --poll where several --workers serve, got a request")

    def check_ready(self) -> None:
        """Raise UnavailableError while the server stops, and unless each file has a loaded model."""
        if self.is_draining:
            raise UnavailableError("server: must not be stopping, got a request")
        missing = [
            f"{name} version {version}"
            for name, entries in sorted(self._models.items())
            for version, entry in entries.items()
            if entry.served is None and entry.error is not None
        ]
        if missing and self.settings.strict_readiness:
            raise UnavailableError(f"server: all models must be loaded, got none of {', '.join(missing)[:200]}")

    def errors(self) -> list[Exception]:
        """Return why files are not loaded."""
        return [p.error for entries in self._models.values() for p in entries.values() if p.error is not None]

    async def unload(self, name: str) -> None:
        """Unload all versions of a model, and answer the requests that it has accepted; UnknownModelError."""
        self._check_alone()
        async with self._changing:
            if not self.versions(name):
                raise UnknownModelError(f"model '{name[:80]}': must be one that is loaded, got none")
            self._unloaded.add(name)
            for version in self.versions(name):
                self._retire(name, version, "unloaded")
            self.metrics.loaded.set(len(self.loaded()))

    async def close(self) -> None:
        """Answer the requests that were accepted, and take no others."""
        await asyncio.gather(*(served.close() for served in self.loaded()), *self._closing)

    async def _load(self, name: str, version: str, path: Path, again: bool) -> str:
        entry = self._models.setdefault(name, {}).setdefault(version, ModelVersion(path))
        stamp: Stamp = ()
        try:
            stamp = _stamp(path)
            if entry.holds(stamp, path) and not (again and entry.error is not None):
                return ""
            served = await asyncio.to_thread(self._open, name, version, path)
        except (AotError, OSError) as error:
            entry.reason, entry.error = str(error), error
            _LOG.error("%s version %s: not loaded: %s", name, version, error)
            return f"{name} version {version}: {error}"
        finally:
            entry.stamp, entry.path = stamp, path
        before, entry.served, entry.reason, entry.error = entry.served, served, "", None
        _LOG.info("%s version %s: loaded from %s", name, version, path)
        if before is not None:
            self._close(before)
        return ""

    def _open(self, name: str, version: str, path: Path) -> ServedModel:
        key = self.settings.verify_key
        trusted = None if key is None else partial(signature.verify_stream, library=path, key=key)
        library = open_library(path, strict=self.settings.strict, trusted=trusted)
        threads = self._threads if self._pool is None else None
        model = CompiledModel(library, threads, self._pool, path.resolve())
        self._pool = model.pool
        return ServedModel(model, name, version, path, self.settings.of(name), self.executor, self.metrics)

    def _retire(self, name: str, version: str, reason: str) -> None:
        entry = self._models[name][version]
        if entry.served is not None:
            self._close(entry.served)
            self.metrics.forget(name, version)
            _LOG.info("%s version %s: unloaded: %s", name, version, reason)
        entry.served, entry.stamp, entry.reason, entry.error = None, (), reason, None

    def _close(self, served: ServedModel) -> None:
        task = asyncio.get_running_loop().create_task(served.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def scan(sources: Iterable[str]) -> Files:
    """Return the libraries that `sources` name: files, NAME=FILE, folders. UsageError for two files of one version."""
    paths: Files = {}
    for source in sources:
        named = None if Path(source).exists() else _NAMED.fullmatch(source)
        path = Path(named[2] if named else source)
        if path.is_dir() and not named:
            for child in sorted(path.iterdir()):
                _add_child(paths, child)
        elif path.is_file():
            _add(paths, named[1] if named else path.stem, "1", path)
        else:
            raise UsageError(f"serve: {source}: must be a compiled model or a folder of them, got neither")
    return paths


def _add_child(paths: Files, child: Path) -> None:
    if child.suffix == ".so" and child.is_file() and not child.name.startswith("."):
        _add(paths, child.stem, "1", child)
    elif child.is_dir():
        for version in sorted(child.iterdir()):
            libraries = sorted(p for p in version.glob("*.so") if not p.name.startswith("."))
            if version.name.isascii() and version.name.isdecimal() and libraries:
                if len(libraries) > 1:
                    raise UsageError(f"serve: {version}: must hold one compiled model, got {len(libraries)}")
                _add(paths, child.name, str(int(version.name)), libraries[0])


def _add(paths: Files, name: str, version: str, path: Path) -> None:
    if quote(name, safe=" +@~") != name:
        raise UsageError(f"serve: {path}: a model's name must be plain text, got {name!r}; name it: NAME={path}")
    other = paths.setdefault(name, {}).setdefault(version, path)
    if other != path:
        raise UsageError(f"serve: {name} version {version}: must be one file, got {other} and {path}")


def _stamp(path: Path) -> Stamp:
    """Return facts that change when a library, its weights or its signature are replaced; OSError without a library."""
    others = [p for p in (beside(path), signature.signature_of(path)) if p.exists()]
    return tuple((s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns) for s in (path.stat(), *(p.stat() for p in others)))
