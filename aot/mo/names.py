"""Import names of Model Optimizer: inside extensions they lead to the classes and functions of `aot.mo`.

    openvino.tools.mo.ops.activation_ops      mo.ops.activation_ops      extensions.ops.activation_ops

A module of that name is made when an extension imports it. Its contents come from our module of the same path or from
those that `HOMES` names, from the library of operations, and from the table of transformations. Nothing is put into
`sys.modules`: `import openvino` finds the installed package, in extensions, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

import aot.mo
from aot.mo import transforms
from aot.mo.extracted import classes as extractors
from aot.mo.ops import library
from aot.mo.transforms import ROOTS

OURS = "aot.mo"
_HOMES = """
    front.common.custom_replacement_registry=config.registry front.common.partial_infer.concat=partial_infer.slicing
    front.common.partial_infer.roipooling=partial_infer.windows
    back.OptimizeTransposeReshapeSequence=utils.small_functions front.caffe.collect_attributes=front.caffe.blobs
    front.caffe.extractors.utils=front.caffe.blobs,partial_infer.axes
    front.common.register_custom_ops=front.extractor front.common.extractors.utils=front.common.layout
    front.common.partial_infer.crop=partial_infer.slicing
    front.common.partial_infer.elemental=partial_infer.elementwise,partial_infer.by_definition
    front.common.partial_infer.eltwise=partial_infer.elementwise front.common.partial_infer.utils=utils.arrays
    front.onnx.extractors.utils=front.onnx.attributes front.tf.common=front.tf.attributes
    front.tf.extractors.concat=front.tf.attributes front.tf.extractors.utils=front.tf.attributes
    front.extractor=front.extractor,front.cuts graph.perm_inputs=ops.permute_inputs
    middle.InsertLayoutPropagationTransposes=middle.layouts
    middle.MulFakeQuantizeFuse=transformations.quantization.fuses middle.passes.convert_data_type=utils.types
    middle.passes.eliminate=graph.cleaning middle.passes.fusing.helpers=middle.searches
    middle.passes.infer=partial_infer.infer,graph.cleaning middle.TensorIteratorCondition=utils.small_functions
    ops.resize_factor_utils=utils.small_functions pipeline.common=utils.type_utils
    utils.class_registration=replacement_pattern,ordering
    utils.custom_replacement_config=config.registry,config.descriptor utils.replacement_pattern=replacement_pattern
    utils.ir_engine.compare_graphs=utils.compare_graphs utils.unittest.graph=utils.compare_graphs
    utils.utils=utils.small_functions utils.find_inputs=utils.small_functions back.replacement=middle.replacement
"""  # where our modules have other paths
_CAFFE = "front.caffe."
HOMES = {path: tuple(homes.split(",")) for path, homes in (entry.split("=") for entry in _HOMES.split())}


class MoModule(ModuleType):
    """A module of Model Optimizer; its contents are looked up on access."""

    def __init__(self, root: str, path: str) -> None:
        """`root` is one of ROOTS, `path` is the rest of the name; empty for the root itself."""
        super().__init__(f"{root}.{path}" if path else root)
        self.__path__ = []
        self.root, self.path = root, path

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return sorted(contents(self.path))
        if not name.startswith("__"):
            member = _member(self.path, name)
            if member is not None:
                return member
            below = f"{self.path}.{name}" if self.path else name
            if exists(below):
                return module(self.root, below)
        raise AttributeError(f"module {self.__name__} has no {name}{_hint(self.path, name)}")


@cache
def module(root: str, path: str) -> MoModule:
    return MoModule(root, path)


def root_and_path(name: str) -> tuple[str, str] | None:
    """Return the root and the rest of a name of Model Optimizer's; None for another name."""
    for root in ROOTS:
        if name == root or name.startswith(f"{root}."):
            return root, name[len(root) + 1 :]
    return None


def imported(name: str, names: Sequence[str]) -> Any:
    """Return the result of `import name` or `from name import names`; None for a name that is not Model Optimizer's.

    ImportError for a module, and for one of `names`, that is not there: the message has the nearest name that is.
    """
    if name == "openvino.tools":
        return _top(ROOTS[0], module(ROOTS[0], "")).tools
    parts = root_and_path(name)
    if parts is None or (parts[0] == "extensions" and not exists(parts[1]) and find_spec("extensions") is not None):
        return None
    root, path = parts
    if not exists(path):
        near = get_close_matches(path, _paths(), 1, 0.6)
        raise ImportError(f"no module {name} of Model Optimizer's{f'; did you mean {root}.{near[0]}' if near else ''}")
    if not names:
        return _top(root, module(root, path))
    for wanted in names:
        if wanted != "*" and not hasattr(module(root, path), wanted):
            raise ImportError(f"cannot import {wanted} from {name}{_hint(path, wanted)}")
    return module(root, path)


