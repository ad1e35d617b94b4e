"""A user's extensions: Python files, in folders or alone, which run as part of the compiler.

    DIR/ops/*.py            operations, under @op
    DIR/front/*.py          passes of a phase: classes with `find_and_replace_pattern` or `__call__`, and the rules of
    DIR/middle/*.py         a file as one pass of its name; in front conversions, too, of a framework's operations
    DIR/back/*.py
    DIR/front/onnx/*.py     the same for models of one framework alone: onnx (and IR), tf, tflite, pt2, caffe; and
                            the files in front/onnx/extractors
    FILE.py                 one file that is all of an extension, like one in DIR/front

Files see each other by relative imports: `from ..ops.mine import Mine`. Modules that they import from the folder, or
from beside it, are part of them. Their registrations hold in the compilations that name the folder, and in no other.
Classes that derive from Model Optimizer's base classes run in its phases (`aot.mo`).
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import field
from importlib import import_module
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import Any, TypeVar

from aot.codegen.dataclass import dataclass
from aot.extensions.declarations import check_used, lost_methods, passes_in
from aot.extensions.modules import Modules
from aot.ir.scope import Scope, raised_in, within
from aot.options import CompileOptions
from aot.options.derived import switches, with_environment
from aot.passes.pass_order import PHASES, name_of
from aot.runtime.errors import MissingError, UnsupportedError, UsageError

OPERATIONS = "ops"
T = TypeVar("T")
ONNX = "onnx"
FRAMEWORKS = (
    ONNX,
    "tf",
    "tflite",
    "pt2",
    "caffe",
    "paddle",
)  # folders of front/, of which only the one for the model's framework is read
OTHERS = ("caffe", "kaldi", "mxnet")  # frameworks that Model Optimizer knew, and nothing reads here
_READ = "a configuration file is read by transformations in --extensions"
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Extensions:
    """The passes and registrations of folders, and the modules that they were loaded from."""

    passes: tuple[object, ...]
    scope: Scope
    modules: tuple[Modules, ...]
    inputs: tuple[tuple[str, bytes], ...] = ()  # configuration files and variables, by name

    @property
    def digest(self) -> str:
        """SHA-256 of the source of all modules that have been loaded, and of `inputs`, hexadecimal."""
        digest = hashlib.sha256()
        sources = [(label, data) for modules in self.modules for label, data in sorted(modules.sources().items())]
        for label, data in (*sources, *self.inputs):
            digest.update(f"{label} {len(data)}\n".encode() + data)
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class _Loaded:
    """Folders in memory: their files and declarations."""

    files: list[list[Path]]
    passes: tuple[object, ...]
    scope: Scope
    modules: tuple[Modules, ...]
    for_mo: list[list[Any]] = field(default_factory=list[list[Any]])  # classes for Model Optimizer's phases, by folder


_LOADED: dict[tuple[object, ...], _Loaded] = {}  # by framework and folders; loaded anew when a file changes
_LOADING = RLock()


def load_extensions(
    folders: Path,
    config: Sequence[Path] = (),
    enable: Sequence[str] = (),
    disable: Sequence[str] = (),
    framework: str = ONNX,
    keep_layout: bool = False,
) -> Extensions:
    """Load the extensions in a folder or a file, or in several with commas between them, for a model of a framework.

    UsageError for passes that cannot be run.

    `config`: configuration files of transformations (`--transformations-config`); `enable`, `disable`: classes that are
    switched on or off, by `id`, name, or module and name; `keep_layout`: NHWC does not become NCHW.
    """
    paths = folders_of(folders)
    files = [[p] if p.suffix == ".py" and p.is_file() else _files(p, framework) for p in paths]
    for path, names in zip(paths, files, strict=True):
        if not names and not any(_files(path, other) for other in FRAMEWORKS):
            kinds = ", ".join((OPERATIONS, *PHASES))
            raise UsageError(f"--extensions: must be a folder with .py files in {kinds}, got {path}")
    key = (framework, *paths)
    with _LOADING:
        known = _LOADED.get(key)
        if known is None or known.files != files or any(modules.changed() for modules in known.modules):
            known = _LOADED[key] = _load(paths, files)
    return _extensions(known, config, (enable, disable), framework, keep_layout)


def load_for(options: CompileOptions, framework: str) -> Extensions | None:
    """Load the extensions that options name, for a model of a framework; None without any."""
    config, with_variables = options.transformations_config, with_environment(options)
    if with_variables.extensions is not None:
        on, off = with_variables.enable_transforms or (), with_variables.disable_transforms or ()
        return load_extensions(
            with_variables.extensions, config, on, off, framework, with_variables.disable_layout_change
        )
    if config:
        raise UsageError(f"{_flag(config[0])}: {_READ}, got none for {config[0]}")
    names = sorted({name for names_of_option in switches(options).values() for name in names_of_option})
    if names:
        transforms: Any = import_module("aot.mo.transforms")
        _refuse([name for name in names if not transforms.is_known(name)])
    return None


def _flag(config: Path) -> str:
    """Return the option that names a configuration file."""
    return "-k" if config.suffix == ".xml" else "--transformations-config"


def folders_of(path: Path) -> tuple[Path, ...]:
    """Return the folders that a path names: itself, or those between commas."""
    parts = [str(path)] if path.exists() else str(path).split(",")
    return tuple(Path(os.path.realpath(part)) for part in parts if part)  # a link in a circle is a path that is absent


def _extensions(
    loaded: _Loaded,
    config: Sequence[Path],
    switched: tuple[Sequence[str], Sequence[str]],
    framework: str,
    keep_layout: bool,
) -> Extensions:
    own = tuple(p for p in loaded.passes if not {name_of(p), getattr(p, "id", None)} & set(switched[1]))
    classes = [cls for group in loaded.for_mo for cls in group]
    if not classes and config:
        raise UsageError(f"{_flag(config[0])}: {_READ}, got none for {config[0]}")
    if not classes:
        return Extensions(own, loaded.scope, loaded.modules)
    phases: Any = import_module("aot.mo.phases")
    loader: Any = import_module("aot.mo.loader")
    switches = loader.Switches(*map(frozenset, switched))
    _check_names(switches.unknown(classes), loaded)
    passes, inputs = phases.phase_passes(loaded.for_mo, config, switches, framework, keep_layout)
    return Extensions((*passes, *own), loaded.scope, loaded.modules, inputs)


def _check_names(unknown: Sequence[str], loaded: _Loaded) -> None:
    """UsageError for names that no pass has, and no class of a file for another framework."""
    read = {file for files in loaded.files for file in files}
    paths = {file for m in loaded.modules for framework in FRAMEWORKS for file in _files(m.folder, framework)}
    unread = "\n".join(file.read_text("utf-8", "replace") for file in paths - read)
    own = {str(name) for p in loaded.passes for name in (name_of(p), getattr(p, "id", None)) if name}
    absent = [name for name in unknown if not re.search(rf"\b{re.escape(name.rpartition('.')[2])}\b", unread)]
    _refuse([name for name in absent if name not in own])


def _refuse(names: Sequence[str]) -> None:
    """UsageError for the first of the names that no transformation has; none without names."""
    if names:
        rule = "an id, a class, or FOLDER.front.FILE.Class of --extensions"
        raise UsageError(f"--enable-transforms, --disable-transforms: {rule}, got {names[0]}")


def _files(folder: Path, framework: str) -> list[Path]:
    """Return the files of a folder for models of a framework: operations first, as passes use them."""
    kinds = (OPERATIONS, "front", f"front/{framework}", f"front/{framework}/extractors", "middle", "back")
    files = [path for kind in kinds for path in sorted(folder.glob(f"{kind}/*.py")) if path.stem != "__init__"]
    for path in sorted(folder.glob("front/*/*.py")):
        name = path.parent.name
        if path not in files and name not in (*FRAMEWORKS, *OTHERS) and not name.startswith("_"):
            _LOG.warning("--extensions: %s is not read: front/ has folders for %s", path, ", ".join(FRAMEWORKS))
    return files


def _load(given_paths: tuple[Path, ...], files: list[list[Path]]) -> _Loaded:
    scope = Scope()
    modules = tuple(Modules(p.parent if p.is_file() else p) for p in given_paths)
    passes: list[object] = []
    for_mo: list[list[Any]] = []
    try:
        with within(scope):
            for own, paths in zip(modules, files, strict=True):
                folders, classes = _folder(own, paths, scope)
                passes += folders
                for_mo.append(classes)
    except BaseException:
        for own in modules:
            own.forget()
        raise
    return _Loaded(files, tuple(passes), scope, modules, for_mo)


def _folder(modules: Modules, files: list[Path], scope: Scope) -> tuple[list[object], list[Any]]:
    """Return the passes of a folder, and its classes for Model Optimizer's phases."""
    passes: list[object] = []
    for_mo: list[Any] = []
    idle: list[tuple[Path, ModuleType]] = []
    _guarded(modules.start, modules.folder / "__init__.py")
    for path in files:
        before = _registered(scope)
        module = _imported(modules, path)
        classes = _for_mo(modules, module, path)
        for_mo += classes
        parts = path.relative_to(modules.folder).parts
        phase = parts[0] if len(parts) > 1 else "front"  # an extension of one file
        declared = passes_in(module, path.stem, phase, classes) if phase != OPERATIONS else []
        passes += declared
        if phase != OPERATIONS and not declared and not classes and before == _registered(scope):
            idle.append((path, module))
    for path, module in idle:
        check_used(str(path), module, modules.loaded())
    return passes, for_mo


