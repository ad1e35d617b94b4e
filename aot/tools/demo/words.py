"""Tokenizers and chat templates as a page has them: `words.js` reads the facts, and no template is rendered there."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from aot.runtime.errors import UnsupportedError, UsageError
from aot.runtime.loading.manifest import Manifest
from aot.text.library_texts import metadata_in
from aot.text.template import ChatTemplate
from aot.text.tokenizers.packaged import Packaged
from aot.text.tokenizers.pieces import PIECES, WORDS
from aot.text.tokenizers.scored import Scored
from aot.text.tokenizers.tokenizer import Tokenizer, read_tokenizer
from aot.text.tokenizers.vocabulary import BYTE, CONTROL, UNKNOWN, WHOLE, Vocabulary

Facts = dict[str, Any]
KNOWN = "byte-level BPE, SentencePiece's BPE of GGUF files, or WordPiece"
SAID = ("Qone", "Aone", "Qtwo", "Atwo", "Qthree")  # questions and answers, by which a template's own text is found


def words_of(module: Path, manifest: Manifest) -> tuple[Tokenizer, Facts]:
    """Return the tokenizer that a module keeps, and its facts; UsageError without one, UnsupportedError."""
    metadata = metadata_in(manifest.json, module.name)
    if metadata is None:
        rule = "a page for texts needs a model that keeps its tokenizer, as from GGUF and folders of Hugging Face"
        raise UsageError(f"demo: {rule}, got none in {module.name}")
    tokenizer = read_tokenizer(module)
    return tokenizer, facts_of_words(tokenizer, metadata)


def facts_of_words(tokenizer: Tokenizer, metadata: Mapping[str, object]) -> Facts:
    """Return the facts about a tokenizer, of a GGUF file with these metadata or of a tokenizer.json.

    UnsupportedError for one that `words.js` does not read.
    """
    inner, stop = tokenizer.inner, {"stop": list(tokenizer.stop)}
    if isinstance(inner, Packaged):
        return _packaged(inner) | stop
    begin = list[int]() if tokenizer.first is None else [tokenizer.first]
    return _vocabulary(cast("Vocabulary", inner), metadata) | stop | {"begin": begin, "end": [], "most": None}


def _vocabulary(inner: Vocabulary, metadata: Mapping[str, object]) -> Facts:
    """Return the facts about the tokens of a GGUF file."""
    types = inner.types
    facts: Facts = {
        "words": list(inner.words),
        "marks": {
            word: inner.ids[word] for word, kind in zip(inner.words, types, strict=True) if kind in WHOLE and word
        },
        "hidden": [n for n, kind in enumerate(types) if kind in (UNKNOWN, CONTROL)],
    }
    if isinstance(inner, Scored):
        scores = cast("list[float]", metadata["tokenizer.ggml.scores"])
        joins = [None if k in (UNKNOWN, CONTROL, BYTE) else -s for s, k in zip(scores, types, strict=True)]
        prefix = "" if metadata.get("tokenizer.ggml.add_space_prefix") is False else " "
        unknown = next((n for n, kind in enumerate(types) if kind == UNKNOWN), None)
        return facts | {"kind": "spaces", "ranks": joins, "prefix": prefix, "unknown": unknown}
    pieces = PIECES[str(metadata.get("tokenizer.ggml.pre", "default"))]
    merges = metadata["tokenizer.ggml.merges"]
    return facts | _letters(pieces.patterns, cast("list[str]", merges), whole=pieces.whole)


def _letters(patterns: Sequence[str], merges: list[str], *, whole: bool, prefix: str = "") -> Facts:
    scripted = [_scripted(pattern) for pattern in patterns]
    return {"kind": "letters", "patterns": scripted, "merges": merges, "whole": whole, "prefix": prefix}


def _scripted(pattern: str) -> str:
    """Return a pattern for engines of JavaScript; some of them have no flags for a part of it."""
    either = re.compile("[a-z]")

    def spelled(match: re.Match[str]) -> str:
        return f"(?:{either.sub(lambda letter: f'[{letter[0]}{letter[0].upper()}]', match[1])})"

    return re.sub(r"\(\?i:([^()]*)\)", spelled, pattern).replace('\\"', '"')


def _packaged(inner: Packaged) -> Facts:
    """Return the facts about a tokenizer.json."""
    tree: dict[str, Any] = json.loads(inner.source)
    model, added = tree["model"], tree["added_tokens"]
    vocabulary: dict[str, int] = dict(model["vocab"]) if model["type"] in ("BPE", "WordPiece") else {}
    own = {token["content"]: token["id"] for token in added}
    words = [""] * (1 + max([*vocabulary.values(), *own.values()], default=0))
    for word, n in (vocabulary | own).items():
        words[n] = word
    without_marks, with_marks = inner.tokens("a", marks=False), inner.tokens("a", marks=True)
    at = next((k for k in range(len(with_marks)) if with_marks[k : k + len(without_marks)] == without_marks), 0)
    facts: Facts = {
        "words": words,
        "marks": own,
        "hidden": [token["id"] for token in added if token["special"]],
        "begin": with_marks[:at],
        "end": with_marks[at + len(without_marks) :],
        "most": None if tree["truncation"] is None else tree["truncation"]["max_length"],
    }
    steps = _steps(tree["pre_tokenizer"], "pretokenizers")
    if model["type"] == "WordPiece":
        return facts | _pieces(model, _steps(tree["normalizer"], "normalizers"), vocabulary)
    patterns = [_pattern(step, alone=len(steps) == 1) for step in steps]
    if model["type"] != "BPE" or not steps or steps[-1]["type"] != "ByteLevel" or None in patterns:
        types: list[str] = [model["type"], *(step["type"] for step in steps)]
        kinds = ", ".join(types)
        raise UnsupportedError(f"demo: a page can read {KNOWN}, got a tokenizer of {kinds}")
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
    prefix = " " if steps[-1]["add_prefix_space"] else ""
    used = [pattern for pattern in patterns if pattern]
    return facts | _letters(used, merges, whole=bool(model.get("ignore_merges")), prefix=prefix)


def _pieces(model: dict[str, Any], normalizers: list[dict[str, Any]], vocabulary: dict[str, int]) -> Facts:
    none: dict[str, Any] = {}
    bert = next((step for step in normalizers if step["type"] == "BertNormalizer"), none)
    lower = bool(bert.get("lowercase")) or any(step["type"] == "Lowercase" for step in normalizers)
    accents = bert.get("strip_accents")
    return {
        "kind": "pieces",
        "lower": lower,
        "plain": lower if accents is None else accents,
        "between": model["continuing_subword_prefix"],
        "unknown": vocabulary[model["unk_token"]],
    }


def _steps(step: dict[str, Any] | None, name: str) -> list[dict[str, Any]]:
    """Return the steps of a sequence, or the only one."""
    if step is None:
        return []
    return step[name] if step["type"] == "Sequence" else [step]


def _pattern(step: dict[str, Any], *, alone: bool) -> str | None:
    """Return the pattern that a step cuts a text by; "" for none, None for a step of another kind.

    `alone`: it is the only step, else it may not write a space before each piece of the one before it.
    """
    match step:
        case {"type": "Split", "pattern": {"Regex": str() as pattern}, "behavior": "Isolated", "invert": False}:
            return pattern
        case {"type": "Digits", "individual_digits": bool() as each}:
            return r"\p{N}" if each else r"\p{N}+"
        case {"type": "ByteLevel", "use_regex": bool() as cuts, "add_prefix_space": prefix} if alone or not prefix:
            return WORDS if cuts else ""
        case _:
            return None


def turns_of(template: ChatTemplate) -> Facts:
    """Return the texts of a template before, between and after the messages of a conversation.

    UsageError for a template that does not write the messages one after another, each as it is.
    """

    def written(count: int) -> str:
        roles = ("user", "assistant")
        return template.render([{"role": roles[k % 2], "content": text} for k, text in enumerate(SAID[:count])])

    parts = re.split("|".join(SAID), written(5))
    if len(parts) != len(SAID) + 1:
        parts = [""] * (len(SAID) + 1)
    begin, before_answer, before_question, *_, last = parts
    between = ("", before_answer, before_question, before_answer, before_question)
    for count in (1, 3, 5):
        turns = "".join(before + text for before, text in zip(between[:count], SAID, strict=False))
        if written(count) != begin + turns + last:
            rule = "the chat template must write messages one behind another, each as it is"
            raise UsageError(f"demo: {rule}, got one that writes {count} otherwise")
    return {"begin": begin, "answered": before_answer, "asked": before_question, "last": last}
