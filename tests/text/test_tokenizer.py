"""Tokenizers of GGUF files: texts come back, merges and pieces are those of the file, others are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from aot.text.tokenizer import PIECES, read_tokenizer
from runtime.errors import AotError, CorruptError, UnsupportedError
from tests.frontends.gguf.files import write


def letters() -> list[str]:
    """The letters that stand for the 256 bytes in byte-level BPE."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return [chr(b) if b in plain else chr(256 + sum(other not in plain for other in range(b))) for b in range(256)]


MERGES = ["t h", "th e", "Ġ the", "1 2"]
WORDS = ["<|end|>", *letters(), "th", "the", "Ġthe", "12"]


def metadata(**changed: object) -> dict[str, object]:
    found: dict[str, object] = {"model": "gpt2", "pre": "gpt-2", "tokens": WORDS, "merges": MERGES, "eos_token_id": 0}
    found["token_type"] = [3] + [1] * (len(WORDS) - 1)
    return {f"tokenizer.ggml.{k}": v for k, v in (found | changed).items() if v is not None}


def saved(path: Path, **changed: object) -> Path:
    return write(path / "m.gguf", metadata(**changed), {})


@pytest.mark.parametrize("pre", PIECES)
@pytest.mark.parametrize("text", ["the theme", "x  \n\n y", "café 日本語 🙂", "it's 12345", "<|end|>the", ""])
def test_texts_come_back(text: str, pre: str, tmp_path: Path) -> None:
    found = read_tokenizer(saved(tmp_path, pre=pre))
    assert found.decode(found.encode(text)) == text.replace("<|end|>", "")
    assert found.stop == (0,)


def test_merges_and_marks_are_those_of_the_file(tmp_path: Path) -> None:
    found = read_tokenizer(saved(tmp_path))
    assert [WORDS[n] for n in found.encode("the the<|end|>")] == ["the", "Ġthe", "<|end|>"]


@pytest.mark.parametrize(("pre", "pieces"), [("gpt-2", ["12", "12"]), ("smollm", ["1", "2", "1", "2"])])
def test_pieces_are_cut_before_merges(pre: str, pieces: list[str], tmp_path: Path) -> None:
    found = read_tokenizer(saved(tmp_path, pre=pre))
    assert [WORDS[n] for n in found.encode("1212")] == pieces


@pytest.mark.parametrize(
    ("changed", "error", "text"),
    [
        ({"model": "bert"}, UnsupportedError, "byte-level BPE .* got bert, gpt-2"),
        ({"pre": "other"}, UnsupportedError, "got gpt2, other"),
        ({"tokens": None}, CorruptError, "tokenizer.ggml.tokens is a list of texts, got None"),
        ({"merges": [1, 2]}, CorruptError, "tokenizer.ggml.merges is a list of texts"),
        ({"merges": ["t x y z"]}, CorruptError, "merges are pairs of tokens that make tokens"),
        ({"merges": ["t"]}, CorruptError, "merges are pairs of tokens that make tokens"),
    ],
)
def test_what_is_refused(changed: dict[str, object], error: type[AotError], text: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=text):
        read_tokenizer(saved(tmp_path, **changed))


def test_a_file_of_another_kind_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(CorruptError, match=r"must be a tokenizer.json"):
        read_tokenizer(tmp_path / "tokenizer.json")
