"""Conversion of PaddlePaddle 2's control flow to version 3: its blocks write outer variables.

    while(going) {x = f(x); going = g(x)}                           going, x = while(going, x) {f(x), g(x)}
    conditional_block(p) {a = f(x)}; conditional_block(not p) {b = g(x)}; y = select_input(p, b, a)
                                                                    y = if(p) {f(x)} else {g(x)}

A loop carries the variables that it writes and that are read in its next step or after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import takewhile

from aot.codegen.dataclass import dataclass
from aot.frontends.paddle.program import Block, ConstantInput, Keys, Operation
from aot.runtime.errors import BudgetError, CorruptError, UnsupportedError

LOOP, CONDITION, CHOICE = "while", "conditional_block", "select_input"
MAX_DEPTH = 32  # blocks in blocks
MAX_OPERATIONS = 1 << 18  # once blocks stand in the operations that run them


def names_of(keys: Sequence[Keys | ConstantInput | None]) -> Iterator[str]:
    """Yield the variables among the inputs or the outputs of an operation, those of lists, too."""
    for key in keys:
        yield from (str(k) for k in (key if isinstance(key, tuple) else (key,)) if isinstance(k, str))


@dataclass(slots=True)
class Blocks:
    """The operations of each block; those with a block of their own have its number as the attribute `sub_block`."""

    file: str
    blocks: Sequence[Sequence[Operation]]
    ranks: Mapping[str, int]  # of variables, as they are declared
    read_first: list[frozenset[str]] = field(default_factory=list[frozenset[str]])
    written: list[frozenset[str]] = field(default_factory=list[frozenset[str]])
    pending: dict[str, int] = field(default_factory=dict[str, int])  # variables that one branch gives, and its block
    unset: dict[str, Operation] = field(default_factory=dict[str, Operation])  # variables that a loop gives a value
    count: int = 0

    def __post_init__(self) -> None:
        """Find what blocks read before they write it, and what they write: inner ones, which stand later, first."""
        self.read_first = [frozenset()] * len(self.blocks)
        self.written = [frozenset()] * len(self.blocks)
        for i in reversed(range(len(self.blocks))):
            read, certain, written = set[str](), set[str](), set[str]()
            for op in self.blocks[i]:
                inner = self._inner(op)
                if inner is not None and not i < inner < len(self.blocks):
                    raise CorruptError(f"{self.file}: a block within block {i} must stand behind it, got {inner}")
                read |= self._reads(op) - certain
                written |= self._writes(op)
                certain |= self._writes(op) if inner is None else set()
            self.read_first[i], self.written[i] = frozenset(read), frozenset(written)

    def functional(self, index: int, defined: frozenset[str], live: frozenset[str], depth: int = 0) -> list[Operation]:
        """Return the operations of a block. `defined`: variables before it; `live`: variables read after it."""
        if depth > MAX_DEPTH:
            raise CorruptError(f"{self.file}: blocks can have at most {MAX_DEPTH} levels, got more")
        ops, operations, known = self.blocks[index], list[Operation](), set(defined)
        after = [live]
        for op in reversed(ops):
            needed = after[-1] - (self._writes(op) if self._inner(op) is None else frozenset())
            after.append(needed | self._reads(op))
        behind, moved = after[-2::-1], set[int]()
        for i, op in enumerate(ops):
            self.count += 1
            if self.count > MAX_OPERATIONS:
                raise BudgetError(
                    f"{self.file}: there can be at most {MAX_OPERATIONS} operations in all blocks, got more"
                )
            if op.kind == LOOP:
                operations += self._loop(op, frozenset(known), behind[i], depth)
            elif op.kind == CONDITION:
                operations += self._condition(op, frozenset(known), behind[i], depth)
            elif op.kind == CHOICE and i not in moved:
                group = self._group(ops[i:])
                moved |= set(range(i, i + len(group)))
                operations += self._choice(group, frozenset(known), depth)
            elif op.kind != CHOICE:
                operations.append(op)
                if self._is_unset(op):
                    self.unset[op.name] = op
            known |= set(names_of(op.outputs)) if op.kind != CONDITION else set()
        return operations

    def _is_unset(self, op: Operation) -> bool:
        """True for the placeholder of a variable that a loop sets: it has another rank than the variable declares."""
        rank = self.ranks.get(op.name)
        return op.kind == "full" and op.inputs[1] is None and rank not in (None, len(op.attrs.get("shape", ())))

    def _empty(self, op: Operation) -> Operation:
        """Return the operation that makes such a variable without elements, of the rank it is declared with."""
        return replace(op, attrs={**op.attrs, "shape": (0,) * self.ranks[op.name]})

    def _inner(self, op: Operation) -> int | None:
        """Return the number of an operation's block; None if it has none."""
        return int(op.attrs["sub_block"]) if op.kind in (LOOP, CONDITION) else None

    def _reads(self, op: Operation) -> frozenset[str]:
        inner = self._inner(op)
        return frozenset(names_of(op.inputs)) | (frozenset[str]() if inner is None else self.read_first[inner])

    def _writes(self, op: Operation) -> frozenset[str]:
        inner = self._inner(op)
        return frozenset(names_of(op.outputs)) if inner is None else self.written[inner]

    def _loop(self, op: Operation, known: frozenset[str], behind: frozenset[str], depth: int) -> list[Operation]:
        inner = int(op.attrs["sub_block"])
        (going,) = names_of(op.inputs)
        first = self.read_first[inner]
        carried = sorted((self.written[inner] & known & (first | behind)) - {going})
        copies = self._copies(inner, carried, {n for n in carried if n not in first and n in self.unset})
        carried = [n for n in carried if n not in copies]
        if not carried:
            return []
        results = [going, *carried]
        body = self.functional(inner, known, first | set(results), depth + 1)
        operation = Operation(LOOP, op.name, [going, *carried], carried, {}, [Block(body, carried, results)])
        empty = [self._empty(self.unset.pop(n)) for n in carried if n not in first and n in self.unset]
        return [*empty, operation, *(Operation("assign", n, [source], [n], {}) for n, source in copies.items())]

    def _copies(self, inner: int, carried: Sequence[str], names: set[str]) -> dict[str, str]:
        """Return those of the names that are copied to another carried variable, by it, at the end of a block."""
        ops = self.blocks[inner]
        last = {n: i for i, op in enumerate(ops) for n in self._writes(op)}
        copies = dict[str, str]()
        for i, op in enumerate(ops):
            if op.kind == "assign":
                (source,), (target,) = names_of(op.inputs), names_of(op.outputs)
                if source in names and target in carried and target not in names and last[source] < i == last[target]:
                    copies[source] = target
        return copies

    def _condition(self, op: Operation, known: frozenset[str], behind: frozenset[str], depth: int) -> list[Operation]:
        """Return the If of the variables that have a value before it; others are those of a `select_input`."""
        inner = int(op.attrs["sub_block"])
        wanted = self.written[inner] & behind
        changed = sorted(wanted & known)
        if changed and wanted - known:
            rule = "variables that a branch writes have all a value before it, or none has"
            raise UnsupportedError(f"{self.file}: {op.kind}: {rule}, got {sorted(wanted)}")
        if not changed:
            self.pending |= dict.fromkeys(wanted, inner)
            return []
        then = self.functional(inner, known, frozenset(changed), depth + 1)
        return [Operation("if", op.name, op.inputs, changed, {}, [Block(then, (), changed), Block((), (), changed)])]

    def _group(self, ops: Sequence[Operation]) -> list[Operation]:
        """Return the first of the operations, and the next ones that choose between the same two blocks."""

        def blocks(op: Operation) -> tuple[Keys | ConstantInput | None, list[int | None]]:
            return op.inputs[0], [self.pending.get(n) for n in names_of(op.inputs[1:])]

        return list(takewhile(lambda op: op.kind == CHOICE and blocks(op) == blocks(ops[0]), ops))

    def _choice(self, group: Sequence[Operation], known: frozenset[str], depth: int) -> list[Operation]:
        """Return an If: the mask is 0 or 1, the first value is for 0."""
        sides: list[Block] = []
        for at in (1, 0):
            results = [list(names_of(op.inputs[1:]))[at] for op in group]
            inner = self.pending.get(results[0])
            ops = list[Operation]() if inner is None else self.functional(inner, known, frozenset(results), depth + 1)
            sides.append(Block(ops, (), results))
        mask, outputs = f"{group[0].name}.mask", [n for op in group for n in names_of(op.outputs)]
        cast_mask = Operation("cast", mask, group[0].inputs[:1], [mask], {"dtype": "bool"})
        return [cast_mask, Operation("if", group[0].name, [mask], outputs, {}, sides)]
