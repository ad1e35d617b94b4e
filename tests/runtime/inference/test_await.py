"""`await request` in a coroutine: results, errors, many at once."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import numpy as np
import pytest

import runtime
from aot.runtime.errors import UsageError

X = np.arange(1000, dtype=np.float32)


def test_many_requests_are_awaited_at_once(chain_so: Path) -> None:
    model = runtime.load(chain_so, threads=1)

    async def one(factor: int) -> bool:
        request = model.create_infer_request()
        request.start_async(X * factor)
        results = await request
        assert await request == results  # once it is done, again
        return bool((results[0] == X * factor * 32).all())

    async def all_of_them() -> list[bool]:
        return await asyncio.gather(*map(one, range(50)))

    assert all(asyncio.run(all_of_them()))


def test_errors_and_callbacks(chain_so: Path) -> None:
    model = runtime.load(chain_so, threads=1)

    async def run() -> None:
        request = model.create_infer_request()
        with pytest.raises(UsageError, match="after an inference"):
            await request
        left = [3]

        def again(_: object) -> None:  # the callback starts the next one: the last one's results are awaited
            left[0] -= 1
            if left[0]:
                request.start_async(X * left[0], share_inputs=False)

        request.set_callback(again)
        request.start_async(X)
        assert ((await request)[0] == X * 32).all()
        assert left == [0]
        request.set_callback(lambda _: 1 / 0)
        request.start_async(X)
        with pytest.raises(ZeroDivisionError):
            await request

    asyncio.run(run())


def test_a_cancelled_coroutine_leaves_the_request(chain_so: Path) -> None:
    model = runtime.load(chain_so, threads=1)

    async def run() -> None:
        executor = runtime.Executor()
        held = threading.Event()
        executor.submit(lambda: held.wait(10))
        request = model.create_infer_request(executor)
        request.start_async(X)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(_results(request), 0.05)
        held.set()
        assert ((await request)[0] == X * 32).all()

    asyncio.run(run())


async def _results(request: runtime.InferRequest) -> runtime.Outputs:
    return await request
