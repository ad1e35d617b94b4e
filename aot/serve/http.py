"""The Open Inference Protocol over HTTP, and OpenAI's API, as an ASGI application."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from aot.runtime.errors import AotError, InternalError, ModelError, UsageError
from aot.serve import protocol
from aot.serve.bodies import json_object, received
from aot.serve.faults import TokenError, http_status
from aot.serve.json_requests import LENGTH_HEADER, parse, render
from aot.serve.metrics import CONTENT_TYPE
from aot.serve.openai.routes import PREFIX, OpenAi, error_tree
from aot.serve.repository import Repository
from aot.serve.served_model import ServedModel

_LOG = logging.getLogger(__name__)
_OPEN = ("/v2/health/live", "/v2/health/ready")  # probes of an orchestrator carry no token
_PARSED_HERE = 1 << 16  # bytes of a request that may be parsed, and of results that may be written, in the event loop

Handler = Callable[[Request], Awaitable[Response]]


class Application:
    """Answers of a server to HTTP requests."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._settings = repository.settings

    def asgi(self) -> ASGIApp:
        """Return the application, which also mounts in another one."""
        infer = [f"/v2/models/{{model}}{version}/infer" for version in ("", "/versions/{version}")]
        routes = [
            *(Route(path, self._infer, methods=["POST"]) for path in infer),
            *(Route(path, self._get(facts)) for path, facts in self._facts().items()),
            Route("/v2/repository/index", self._index, methods=["POST"]),
            Route("/v2/repository/models/{model}/load", self._load, methods=["POST"]),
            Route("/v2/repository/models/{model}/unload", self._unload, methods=["POST"]),
            Route("/metrics", self._metrics),
            *OpenAi(self._repository).routes(),
        ]
        handlers: dict[Any, Any] = {AotError: _failed, OSError: _failed, HTTPException: _refused}
        app = Starlette(routes=routes, exception_handlers=handlers)
        return app if self._settings.token is None else _Guard(app, self._settings.token)

    def _facts(self) -> dict[str, Callable[[Request], object]]:
        """Return the handlers of GET requests by path."""
        repository = self._repository
        facts: dict[str, Callable[[Request], object]] = {
            "/v2": lambda r: protocol.server_metadata(),
            "/v2/health/live": lambda r: {"live": True},
            "/v2/health/ready": self._ready,
            "/v2/models/stats": lambda r: {"model_stats": [s.metrics.statistics() for s in repository.loaded()]},
        }
        for version in ("", "/versions/{version}"):
            path = "/v2/models/{model}" + version
            facts |= {
                f"{path}/ready": lambda r: {"name": self._find(r).name, "ready": True},
                f"{path}/stats": lambda r: {"model_stats": [self._find(r).metrics.statistics()]},
                f"{path}/config": lambda r: protocol.model_config(self._find(r)),
                path: lambda r: protocol.model_metadata(repository, self._find(r)),
            }
        return facts

    def _get(self, facts: Callable[[Request], object]) -> Handler:
        async def answer(request: Request) -> Response:
            return _Json(facts(request))

        return answer

    def _find(self, request: Request) -> ServedModel:
        return self._repository.find(request.path_params["model"], request.path_params.get("version", ""))

    def _ready(self, request: Request) -> object:
        del request
        self._repository.check_ready()
        return {"ready": True}

    async def _infer(self, request: Request) -> Response:
        served = self._find(request)

        async def read() -> protocol.Call:
            body = await received(request, self._settings)
            header = request.headers.get(LENGTH_HEADER)
            if len(body) <= _PARSED_HERE or header is not None:
                return parse(served, body, header)
            return await asyncio.to_thread(parse, served, body, header)

        call, answer = await protocol.answer(served, read, self._settings.max_answer)
        body, length = await _rendered(call, answer)
        headers = {} if length is None else {LENGTH_HEADER: str(length)}
        if _LOG.isEnabledFor(logging.INFO):
            _LOG.info("inferred", extra={"facts": protocol.facts(call, answer, "http")})
        kind = "application/json" if length is None else "application/octet-stream"
        return Response(body, media_type=kind, headers=headers)

    async def _index(self, request: Request) -> Response:
        body = await received(request, self._settings)
        ready = bool(body.strip()) and (tree := json_object(body)) and tree.get("ready") is True
        return _Json([e for e in self._repository.index() if not ready or e["state"] == "READY"])

    async def _load(self, request: Request) -> Response:
        body = await received(request, self._settings)
        if body.strip() and json_object(body).get("parameters"):
            raise UsageError("load: must have no parameters, as models are what their files are, got some")
        problems = await self._repository.change(request.path_params["model"])
        if problems:
            raise ModelError("; ".join(problems))
        return _Json({})

    async def _unload(self, request: Request) -> Response:
        await received(request, self._settings)
        await self._repository.unload(request.path_params["model"])
        return _Json({})

    async def _metrics(self, request: Request) -> Response:
        del request
        for served in self._repository.loaded():
            served.metrics.waiting.set(served.waiting)
        return Response(self._repository.metrics.text(), media_type=CONTENT_TYPE)


async def _rendered(call: protocol.Call, answer: protocol.Answer) -> tuple[bytes, int | None]:
    if sum(answer.results[info.name].nbytes for info in call.outputs) <= _PARSED_HERE:
        return render(call, answer)
    return await asyncio.to_thread(render, call, answer)


class _Json(Response):
    """An object as JSON in ASCII, which also holds the unpaired surrogates that a client may have sent."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """Return the body."""
        return json.dumps(content, separators=(",", ":")).encode()


async def _failed(request: Request, error: Exception) -> Response:
    """Answer a request that failed, by the kind of error."""
    status = http_status(error)
    if isinstance(error, ModelError | OSError):  # a file on the server, which a client has asked to load
        status = 400
    facts = {"path": request.url.path[:200], "status": status, "error": str(error)[:500]}
    _LOG.log(logging.ERROR if isinstance(error, InternalError) else logging.INFO, "refused", extra={"facts": facts})
    headers = {"retry-after": "1"} if status in (429, 503) else {}
    if status in (408, 413):
        headers["connection"] = "close"
    return _Json({"error": str(error)}, status, headers)


async def _refused(request: Request, error: HTTPException) -> Response:
    del request
    return _Json({"error": error.detail}, error.status_code, error.headers)


class _Guard:
    """Lets requests with the token pass, and those for health."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = str(scope.get("path", "")).removeprefix(str(scope.get("root_path", "")))  # it may be mounted
        if scope["type"] == "http" and path not in _OPEN:
            header = Request(scope).headers.get("authorization", "").encode()
            if not hmac.compare_digest(header, b"Bearer " + self._token):
                error = TokenError("request: must have the server's token, got none or another")
                tree = error_tree(error, 401) if path.startswith(PREFIX) else {"error": str(error)}
                answer = _Json(tree, 401, {"www-authenticate": "Bearer"})
                return await answer(scope, receive, send)
        return await self._app(scope, receive, send)
