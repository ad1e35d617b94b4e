"""Rules, and the driver that applies a set of them until none fires.

    @rule(Relu)
    def drop_repeated_relu(node, op, build):
        \"\"\"Relu(Relu(x)) -> Relu(x)\"\"\"

A rule looks up from its anchor, adds the nodes it needs with `build`, and returns the port (or one for each output) to
read instead, or None. It changes nothing else: links, names, origins and dead nodes are the driver's work.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import field
from itertools import takewhile
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.graph import Graph, InPort, Node, Origin, OutPort
from aot.ir.op import Op
from aot.ir.types import TensorType
from aot.runtime.errors import PassError

LOG = logging.getLogger(__name__)

Replacement = OutPort | tuple[OutPort | None, ...] | None  # None in a tuple: that output has no consumers
RuleBody = Callable[[Node, Any, Builder], Replacement]

MAX_REWRITES_PER_NODE = 40  # far above the number that rules need; exceeded only if rules undo each other


@dataclass(frozen=True, slots=True)
class Rule:
    """A rewrite anchored on operations of some classes; `equation` is its documentation."""

    name: str
    anchors: tuple[type[Op], ...]
    body: RuleBody
    equation: str

    def __call__(self, node: Node, build: Builder) -> Replacement:
        return self.body(node, node.op, build)


def rule(*anchors: type[Op]) -> Callable[[RuleBody], Rule]:
    """Turn a function with an equation as its docstring into a rule for these classes and their subclasses."""

    def make(body: RuleBody) -> Rule:
        return Rule(body.__name__, anchors, body, (body.__doc__ or "").strip())

    return make


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One rewrite, as numbered in the log."""

    number: int
    name: str
    layer: str

    def __str__(self) -> str:
        return f"{self.number} {self.name} at {self.layer!r}"


@dataclass(slots=True)
class RewriteLog:
    """Counter of the rewrites of a run; at `limit` no further ones are applied, which serves to bisect a miscompile.

    `allowed`: the last one within the limit; required passes go on after it.
    """

    limit: int | None = None
    count: int = 0
    last: Rewrite | None = None
    allowed: Rewrite | None = None
    fired: Counter[str] = field(default_factory=Counter[str])

    @property
    def is_full(self) -> bool:
        return self.limit is not None and self.count >= self.limit

    def add(self, name: str, layer: str) -> None:
        self.count += 1
        self.fired[name] += 1
        self.last = Rewrite(self.count, name, layer)
        if self.limit is None or self.count <= self.limit:
            self.allowed = self.last
        LOG.debug("rewrite %s", self.last)


@dataclass(frozen=True, slots=True)
class RuleSet:
    """A pass made of rules. With `required` it runs past the log's limit: the graph cannot be compiled without it."""

    name: str
    rules: tuple[Rule, ...]
    required: bool = False
    phase: str = "middle"

    def __call__(self, graph: Graph) -> bool:
        return self.rewrite(graph, RewriteLog())

    def rewrite(self, graph: Graph, log: RewriteLog) -> bool:
        """Apply the rules until none fires; returns whether one did. PassError naming them if they do not terminate."""
        before = log.count
        _Driver(graph, self, log).run()
        return log.count != before


