"""Strings: compared, joined, split, cleaned; as keys, categories and n-grams."""

from __future__ import annotations

import numpy as np

from tests.frontends.onnx.case import case, known, row

WORDS = np.array(["Monday", "", "Grüße, 世界", "monday", "a b", "ÀÇ", "Привет", "x"], object)
OTHERS = np.array(["Monday", "x", "Grüße, 世界", "Monday", "a b", "àç", "", "xy"], object)
LINES = np.array(["a, b,,c", "", "  many   spaces  ", "one", "Ω,ω,"], object)
DAYS = np.array(["a", "b", "c", "a"], object)
MAILS = np.array(
    ["me@gmail.com", " a.b@yahoo.com!", "x@mail.com", "", "äöxx", "ä", "abac", "aac", "ü-世 界", "a@b "], object
)
MONDAYS = ["monday", "X"]
LOCALE = {"locale": "C.UTF-8"}  # of ONNX Runtime: every machine has it

CASES = [
    case("Equal", WORDS, OTHERS),
    case("Equal", WORDS.reshape(2, 4), known(np.array(["Monday", "x"], object)[:, None])),
    case("StringConcat", WORDS, OTHERS),
    case("StringConcat", WORDS.reshape(2, 4), known(np.array("-", object))),
    *(case("StringSplit", LINES[2:], delimiter=by, outputs=2) for by in (",", ", ", "  ")),
    case("StringSplit", LINES, delimiter=",", outputs=2, by_evaluator=True),  # ONNX Runtime: no word of an empty string
    case("StringSplit", LINES, outputs=2),
    case("StringSplit", LINES.reshape(5, 1), maxsplit=1, outputs=2, by_evaluator=True),
    case("StringSplit", LINES[2:], maxsplit=1, delimiter=",", outputs=2),
    case("StringSplit", LINES[1:2], outputs=2, open=False),
    *(
        case("RegexFullMatch", MAILS, pattern=pattern)
        for pattern in (
            r"(\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$)", r"\b\w+@.*\b", r"[^a-c@\s]*|.+?m", "ä(ö|ü)?x*",
            "(ab?){2,3}c+", "",
        )
    ),
    *(case("StringNormalizer", WORDS, case_change_action=how, **LOCALE) for how in ("LOWER", "UPPER")),
    case("StringNormalizer", WORDS, stopwords=MONDAYS, is_case_sensitive=1, **LOCALE),
    case("StringNormalizer", WORDS[None], stopwords=MONDAYS, case_change_action="UPPER", **LOCALE),
    case("StringNormalizer", WORDS[3:4], stopwords=MONDAYS, **LOCALE),
    case("ai.onnx.ml.LabelEncoder", WORDS, version=2, keys_strings=["x", "monday", "x"], values_int64s=[3, 4, 5]),
    case("ai.onnx.ml.LabelEncoder", WORDS, version=2, keys_strings=["x", ""], values_strings=["ex", "none"]),
    case("ai.onnx.ml.LabelEncoder", WORDS, version=1, classes_strings=["x", "monday"]),
    case("ai.onnx.ml.CategoryMapper", WORDS, cats_int64s=[1, 7], cats_strings=["x", "a b"], default_int64=9),
    case("ai.onnx.ml.OneHotEncoder", WORDS, cats_strings=["x", "Monday", "世界"], zeros=1),
    case(
        "TfIdfVectorizer", row(DAYS), max_skip_count=1, min_gram_length=1, max_gram_length=2, mode="TF",
        ngram_counts=[0, 2], ngram_indexes=[0, 1, 2, 3], pool_strings=["a", "c", "a", "b", "b", "a"],
    ),
]  # fmt: skip
