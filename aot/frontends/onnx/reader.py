"""Reads ONNX files: every node becomes a foreign operation, every initializer a constant; types are ignored.

    ModelProto -> functions inlined -> names to ports, sub-graphs to regions -> Graph of onnx.*

A value of an outer graph that a sub-graph reads is a further input of the node that holds it and a further parameter of
the region; attribute `captures` lists them as (region, parameter, input).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TypeProto,
    ValueInfoProto,
    defs,
    helper,
    inliner,
    version_converter,
)

from aot.codegen.ir.loops import Var
from aot.frontends.onnx.element_types import element_type
from aot.frontends.onnx.external import ExternalData
from aot.frontends.onnx.functions import check_inlined, expanded
from aot.frontends.onnx.order import order_nodes
from aot.frontends.onnx.registry import INTERFACE
from aot.frontends.onnx.tensors import array, dense
from aot.ir.graph import Graph, Node, Origin, OutPort
from aot.ir.op import Foreign
from aot.ir.types import Array, Dim, Shape, dtype_of
from aot.opset.control.infrastructure import Constant, Parameter, Result
from aot.runtime.abi import DType
from aot.runtime.errors import AotError, CorruptError, ModelError, UnsupportedError

OLDEST_OPSET = 6  # opset 7 changed broadcasting; older opsets are converted
UNKNOWN_DIM = -1  # size of a dynamic dimension in files of some exporters
MAX_DEPTH = 32  # nesting depth of sub-graphs
UNLIMITED_INPUTS = 1 << 30  # stands for an unlimited number of inputs in a schema

CONSTANT_TYPES: dict[str, type | None] = {  # attributes of Constant, and the types of arrays made of them
    "value": None,
    "sparse_value": None,
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_string": object,
    "value_strings": object,
}
DEFAULT_DOMAINS = ("", "ai.onnx")
OPSETS = {  # newest opset by domain that the onnx package has schemas for
    "": defs.onnx_opset_version(),
    "ai.onnx.ml": max(v for domain, v in helper.OP_SET_ID_VERSION_MAP if domain == "ai.onnx.ml"),
}


def read(path: Path) -> Graph:
    """Return the network of an ONNX file, in dialect `onnx`.

    CorruptError for a file that is damaged or that refers to data outside of its folder; UnsupportedError for opsets
    that are too old or too new. The pass that converts nodes reports those that cannot be converted.
    """
    model = ModelProto()
    try:
        model.ParseFromString(path.read_bytes())
    except DecodeError as error:
        raise CorruptError(f"{path.name}: not an ONNX model: {error}") from error
    if not model.graph.node and not model.graph.output:
        raise CorruptError(f"{path.name}: an ONNX model must hold a graph, got none")
    order_nodes(model, path.name)
    model = _upgraded(model, path.name)
    opsets = _opsets(model, path.name)
    if model.functions:
        model = _inlined(model, path.name)
        opsets |= _opsets(model, path.name)
    model = _expanded(model, opsets, path.name)
    reader = _Reader(path.name, opsets, ExternalData(path.parent))
    scope = _Scope(Graph(name=_checked(model.graph.name), file=path.name), None, 0)
    reader.fill(scope, model.graph)
    scope.graph.rt_info.update({p.key: p.value for p in model.metadata_props})
    return scope.graph


def _upgraded(model: ModelProto, file: str) -> ModelProto:
    """Return a model of an older opset, converted to the oldest opset that can be read."""
    version = max((o.version for o in model.opset_import if o.domain in DEFAULT_DOMAINS), default=OLDEST_OPSET)
    if version >= OLDEST_OPSET:
        return model
    try:
        return version_converter.convert_version(model, OLDEST_OPSET)
    except Exception as error:
        raise UnsupportedError(
            f"{file}: opset {version} cannot be brought to {OLDEST_OPSET}: {_plain(error)}"
        ) from error


def _plain(error: Exception) -> str:
    """Return the message of an error of the onnx package, without the assertion of its source that failed."""
    text = re.sub(r"\S+\.(?:h|cc|cpp):\d+:? (?:\w+: )?(?:Assertion `.*?` failed:?)? ?", "", str(error)).strip()
    if match := re.search(r"No Adapter (?:From|To) Version \$?(\d+) for (\w+)", text):
        return f"the onnx package cannot convert {match[2]} of opset {match[1]}"
    if match := re.search(r"no registered schema.*%lld\.(\D+)", text):
        return f"{match[1]} is no operation of ONNX"
    return text or "the model is damaged"


def _opsets(model: ModelProto, file: str) -> dict[str, int]:
    versions = {("" if o.domain in DEFAULT_DOMAINS else o.domain): o.version for o in model.opset_import}
    for domain, newest in OPSETS.items():
        oldest = OLDEST_OPSET if not domain else 1
        version = versions.get(domain, oldest)
        if not oldest <= version <= newest:
            of = f" of {domain}" if domain else ""
            raise UnsupportedError(
                f"{file}: opsets {oldest} to {newest}{of} can be read, got {version}: "
                + ("install a newer onnx package" if version > newest else "convert it with onnx.version_converter")
            )
    return versions


def _inlined(model: ModelProto, file: str) -> ModelProto:
    check_inlined(model, file)
    try:
        return inliner.inline_local_functions(model)
    except Exception as error:
        raise CorruptError(f"{file}: functions cannot be inlined: {_plain(error)}") from error


def _expanded(model: ModelProto, opsets: dict[str, int], file: str) -> ModelProto:
    try:
        return expanded(model, opsets)
    except Exception as error:
        raise CorruptError(f"{file}: functions of operations cannot be inlined: {_plain(error)}") from error


class _Scope:
    """A graph under construction: the port of each name, and the values it captures from the graph around it."""

    def __init__(self, graph: Graph, outer: _Scope | None, depth: int) -> None:
        self.graph, self.outer, self.depth = graph, outer, depth
        self.ports: dict[str, OutPort] = {}
        self.captured: list[tuple[int, OutPort]] = []  # position of the parameter, port in the outer graph

    def define(self, name: str, port: OutPort) -> None:
        if _checked(name) in self.ports:
            raise CorruptError(f"{self.graph.file}: {name!r} must be defined once, got twice")
        self.ports[name] = port
        port.names = (name,)

    def find(self, name: str) -> OutPort | None:
        if name in self.ports or self.outer is None:
            return self.ports.get(name)
        outside = self.outer.find(name)
        if outside is None:
            return None
        inside = self.graph.add(Parameter(DType.F32, None), name=name).out_port(0)
        self.captured.append((len(self.graph.parameters) - 1, outside))
        self.ports[name] = inside
        return inside


class _Reader:
    def __init__(self, file: str, opsets: dict[str, int], external: ExternalData) -> None:
        self.file, self.opsets, self.external = file, opsets, external
        self.symbols: dict[str, Var] = {}

    def fill(self, scope: _Scope, proto: GraphProto) -> None:
        """Read inputs, constants, nodes and outputs of a graph."""
        constants = {t.name for t in proto.initializer} | {t.values.name for t in proto.sparse_initializer}
        for info in (*proto.input, *proto.output):
            _checked(info.name)
        for info in proto.input:
            if info.name not in constants:  # an input with a default is a constant
                scope.define(info.name, self._parameter(scope, info))
        for tensor in proto.initializer:
            scope.define(tensor.name, self._constant(scope, tensor.name, lambda t=tensor: array(t, self.external)))
        for sparse in proto.sparse_initializer:
            name = sparse.values.name
            scope.define(name, self._constant(scope, name, lambda t=sparse: dense(t, self.external)))
        for node in proto.node:
            self._node(scope, node)
        for info in proto.output:
            source = scope.find(info.name)
            if source is None:
                raise CorruptError(f"{self.file}: output {info.name!r}: no node produces it")
            result = scope.graph.add(Result(), source, name=info.name, origin=Origin((info.name,), self.file))
            result.out_port(0).names = (info.name,)
            if info.type.tensor_type.HasField("shape"):
                dims = info.type.tensor_type.shape.dim
                sizes = ",".join(str(d.dim_value) if d.dim_value > 0 else "" for d in dims)
                result.rt_info["declared"] = {"rank": str(len(dims)), "sizes": sizes}

    def _parameter(self, scope: _Scope, info: ValueInfoProto) -> OutPort:
        origin, top = Origin((info.name,), self.file), scope.outer is None
        if top and not info.type.HasField("tensor_type"):
            return self._packed(scope, info, origin)
        dtype, shape = DType.F32, None
        if top:
            try:
                dtype = element_type(info.type.tensor_type.elem_type)
            except UnsupportedError as error:
                return self._refused(scope, info.name, "Input", str(error)).out_port(0)
            shape = self._shape(info.name, info.type.tensor_type)
        return scope.graph.add(Parameter(dtype, shape), name=info.name, origin=origin).out_port(0)

    def _packed(self, scope: _Scope, info: ValueInfoProto, origin: Origin) -> OutPort:
        """Add the inputs of a sequence or an optional: elements, stacked, or joined if lengths may differ."""
        kind, proto = "Sequence", info.type
        if proto.HasField("optional_type"):
            kind, proto = "Optional", proto.optional_type.elem_type
        is_sequence = proto.HasField("sequence_type")
        proto = proto.sequence_type.elem_type if is_sequence else proto
        if not proto.HasField("tensor_type"):
            what = (proto.WhichOneof("value") or "a type that is not known").removesuffix("_type")
            return self._refused(scope, info.name, "Input", f"inputs are made of tensors, got {what}").out_port(0)
        shape = self._shape(info.name, proto.tensor_type)
        try:
            dtype = element_type(proto.tensor_type.elem_type)
        except UnsupportedError as error:
            return self._refused(scope, info.name, "Input", str(error)).out_port(0)
        count, ports = self._symbol(f"{info.name}.count"), list[OutPort]()
        is_joined = is_sequence and shape != () and (shape is None or not isinstance(shape[0], int))
        begin = (self._symbol(f"{info.name}.d0"),) if is_joined else (count, *(shape or ())[:1])
        whole = None if shape is None else (*begin, *shape[1:])
        parts: dict[str, tuple[DType, Shape | None]] = {info.name: (dtype, whole)}
        parts |= {f"{info.name}.lengths": (DType.I64, (count,))} if is_joined else {}
        for name, type in parts.items():
            ports.append(scope.graph.add(Parameter(*type), name=name, origin=origin).out_port(0))
            ports[-1].names = (name,)
        attrs = {"domain": INTERFACE, "opset": 1} | ({"is_sequence": int(is_sequence)} if kind == "Optional" else {})
        op = Foreign("onnx", kind, tuple(attrs.items()))
        return scope.graph.add(op, *ports, name=f"{info.name}.value", origin=origin).out_port(0)

    def _shape(self, name: str, tensor: TypeProto.Tensor) -> Shape | None:
        if not tensor.HasField("shape"):
            return None
        dims: list[Dim] = []
        for i, d in enumerate(tensor.shape.dim):
            if d.HasField("dim_value") and d.dim_value != UNKNOWN_DIM:
                if d.dim_value < 0:
                    rule = f"input {name!r}: a dimension must not be negative"
                    raise CorruptError(f"{self.file}: {rule}, got {d.dim_value}")
                dims.append(d.dim_value)
            else:
                named = re.search(r"\w", _checked(d.dim_param))  # "?" is no name
                dims.append(self._symbol(d.dim_param if named else f"{name}.d{i}"))
        return tuple(dims)

    def _symbol(self, name: str) -> Var:
        """Return the symbol of a name: equal names are one size."""
        if name not in self.symbols:
            cleaned = re.sub(r"[^A-Za-z0-9_.]", "_", name)
            stem = cleaned if re.match("[A-Za-z_]", cleaned) else f"_{cleaned}"
            taken = {v.name for v in self.symbols.values()}
            while stem in taken:
                stem += "_"
            self.symbols[name] = Var(stem, None, 0)
        return self.symbols[name]

    def _constant(self, scope: _Scope, name: str, data: Any) -> OutPort:
        try:
            value = data()
            return scope.graph.add(Constant(dtype_of(value)), name=name, data=value).out_port(0)
        except UnsupportedError as error:
            return self._refused(scope, name, "Initializer", str(error)).out_port(0)

    def _refused(self, scope: _Scope, name: str, kind: str, reason: str) -> Node:
        """Return a foreign node that the conversion will list as unsupported."""
        op = Foreign("onnx", kind, (("domain", ""), ("opset", self.opsets.get("", 0)), ("unsupported", reason)))
        return scope.graph.add(op, name=name, origin=Origin((name,), self.file))

    def _node(self, scope: _Scope, proto: NodeProto) -> None:
        name = _checked(proto.name) or _checked(next(filter(None, proto.output), proto.op_type))
        sources = [self._source(scope, i, name) for i in proto.input]
        kind, domain = _checked(proto.op_type), "" if proto.domain in DEFAULT_DOMAINS else _checked(proto.domain)
        self._check_counts(proto, kind, domain, name)
        attrs: dict[str, Any] = {"domain": domain, "opset": self.opsets.get(domain, 1)}
        regions: dict[str, Graph] = {}
        captures: list[tuple[str, int, int]] = []
        for a in proto.attribute:
            _checked(a.name)
            if a.type == AttributeProto.GRAPH:
                regions[a.name], captured = self._region(scope, a.g, f"{name}.{a.name}")
                for position, port in captured:
                    captures.append((a.name, position, len(sources)))
                    sources.append(port)
            else:
                self._attribute(a, attrs, name)
        if kind == "Constant" and not domain and len(proto.output) == 1:
            scope.define(proto.output[0], self._constant(scope, name, lambda: _constant_value(attrs)))
            return
        if captures:
            attrs["captures"] = tuple(captures)
        if regions:
            attrs["inputs"] = len(proto.input)
        node = scope.graph.add(
            Foreign("onnx", kind, tuple(attrs.items())),
            *sources,
            name=name,
            origin=Origin((name,), self.file),
            outputs=len(proto.output),
        )
        node.regions = regions
        for i, output in enumerate(proto.output):
            if output:
                scope.define(output, node.out_port(i))

    def _check_counts(self, proto: NodeProto, kind: str, domain: str, name: str) -> None:
        """Raise ModelError for fewer or more inputs or outputs than the operation's schema has; absent ones count."""
        if not defs.has(kind, domain):
            return
        try:
            schema = defs.get_schema(kind, self.opsets.get(domain, 1), domain)
        except defs.SchemaError:  # the operation is newer than the opset: the conversion decides
            return
        counts = (
            ("inputs", proto.input, schema.min_input, schema.max_input),
            ("outputs", proto.output, schema.min_output, schema.max_output),
        )
        for what, count, least, most in counts:
            named = max((i for i, n in enumerate(count, 1) if n), default=0)
            if len(count) < least or named > most:
                several = f"{least} to {most}" if most < UNLIMITED_INPUTS else f"{least} or more"
                expected = str(least) if least == most else several
                opset = self.opsets.get(domain, 1)
                error = ModelError(f"{kind}: of opset {opset}, has {expected} {what}, got {len(count)}")
                error.add_note(f"in ONNX node {name!r} ({kind}) of {self.file}")
                raise error

    def _source(self, scope: _Scope, name: str, node: str) -> OutPort | None:
        if not name:
            return None
        port = scope.find(name)
        if port is None:
            raise CorruptError(f"{self.file}: node {node!r} reads {name!r}, which nothing produces")
        return port

    def _region(self, scope: _Scope, proto: GraphProto, name: str) -> tuple[Graph, list[tuple[int, OutPort]]]:
        if scope.depth >= MAX_DEPTH:
            raise CorruptError(f"{self.file}: sub-graphs can have at most {MAX_DEPTH} levels, got more in {name!r}")
        inner = _Scope(Graph(name=name, file=self.file), scope, scope.depth + 1)
        self.fill(inner, proto)
        return inner.graph, inner.captured

    def _attribute(self, a: AttributeProto, attrs: dict[str, Any], node: str) -> None:
        if a.ref_attr_name:
            raise CorruptError(f"{self.file}: node {node!r}: attribute {a.name!r} must not refer to a function's here")
        try:
            attrs[a.name] = self._value(a)
        except UnsupportedError as error:
            attrs["unsupported"] = f"attribute {a.name}: {error}"
        except AotError as error:
            error.add_note(f"in attribute {a.name!r} of node {node!r}")
            raise

    def _value(self, a: AttributeProto) -> Any:
        match a.type:
            case AttributeProto.INT:
                return a.i
            case AttributeProto.FLOAT:
                return a.f
            case AttributeProto.STRING:
                return _decoded(a.s)
            case AttributeProto.INTS:
                return tuple(a.ints)
            case AttributeProto.FLOATS:
                return tuple(a.floats)
            case AttributeProto.STRINGS:
                return tuple(map(_decoded, a.strings))
            case AttributeProto.TENSOR:
                return array(a.t, self.external)
            case AttributeProto.SPARSE_TENSOR:
                return dense(a.sparse_tensor, self.external)
            case AttributeProto.TYPE_PROTO:
                return a.tp.WhichOneof("value") or ""
            case _:
                raise UnsupportedError(f"attributes of type {a.type} are not supported")


def _constant_value(attrs: dict[str, Any]) -> Array:
    """Return the value of a Constant node."""
    if "unsupported" in attrs:
        raise UnsupportedError(attrs["unsupported"])
    for name, dtype in CONSTANT_TYPES.items():
        if name in attrs:
            return np.asarray(attrs[name], dtype)
    raise CorruptError(f"Constant: one of {', '.join(CONSTANT_TYPES)} must be given, got none")


def _checked(text: object) -> str:
    """Return a name; CorruptError for bytes, which the parser leaves where a name is not UTF-8."""
    if not isinstance(text, str):
        raise CorruptError(f"names must be UTF-8, got {text!r}"[:120])
    return text


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


__all__ = ["read"]
