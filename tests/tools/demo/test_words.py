"""Tokenizers of pages: `words.js` in Node.js has the tokens and texts of the tokenizers here."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import tokenizers

from aot.frontends.gguf.container import read_header
from aot.runtime.errors import UnsupportedError, UsageError
from aot.text.template import ChatTemplate
from aot.text.tokenizers.tokenizer import Tokenizer, read_tokenizer
from aot.tools.demo.words import facts_of_words, turns_of
from tests.text import test_scored as scored
from tests.text import test_tokenizer as lettered

TEXTS = [
    "the theme",
    " It's 12345,\n\n  x!\t12",
    "café 日本語 🙂 Ünï",
    "<|end|>the<turn>ab",
    "abc abcd efgh",
    "",
    "don't CAN'T don't… (a_b) $3+4",
    "Unaffable [SEP] cafe\u0301 日本x",
]
DRIVER = """
import { readFileSync } from "node:fs";
const cases = JSON.parse(readFileSync(process.argv[2], "utf-8"));
console.log(JSON.stringify(cases.map(({ facts, texts, some }) => {
  const words = new Words(facts);
  const ids = texts.map((text) => words.encode(text));
  return { ids, texts: [...ids, some].map((one) => words.decode(one)) };
})));
"""


def of_gguf(path: Path) -> tuple[Tokenizer, dict[str, Any]]:
    found = read_tokenizer(path)
    return found, facts_of_words(found, read_header(path).metadata)


def of_package(inner: Any, folder: Path) -> tuple[Tokenizer, dict[str, Any]]:
    inner.save(str(folder / "tokenizer.json"))
    found = read_tokenizer(folder / "tokenizer.json")
    return found, facts_of_words(found, {})


def pieces(**options: bool) -> Any:
    words = [
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "the",
        "un",
        "##aff",
        "##able",
        "!",
        "'",
        "日",
        "cafe",
        "café",
        "##me",
        "x",
        "1",
    ]
    inner: Any = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({w: n for n, w in enumerate(words)}, unk_token="[UNK]")
    )
    inner.normalizer = tokenizers.normalizers.BertNormalizer(**options)
    inner.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    inner.decoder = tokenizers.decoders.WordPiece()
    marks = [("[CLS]", 1), ("[SEP]", 2)]
    inner.post_processor = tokenizers.processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=marks)
    inner.add_special_tokens(["[UNK]", "[CLS]", "[SEP]"])
    inner.enable_truncation(6)
    return inner


def bytewise(*, prefix: bool) -> Any:
    words = [*lettered.letters(), "th", "the", "Ġthe", "12"]
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("1", "2")]
    inner: Any = tokenizers.Tokenizer(tokenizers.models.BPE({w: n for n, w in enumerate(words)}, merges))
    cuts = tokenizers.pre_tokenizers
    digits = [] if prefix else [cuts.Digits(individual_digits=True)]
    inner.pre_tokenizer = cuts.Sequence([*digits, cuts.ByteLevel(add_prefix_space=prefix)])
    inner.decoder = tokenizers.decoders.ByteLevel()
    inner.add_special_tokens(["<|end|>"])
    return inner


def known(folder: Path) -> Iterator[tuple[str, Tokenizer, dict[str, Any]]]:
    for pre in lettered.FORMS:
        yield pre, *of_gguf(lettered.saved(folder, pre=pre))
    for prefix in (None, False):
        yield f"scored {prefix}", *of_gguf(scored.saved(folder, add_space_prefix=prefix))
    for lower in (True, False):
        yield f"pieces {lower}", *of_package(pieces(lowercase=lower), folder)
    for prefix in (True, False):
        yield f"bytes {prefix}", *of_package(bytewise(prefix=prefix), folder)


def test_tokens_are_those_of_the_tokenizer(tmp_path: Path) -> None:
    node, cases, wanted, names = shutil.which("node"), list[object](), list[object](), list[str]()
    if node is None:
        pytest.skip("needs node, 20 or newer")
    draw = random.Random(0)
    for name, tokenizer, facts in known(tmp_path):
        names.append(name)
        ids, some = [tokenizer.begin(text) for text in TEXTS], [draw.randrange(len(facts["words"])) for _ in range(40)]
        cases.append({"facts": facts, "texts": TEXTS, "some": some})
        texts = [tokenizer.after([], one) for one in (*ids, some)]
        wanted.append({"ids": ids, "texts": None if facts["kind"] == "pieces" else texts})
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    (tmp_path / "main.mjs").write_text((files("aot.tools.demo") / "words.js").read_text("utf-8") + DRIVER)
    command = [node, tmp_path / "main.mjs", tmp_path / "cases.json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr
    for name, found, right in zip(names, json.loads(ran.stdout), wanted, strict=True):
        texts = None if name.startswith("pieces") else found["texts"]
        assert {"ids": found["ids"], "texts": texts} == right, name


def test_a_tokenizer_of_another_kind_is_refused(tmp_path: Path) -> None:
    inner = tokenizers.Tokenizer(tokenizers.models.Unigram([("a", 0.0)]))
    with pytest.raises(UnsupportedError, match=r"a page can read byte-level BPE, .* got a tokenizer of Unigram"):
        of_package(inner, tmp_path)


def test_turns_of_a_template_are_found() -> None:
    plain = "<s>{% for m in messages %}[{{ m.role }}]{{ m.content }};{% endfor %}"
    plain += "{% if add_generation_prompt %}[a]{% endif %}"
    found = turns_of(ChatTemplate(plain))
    assert found == {"begin": "<s>[user]", "answered": ";[assistant]", "asked": ";[user]", "last": ";[a]"}
    for other in ("{{ messages[-1].content }}", plain.replace("m.content", "m.content | upper")):
        with pytest.raises(UsageError, match="the chat template must write messages one behind another"):
            turns_of(ChatTemplate(other))
