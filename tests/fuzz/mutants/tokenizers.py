"""Mutants of tokenizers: tokenizer.json and the files beside it, metadata of GGUF, what a library keeps, templates.

Texts are encoded, tokens decoded, messages rendered: each is a text or a refusal.
"""

from __future__ import annotations

import base64
import json
import tempfile
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import tokenizers as package

from aot.runtime.errors import AotError
from aot.text.library_texts import ENTRY, metadata_in
from aot.text.stream import Stream
from aot.text.template import ChatTemplate
from aot.text.tokenizers.pieces import PIECES
from aot.text.tokenizers.tokenizer import of_metadata, read_tokenizer
from tests.frontends.gguf.files import write
from tests.fuzz.case import Case
from tests.fuzz.mutants.changes import changed_bytes, drawn_changes, number
from tests.fuzz.mutants.gguf import mutate as mutate_gguf
from tests.fuzz.mutants.pt2 import MUTATIONS, places
from tests.fuzz.reduce import fewest
from tests.fuzz.server import STAGE, Outcome, refusal
from tests.properties.drawing import Draw, random_draw
from tests.text import test_scored as scored
from tests.text import test_template as templates
from tests.text.talking import TEMPLATE
from tests.text.test_tokenizer import MERGES, letters

JSON, CONFIG, JINJA, GGUF, KEPT = (
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "model.gguf",
    "kept.json",
)
ALLOWED = (2, 3, 4, 6)  # a template refuses messages with the code of wrong use
TEXTS = ("", "the theme", " 12  345\n\n", "café 日本語 🙂<|end|>\0", "a" * 300)
MESSAGES = (
    {"role": "system", "content": "s"},
    {"role": "user", "content": "hé"},
    {"role": "assistant", "content": "a"},
)
TEMPLATES = (TEMPLATE, templates.CHATML, "{{ bos_token }}{% for m in messages %}{{ m | tojson }}{% endfor %}")


def _metadata(d: Draw) -> dict[str, object]:
    """The metadata of a tokenizer: byte-level or scored."""
    found: dict[str, object]
    if d.flag():
        words = ["<|end|>", "<think>", *letters(), "th", "the", "Ġthe", "12"]
        found = {"model": "gpt2", "pre": d.pick(sorted(PIECES)), "tokens": words, "merges": MERGES, "eos_token_id": 0}
        found["token_type"] = [3, 4] + [1] * (len(words) - 2)
    else:
        found = {"model": "llama", "tokens": scored.WORDS, "scores": scored.SCORES, "token_type": scored.TYPES}
        found |= {"bos_token_id": 1, "eos_token_id": 2, "add_space_prefix": d.flag(), "add_bos_token": d.flag()}
    named = {f"tokenizer.ggml.{k}": v for k, v in found.items()}
    return named | {"tokenizer.chat_template": d.pick(TEMPLATES), "llama.context_length": 64}


@cache
def packaged() -> tuple[str, ...]:
    """Small files of tokenizers of each model that the package has."""
    models, cutters, decoders, normal = package.models, package.pre_tokenizers, package.decoders, package.normalizers
    bpe = package.Tokenizer(
        models.BPE({w: n for n, w in enumerate([*letters(), "th", "the"])}, [("t", "h"), ("th", "e")])
    )
    bpe.pre_tokenizer = cutters.Sequence([cutters.Split(package.Regex(r"\p{N}"), "isolated"), cutters.ByteLevel()])
    bpe.decoder = decoders.ByteLevel()
    pieces = package.Tokenizer(models.WordPiece({"[UNK]": 0, "the": 1, "##me": 2, "a": 3}, unk_token="[UNK]"))
    pieces.normalizer, pieces.pre_tokenizer = normal.BertNormalizer(), cutters.BertPreTokenizer()
    pieces.decoder = decoders.WordPiece()
    pieces.post_processor = package.processors.TemplateProcessing("[UNK] $A", "[UNK] $A $B", [("[UNK]", 0)])
    one = package.Tokenizer(
        models.Unigram([("<unk>", 0.0), ("\u2581", -1.0), ("a", -2.0), ("\u2581the", -3.0)], 0, True)
    )
    one.normalizer, one.pre_tokenizer = (
        normal.Sequence([normal.NFKC(), normal.Replace(" ", "\u2581")]),
        cutters.Metaspace(),
    )
    one.decoder = decoders.Sequence([decoders.Metaspace(), decoders.ByteFallback(), decoders.Fuse()])
    levels = package.Tokenizer(models.WordLevel({"[UNK]": 0, "the": 1}, "[UNK]"))
    levels.pre_tokenizer = cutters.Whitespace()
    for made in (bpe, pieces, one, levels):
        made.add_special_tokens(["<|end|>", "</s>"])
        made.add_tokens([package.AddedToken("<think>", lstrip=True)])
    return tuple(made.to_str() for made in (bpe, pieces, one, levels))


def _changed_json(d: Draw, text: str) -> bytes:
    """A JSON text with a value changed, moved, removed or doubled, or with other bytes."""
    if not d.integer(0, 8):
        return changed_bytes(d, text.encode())
    root = json.loads(text)
    held = list(places(root))
    if held:
        d.pick(MUTATIONS)(d, root, d.pick(held))
    return json.dumps(root).encode("utf-8", "surrogatepass")


