"""The interface of a program: parameters and buffers are constants, inputs and outputs have the names of `forward`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.frontends.pt2.files.element_types import COMPLEX, PARTS, element_type
from aot.frontends.pt2.files.schema import Table, real, union, whole
from aot.frontends.pt2.files.weights import Weights
from aot.frontends.pt2.graph.aliases import Tensor
from aot.frontends.pt2.graph.checks import checked
from aot.frontends.pt2.graph.importer import ProgramImporter, output_names
from aot.frontends.pt2.graph.pytree import input_paths, output_paths
from aot.frontends.pt2.registry import Argument
from aot.ir.graph import OutPort
from aot.ir.op import Foreign
from aot.ir.origin import Origin
from aot.opset.control.infrastructure import Parameter, Result
from aot.runtime.abi import DType
from aot.runtime.errors import CorruptError, UnsupportedError

STORED = {"parameter": "parameter_name", "buffer": "buffer_name", "tensor_constant": "tensor_constant_name"}
WRITTEN = "{}.written"  # the name of an output for an input that the program writes to


@dataclass(slots=True)
class Signature:
    """Adds inputs before, and outputs after the walk over the nodes."""

    importer: ProgramImporter
    module: Table
    weights: Weights
    states: dict[str, tuple[str, OutPort]] = field(default_factory=dict[str, tuple[str, OutPort]])  # value: name, first
    inputs: dict[str, str] = field(default_factory=dict[str, str])  # value: name for users

    @property
    def specs(self) -> Table:
        return self.module.table("signature")

    # ---- inputs

    def add_inputs(self) -> None:
        """Give the inputs of the graph values: constants, and parameters of the network."""
        specs = [(*spec.union(), spec.where) for spec in self.specs.tables("input_specs")]
        users = sum(kind in ("user_input", "constant_input") for kind, _, _ in specs)
        paths = iter(self._paths("in_spec", users))
        for kind, value, where in specs:
            spec = Table(value, where)
            if kind in STORED:
                self._stored(spec.table("arg").text("name"), spec.text(STORED[kind]), kind)
            elif kind == "user_input":
                self._user_input(spec, next(paths, ""))
            elif kind == "constant_input":
                next(paths, "")
                self._number(spec)
            elif kind == "custom_obj":
                name = spec.table("arg").text("name")
                reason = "objects of TorchScript are not read"
                self.importer.values[name] = Tensor(self.importer.refused("ScriptObject", name, reason))
            elif kind != "token":
                raise CorruptError(f"{where}: inputs must be parameters, buffers, constants and arguments, got {kind}")

    def _stored(self, value: str, name: str, kind: str) -> None:
        try:
            data, is_complex = self.weights.read(name)
            port = self.importer.constant(data, name)
            port = self._paired("view_as_complex.default", port, name) if is_complex else port
        except UnsupportedError as error:
            port = self.importer.refused(kind.capitalize(), name, str(error))
        self.importer.values[value] = Tensor(port)
        self.states[value] = (name, port)

    def _user_input(self, spec: Table, path: str) -> None:
        tag, found = union(spec.value("arg"), spec.where)
        names = output_names({tag: found}, spec.where) if tag in ("as_tensor", "as_sym_int", "as_sym_float") else []
        for value in names:
            self.importer.values[value] = Tensor(self._parameter(value, path or value))

    def _number(self, spec: Table) -> None:
        """Add a constant for a number that the export has fixed, which has no consumers as a rule."""
        tag, value = union(spec.value("value"), spec.where)
        if tag in ("as_int", "as_float", "as_bool"):
            number = bool(value) if tag == "as_bool" else real(value, spec.where)
            data = np.array(int(number) if tag == "as_int" else number)
            name = spec.text("name")
            self.importer.values[name] = Tensor(self.importer.constant(data, name))

    def _parameter(self, value: str, name: str) -> OutPort:
        """Return an input of the network."""
        importer = self.importer
        dtype, shape = importer.type_of(value), ()
        metas = importer.table.table("tensor_values")
        if value in metas:
            meta = metas.table(value)
            try:
                code = meta.whole("dtype")
                dtype = PARTS[code] if code in PARTS else element_type(code)
                shape = tuple(importer.symbols.dim(d, meta.place("sizes")) for d in meta.list("sizes"))
            except UnsupportedError as error:
                return importer.refused("Input", name, str(error))
        if not isinstance(dtype, DType):
            raise CorruptError(f"{importer.file}: the input {name!r} must have a type, got none")
        pairs = importer.type_of(value) in COMPLEX.values()
        shape = (*shape, 2) if pairs else shape
        parameter = importer.scope.graph.add(
            Parameter(dtype, shape), name=name, origin=Origin((name,), importer.file)
        ).out_port(0)
        parameter.names = tuple(dict.fromkeys((name, value)))
        self.inputs[value] = name
        return self._paired("view_as_complex.default", parameter, name) if pairs else parameter

    def _paired(self, kind: str, port: OutPort, name: str) -> OutPort:
        """Return a complex value of the pairs that users see, or the pairs of a complex value."""
        attrs = (("arguments", (("x", Argument(0)),)), ("given", (None,)))
        return self.importer.scope.graph.add(
            Foreign("aten", kind, attrs), port, name=f"{name}/parts", origin=Origin((name,), self.importer.file)
        ).out_port(0)

    # ---- outputs

    def add_outputs(self) -> None:
        """Add the results of the network, and let buffers that are written to keep their values."""
        written = dict[str, str]()  # of buffers and inputs: the value that has their last contents
        users: list[tuple[str, Any, str]] = []
        for spec in self.specs.tables("output_specs"):
            kind, value = spec.union()
            table = Table(value, spec.where)
            if kind in ("user_output", "loss_output"):
                users.append((*self._argument(kind, table), spec.where))
            elif kind in ("buffer_mutation", "parameter_mutation"):
                name = table.text(f"{kind.partition('_')[0]}_name")
                self._mutated(name, table.table("arg").text("name"))
            elif kind == "user_input_mutation":
                written[table.text("user_input_name")] = table.table("arg").text("name")
        paths = self._paths("out_spec", len(users))
        for (tag, value, where), path in zip(users, paths, strict=True):
            self._output(tag, value, path, where)
        self._in_place(written)

    def _argument(self, kind: str, table: Table) -> tuple[str, Any]:
        return union(table.value("arg"), table.where) if kind == "user_output" else ("as_tensor", table.value("arg"))

    def _output(self, tag: str, value: Any, path: str, where: str) -> None:
        for name in output_names({tag: value}, where) if not _is_constant(tag, value) else ():
            self._result(self.importer.read(name), path, name)
        number = _constant(tag, value, where)
        if number is not None:
            self._result(self.importer.constant(number, path), path, path)

    def _result(self, port: OutPort, name: str, value: str) -> None:
        if self.importer.type_of(value) in COMPLEX.values():
            port = self._paired("view_as_real.default", port, name)
        if not self.importer.scope.graph.results:
            port = checked(self.importer, port, name)
        node = self.importer.scope.graph.add(Result(), port, name=name, origin=Origin((name,), self.importer.file))
        node.out_port(0).names = tuple(dict.fromkeys((name, value)))

    def _mutated(self, name: str, value: str) -> None:
        """Set a buffer to a value of the graph, its last contents."""
        if name not in {n for n, _ in self.states.values()}:
            raise CorruptError(f"{self.importer.file}: a buffer that is written to must be an input, got {name!r}")
        self.importer.scope.set(name, self.importer.read(value))

    def _in_place(self, written: dict[str, str]) -> None:
        """Buffers and inputs that operations in place wrote to."""
        scope, values = self.importer.scope, self.importer.values
        firsts = dict(self.states.values())
        for value, (name, _) in self.states.items():
            if values[value].version:
                scope.set(name, values[value].read())
        for value, name in self.inputs.items():
            if value in written or values[value].version:
                self._result(self.importer.read(written.get(value, value)), WRITTEN.format(name), f"{value}_written")
        scope.keep_variables(list(scope.written), lambda name, _: firsts[name], self.importer.file)

    def _paths(self, which: str, count: int) -> Sequence[str]:
        """Return the names of inputs or outputs; their numbers if the file gives none."""
        for entry in self._calls():
            call = entry.table("signature")
            names = (
                [n for n in call.list("forward_arg_names") if isinstance(n, str)] if "forward_arg_names" in call else []
            )
            spec, where = call.text(which), call.place(which)
            paths = input_paths(spec, names, where) if which == "in_spec" else output_paths(spec, where)
            if len(paths) == count:
                return paths
        return ["" if which == "in_spec" else f"output.{i}" for i in range(count)]

    def _calls(self) -> Iterator[Table]:
        for entry in self.module.tables("module_call_graph"):
            if entry.value("fqn") == "" and "signature" in entry:
                yield entry


def _is_constant(tag: str, value: Any) -> bool:
    """True for outputs that are numbers, or nothing."""
    symbolic = tag in ("as_sym_int", "as_sym_float", "as_sym_bool")
    return tag in ("as_none", "as_int", "as_float", "as_bool", "as_string") or (symbolic and "as_name" not in value)


def _constant(tag: str, value: Any, where: str) -> Any:
    """Return a number that is an output, as an array."""
    if tag.startswith("as_sym_") and _is_constant(tag, value):
        tag, value = union(value, where)
    if tag == "as_int":
        return np.array(whole(value, where))
    if tag == "as_float":
        return np.array(real(value, where), np.float32)
    return np.array(bool(value)) if tag == "as_bool" else None
