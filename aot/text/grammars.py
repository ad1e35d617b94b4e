"""Grammars of answers: which tokens may come next, by the package llguidance.

JSON schema, regular expression, GBNF or Lark  ->  a grammar  ->  a set of tokens before each one is chosen
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast

import numpy as np

from aot.runtime.errors import MissingError, UsageError
from aot.runtime.generation.sampling import Logits
from aot.text.tokenizers.packaged import Packaged
from aot.text.tokenizers.tokenizer import Tokenizer, Words
from aot.text.tokenizers.vocabulary import Vocabulary

SCHEMA, REGEX, GRAMMAR = "json_schema", "regex", "gbnf"  # kinds of texts that become grammars
MAX_TEXT = 1 << 20  # characters of one
# Between parts of JSON: a space, or a new line and how far it is indented. Any white space would let a weak model
# write nothing else to the end.
SPACE = {"whitespace_pattern": r"(?: ?|\n {0,40})"}


def grammar_of(kind: str, text: str) -> str:
    """Return a grammar as the package takes it; UsageError for a text of another kind."""
    if len(text) > MAX_TEXT:
        raise UsageError(f"{kind}: must have at most {MAX_TEXT} characters, got {len(text)}")
    with _refused(kind):
        package = _package()
        if kind == SCHEMA:
            schema = json.loads(text)
            schema = json.dumps(_one_of_resolved(schema, schema))
            return str(package.LLMatcher.grammar_from_json_schema(schema, defaults=SPACE))
        return str(package.grammar_from(kind, text))


def grammar_of_calls(functions: Sequence[Mapping[str, object]], key: str, *, listed: bool) -> str:
    """Return the grammar of one call of one of the functions: `{"name": …, KEY: …}`, or a list of it."""
    begin, end = ("[", "]") if listed else ("", "")
    rules = ["start: " + " | ".join(f"call_{n}" for n in range(len(functions)))]
    for n, function in enumerate(functions):
        head = f'{begin}{{"name": {json.dumps(function["name"])}, "{key}": '
        schema = {"type": "object", **dict(_object(function.get("parameters")))}
        text = json.dumps({**dict(_object(_one_of_resolved(schema, schema))), "x-guidance": SPACE})
        rules.append(f"call_{n}: {json.dumps(head)} args_{n} {json.dumps('}' + end)}\nargs_{n}: %json {text}")
    return str(_package().LLMatcher.grammar_from_lark("\n".join(rules)))


class Grammars:
    """The tokens of a model, for grammars of its answers."""

    def __init__(self, tokenizer: Tokenizer, words: int | None) -> None:
        """`words`: logits of a token. MissingError without the package, UsageError without a token that ends a text."""
        if not tokenizer.stop:
            raise UsageError("grammar: the tokenizer must have a token that ends an answer, got none")
        package, inner = _package(), tokenizer.inner
        with _refused("tokenizer"):
            if isinstance(inner, Packaged):
                source: Any = inner.source
            else:
                source = package.TokenizerWrapper(_Spelled(inner, tokenizer.stop))
            self._tokens = package.LLTokenizer(source, n_vocab=words, eos_token=list(tokenizer.stop))

    def constraint(self, grammar: str) -> Constraint:
        """Return the constraint of an answer; UsageError for a grammar that is none."""
        with _refused("grammar"):
            matcher = _package().LLMatcher(self._tokens, grammar, log_level=0)
        if matcher.is_error():
            raise UsageError(f"grammar: must be one that can be followed, got {_first(matcher.get_error())}")
        return Constraint(matcher)


class Constraint:
    """The tokens that may continue an answer; each answer has a constraint of its own."""

    def __init__(self, matcher: Any) -> None:
        self._matcher = matcher

    def copy(self) -> Constraint:
        """Return a constraint of another answer, which begins where this one is."""
        return Constraint(self._matcher.deep_copy())

    @property
    def is_done(self) -> bool:
        """True if the answer is whole and cannot go on."""
        return bool(self._matcher.is_stopped())

    def mask(self, logits: Logits) -> None:
        """Make the logits of all tokens that may not come next -inf."""
        bits = np.unpackbits(np.frombuffer(self._matcher.compute_bitmask(), np.uint8), bitorder="little")
        allowed = bits[: len(logits)].astype(bool)
        self._check()
        logits[: len(allowed)][~allowed] = -np.inf
        logits[len(allowed) :] = -np.inf

    def take(self, token: int) -> None:
        """Advance by a token; UsageError if the grammar became too large to follow."""
        self._matcher.consume_token(token)
        self._check()

    def _check(self) -> None:
        if self._matcher.is_error():
            raise UsageError(f"grammar: must be one that can be followed, got {_first(self._matcher.get_error())}")


class _Spelled:
    """Tokens of a GGUF file as the package takes them: bytes, and those that are no text."""

    def __init__(self, inner: Words, stop: Sequence[int]) -> None:
        assert isinstance(inner, Vocabulary)
        self.bos_token_id, self.eos_token_id = None, stop[0]
        texts = [b"" if n in stop else inner.bytes_of(n) for n in range(len(inner.words))]
        self.special_token_ids = [n for n, text in enumerate(texts) if not text]
        self.tokens = [text or word.encode("utf-8", "replace") for text, word in zip(texts, inner.words, strict=True)]
        self._inner = inner

    def __call__(self, text: str) -> list[int]:
        if isinstance(text, bytes):
            raise TypeError(text)  # so the package learns that texts are taken
        return self._inner.encode(text)


def _one_of_resolved(value: object, root: object) -> object:
    """Return a schema with schemas in place of references in its lists of `oneOf`.

    The package follows `oneOf` where it sees that no value fits two of them, and it does not resolve references.
    """
    if isinstance(value, list):
        return [_one_of_resolved(one, root) for one in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    resolved = {key: _one_of_resolved(one, root) for key, one in cast("dict[str, object]", value).items()}
    if isinstance(options := resolved.get("oneOf"), list):
        resolved["oneOf"] = [_referred(one, root) for one in cast("list[object]", options)]
    return resolved


def _referred(option: object, root: object) -> object:
    """Return the schema that an option refers to, or the option if it is no reference alone."""
    path = _object(option).get("$ref")
    if not isinstance(path, str) or not path.startswith("#/") or len(_object(option)) > 1:
        return option
    schema = root
    for name in path[2:].split("/"):
        schema = _object(schema).get(name.replace("~1", "/").replace("~0", "~"))
    return option if schema is None else schema


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _package() -> Any:
    if find_spec("llguidance") is None:
        raise MissingError("grammar: needs the package llguidance: pip install 'aot[serve]'")
    return import_module("llguidance")


def _first(text: object) -> str:
    return " ".join(str(text).split())[:200]


@contextmanager
def _refused(kind: str) -> Generator[None]:
    """Raise UsageError if the package raises ValueError or panics."""
    try:
        yield
    except (ValueError, TypeError, RecursionError) as error:
        raise UsageError(f"{kind}: must be one that can be followed, got {_first(error)}") from None
    except BaseException as error:
        if type(error).__module__ != "pyo3_runtime":
            raise
        raise UsageError(f"{kind}: must be one that can be followed, got {_first(error)}") from None
