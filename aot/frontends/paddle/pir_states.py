"""States of loops and branches of PaddlePaddle 3, where blocks change arrays of tensors in place.

    ys = create_array(); while(going) {array_write_(ys, y, n)}      going, ys = while(going, ys) {array_write(ys, y, n)}

States of a loop that neither its block nor an operation after it reads are left out: Paddle begins those that have a
value in the block alone with a number, whose rank is another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from aot.frontends.paddle.program import Block, ConstantInput, Key, Keys, Operation

IN_PLACE = ("array_write_",)


def with_states(block: Block, outputs: Sequence[Key]) -> Block:
    """Return the block of a program with loops that carry what they change, and nothing that is not read."""
    carrying = _carrying(_renamed(block, {}))
    return _without(carrying, {*outputs, *_read(carrying)})


def _renamed(block: Block, own: dict[Key, Key]) -> Block:
    """Return a block that refers to a changed array by the key that it had before."""

    def name(key: Keys | ConstantInput | None) -> Keys | ConstantInput | None:
        if isinstance(key, tuple):
            return tuple(own.get(k, k) for k in key)
        return key if key is None or isinstance(key, ConstantInput) else own.get(key, key)

    operations = list[Operation]()
    for op in block.operations:
        inputs = [name(k) for k in op.inputs]
        outputs = list(op.outputs)
        if op.kind in IN_PLACE and isinstance(inputs[0], int | str) and isinstance(outputs[0], int | str):
            own[outputs[0]] = inputs[0]
            outputs[0] = inputs[0]
        operations.append(replace(op, inputs=inputs, outputs=outputs, blocks=[_renamed(b, own) for b in op.blocks]))
    return Block(operations, block.arguments, [own.get(k, k) for k in block.results])


def _changed(block: Block) -> list[Key]:
    """Return the arrays from outside that a block changes, in order."""
    keys = {key for op in block.operations if op.kind not in IN_PLACE for key in _keys(op.outputs)}
    changed = dict[Key, None]()
    for op in block.operations:
        changed |= dict.fromkeys(list(_keys(op.outputs))[:1] if op.kind in IN_PLACE else ())
        changed |= dict.fromkeys(key for inner in op.blocks for key in _changed(inner))
    return [key for key in changed if key not in keys]


def _keys(keys: Sequence[Keys | ConstantInput | None]) -> Iterator[Key]:
    for key in keys:
        if isinstance(key, tuple):
            yield from key
        elif key is not None and not isinstance(key, ConstantInput):
            yield key


def _carrying(block: Block) -> Block:
    """Return a block with operations that return the arrays that they change."""
    operations = list[Operation]()
    for op in block.operations:
        arrays = list(dict.fromkeys(key for inner in op.blocks for key in _changed(inner)))
        is_loop = op.kind == "while"
        blocks = [_carrying(inner) for inner in op.blocks]
        blocks = [Block(b.operations, [*b.arguments, *arrays * is_loop], [*b.results, *arrays]) for b in blocks]
        inputs = [*op.inputs, *arrays * is_loop]
        operations.append(replace(op, inputs=inputs, outputs=[*op.outputs, *arrays], blocks=blocks))
    return Block(operations, block.arguments, block.results)


def _read(block: Block) -> Iterator[Key]:
    """Yield the values that the operations of a block and of its blocks read."""
    for op in block.operations:
        yield from _keys(op.inputs)
        for inner in op.blocks:
            yield from inner.results
            yield from _read(inner)


def _without(block: Block, read: set[Key]) -> Block:
    """Return a block with loops that have no unread states."""
    operations = list[Operation]()
    for op in block.operations:
        blocks = [_without(inner, read) for inner in op.blocks]
        if op.kind == "while" and len(blocks) == 1 and len(op.outputs) == len(blocks[0].arguments):
            (body,) = blocks
            rows = zip(op.inputs[1:], op.outputs, body.arguments, body.results[1:], strict=False)
            kept = [row for row in rows if row[1] in read or row[2] in read]
            inputs, outputs, arguments, results = zip(*kept, strict=True) if kept else ((),) * 4
            op = replace(op, inputs=[op.inputs[0], *inputs], outputs=outputs)
            blocks = [Block(body.operations, arguments, [*body.results[:1], *results])]
        operations.append(replace(op, blocks=blocks))
    return Block(operations, block.arguments, block.results)
