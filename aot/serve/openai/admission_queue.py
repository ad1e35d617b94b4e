"""Places for answers that are made at the same time, and the queue before them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aot.serve.faults import QueueFullError


class AdmissionQueue:
    """Admits up to `count` requests of a model at once, and queues up to `queue` others."""

    def __init__(self, name: str, count: int, queue: int) -> None:
        self._name, self._queue = name, queue
        self._free, self._waiting = asyncio.Semaphore(count), 0

    def check(self) -> None:
        """Raise QueueFullError if no other request may wait."""
        if self._waiting >= self._queue:
            raise QueueFullError(f"{self._name}: at most {self._queue} requests may wait, got one more")

    @asynccontextmanager
    async def taken(self) -> AsyncGenerator[None]:
        """Hold a place, once one is free; QueueFullError if too many requests wait for one."""
        self.check()
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._free.release()
