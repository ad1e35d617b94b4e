"""Tokens that end an answer, by their texts: files name one of them at most, and models write others.

Source: llama.cpp's list, which has the ends of turns, of messages and of files of all known models.
"""

from __future__ import annotations

from collections.abc import Callable

ENDS = tuple(
    """
    <|eot_id|> <|im_end|> <|end|> <|return|> <|call|> <|flush|> <|calls|> <end_of_turn> <|endoftext|> </s>
    <|eom_id|> <EOT> _<EOT> [EOT] [EOS] <|end_of_text|> <end_of_utterance> <eos> <turn|> <|tool_response>
    <\uff5cend\u2581of\u2581sentence\uff5c> [e~[
    <|fim_pad|> <fim-pad> <fim_pad> <PAD> [PAD] <|fim_repo|> <|repo_name|> <fim-repo> <REPO> <reponame> <|file_sep|>
    """.split()  # in the last line, ends of a file, with which code is filled in
)
HOLES = (  # places in code that is filled in: marks as well, whatever the file says
    *(form.format(part) for form in ("<|fim_{}|>", "<fim-{}>", "<fim_{}>") for part in ("prefix", "suffix", "middle")),
    *(form.format(part) for form in ("<|code_{}|>", "<|{}|>") for part in ("prefix", "suffix", "middle")),
    *(space + part for space in ("", "\u2581") for part in ("<PRE>", "<SUF>", "<MID>")),
    *(f"<\uff5cfim\u2581{part}\uff5c>" for part in ("begin", "hole", "end")),
)
# where all of the first are there, the second separates parts of an answer
PARTS = (
    ({"<|return|>", "<|call|>"}, "<|end|>"),
    ({"<|flush|>", "<|call|>"}, "<|end|>"),
    ({"<|flush|>", "<|calls|>"}, "<|end|>"),
    ({"<|tool_response>"}, "</s>"),
)


def ends_of(token: Callable[[str], int | None]) -> list[int]:
    """Return the tokens that end an answer by their texts; `token` gives the number of a text, or None."""
    ends = {text: n for text in ENDS if (n := token(text)) is not None}
    inside = {part for others, part in PARTS if others <= ends.keys()}
    return [n for text, n in ends.items() if text not in inside]