class _Driver:
    """Worklist driver: first all nodes in order, then those around each rewrite."""

    def __init__(self, graph: Graph, rules: RuleSet, log: RewriteLog) -> None:
        self.graph, self.rules, self.log = graph, rules, log
        self.fitting: dict[type[Op], tuple[Rule, ...]] = {}
        self.queue = deque(n for n in graph.order() if self._rules_for(type(n.op)) or is_dead(graph, n))
        self.queued = {n.id for n in self.queue}

    def run(self) -> None:
        limit = 100 + MAX_REWRITES_PER_NODE * len(self.graph.nodes)
        recent: deque[str] = deque(maxlen=50)
        while self.queue:
            if self.log.is_full and not self.rules.required:
                return
            node = self.queue.popleft()
            self.queued.discard(node.id)
            if self.graph.nodes.get(node.id) is not node:
                continue
            if is_dead(self.graph, node):
                self._push(sweep(self.graph, [node])[1])
                continue
            fired = self._visit(node)
            if fired is None:
                continue
            recent.append(fired.name)
            limit -= 1
            if limit <= 0:
                names = ", ".join(sorted(set(recent)))
                raise PassError(f"{self.rules.name}: rules do not terminate; these fire: {names}")

    def _visit(self, node: Node) -> Rule | None:
        build = Builder(self.graph, node.origin)
        for candidate in self._rules_for(type(node.op)):
            mark = self.graph.next_id
            try:
                replacement = candidate(node, build)
            except Exception as error:
                error.add_note(f"in rule {candidate.name} ({candidate.equation}) at layer {node.name!r}")
                raise
            if replacement is None and self.graph.next_id == mark:
                continue  # nothing was added: most rules look at a node and leave
            fresh = _added(self.graph, mark)
            if replacement is None:
                sweep(self.graph, fresh)
                continue
            ports = replacement if isinstance(replacement, tuple) else (replacement,)
            self.log.add(candidate.name, node.name)
            self._replace(candidate, node, ports, fresh)
            return candidate
        return None

    def _rules_for(self, cls: type[Op]) -> tuple[Rule, ...]:
        if cls not in self.fitting:
            self.fitting[cls] = tuple(r for r in self.rules.rules if issubclass(cls, r.anchors))
        return self.fitting[cls]

    def _replace(self, fired: Rule, node: Node, ports: tuple[OutPort | None, ...], fresh: list[Node]) -> None:
        outputs = node.out_ports()
        if len(ports) != len(outputs):
            raise PassError(f"{fired.name}: {len(ports)} ports for the {len(outputs)} outputs of {node.name!r}")
        around: list[Node] = list(fresh)
        for old, new in zip(outputs.values(), ports, strict=True):
            if old is new or (new is None and not old.destinations):
                continue
            if new is None:
                raise PassError(f"{fired.name}: no port for {old}, which is read")
            _check_type(fired, node, old, new)
            if new.node in self.graph.parameters:
                old.names = ()  # an input must not be found by the names of tensors computed from it
            old.replace_by(new)
            around += [new.node, *(p.node for p in new.destinations)]
        name, origin = node.name, node.origin
        removed, rim = sweep(self.graph, [node, *fresh])
        around += rim
        around += [p.node for n in rim for out in n.out_ports().values() for p in _only_consumer(out)]
        _merge_origins(fresh, [n for n in removed if n not in fresh], origin)
        heir = ports[0].node if ports[0] is not None else None
        if heir is not None and node in removed and heir in fresh and heir.constant_data is None:
            heir.name = name
        self._push(around)

    def _push(self, nodes: Iterable[Node]) -> None:
        """Put nodes at the front of the queue, so that one region reaches its fixpoint before the next is visited."""
        new = [n for n in dict.fromkeys(nodes) if n.id not in self.queued and n.id in self.graph.nodes]
        self.queued.update(n.id for n in new)
        self.queue.extendleft(reversed(new))


def _only_consumer(port: OutPort) -> list[InPort]:
    """Return the consumer of a port if it is the only one: constants may have thousands, which no rule asks for."""
    return port.destinations if len(port.destinations) == 1 else []


def _added(graph: Graph, mark: int) -> list[Node]:
    """Return the nodes from number `mark` on, oldest first."""
    nodes = list(takewhile(lambda node: node.id >= mark, reversed(graph.nodes.values())))
    return nodes[::-1]


def _check_type(fired: Rule, node: Node, old: OutPort, new: OutPort) -> None:
    before, after = old.type, new.type
    if not is_same_type(before, after):
        raise PassError(f"{fired.name}: {node.name!r} was {before}, its replacement is {after}")


def is_same_type(a: TensorType, b: TensorType) -> bool:
    """True if equal as far as known at compile time: dynamic dimensions may be different expressions."""
    if a.dtype is not b.dtype or a.dims is None or b.dims is None or len(a.dims) != len(b.dims):
        return a == b
    return all(m == n for m, n in zip(a.dims, b.dims, strict=True) if isinstance(m, int) and isinstance(n, int))


def _merge_origins(fresh: list[Node], replaced: list[Node], anchor: Origin) -> None:
    origin = anchor
    for node in replaced:
        if node.constant_data is None:
            origin = origin | node.origin
    for node in fresh:
        if node.constant_data is None:
            node.origin = origin


def sweep(graph: Graph, roots: Iterable[Node]) -> tuple[list[Node], list[Node]]:
    """Remove the `roots` without consumers, and all producers that lose their last consumer by it.

    Returns the removed nodes and the surviving ones at the boundary. Parameters, results and sinks stay.
    """
    removed: dict[int, Node] = {}
    rim: dict[int, Node] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.id in removed or graph.nodes.get(node.id) is not node:
            continue
        if not is_dead(graph, node):
            rim[node.id] = node
            continue
        above = [p.source.node for p in node.inputs() if p.source is not None]
        graph.remove(node)
        removed[node.id] = node
        stack += above
    return list(removed.values()), [n for n in rim.values() if n.id not in removed]


def is_dead(graph: Graph, node: Node) -> bool:
    """True if the node has no consumers and is neither input, output nor sink, nor holds a sink in a body."""
    for port in node.outputs():
        if port.destinations:
            return False
    if node.regions and any(body.sinks for body in node.regions.values()):
        return False
    return node not in graph.parameters and node not in graph.results and node not in graph.sinks
