"""`aot rerank`: scores of texts for a query, by an encoder with a head."""

from __future__ import annotations

import json
from typing import Annotated

from aot.commands.line import arguments as arg
from aot.commands.line.declared import argument, echo
from aot.commands.output import echo_json


def rerank(
    model: arg.Encoder,
    query: Annotated[str, argument(help="Text that the others are compared with")],
    texts: Annotated[list[str], argument(metavar="TEXT...", help="Texts, each of which gets a score")],
    as_json: arg.Json = False,
    threads: arg.Threads = None,
    debug: arg.Debug = False,
) -> None:
    """Print the score of each text for a query, the best first. Of a classifier: a line of JSON each."""
    from aot.commands.loading import ready
    from aot.text.ranking import check_ranker, labels_of, ranked, scores_of
    from aot.text.tokenizers.tokenizer import stored_tokenizer

    loaded = ready(model, threads, strict=True)
    check_ranker(loaded.manifest, model.name)
    tokenizer, labels = stored_tokenizer(loaded.manifest, model.name), labels_of(loaded.manifest, model.name)
    scores = scores_of(loaded, tokenizer, [(query, text) for text in texts])
    if len(labels) == 1:
        order = ranked(scores)
        results: list[dict[str, object]] = [{"index": n, "relevance_score": score} for n, score in order]
        lines = [f"{score:.6f}  {texts[n]}" for n, score in order]
    else:
        named = [dict(zip(labels, (float(str(x)) for x in row), strict=True)) for row in scores]
        results = [{"index": n, "scores": row} for n, row in enumerate(named)]
        lines = [json.dumps(row) for row in named]
    if as_json:
        echo_json({"results": results})
    else:
        echo("\n".join(lines))
