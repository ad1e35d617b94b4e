"""Tokenizers of SentencePiece's BPE. The oracle joins the neighbours of the greatest score, one pair at a time."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from aot.runtime.errors import CorruptError
from aot.text.stream import Stream
from aot.text.tokenizers.tokenizer import read_tokenizer
from tests.frontends.gguf.files import write

BYTES = [f"<0x{n:02X}>" for n in range(256)]
WHOLE = ["\u2581", *"abcdefgh", "ab", "bc", "abc", "\u2581a", "cd", "abcd", "de", "\u2581ab", "ef", "gh", "fgh", "hh"]
WORDS = ["<unk>", "<s>", "</s>", *BYTES, *WHOLE, "<turn>"]
SCORES = [0.0] * 259 + [-float(n) for n in range(len(WHOLE))] + [0.0]
TYPES = [2, 3, 3] + [6] * 256 + [1] * len(WHOLE) + [4]


def saved(path: Path, **changed: object) -> Path:
    found: dict[str, object] = {"model": "llama", "tokens": WORDS, "scores": SCORES, "token_type": TYPES}
    found |= {"bos_token_id": 1, "eos_token_id": 2} | changed
    return write(path / "m.gguf", {f"tokenizer.ggml.{k}": v for k, v in found.items() if v is not None}, {})


def joined(text: str) -> list[int]:
    """Tokens of a text without marks of the format, whose characters all have tokens."""
    parts = list("\u2581" + text.replace(" ", "\u2581"))
    while True:
        pairs = [(SCORES[WORDS.index(a + b)], -k) for k, (a, b) in enumerate(pairwise(parts)) if a + b in WHOLE]
        if not pairs:
            return [WORDS.index(part) for part in parts]
        at = -max(pairs)[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


@pytest.mark.parametrize("seed", range(4))
def test_tokens_are_those_of_the_greatest_scores(seed: int, tmp_path: Path) -> None:
    found, rng = read_tokenizer(saved(tmp_path)), np.random.default_rng(seed)
    for length in (1, 2, 5, 30, 200):
        text = "".join(rng.choice(list(" abcdefgh"), length))
        assert found.encode(text) == joined(text)
        assert found.decode(found.encode(text)) == text


@pytest.mark.parametrize("text", ["abc", " abc", "a  b", "x\ny", "café 日本語 🙂", ""])
def test_texts_come_back(text: str, tmp_path: Path) -> None:
    for prefix in (None, False):
        found = read_tokenizer(saved(tmp_path, add_space_prefix=prefix))
        assert found.decode(found.encode(text)) == text
    assert found.decode(found.encode("ab<turn>cd")) == "ab<turn>cd"  # with a prefix, each piece begins with a space


def test_an_answer_keeps_the_space_that_it_begins_with(tmp_path: Path) -> None:
    found, parts = read_tokenizer(saved(tmp_path)), list[str]()
    stream = Stream(found, parts.append)
    for token in found.encode("ab ab"):
        stream.add(token)
    assert ("".join(parts), found.decode(found.encode("ab ab"))) == (" ab ab", "ab ab")


def test_ends_that_metadata_do_not_name(tmp_path: Path) -> None:
    words = [*WORDS[:-1], "<end_of_turn>"]
    found = read_tokenizer(saved(tmp_path, tokens=words, bos_token_id=None, eos_token_id=None))
    assert sorted(found.stop) == [2, words.index("<end_of_turn>")]
    assert found.begin("ab")[0] == 1  # as in llama.cpp


def test_characters_without_a_token_are_bytes(tmp_path: Path) -> None:
    found = read_tokenizer(saved(tmp_path, add_space_prefix=False))
    assert [WORDS[n] for n in found.encode("aé\n")] == ["a", "<0xC3>", "<0xA9>", "<0x0A>"]


def test_marks_begin_and_end_texts(tmp_path: Path) -> None:
    found = read_tokenizer(saved(tmp_path))
    assert [WORDS[n] for n in found.begin("ab</s><turn>")] == ["<s>", "\u2581ab", "</s>", "<turn>"]
    assert found.stop == (2,) and found.decode([1, *found.encode("ab"), 2]) == "ab"
    assert read_tokenizer(saved(tmp_path, add_bos_token=False)).first is None


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"scores": None}, "scores must be a list of .* numbers, got 0"),
        ({"scores": SCORES[1:]}, f"scores must be a list of {len(WORDS)} numbers, got {len(WORDS) - 1}"),
        ({"scores": [float("nan"), *SCORES[1:]]}, "scores must be a list of .* numbers, got others"),
        ({"token_type": ["a"] * len(WORDS)}, "token_type must be a list of .* numbers, got others"),
        ({"tokens": None}, "tokens must be a list of texts, got None"),
    ],
)
def test_damaged_files_are_refused(changed: dict[str, object], text: str, tmp_path: Path) -> None:
    with pytest.raises(CorruptError, match=text):
        read_tokenizer(saved(tmp_path, **changed))