def _changed_template(d: Draw, text: str) -> str:
    """A template with a part that is doubled, removed, moved, or of another kind."""
    parts = text.replace("{", "\0{").replace("}", "}\0").replace(" ", "\0 ").split("\0")
    at, other = d.integer(0, len(parts) - 1), d.integer(0, len(parts) - 1)
    more = (
        "{% for x in range(10**9) %}",
        "{{ messages * 10**9 }}",
        "{{ 'a' * 10**9 }}",
        "{% macro f() %}",
        "{{ self }}",
    )
    more += (
        "{{ f() }}",
        "{% endfor %}",
        "{% if x %}",
        "|join",
        ".__class__",
        f"[{number(d)}]",
        "|tojson(indent=10**9)",
    )
    more += ("{% include 'x' %}", "{{ messages[0].content * 9999999 }}", "{% set x = x ~ x %}", "{% generation %}")
    match d.integer(0, 3):
        case 0:
            parts[at] = d.pick(more)
        case 1:
            parts[at], parts[other] = parts[other], parts[at]
        case 2:
            parts.insert(at, parts[other])
        case _:
            del parts[at]
    return "".join(parts)


def drawn(d: Draw, chosen: Sequence[int]) -> dict[str, bytes]:
    """The files of a mutant, with a mutation for each of the seeds."""
    kind = d.pick([JSON, JSON, GGUF, GGUF, KEPT, JINJA])
    if kind == GGUF:
        with tempfile.TemporaryDirectory() as name:
            return {GGUF: mutate_gguf(write(Path(name) / GGUF, _metadata(d), {}).read_bytes(), chosen)}
    if kind == KEPT:
        data = json.dumps(_metadata(d)).encode()
        for seed in chosen:
            c = random_draw(seed)
            try:
                data = _changed_json(c, data.decode())
            except (ValueError, RecursionError):  # no JSON since the last mutation
                data = changed_bytes(c, data)
        packed = zlib.compress(data)
        packed = changed_bytes(d, packed) if not d.integer(0, 6) else packed
        return {KEPT: json.dumps({ENTRY: base64.b64encode(packed).decode()}).encode()}
    if kind == JINJA:
        text = d.pick(TEMPLATES)
        for seed in chosen:
            text = _changed_template(random_draw(seed), text)
        return {JINJA: text.encode()}
    config = json.dumps({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "chat_template": d.pick(TEMPLATES)})
    found = {JSON: d.pick(packaged()).encode(), CONFIG: config.encode()}
    for seed in chosen:
        c = random_draw(seed)
        name = JSON if c.integer(0, 5) else CONFIG
        try:
            found[name] = _changed_json(c, found[name].decode())
        except (ValueError, RecursionError):
            found[name] = changed_bytes(c, found[name])
    return found


def _tried(calls: Sequence[Callable[[], object]]) -> Outcome:
    """Make all calls; the outcome is that of the first refusal, or `fine`."""
    first = Outcome("fine")
    for call in calls:
        try:
            call()
        except AotError as error:
            found = refusal(error)
            if found.code not in ALLOWED:
                return Outcome("bug", found.text, found.place, found.code)
            first = found if first.kind == "fine" else first
    return first


def used(path: Path) -> Outcome:
    """Read what a file has, and use it on texts, tokens and messages."""
    STAGE.enter("read")
    if path.name == JINJA:
        return _rendered(lambda: ChatTemplate(path.read_text("utf-8", "replace"), {"bos_token": "<s>"}))
    kept = None
    if path.name == KEPT:
        kept = metadata_in(json.loads(path.read_bytes()), path.name)
        assert kept is not None
    found = read_tokenizer(path) if kept is None else of_metadata(kept, path.name)
    parts: list[str] = []
    stream = Stream(found, parts.append)
    tokens = [*range(20), 255, 256, 258, 259, 10**6, 2**31, *found.stop]
    calls: list[Callable[[], Any]] = [lambda t=text: found.decode(found.begin(t)) for text in TEXTS]
    calls += [lambda: found.decode(tokens), lambda: [stream.add(token) for token in tokens], stream.rest]
    STAGE.enter("texts")
    outcome = _tried(calls)
    return outcome if outcome.finding or found.template is None else _rendered(found.chat_template)


def _rendered(made: Callable[[], ChatTemplate]) -> Outcome:
    STAGE.enter("template")
    template = made()
    try:
        return _tried([lambda: template.render(MESSAGES), lambda: template.render(MESSAGES[:2], answer=False)])
    finally:
        template.close()


class TokenizerMutants:
    """Mutants of tokenizers and chat templates."""

    name = "tokenizers"

    def draw(self, seed: int) -> Case:
        d = random_draw(seed)
        chosen = drawn_changes(d)
        return Case(drawn(d, chosen))

    def judge(self, case: Case) -> Outcome:
        with tempfile.TemporaryDirectory() as name:
            case.write(Path(name))
            path = next(Path(name) / f for f in (JSON, GGUF, KEPT, JINJA) if f in case.files)
            return _tried_one(lambda: used(path))

    def smallest(self, case: Case, holds: Callable[[Case], bool]) -> Case:
        """Return the case without the parts of its only text that the fault does not need."""
        name = next((f for f in (JSON, JINJA) if f in case.files), None)
        if name is None:
            return case
        data = case.files[name]
        parts = [data[at : at + 16] for at in range(0, len(data), 16)]

        def without(left: Sequence[bytes]) -> Case:
            return Case({**case.files, name: b"".join(left)}, case.facts)

        return without(fewest(parts, lambda left: holds(without(left))))


def _tried_one(call: Callable[[], Outcome]) -> Outcome:
    try:
        return call()
    except AotError as error:
        found = refusal(error)
        return found if found.code in ALLOWED else Outcome("bug", found.text, found.place, found.code)
