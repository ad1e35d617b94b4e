"""Routes of OpenAI's API: answers whole or as server-sent events, errors in OpenAI's form."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Generic, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from aot.runtime.errors import AotError, InternalError
from aot.serve.bodies import json_object, received
from aot.serve.faults import DeadlineError, UnavailableError, UnknownModelError, http_status
from aot.serve.metrics import Times
from aot.serve.openai import embeddings, reranking, speech, transcriptions
from aot.serve.openai.answer import Delta
from aot.serve.openai.completion_format import CompletionFormat, error_tree, events, merged, whole
from aot.serve.openai.completion_request import CompletionRequest, completion_request_of
from aot.serve.openai.embeddings import Embedder
from aot.serve.openai.language_model import ServedLanguageModel, is_language_model
from aot.serve.openai.reranking import Reranker
from aot.serve.openai.responses_format import ResponsesFormat
from aot.serve.openai.responses_request import responses_request_of
from aot.serve.openai.speech import ServedVoice
from aot.serve.openai.transcriptions import ServedSpeechModel
from aot.serve.repository import Repository
from aot.serve.served_model import ServedModel
from aot.speech.speaking import is_speaking
from aot.speech.special_tokens import is_speech_model
from aot.text.embedding import is_encoder, is_ranker
from aot.text.grammars import Constraint
from aot.text.library_texts import ADAPTER
from aot.text.tokenizers.tokenizer import Tokenizer

PREFIX = "/v1/"
OWNER = "aot"
LOOK_SECONDS = 0.25  # between looks whether a client is still there
CLOSED = 499  # the status of a request whose client has gone; none is sent


T = TypeVar("T")


class _PerModel(Generic[T]):
    """Values that are made once for each model that is loaded."""

    def __init__(self, repository: Repository, make: Callable[[ServedModel], T]) -> None:
        self._repository, self._make = repository, make
        self._known: dict[ServedModel, T] = {}

    async def of(self, served: ServedModel) -> T:
        """Return the value of a model."""
        if served not in self._known:
            loaded = set(self._repository.loaded())
            self._known = {s: x for s, x in self._known.items() if s in loaded}
            return self._known.setdefault(served, await asyncio.to_thread(self._make, served))
        return self._known[served]


class OpenAi:
    """The routes, and the language models and encoders that they have answered for."""

    def __init__(self, repository: Repository) -> None:
        self._repository, self._settings = repository, repository.settings
        executor, settings = repository.executor, repository.settings
        self._languages = _PerModel(repository, lambda served: ServedLanguageModel(served, settings, executor))
        self._embedders = _PerModel(repository, Embedder)
        self._rerankers = _PerModel(repository, Reranker)
        self._speech_models = _PerModel(repository, lambda served: ServedSpeechModel(served, settings))
        self._voices = _PerModel(repository, lambda served: ServedVoice(served, settings))

    def routes(self) -> list[Route]:
        return [
            Route("/v1/models", _guarded(self._models)),
            Route("/v1/models/{model}", _guarded(self._model)),
            Route("/v1/completions", _guarded(self._completions), methods=["POST"]),
            Route("/v1/chat/completions", _guarded(self._chat), methods=["POST"]),
            Route("/v1/responses", _guarded(self._responses), methods=["POST"]),
            Route("/v1/embeddings", _guarded(self._embeddings), methods=["POST"]),
            Route("/v1/rerank", _guarded(self._rerank), methods=["POST"]),
            Route("/v1/audio/transcriptions", _guarded(self._transcribe), methods=["POST"]),
            Route("/v1/audio/speech", _guarded(self._speak), methods=["POST"]),
        ]

    async def _models(self, request: Request) -> Response:
        del request
        models = {served.name: served for served in self._repository.loaded() if _is_known(served)}
        listed = [one for s in models.values() for one in (_described(s), *self._adapted(s))]
        return JSONResponse({"object": "list", "data": listed})

    async def _model(self, request: Request) -> Response:
        name = request.path_params["model"]
        base, adapter = self._named(name)
        served = self._repository.find(base)
        is_known = not adapter or any(one["id"] == name for one in self._adapted(served))
        return JSONResponse({**_described(served if is_known else self._repository.find(name)), "id": name})

    def _adapted(self, served: ServedModel) -> list[dict[str, object]]:
        """Return the descriptions of a model with each adapter that it can take."""
        names = self._settings.lora if ADAPTER in served.model.manifest.json else ()
        return [{**_described(served), "id": f"{served.name}:{name}"} for name in names]

    def _named(self, model: str) -> tuple[str, str]:
        """Return the names of the model and of the adapter that a request asks for, "" for none."""
        base, _, adapter = model.rpartition(":")
        return (base, adapter) if base and adapter in self._settings.lora else (model, "")

    async def _completions(self, request: Request) -> Response:
        return await self._answered(request, completion_request_of(await self._tree(request), chat=False))

    async def _chat(self, request: Request) -> Response:
        return await self._answered(request, completion_request_of(await self._tree(request), chat=True))

    async def _responses(self, request: Request) -> Response:
        tree = await self._tree(request)
        return await self._answered(request, responses_request_of(tree), partial(ResponsesFormat, tree))

    async def _embeddings(self, request: Request) -> Response:
        wanted = embeddings.wanted_of(await self._tree(request))
        embedder = await self._embedders.of(self._repository.find(wanted.model))
        return await _counted(embedder.served, lambda times: embedder.answer(wanted, times))

    async def _rerank(self, request: Request) -> Response:
        wanted = reranking.wanted_of(await self._tree(request))
        reranker = await self._rerankers.of(self._repository.find(wanted.model))
        return await _counted(reranker.served, lambda times: reranker.answer(wanted, times))

    async def _transcribe(self, request: Request) -> Response:
        body = await self._body(request)
        wanted = await asyncio.to_thread(transcriptions.wanted_of, request.headers.get("content-type", ""), body)
        model = await self._speech_models.of(self._repository.find(wanted.model))
        media = transcriptions.MEDIA.get(wanted.form, "application/json")
        return await _counted(model.served, lambda times: model.answer(wanted, times), media)

    async def _speak(self, request: Request) -> Response:
        wanted = speech.speech_request_of(await self._tree(request))
        voice = await self._voices.of(self._repository.find(wanted.model))
        return await _counted(voice.served, lambda times: voice.answer(wanted, times), speech.MEDIA[wanted.format])

    async def _tree(self, request: Request) -> dict[str, object]:
        return json_object(await self._body(request))

    async def _body(self, request: Request) -> bytes:
        if self._repository.is_closed:
            raise UnavailableError("server: must not be stopping, got a request")
        return await received(request, self._settings)

    async def _answered(
        self,
        request: Request,
        completion: CompletionRequest,
        format_class: Callable[[CompletionRequest, list[int], Tokenizer], CompletionFormat] = CompletionFormat,
    ) -> Response:
        base, adapter = self._named(completion.model)
        completion = replace(completion, adapter=adapter)
        language = await self._languages.of(self._repository.find(base))
        prompts = await asyncio.to_thread(language.ids_of, completion)
        constraint = await asyncio.to_thread(language.constraint, completion)
        form = format_class(completion, [len(ids) for ids in prompts], language.tokenizer)
        id_lists = [ids for ids in prompts for _ in range(completion.answers)]
        deltas = merged([self._deltas(language, form, ids, constraint, n) for n, ids in enumerate(id_lists)])
        if completion.stream:
            language.admission.check()  # while the status can still tell it
            return StreamingResponse(events(form, deltas), media_type="text/event-stream")
        return JSONResponse(await _unless_gone(request, whole(form, deltas)))

    async def _deltas(
        self,
        language: ServedLanguageModel,
        form: CompletionFormat,
        ids: list[int],
        constraint: Constraint | None,
        number: int,
    ) -> AsyncGenerator[Delta]:
        """Yield the parts of answer `number`, within the time that a request may take."""
        wanted = form.wanted
        prompt, own = divmod(number, wanted.answers)
        begin, code, times = time.monotonic(), CLOSED, Times()
        try:
            answered = language.answer(wanted, ids, constraint, own)
            async with asyncio.timeout(self._settings.answer_timeout), answered as answer:
                times.begin(time.monotonic())
                form.timings.start()
                async with aclosing(answer.deltas()) as deltas:
                    async for delta in deltas:
                        form.timings.came()
                        form.known[prompt] = max(form.known[prompt], answer.known)
                        yield delta
            times.end(time.monotonic())
            code = 200
        except TimeoutError:
            code = 504
            rule = f"an answer must end in {self._settings.answer_timeout:g} s (--answer-timeout)"
            raise DeadlineError(f"{wanted.model}: {rule}, got none") from None
        except AotError as error:
            code = http_status(error)
            raise
        finally:
            language.served.metrics.answered(code, time.monotonic() - begin, times if code == 200 else None)


async def _counted(
    served: ServedModel, work: Callable[[Times], Awaitable[bytes]], media: str = "application/json"
) -> Response:
    """Answer with the bytes that `work` returns, of type `media`, and count the request for the model."""
    begin, code, times = time.monotonic(), CLOSED, Times()
    try:
        answer = await work(times)
        code = 200
    except AotError as error:
        code = http_status(error)
        raise
    finally:
        served.metrics.answered(code, time.monotonic() - begin, times if code == 200 else None)
    return Response(answer, media_type=media)


async def _unless_gone(request: Request, work: Awaitable[dict[str, object]]) -> dict[str, object]:
    """Return the result of `work`, which is cancelled when the client has gone."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=LOOK_SECONDS)
            if not task.done() and await request.is_disconnected():
                raise UnavailableError("request: the client must wait for its answer, got none any more")
        return task.result()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, AotError):
            await task


def _is_known(served: ServedModel) -> bool:
    """True for a language model, an encoder or a model of speech."""
    known = (is_encoder, is_ranker, is_speech_model, is_speaking)
    return is_language_model(served) or any(is_of(served.model.manifest) for is_of in known)


def _described(served: ServedModel) -> dict[str, object]:
    if not _is_known(served):
        raise UnknownModelError(
            f"model '{served.name}': must be a language model, an encoder or one of speech, got another"
        )
    created = int(served.path.stat().st_mtime) if served.path.exists() else 0
    return {"id": served.name, "object": "model", "created": created, "owned_by": OWNER}


def _guarded(answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Any]]:
    """Answer errors in OpenAI's form."""

    async def guarded(request: Request) -> Response:
        try:
            return await answer(request)
        except AotError as error:
            status = 500 if isinstance(error, InternalError) else http_status(error)
            headers = {"retry-after": "1"} if status in (429, 503) else {}
            return JSONResponse(error_tree(error, status), status, headers)

    return guarded
