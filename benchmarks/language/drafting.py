"""Times speculative decoding: `python -m benchmarks.language.drafting m.so [draft.so] [--ahead 1,3] [--tokens 100]`.

The model alone, then with the draft, or with tokens of the text itself: tokens per second behind a short prompt, the
share of the proposed tokens that the model accepts, and whether the tokens are equal.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from aot.runtime import Drafting, Generator, load
from aot.text.look_up import LookUp
from aot.text.stream import text_source
from aot.text.tokenizers.tokenizer import read_tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.language.drafting", description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("draft", type=Path, nargs="?", help="none: tokens that followed the last ones before")
    parser.add_argument("--ahead", default="1,3", help="tokens that are proposed at once")
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--text", default="The three most important rivers of Europe are")
    args = parser.parse_args()
    model = load(args.model, threads=args.threads)
    draft = None if args.draft is None else load(args.draft, threads=args.threads)
    ids = read_tokenizer(text_source(args.model, None)).encode(args.text)
    alone, wanted = timed(Generator(model), ids, args.tokens)
    print(f"alone: {alone:.1f} tokens/s", flush=True)
    for ahead in map(int, args.ahead.split(",")):
        large = Generator(model)
        drafting = LookUp(large, ahead) if draft is None else Drafting(large, Generator(draft), ahead)
        speed, found = timed(drafting, ids, args.tokens)
        share = drafting.accepted / max(drafting.proposed, 1)
        equal = "equal" if found == wanted else "OTHER"
        print(f"{ahead} ahead: {speed:.1f} tokens/s, {share:.0%} accepted, {equal} tokens", flush=True)


def timed(generator: Generator | Drafting, ids: list[int], tokens: int) -> tuple[float, list[int]]:
    """Return tokens per second, the prompt included, and the tokens."""
    begin = time.perf_counter()
    found = generator.generate(ids, tokens)
    return len(found) / (time.perf_counter() - begin), found


if __name__ == "__main__":
    main()
