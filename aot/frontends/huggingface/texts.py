"""Texts of a folder about its words: tokenizer, its settings, chat template, and tokens that end an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from aot.frontends.huggingface.container import read_json
from aot.runtime.errors import CorruptError
from aot.runtime.regular import open_file
from aot.text.library_texts import CHAT_TEMPLATE, CONTEXT_LENGTH, SETTINGS, STOP, TOKENIZER

GENERATION = "generation_config.json"
MOST_BYTES = 256 << 20  # of a text: tokenizers of 2^18 tokens have 35 MB


def texts_of(folder: Path, config: Mapping[str, object]) -> dict[str, str]:
    """Return the texts by name; `config`: what config.json holds. None of them is there for a folder without words."""
    found = {name: _text(folder / name) for name in (TOKENIZER, SETTINGS, CHAT_TEMPLATE) if (folder / name).is_file()}
    generation = read_json(folder / GENERATION) if (folder / GENERATION).is_file() else {}
    found[STOP] = json.dumps(_numbers(generation.get("eos_token_id", config.get("eos_token_id"))))
    if isinstance(length := config.get("max_position_embeddings"), int):
        found[CONTEXT_LENGTH] = json.dumps(length)
    return found


def _numbers(value: object) -> list[int]:
    entries = cast("list[object]", value) if isinstance(value, list) else [value]
    return [n for n in entries if type(n) is int and n >= 0]


def _text(path: Path) -> str:
    with open_file(path, "tokenizer") as stream:
        data = stream.read(MOST_BYTES + 1)
    try:
        if len(data) <= MOST_BYTES:
            return data.decode()
    except UnicodeDecodeError as error:
        raise CorruptError(f"{path.name}: must be a text in UTF-8, got {str(error)[:80]}") from None
    raise CorruptError(f"{path.name}: must have at most {MOST_BYTES} bytes, got more")
