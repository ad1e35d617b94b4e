"""Mutants of TensorFlow's files: any field of the messages, edges, functions, tensors, checkpoints, and bytes."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any
from zipfile import ZipFile

from google.protobuf.message import DecodeError

from tests.frontends.tf import bundles
from tests.frontends.tf.tf_models import MODELS, NAMES
from tests.fuzz.case import Case
from tests.fuzz.mutants.changes import changed_bytes, compile_and_run, drawn_changes, number
from tests.fuzz.mutants.protobuf import change_field, copy, messages_of
from tests.fuzz.reduce import fewest
from tests.fuzz.server import Outcome
from tests.properties.drawing import Draw, random_draw

KINDS = (
    "If While Case PartitionedCall Switch Merge Enter Exit NextIteration LoopCond Identity Add ReadVariableOp "
    "VarHandleOp AssignVariableOp TensorListReserve TensorListSetItem TensorListStack TensorArrayV3 Reshape ConcatV2 "
    "StridedSlice"
).split()


@cache
def seeds() -> tuple[Case, ...]:
    """The models of the tests."""
    found = list[Case]()
    for name in NAMES:
        with ZipFile(MODELS / f"{name}.zip") as archive:
            files = {
                n.removeprefix(f"{name}/"): archive.read(n) for n in archive.namelist() if n.startswith(f"{name}/")
            }
        files = {n.replace("graph.", "model.") if n.startswith("graph.") else n: data for n, data in files.items()}
        if not any(n.endswith(".pbtxt") for n in files):
            found.append(Case(files))
    return tuple(found)


def main_file(case: Case) -> str:
    return next(n for n in case.files if n.endswith((".pb", ".meta")))


def parse(case: Case) -> Any:
    ours = importlib.import_module("aot.frontends.tf.files.messages")
    kinds = {"saved_model.pb": ours.SavedModel, "model.meta": ours.MetaGraphDef, "model.pb": ours.GraphDef}
    return kinds[main_file(case)].FromString(case.files[main_file(case)])


def _edge(d: Draw, root: Any) -> None:
    """A node reads another node, or another output, or waits for one."""
    nodes = [n for n in messages_of(root, "NodeDef") if n.input]
    if nodes:
        node = d.pick(nodes)
        at = d.integer(0, len(node.input) - 1)
        other = d.pick([n.name for n in messages_of(root, "NodeDef")])
        node.input[at] = d.pick([other, f"^{other}", f"{other}:1", f"{other}:output:0", f"{node.input[at]}:7", "", "^"])


def _node(d: Draw, root: Any) -> None:
    """A node of another operation, with more or fewer inputs, or twice."""
    nodes = messages_of(root, "NodeDef")
    if not nodes:
        return
    node, other = d.pick(nodes), d.pick(nodes)
    match d.integer(0, 3):
        case 0:
            node.op = d.pick([*KINDS, other.op])
        case 1:
            node.input.extend(list(other.input) or [other.name])
        case 2:
            del node.input[d.integer(0, max(len(node.input) - 1, 0)) :]
        case _:
            for key in other.attr:
                node.attr[key].CopyFrom(copy(other.attr[key]))


def _tensor(d: Draw, root: Any) -> None:
    """The type, a dimension or the data of a tensor."""
    tensors = messages_of(root, "TensorProto")
    if not tensors:
        return
    tensor = d.pick(tensors)
    match d.integer(0, 3):
        case 0:
            tensor.dtype = d.integer(0, 31)
        case 1:
            tensor.tensor_shape.dim.add().size = number(d)
        case 2 if tensor.tensor_shape.dim:
            dim = d.pick(list(tensor.tensor_shape.dim))
            dim.size = min(max(number(d, dim.size), -(2**63)), 2**63 - 1)
        case _:
            tensor.tensor_content = changed_bytes(d, tensor.tensor_content)


def _function(d: Draw, root: Any) -> None:
    """An attribute names another function: a branch, a body or a call, which may be of the function that has it."""
    named = [a for a in messages_of(root, "AttrValue") if a.HasField("func")]
    functions = [f.signature.name for f in messages_of(root, "FunctionDef")]
    if named and functions:
        d.pick(named).func.name = d.pick([*functions, "none"])


def _entry(d: Draw, files: dict[str, bytes]) -> None:
    """An entry of a checkpoint lies about its place or its type."""
    names = [n for n in files if n.endswith(".index")]
    if not names:
        return
    ours = importlib.import_module("aot.frontends.tf.files.messages")
    table = importlib.import_module("aot.frontends.tf.files.checkpoint")
    pairs = list(table.table_entries(files[names[0]], names[0]))
    at = d.integer(0, len(pairs) - 1)
    key, value = pairs[at]
    entry = (ours.BundleEntry if key else ours.BundleHeader).FromString(value)
    change_field(d, entry)
    pairs[at] = (key, entry.SerializeToString())
    files[names[0]] = bundles.index(pairs)


MUTATIONS: tuple[Callable[[Draw, Any], None], ...] = (
    change_field,
    change_field,
    change_field,
    _edge,
    _edge,
    _node,
    _node,
    _tensor,
    _tensor,
    _function,
)
BYTES = 8  # of a mutant's seeds, one in so many changes bytes of a file, and one the checkpoint


def mutate(case: Case, chosen: Sequence[int]) -> Case:
    """The case with a mutation for each of the seeds."""
    files, main = dict(case.files), main_file(case)
    try:
        root = parse(case)
    except DecodeError:
        return case
    for seed in chosen:
        d = random_draw(seed)
        match d.integer(0, BYTES):
            case 0:
                name = d.pick(sorted(n for n in files if n != main) or [main])
                files[name] = changed_bytes(d, files[name])
            case 1:
                _entry(d, files)
            case _:
                d.pick(MUTATIONS)(d, root)
    files[main] = root.SerializeToString()
    return Case(files, case.facts)


class TfMutants:
    """Mutants of the models of the tests."""

    name = "tf"

    def draw(self, seed: int) -> Case:
        d = random_draw(seed)
        chosen = seeds()[d.integer(0, len(seeds()) - 1)]
        return mutate(chosen, drawn_changes(d))

    def judge(self, case: Case) -> Outcome:
        return compile_and_run(case)

    def smallest(self, case: Case, holds: Callable[[Case], bool]) -> Case:
        """Remove the nodes that the fault does not need."""
        try:
            root = parse(case)
        except (DecodeError, StopIteration):
            return case
        graphs = messages_of(root, "GraphDef")
        atoms = [(g, node.SerializeToString()) for g, graph in enumerate(graphs) for node in graph.node]

        def without(left: Sequence[tuple[int, bytes]]) -> Case:
            for g, graph in enumerate(graphs):
                del graph.node[:]
                for place, data in left:
                    if place == g:
                        graph.node.add().ParseFromString(data)
            return Case({**case.files, main_file(case): root.SerializeToString()}, case.facts)

        return without(fewest(atoms, lambda left: holds(without(left))))
