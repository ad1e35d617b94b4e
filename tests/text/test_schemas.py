"""Answers by JSON schemas are valid, whatever the logits are; schemas that cannot be followed are refused by name."""

from __future__ import annotations

import json

import numpy as np
import pytest

from aot.runtime import Sampling
from aot.runtime.errors import UsageError
from aot.serve.openai.token_sampler import SamplingRules, TokenSampler
from aot.text.grammars import SCHEMA, Grammars, grammar_of
from aot.text.tokenizers.tokenizer import of_metadata
from tests.text.schemas import REFUSED, Schema, schemas
from tests.text.talking import Writing

WORDS, MOST = 260, 2000  # tokens: there are, and of an answer
TOKENIZER = of_metadata(Writing("qwen2", "Q8_0", words=WORDS).metadata, "m")

pytest.importorskip("llguidance")


@pytest.fixture(scope="module")
def grammars() -> Grammars:
    return Grammars(TOKENIZER, WORDS)


def answer(grammars: Grammars, schema: Schema, seed: int) -> str:
    """Return an answer by random logits."""
    rng, tokens = np.random.default_rng(seed), list[int]()
    constraint = grammars.constraint(grammar_of(SCHEMA, json.dumps(schema)))
    sampler = TokenSampler(SamplingRules(Sampling(1.0, seed=seed)), [], constraint)
    while not sampler.is_done and len(tokens) < MOST:
        tokens.append(sampler.choose(rng.standard_normal(WORDS, np.float32)).token)
    return TOKENIZER.decode([token for token in tokens if token not in TOKENIZER.stop])


def test_answers_are_valid(grammars: Grammars) -> None:
    from jsonschema import Draft202012Validator  # noqa: PLC0415 (a second, which no other test needs)

    wrong: list[str] = []
    for n, schema in enumerate(schemas()):
        text = answer(grammars, schema, n)
        try:
            errors = list(Draft202012Validator(schema).iter_errors(json.loads(text)))
        except ValueError as error:
            errors = [error]
        wrong += [f"{n} {json.dumps(schema)}: {text}: {error}" for error in errors[:1]]
    assert wrong == []


@pytest.mark.parametrize(("schema", "text"), REFUSED)
def test_schemas_that_cannot_be_followed_are_refused(grammars: Grammars, schema: Schema, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        grammars.constraint(grammar_of(SCHEMA, json.dumps(schema)))
    assert text in str(caught.value)
