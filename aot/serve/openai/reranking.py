"""Requests for the order of texts, `/v1/rerank`, and their answers as Jina and Cohere write them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import cast

from aot.codegen.dataclass import dataclass
from aot.ir.types import Array
from aot.runtime.errors import UsageError
from aot.serve.json_texts import written
from aot.serve.metrics import Times
from aot.serve.openai.embeddings import MAX_TEXTS
from aot.serve.openai.fields import FieldError, check_others, flag_of, list_of, whole_of
from aot.serve.served_model import ServedModel
from aot.text.library_texts import PAIR_SCORES
from aot.text.ranking import check_ranker, labels_of, pairs_of, ranked
from aot.text.tokenizers.tokenizer import read_tokenizer

FIELDS = ("model", "query", "documents", "top_n", "return_documents", "user")
MAX_READ = 1 << 26  # characters of the query, which is read again with each text


@dataclass(frozen=True, slots=True)
class RerankRequest:
    """A request. `top`: as many texts are in the answer at most, `shown`: with what they say."""

    model: str
    query: str
    texts: list[str]
    top: int
    shown: bool


def wanted_of(tree: Mapping[str, object]) -> RerankRequest:
    """Return a request; FieldError for a field that is missing, of another type, or not supported."""
    check_others("", tree, FIELDS, {})
    model, query, given = tree.get("model"), tree.get("query"), tree.get("documents")
    if not isinstance(model, str):
        raise FieldError("model", "the name of a model", model)
    if not isinstance(query, str):
        raise FieldError("query", "a text", json.dumps(query))
    documents = [_text_of(one) for one in list_of(given)]
    texts = [text for text in documents if isinstance(text, str)]
    if len(texts) != len(documents) or not 1 <= len(texts) <= MAX_TEXTS:
        raise FieldError("documents", f"a list of 1 to {MAX_TEXTS} texts, or objects with a text", json.dumps(given))
    if len(query) * len(texts) > MAX_READ:
        rule = f"at most {MAX_READ // len(texts)} characters for so many documents"
        raise FieldError("query", rule, len(query))
    top = whole_of(tree, "top_n", len(texts), 1, 1 << 31)
    return RerankRequest(model, query, texts, top, flag_of(tree, "return_documents"))


def _text_of(document: object) -> object:
    """Return a document, or the text of an object, as Jina and Cohere take both."""
    return cast("dict[str, object]", document).get("text") if isinstance(document, dict) else document


class Reranker:
    """An encoder of a server that scores pairs of texts, with its tokenizer."""

    def __init__(self, served: ServedModel) -> None:
        """UsageError for a model that scores no pairs, or has several labels or no tokenizer."""
        check_ranker(served.model.manifest, served.name)
        self.served, self.tokenizer = served, read_tokenizer(served.path)
        labels = labels_of(served.model.manifest, served.name)
        if len(labels) != 1:
            raise UsageError(f"{served.name}: must be a reranker with one label, got {len(labels)}")

    async def answer(self, request: RerankRequest, times: Times) -> bytes:
        """Return the answer as JSON; `times` gets begin and end of the inferences."""
        text_pairs = [(request.query, text) for text in request.texts]
        pairs = await asyncio.to_thread(pairs_of, self.tokenizer, text_pairs)
        times.begin(time.monotonic())
        scores: dict[int, Array] = {}
        for numbers in pairs.batches:
            outputs, _ = await self.served.infer(pairs.inputs(numbers, self.served.model.manifest))
            scores |= zip(numbers, outputs[PAIR_SCORES], strict=True)
        times.end(time.monotonic())
        order = ranked([scores[n] for n in range(len(text_pairs))])[: request.top]
        results = [
            {
                "index": n,
                "relevance_score": score,
                **({"document": {"text": request.texts[n]}} if request.shown else {}),
            }
            for n, score in order
        ]
        usage = {"prompt_tokens": pairs.count, "total_tokens": pairs.count}
        return written({"object": "list", "model": request.model, "results": results, "usage": usage})
