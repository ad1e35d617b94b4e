"""Requests for vectors of texts, `/v1/embeddings`, and their answers as OpenAI writes them."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Mapping

from aot.codegen.dataclass import dataclass
from aot.ir.types import Array
from aot.runtime.generation.interface import EMBEDDING
from aot.serve.json_texts import written
from aot.serve.metrics import Times
from aot.serve.openai.fields import FieldError, check_others, list_of
from aot.serve.served_model import ServedModel
from aot.text.embedding import batches_of, check_encoder, inputs_of, tokens_of
from aot.text.tokenizers.tokenizer import read_tokenizer

MAX_TEXTS = 2048  # texts of a request, as in OpenAI's API
FLOATS, BASE64 = "float", "base64"


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """A request. `packed`: vectors are the bytes of their f32 numbers in base64."""

    model: str
    texts: list[str]
    packed: bool


def wanted_of(tree: Mapping[str, object]) -> EmbeddingRequest:
    """Return a request; FieldError for a field that is missing, of another type, or not supported."""
    check_others("", tree, ("model", "input", "encoding_format", "user"), {})
    model, given, form = tree.get("model"), tree.get("input"), tree.get("encoding_format")
    if not isinstance(model, str):
        raise FieldError("model", "the name of a model", model)
    inputs = [given] if isinstance(given, str) else list_of(given)
    texts = [text for text in inputs if isinstance(text, str)]
    if len(texts) != len(inputs) or not 1 <= len(texts) <= MAX_TEXTS:
        raise FieldError("input", f"a text, or a list of 1 to {MAX_TEXTS} texts", json.dumps(given))
    if form not in (None, FLOATS, BASE64):
        raise FieldError("encoding_format", f"{FLOATS} or {BASE64}", json.dumps(form))
    return EmbeddingRequest(model, texts, form == BASE64)


class Embedder:
    """An encoder of a server, with its tokenizer."""

    def __init__(self, served: ServedModel) -> None:
        """UsageError for a model that is no encoder, or has no tokenizer."""
        check_encoder(served.model.manifest, served.name)
        self.served, self.tokenizer = served, read_tokenizer(served.path)

    async def answer(self, request: EmbeddingRequest, times: Times) -> bytes:
        """Return the answer as JSON; `times` gets begin and end of the inferences."""
        tokens = await asyncio.to_thread(tokens_of, self.tokenizer, request.texts)
        times.begin(time.monotonic())
        by_number: dict[int, Array] = {}
        for numbers in batches_of(tokens):
            outputs, _ = await self.served.infer(inputs_of([tokens[n] for n in numbers]))
            by_number |= zip(numbers, outputs[EMBEDDING], strict=True)
        times.end(time.monotonic())
        vectors = [by_number[n] for n in range(len(tokens))]
        return await asyncio.to_thread(_written, request, vectors, sum(map(len, tokens)))


def _written(request: EmbeddingRequest, vectors: list[Array], count: int) -> bytes:
    data = [
        {"object": "embedding", "index": n, "embedding": _packed(vector) if request.packed else vector}
        for n, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": count, "total_tokens": count}
    return written({"object": "list", "data": data, "model": request.model, "usage": usage})


def _packed(vector: Array) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()