def _top(root: str, found: MoModule) -> Any:
    """Return the first package of `import a.b.c`, through which the rest is reached."""
    if "." not in root:
        return module(root, "")
    top = _Front("openvino")
    tools = _Front("openvino.tools")
    vars(top)["tools"], vars(tools)["mo"] = tools, module(root, "")
    return top


class _Front(ModuleType):
    """A package that is ours in one part, and the installed one in all others."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(import_module(self.__name__), name)


def _member(path: str, name: str) -> Any:
    """Return a class or function of a module; None if it has none of that name."""
    owner, _, rest = path.partition(".")
    member = library.library_class(rest, name) if owner == "ops" and rest else None
    if (
        member is not None
    ):  # rather than the base that the library derives it from, in a module of ours of the same name
        return member
    if name in extractors.in_module(path):
        return extractors.extractor(path, name)
    if name in transforms.in_module(path):
        return transforms.placeholder(name, path)
    for home in _homes(path):
        member = getattr(import_module(home), name, None)
        if member is not None and not isinstance(member, ModuleType):
            return member
    return None


@cache
def _homes(path: str) -> tuple[str, ...]:
    """Return our modules that hold the contents of a module."""
    listed = HOMES.get(path)
    modules = [f"{OURS}.{home}" for home in listed] if listed is not None else [f"{OURS}.{path}"] if path else []
    if path.startswith(_CAFFE) and path in extractors.modules():  # their functions are in one module
        modules = [f"{OURS}.{_CAFFE}blobs", f"{OURS}.front.common.layout"]
    return tuple(home for home in modules if home in _ours())


@cache
def _ours() -> frozenset[str]:
    return frozenset(m.name for m in walk_packages(aot.mo.__path__, f"{OURS}."))


@cache
def _paths() -> tuple[str, ...]:
    """Return the modules that can be imported."""
    mirrored = (name.removeprefix(f"{OURS}.") for name in _ours())
    operations = (f"ops.{name}" for name in library.modules())
    ordered = (row.module for row in transforms.rows().values())
    return tuple(dict.fromkeys([*HOMES, *mirrored, *operations, *ordered, *extractors.modules()]))


@cache
def _packages() -> frozenset[str]:
    parts = (path.split(".") for path in _paths())
    return frozenset(".".join(p[:i]) for p in parts for i in range(len(p)))


def exists(path: str) -> bool:
    """True for a module or package below the root."""
    return path in _packages() or path in _paths()


def contents(path: str) -> set[str]:
    """Return the public names of a module."""
    names = {*transforms.in_module(path), *extractors.in_module(path)}
    if path.startswith("ops."):
        names |= set(library.classes_of(path.removeprefix("ops.")))
    for home in _homes(path):
        members = vars(import_module(home))
        own = [
            n
            for n, v in members.items()
            if n[0] != "_" and n != "annotations" and v is not None and not isinstance(v, ModuleType)
        ]
        names |= set(members.get("__all__", own))
    return names


@cache
def _everything() -> dict[str, tuple[str, ...]]:
    """Return the modules that have a name, by name."""
    names_by_module: dict[str, list[str]] = {}
    for path in _paths():
        homes = _homes(path)
        for name in contents(path):
            known = names_by_module.setdefault(name, [])
            defined = getattr(_member(path, name), "__module__", None) in homes
            known.insert(0 if defined else len(known), path)
    return {name: tuple(paths) for name, paths in names_by_module.items()}


def _hint(path: str, name: str) -> str:
    """Return the nearest name that is there, as the end of a sentence."""
    elsewhere = _everything().get(name)
    if elsewhere:
        return f"; it is in openvino.tools.mo.{elsewhere[0]}"
    near = get_close_matches(name, _nearest(path), 1, 0.6)
    return f"; did you mean {near[0]}" if near else ""


def _nearest(path: str) -> Iterable[str]:
    own = contents(path)
    return own or _everything()


def available() -> bool:
    """True if networkx is installed: Model Optimizer's graph is built on it."""
    return find_spec("networkx") is not None


def names() -> Iterator[str]:
    """Return the modules of the table, for documentation."""
    return iter(_paths())
