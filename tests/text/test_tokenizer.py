"""Tokenizers of GGUF files: texts come back, merges and pieces are those of the file, others are refused."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest
import tokenizers

from aot.runtime.errors import AotError, CorruptError, UnsupportedError, UsageError
from aot.text.tokenizers.pieces import GROUPS, PIECES
from aot.text.tokenizers.tokenizer import read_tokenizer
from tests.frontends.gguf.files import write


def letters() -> list[str]:
    """The letters that stand for the 256 bytes in byte-level BPE."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return [chr(b) if b in plain else chr(256 + sum(other not in plain for other in range(b))) for b in range(256)]


FORMS = [names.split()[0] for names in GROUPS]
MERGES = ["t h", "th e", "Ġ the", "1 2"]
WORDS = ["<|end|>", *letters(), "th", "the", "Ġthe", "12"]


def metadata(**changed: object) -> dict[str, object]:
    found: dict[str, object] = {"model": "gpt2", "pre": "gpt-2", "tokens": WORDS, "merges": MERGES, "eos_token_id": 0}
    found["token_type"] = [3] + [1] * (len(WORDS) - 1)
    return {f"tokenizer.ggml.{k}": v for k, v in (found | changed).items() if v is not None}


def saved(path: Path, **changed: object) -> Path:
    return write(path / "m.gguf", metadata(**changed), {})


@pytest.mark.parametrize("pre", FORMS)
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
        ({"tokens": None}, CorruptError, "tokenizer.ggml.tokens must be a list of texts, got None"),
        ({"merges": [1, 2]}, CorruptError, "tokenizer.ggml.merges must be a list of texts"),
        ({"merges": ["t x y z"]}, CorruptError, "merges must be pairs of tokens that make tokens"),
        ({"merges": ["t"]}, CorruptError, "merges must be pairs of tokens that make tokens"),
    ],
)
def test_invalid_tokenizers_are_refused(
    changed: dict[str, object], error: type[AotError], text: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=text):
        read_tokenizer(saved(tmp_path, **changed))


