"""A server: sockets, signals, files that change, and a stop that drops no request."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import uvicorn

from aot.runtime.errors import AotError, UsageError
from aot.serve import rpc
from aot.serve.connections import Connection
from aot.serve.http import Application
from aot.serve.openai.routes import PREFIX
from aot.serve.repository import Repository
from aot.serve.settings import Settings

if sys.platform == "win32":
    from asyncio import new_event_loop
else:
    from uvloop import new_event_loop

COMPILED = "a model is compiled before: aot compile MODEL -o NAME.so; a folder has NAME.so, or NAME/VERSION/any.so"
_LOG = logging.getLogger(__name__)
_SWEEP_SECONDS = 1.0


class _Web(uvicorn.Server):
    """uvicorn's server, which leaves signals to ours."""

    def capture_signals(self) -> AbstractContextManager[None]:  # pyrefly: ignore[bad-override]  uvicorn has a generator
        return nullcontext()


def listener_of(settings: Settings) -> socket.socket:
    """Return a socket that listens where the settings say; OSError for an address that is in use."""
    listener = socket.create_server((settings.host, settings.port), backlog=2048)
    # connections inherit it; asyncio sets it only for sockets that name their protocol. Without it the body of an
    # answer, sent after its head, waits 40 ms for the client's acknowledgement
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


class Server:
    """Serves compiled models until `stop` is called or a signal comes.

    `sources`: compiled models, NAME=FILE, or folders. Ports are bound by the constructor: `port` and `grpc_port` are
    those that were chosen. `listener`: a socket that listens already, of several processes. Raises UsageError for a
    source that is none, OSError for an address that is in use.
    """

    def __init__(
        self, sources: Sequence[str], settings: Settings | None = None, listener: socket.socket | None = None
    ) -> None:
        self.settings = settings or Settings()
        self.repository = Repository(sources, self.settings)
        self._socket = listener or listener_of(self.settings)
        self.port: int = self._socket.getsockname()[1]
        self.grpc_port: int | None = None
        self.ready = threading.Event()
        self._stopping: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, on_ready: Callable[[], object] = lambda: None) -> None:
        """Serve until stopped; `on_ready` is called when requests are answered."""
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(self.serve(on_ready))

    def stop(self) -> None:
        """Answer the requests that were accepted, and stop; from any thread."""
        if self._loop is not None and self._stopping is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stopping.set)

    async def serve(self, on_ready: Callable[[], object] = lambda: None) -> None:
        """Serve in the running event loop until stopped."""
        with self._socket:
            await self._serve(on_ready)

    async def _serve(self, on_ready: Callable[[], object]) -> None:
        self._stopping, self._loop = asyncio.Event(), asyncio.get_running_loop()
        stopping = self._stopping
        if threading.current_thread() is threading.main_thread():
            self._watch_signals(self._loop, stopping)
        await self.repository.change()
        if not self.repository.loaded():
            none = UsageError("serve: there must be a compiled model, got none", advice=COMPILED)
            raise next(iter(self.repository.errors()), none)
        names = {entry["name"] for entry in self.repository.index()}
        for name in self.settings.by_model.keys() - names:
            _LOG.warning("%s: has settings, but there is no model of that name", name)
        web = self._web()
        grpc = await self._grpc()
        tasks = [asyncio.create_task(web.serve(sockets=[self._socket])), asyncio.create_task(self._sweep(web))]
        if self.settings.poll is not None:
            tasks.append(asyncio.create_task(self._poll(self.settings.poll)))
        while not web.started and not tasks[0].done():
            await asyncio.sleep(0.005)
        self.ready.set()
        on_ready()
        await stopping.wait()
        await self._drain(stopping)
        self.repository.is_closed = True
        _LOG.info("stopping: %d requests wait", sum(served.waiting for served in self.repository.loaded()))
        if grpc is not None:
            await grpc.stop(self.settings.stop_timeout)
        web.should_exit = True
        await tasks[0]
        for task in tasks[1:]:
            task.cancel()
        await asyncio.wait_for(self.repository.close(), self.settings.stop_timeout)

    def _watch_signals(self, loop: asyncio.AbstractEventLoop, stopping: asyncio.Event) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            if sys.platform == "win32":
                signal.signal(number, lambda _, __: loop.call_soon_threadsafe(stopping.set))
            else:
                loop.add_signal_handler(number, stopping.set)
        if sys.platform != "win32":
            loop.add_signal_handler(signal.SIGHUP, self._reload)

    async def _drain(self, stopping: asyncio.Event) -> None:
        """Be not ready, so that a load balancer sends no more, and answer what it sends until it knows.

        Another call of `stop`, or another signal, ends it.
        """
        self.repository.is_draining = True
        if self.settings.drain:
            _LOG.info("not ready any more, requests are answered for %g s", self.settings.drain)
            stopping.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self.settings.drain):
                    await stopping.wait()

    def _web(self) -> uvicorn.Server:
        settings = self.settings
        app = Application(self.repository).asgi()
        config = uvicorn.Config(
            app,
            http=Connection,
            log_config=None,
            access_log=False,
            server_header=False,
            ws="none",
            lifespan="off",
            limit_concurrency=settings.max_connections,
            timeout_keep_alive=int(max(1, settings.receive_timeout)),
            timeout_graceful_shutdown=int(max(1, settings.stop_timeout)),
            ssl_certfile=settings.tls_certificate,
            ssl_keyfile=settings.tls_key,
        )
        return _Web(config)

    async def _grpc(self) -> Any:
        if self.settings.grpc_port is None:
            return None
        server, self.grpc_port = await rpc.start(self.repository)
        return server

    def _reload(self) -> None:
        self._reloading = asyncio.ensure_future(self._changed())

    async def _changed(self, *, again: bool = True) -> None:
        try:
            await self.repository.change(again=again)
        except (AotError, OSError) as error:
            _LOG.error("not reloaded: %s", error)

    async def _poll(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            await self._changed(again=False)

    async def _sweep(self, web: uvicorn.Server) -> None:
        """Close connections that send no whole header, or do not read their answer: uvicorn waits forever."""
        since: dict[int, tuple[tuple[object, bool], float]] = {}  # by connection: its state, and when it was first seen
        receive = self.settings.receive_timeout
        while True:
            await asyncio.sleep(min(_SWEEP_SECONDS, receive / 2))
            now, before = time.monotonic(), since
            since = {}
            for connection in list(web.server_state.connections):
                cycle = getattr(connection, "cycle", None)
                answering = cycle is not None and not cycle.response_complete
                last, begun = before.get(id(connection), (None, now))
                state = (cycle, answering)
                since[id(connection)] = (state, begun if last == state else now)
                longest = 2 * receive + self._timeout(cycle) if answering else receive
                if last == state and now - begun > longest:
                    connection.transport.abort()

    def _timeout(self, cycle: Any) -> float:
        """Return the time limit of a request in seconds."""
        is_answer = str(cycle.scope.get("path", "")).startswith(PREFIX)
        return self.settings.answer_timeout if is_answer else self.settings.timeout
