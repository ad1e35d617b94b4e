"""`aot embed`: vectors of texts, by an encoder."""

from __future__ import annotations

import json
from typing import Annotated

from aot.commands.line import arguments as arg
from aot.commands.line.declared import argument, echo


def embed(
    model: arg.Encoder,
    texts: Annotated[list[str], argument(metavar="TEXT...", help="Texts, each of which gets a vector")],
    threads: arg.Threads = None,
    debug: arg.Debug = False,
) -> None:
    """Print the vector of each text, a line of JSON each."""
    from aot.commands.loading import ready
    from aot.text.embedding import check_encoder, vectors_of
    from aot.text.tokenizers.tokenizer import stored_tokenizer

    loaded = ready(model, threads, strict=True)
    check_encoder(loaded.manifest, model.name)
    for vector in vectors_of(loaded, stored_tokenizer(loaded.manifest, model.name), texts):
        echo(json.dumps([float(str(number)) for number in vector]))