@pytest.mark.parametrize("pre", FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_merges_are_those_of_the_package(seed: int, pre: str, tmp_path: Path) -> None:
    """The package tokenizers, from the same words, merges and patterns, gives the same tokens."""
    rng, words, merges = random.Random(seed), letters(), list[str]()
    while len(merges) < 400:
        a, b = rng.choice(words[32:127] if rng.random() < 0.7 else words[256:] or words), rng.choice(words[32:127])
        if a + b not in words:
            words.append(a + b)
            merges.append(f"{a} {b}")
    path = saved(tmp_path, tokens=words, merges=merges, pre=pre, token_type=None, eos_token_id=None)
    package, pieces = tokenizers, PIECES[pre]
    model = package.models.BPE(
        vocab={w: n for n, w in enumerate(words)},
        merges=[(m.split()[0], m.split()[1]) for m in merges],
        ignore_merges=pieces.whole,
    )
    oracle, cutters = package.Tokenizer(model), package.pre_tokenizers
    cuts = [cutters.Split(package.Regex(p), "isolated") for p in pieces.patterns]
    oracle.pre_tokenizer = cutters.Sequence([*cuts, cutters.ByteLevel(add_prefix_space=False, use_regex=False)])
    oracle.decoder = package.decoders.ByteLevel()
    found = read_tokenizer(path)
    for length in (1, 5, 40, 300):
        text = "".join(rng.choice("abcdefgh  \n\t'123!?.,AÉéß日本🙂\u0301" + words[-1]) for _ in range(length))
        ids = found.encode(text)
        assert ids == oracle.encode(text).ids
        assert found.decode(ids) == oracle.decode(ids) == text
        some = [rng.randrange(len(words)) for _ in range(length)]
        assert found.decode(some) == oracle.decode(some)


def test_tokens_of_the_user_are_text_and_marks_are_not(tmp_path: Path) -> None:
    words = [*WORDS, "<think>", "</think>", "<|im_end|>"]
    types = [3] + [1] * (len(WORDS) - 1) + [4, 4, 3]
    found = read_tokenizer(saved(tmp_path, tokens=words, token_type=types))
    ids = found.encode("<think>the</think><|im_end|>")
    assert [words[n] for n in ids] == ["<think>", "the", "</think>", "<|im_end|>"]
    assert found.decode(ids) == "<think>the</think>"


def test_places_of_code_that_is_filled_in_are_marks(tmp_path: Path) -> None:
    """Marks are CONTROL, as in llama.cpp, even if the file says that they are the user's text."""
    words = [*WORDS, "<|fim_prefix|>", "<\uff5cfim\u2581hole\uff5c>"]
    types = [3] + [1] * (len(WORDS) - 1) + [4, 4]
    found = read_tokenizer(saved(tmp_path, tokens=words, token_type=types))
    assert found.decode(found.encode("12<|fim_prefix|>the<\uff5cfim\u2581hole\uff5c>")) == "12the"
    assert found.stop == (0,)


@pytest.mark.parametrize(
    ("others", "ends"),
    [
        (["<|im_end|>", "<|eot_id|>", "<|endoftext|>"], ["<|im_end|>", "<|eot_id|>", "<|endoftext|>"]),
        (["<end_of_turn>", "</s>"], ["<end_of_turn>", "</s>"]),
        (["<|return|>", "<|call|>"], ["<|return|>", "<|call|>"]),  # <|end|> ends a message then, not an answer
        (["<|tool_response>", "</s>"], ["<|tool_response>"]),
        (["<|fim_pad|>", "<|file_sep|>", "<|fim_prefix|>", "<|im_start|>"], ["<|fim_pad|>", "<|file_sep|>"]),
    ],
)
def test_ends_are_found_by_their_texts(others: list[str], ends: list[str], tmp_path: Path) -> None:
    """The marks are llama.cpp's, even if the file says that they are text."""
    words = ["<|end|>", *letters(), "12", *others]
    path = saved(tmp_path, tokens=words, merges=["1 2"], token_type=None, eos_token_id=None)
    found = read_tokenizer(path)
    wanted = ends if "<|return|>" in others else ["<|end|>", *ends]
    assert sorted(found.stop) == sorted(map(words.index, wanted))
    assert found.decode(found.encode("x" + ends[0])) == "x"


@pytest.mark.parametrize(
    ("pre", "changed", "first"),
    [
        ("llama-bpe", {}, [256]),
        ("tekken", {}, [256]),
        ("llama-bpe", {"add_bos_token": False}, []),
        ("qwen2", {}, []),
        ("qwen2", {"add_bos_token": True}, [256]),
    ],
)
def test_texts_begin_as_their_kind_does(pre: str, changed: dict[str, object], first: list[int], tmp_path: Path) -> None:
    words = [*letters(), "<s>", "12"]
    types = [1] * 256 + [3, 1]
    found = read_tokenizer(
        saved(tmp_path, pre=pre, tokens=words, merges=["1 2"], token_type=types, bos_token_id=256, **changed)
    )
    assert found.begin("1") == [*first, words.index("1")]
    assert found.begin("<s>1") == [256, words.index("1")]


def test_merges_are_read_in_time_that_grows_with_their_number(tmp_path: Path) -> None:
    """150 000 of them take 0.3 s; they took minutes."""
    some = letters()
    pairs = [(a + b, c) for a in some[33:93] for b in some[33:83] for c in some[33:83]]
    words = [*some, *(a + b for a in some[33:93] for b in some[33:83]), *(a + b for a, b in pairs)]
    merges = [*(f"{a} {b}" for a in some[33:93] for b in some[33:83]), *(f"{a} {b}" for a, b in pairs)]
    path = saved(tmp_path, tokens=words, merges=merges, token_type=None)
    begin = time.process_time()
    found = read_tokenizer(path)
    assert time.process_time() - begin < 3
    assert found.encode("!!!") == [words.index(some[33] * 3)]


def test_halves_of_surrogate_pairs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must be Unicode, got half of a surrogate pair at 1"):
        read_tokenizer(saved(tmp_path)).encode("a\ud800")


def test_a_file_of_another_kind_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(CorruptError, match=r"must be a tokenizer.json"):
        read_tokenizer(tmp_path / "tokenizer.json")


def test_a_panic_of_the_package_is_a_damaged_file(tmp_path: Path) -> None:
    """Merges and a prefix of continuing words that do not fit make the package index behind a text."""
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"], "continuing_subword_prefix": "###"}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"version": "1.0", "added_tokens": [], "model": model}))
    with pytest.raises(CorruptError, match=r"must be a tokenizer.json whose parts fit each other, got range"):
        read_tokenizer(tmp_path / "tokenizer.json")
