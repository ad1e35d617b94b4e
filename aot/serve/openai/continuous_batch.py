"""Answers of one model that go on together: a step computes a token of each, in one inference.

answer: prompt, alone -> join -> step, step, ... -> its last token
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from aot.runtime.arrays.tensors import Array
from aot.runtime.generation.batch import Batch
from aot.runtime.generation.generator import Generator
from aot.runtime.inference.executor import Executor
from aot.runtime.model import CompiledModel


class Member(Protocol):
    """An answer after its prompt is computed and its next token is chosen."""

    @property
    def generator(self) -> Generator:
        """The sequence of its prompt."""
        ...

    @property
    def token(self) -> int:
        """The token to append."""
        ...

    def leaves(self) -> bool:
        """Return True if the answer was cancelled; its end is reported then."""
        ...

    def take(self, logits: Array) -> bool:
        """Choose the next token from its logits; False if it was the last one."""
        ...

    def fail(self, error: BaseException) -> None:
        """Tell an error, which ends the answer."""
        ...


class ContinuousBatch:
    """Rows of a batch, on the threads of the server: a step is a task, and the next step queues after other tasks."""

    def __init__(self, model: CompiledModel, executor: Executor) -> None:
        self._model, self._executor = model, executor
        self._batch = Batch(model)
        self._rows = list[Member]()
        self._new = list[Member]()
        self._lock = threading.Lock()
        self._runs = False  # a step runs or waits

    def join(self, member: Member) -> None:
        """Let an answer take part from the next step on."""
        with self._lock:
            self._new.append(member)
            runs, self._runs = self._runs, True
        if not runs:
            self._executor.submit(self._step)

    def _step(self) -> None:
        try:
            self._admit()
            self._retire([row for row, member in enumerate(self._rows) if member.leaves()])
            if self._rows:
                logits = self._batch.step([member.token for member in self._rows])
                self._retire([row for row, m in enumerate(self._rows) if not _took(m, logits[row])])
        except BaseException as error:  # the requests get it
            self._batch = Batch(self._model)
            rows = self._rows
            self._rows = []
            for member in rows:
                member.fail(error)
        with self._lock:
            goes_on = self._runs = bool(self._rows or self._new)
        if goes_on:  # not `self._runs`: `join` may have begun the next step since
            self._executor.submit(self._step)

    def _admit(self) -> None:
        with self._lock:
            new = self._new
            self._new = []
        self._rows += new  # before they are added: after an error all of them are informed
        for member in new:
            self._batch.add(member.generator)

    def _retire(self, rows: Sequence[int]) -> None:
        for row in reversed(rows):
            self._batch.remove(row)
            last = self._rows.pop()
            if row < len(self._rows):
                self._rows[row] = last


def _took(member: Member, logits: Array) -> bool:
    """Hand logits over; an error of one answer ends that one only."""
    try:
        return member.take(np.asarray(logits))
    except BaseException as error:
        member.fail(error)
        return False