def _registered(scope: Scope) -> list[object]:
    return [*scope.conversions.values(), *scope.operations.values()]


def _for_mo(modules: Modules, module: ModuleType, path: Path) -> list[Any]:
    """Classes of a file for Model Optimizer's phases; UsageError for those that have its methods and no base class."""
    for cls in (v for v in vars(module).values() if isinstance(v, type) and v.__module__ == module.__name__):
        lost = lost_methods(cls)
        if lost:
            rule = f"a class with {', '.join(lost)} runs if it derives from a base class of Model Optimizer's"
            raise UsageError(f"--extensions: {path}: class {cls.__name__}: {rule}, got none")
    if not modules.uses_mo:
        return []
    loader: Any = import_module("aot.mo.loader")
    return loader.classes_in(module)


def _imported(modules: Modules, path: Path) -> ModuleType:
    name = ".".join(path.relative_to(modules.folder).with_suffix("").parts)
    return _guarded(lambda: modules.load(name), path)


def _guarded(load: Callable[[], T], path: Path) -> T:
    """Call the function that loads a file; its errors become UsageErrors with the file and the line."""
    try:
        return load()
    except (UnsupportedError, MissingError):
        raise
    except Exception as error:
        where = raised_in(error) or str(path)
        rest = "" if where.startswith(str(path)) else f" (for {path})"
        raise UsageError(f"--extensions: {where}{rest}: {type(error).__name__}: {error}") from error
