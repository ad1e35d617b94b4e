"""Texts of a folder about its words: tokenizer, its settings, chat template, and tokens that end an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from aot.frontends.huggingface.container import read_json
from aot.text.library_texts import CHAT_TEMPLATE, CONTEXT_LENGTH, SETTINGS, STOP, TOKENIZER, read_text

GENERATION = "generation_config.json"


def texts_of(folder: Path, config: Mapping[str, object], positions: int) -> dict[str, str]:
    """Return the texts of the files that are there, by name, and as JSON the stop tokens and the context length.

    `config`: what config.json holds; `positions`: tokens that the network was trained on.
    """
    texts = {
        name: read_text(folder / name) for name in (TOKENIZER, SETTINGS, CHAT_TEMPLATE) if (folder / name).is_file()
    }
    generation = read_json(folder / GENERATION) if (folder / GENERATION).is_file() else {}
    texts[STOP] = json.dumps(_numbers(generation.get("eos_token_id", config.get("eos_token_id"))))
    texts[CONTEXT_LENGTH] = json.dumps(positions)
    return texts


def _numbers(value: object) -> list[int]:
    entries = cast("list[object]", value) if isinstance(value, list) else [value]
    return [n for n in entries if type(n) is int and n >= 0]
