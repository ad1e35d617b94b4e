"""Tokenizer and chat template of a language model, kept in its library's manifest as they are in its file.

gguf.tokenizer.*  ->  JSON  ->  deflated  ->  base64: a thousandth of the weights, and read in 0.05 s for Llama 3
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from aot.runtime.errors import CorruptError
from aot.runtime.regular import open_file

ENTRY = "tokenizer"  # entry of the manifest
TOKEN_TYPES, PAIR_SCORES = "token_type_ids", "scores"  # input and output of an encoder with a head
SOURCE_IDS, SOURCE_MASK = "encoder_input_ids", "encoder_attention_mask"  # inputs of an encoder before a decoder
SOURCE, PREFIX = "gguf", "tokenizer."  # key in a graph's rt_info, and prefix of the names of its texts
FOLDER = "huggingface"  # key of a folder's texts, both in rt_info and in the manifest's entry
TOKENIZER, SETTINGS, CHAT_TEMPLATE = "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"
STOP, CONTEXT_LENGTH = "stop", "context_length"  # entries of a folder: tokens that end an answer, trained context
AUDIO = "audio"  # input of an encoder of speech
SPEECH = "speech"  # entry of a folder: settings of generation_config.json for transcriptions
SCALES, SPEAKER, WAVEFORM = "scales", "speaker", "waveform"  # inputs and output of a network that speaks
VOICE = "voice"  # entry of a folder: characters and settings of a network that speaks
START = "decoder_start"  # entry of a folder and a manifest: tokens that begin an encoder-decoder's text
ADAPTER = "adapter"  # entry of a graph and a manifest: products that an adapter can change
LABELS = "labels"  # entry of a folder: names of a classifier's scores
CONTEXT = ".context_length"
WORDS, MERGES, SCORES = "tokenizer.ggml.tokens", "tokenizer.ggml.merges", "tokenizer.ggml.scores"
TEXTS = ("tokenizer.chat_template", "tokenizer.ggml.model", "tokenizer.ggml.pre")  # texts never read as JSON
LISTS, BETWEEN = (WORDS, MERGES), "\0"  # lists that are stored as one text, and the separator of their elements
MAX_BYTES = 256 << 20  # limit of the JSON and of a text; a vocabulary of 2^18 tokens has 10 MB, a tokenizer 35 MB


def read_text(path: Path) -> str:
    """Return a file about a model's words; CorruptError for one that is no UTF-8, or has more than `MAX_BYTES`."""
    with open_file(path, "tokenizer") as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise CorruptError(f"{path.name}: tokenizer: must have at most {MAX_BYTES} bytes, got more")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CorruptError(f"{path.name}: tokenizer: must be a text in UTF-8, got {str(error)[:120]}") from None


def manifest_texts(rt_info: Mapping[str, object]) -> dict[str, str]:
    """Return the entries of a manifest for a graph's information; none for a network without a tokenizer.

    The tokens that begin a text stay without one, too.
    """
    folder_texts = rt_info.get(FOLDER)
    folder = dict(cast("Mapping[str, object]", folder_texts)) if isinstance(folder_texts, Mapping) else {}
    start = {START: str(folder[START])} if START in folder else {}
    if TOKENIZER in folder or VOICE in folder:
        return {ENTRY: _packed({FOLDER: folder}), **start}
    if start:
        return start
    gguf_texts = rt_info.get(SOURCE)
    metadata: Mapping[str, object] = cast("Mapping[str, object]", gguf_texts) if isinstance(gguf_texts, Mapping) else {}
    texts = {k: v for k, v in metadata.items() if isinstance(v, str) and (k.startswith(PREFIX) or k.endswith(CONTEXT))}
    if WORDS not in texts or not {MERGES, SCORES} & texts.keys():
        return {}
    values = {k: v if k in TEXTS else _joined(_value(v)) for k, v in texts.items()}
    return {ENTRY: _packed(values)}


def is_of_language_model(rt_info: Mapping[str, object]) -> bool:
    """True for the graph of a decoder that a reader has built, since its file holds no graph."""
    folder = rt_info.get(FOLDER)
    return SOURCE in rt_info or (isinstance(folder, Mapping) and STOP in folder)


def _packed(values: Mapping[str, object]) -> str:
    data = json.dumps(values, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return base64.b64encode(zlib.compress(data)).decode()


def metadata_in(manifest: Mapping[str, object], file: str) -> dict[str, object] | None:
    """Return the metadata that a manifest keeps, None without any; CorruptError for an entry that is none."""
    entry = manifest.get(ENTRY)
    if entry is None:
        return None
    try:
        stream = zlib.decompressobj()
        data = stream.decompress(base64.b64decode(str(entry), validate=True), MAX_BYTES)
        tree: object = json.loads(data.decode("utf-8", "surrogatepass"))
    except (ValueError, zlib.error, RecursionError) as error:
        raise CorruptError(f"{file}: tokenizer: the manifest's entry must be JSON, got {str(error)[:80]}") from None
    if not isinstance(tree, dict):
        raise CorruptError(f"{file}: tokenizer: the manifest's entry must be an object, got {type(tree).__name__}")
    metadata = cast("dict[str, object]", tree)
    lists: dict[str, object] = {k: v.split(BETWEEN) for k in LISTS if isinstance(v := metadata.get(k), str)}
    return metadata | lists


def folder_texts(manifest: Mapping[str, object], name: str) -> Mapping[str, object]:
    """Return the texts of the folder that a library was compiled from, by their names; none for other libraries."""
    texts = (metadata_in(manifest, name) or {}).get(FOLDER)
    return cast("Mapping[str, object]", texts) if isinstance(texts, dict) else {}


def folder_object(manifest: Mapping[str, object], name: str, key: str) -> dict[str, object] | None:
    """Return the object that one of these texts holds as JSON, an empty one for other JSON; None without the text."""
    text = folder_texts(manifest, name).get(key)
    tree = None if text is None else json_of(text)
    return None if text is None else cast("dict[str, object]", tree) if isinstance(tree, dict) else {}


def json_of(text: object) -> object:
    """Return the value of a text in JSON; None if it is no JSON."""
    try:
        value: object = json.loads(str(text))
    except (ValueError, RecursionError):
        return None
    return value


def _joined(value: object) -> object:
    """Return a list of texts as one text, which is read several times faster than JSON's list, or the value."""
    texts = cast("list[object]", value) if isinstance(value, list) else []
    words = [v for v in texts if isinstance(v, str) and BETWEEN not in v]
    return BETWEEN.join(words) if words and len(words) == len(texts) else value


def _value(text: str) -> object:
    """Return the number or the list that a text says in JSON, or the text if it is none."""
    if text[:1] not in "[-0123456789tf":
        return text
    value = json_of(text)
    return text if value is None else value
