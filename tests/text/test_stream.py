"""Text of tokens as it comes, numbers of tokens, and where the tokenizer of a model lies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import tokenizers

from aot.runtime.errors import MissingError, UsageError
from aot.text.stream import Stream, ids_of, text_source
from aot.text.tokenizers.tokenizer import Tokenizer, read_tokenizer


class Bytes:
    """A tokenizer whose tokens are bytes."""

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, ids: Sequence[int], *, begins: bool) -> str:
        del begins
        return bytes(ids).decode("utf-8", "replace")


@pytest.mark.parametrize("text", ["plain", "café", "日本語 x", "🙂🙂", "end é"])
def test_characters_are_written_once_they_are_whole(text: str) -> None:
    parts: list[str] = []
    stream = Stream(Tokenizer(Bytes(), ()), parts.append)
    for byte in text.encode():
        stream.add(byte)
    assert "".join(parts) + stream.rest() == text
    assert all("\N{REPLACEMENT CHARACTER}" not in part for part in parts)


def test_the_rest_has_what_never_became_whole() -> None:
    parts: list[str] = []
    stream = Stream(Tokenizer(Bytes(), ()), parts.append)
    for byte in "aé".encode()[:2]:
        stream.add(byte)
    assert parts == ["a"]
    assert stream.rest() == "\N{REPLACEMENT CHARACTER}"


def test_an_answer_keeps_the_space_that_it_begins_with(tmp_path: Path) -> None:
    """Words of SentencePiece begin with a space, which a text loses and an answer behind a prompt does not."""
    merges: list[tuple[str, str]] = []
    model = tokenizers.models.BPE({"<unk>": 0, "a": 1, "\u2581": 2, "\u2581b": 3}, merges, unk_token="<unk>")
    made, decoders = tokenizers.Tokenizer(model), tokenizers.decoders
    made.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    made.save(str(tmp_path / "tokenizer.json"))
    found, parts = read_tokenizer(tmp_path / "tokenizer.json"), list[str]()
    stream = Stream(found, parts.append)
    for token in (3, 3, 1):
        stream.add(token)
    assert ("".join(parts), found.decode([3, 3, 1])) == (" b ba", "b ba")


def test_numbers_are_written_without_a_tokenizer() -> None:
    parts: list[str] = []
    stream = Stream(None, parts.append)
    for token in (5, 17, 3):
        stream.add(token)
    assert "".join(parts) + stream.rest() == "5,17,3"


def test_numbers_of_tokens_are_read() -> None:
    assert ids_of("5, 1,40") == [5, 1, 40]
    for text in ("", "5,,1", "x", "-1", "1.5", "9999999999"):
        with pytest.raises(UsageError, match="--ids: must be numbers of tokens"):
            ids_of(text)


def test_the_tokenizer_is_the_one_named_or_lies_beside_the_model(tmp_path: Path) -> None:
    model, named = tmp_path / "m.so", tmp_path / "other.json"
    model.touch()
    with pytest.raises(UsageError, match=r"no m.gguf and no tokenizer.json lies beside m.so"):
        text_source(model, None)
    with pytest.raises(UsageError, match=rf": no tokenizer.json lies in {tmp_path.name}"):
        text_source(tmp_path, None)
    (tmp_path / "tokenizer.json").touch()
    assert text_source(model, None) == tmp_path / "tokenizer.json"
    (tmp_path / "m.gguf").touch()
    assert text_source(model, None) == tmp_path / "m.gguf"
    assert text_source(model, named) == named
    assert text_source(tmp_path, None) == tmp_path / "tokenizer.json"


def _missing(name: str) -> None:
    del name


def test_the_package_is_asked_for_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aot.text.tokenizers.tokenizer.find_spec", _missing)
    (tmp_path / "tokenizer.json").touch()
    with pytest.raises(MissingError, match=r"text needs the package tokenizers: pip install 'aot\[text\]'"):
        read_tokenizer(tmp_path / "tokenizer.json")
