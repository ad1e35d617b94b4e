r"""Patterns of byte-level BPE that cut a text before letters are joined, by `tokenizer.ggml.pre`.

Source: `pre_tokenizer` in the tokenizer.json of these models, and llama.cpp where a file has no such tokenizer.
"""

from __future__ import annotations

from aot.codegen.dataclass import dataclass

WORDS = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"  # endings of English words
REST = r"\s*[\r\n]+|\s+(?!\S)|\s+"
MARKS = SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|" + REST
ACCENTS = SHORT + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + REST
CAPITALS, SMALL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
BEFORE = r"[^\r\n\p{L}\p{N}]?"
CAMEL = f"{BEFORE}{CAPITALS}*{SMALL}+%s|{BEFORE}{CAPITALS}+{SMALL}*%s"  # a capital begins a word
CASES = CAMEL + r"|%s| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + REST
ASCII_MARKS = r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"
SYMBOLS = r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|" + REST
CHINESE = r"[一-龥ࠀ-一가-퟿]+"
WIDE_MARKS = r"\s?[!-/:-~！-／：-～‘-‟\u3000-。]+"


@dataclass(frozen=True, slots=True)
class Pieces:
    """Patterns; each cuts the pieces of the one before it.

    `whole`: a piece that is a token stays one. `begins`: a text begins with BOS unless metadata say otherwise.
    """

    patterns: tuple[str, ...]
    whole: bool = False
    begins: bool = False


LLAMA = MARKS % r"\p{N}{1,3}"
QWEN = MARKS % r"\p{N}"
SENTENCES = r" ?[^(\s|.,!?…。，、।۔،)]+"
GROUPS = {
    "default": Pieces((r"[\p{P}\$\+<=>\^~\|]+", WORDS, r"\p{N}+", "[0-9][0-9][0-9]")),
    "gpt-2 phi-2 mpt olmo jais trillion exaone4 gigachat a.x-4.0 mellum": Pieces((WORDS,)),
    "starcoder refact command-r smollm codeshell exaone minerva-7b mellum2": Pieces((r"\p{N}", WORDS)),
    "falcon": Pieces((r"[\p{P}\$\+<=>\^~\|`]+", WORDS, "[0-9][0-9][0-9]")),
    "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2": Pieces((LLAMA,), whole=True, begins=True),
    "dbrx smaug-bpe glm4 chatglm-bpe": Pieces((LLAMA,)),
    "qwen2 deepseek-r1-qwen stablelm2 megrez hunyuan solar-open kormo grok-2": Pieces((QWEN,)),
    "qwen35": Pieces((ACCENTS,)),
    "tekken": Pieces((CASES % ("", "", r"\p{N}"),), whole=True, begins=True),
    "gpt-4o llama4 kanana2": Pieces((CASES % (f"{SHORT}?", f"{SHORT}?", r"\p{N}{1,3}"),)),
    "deepseek-llm": Pieces((r"[\r\n]", r"\s?[\p{Lu}\p{Ll}\p{Lt}]+", WIDE_MARKS, r"\s+$", CHINESE, r"\p{N}+")),
    "deepseek-coder": Pieces((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CHINESE, r"\p{N}")),
    "deepseek-v3": Pieces((r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", f"{ASCII_MARKS}[A-Za-z]+|{SYMBOLS}")),
    "poro-chat bloom gpt3-finnish": Pieces((SENTENCES,)),
    "viking": Pieces((SENTENCES, r"\p{N}")),
}
PIECES = {name: pieces for names, pieces in GROUPS.items() for name in names.split()}
