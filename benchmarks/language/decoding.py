"""Times a language model token by token.

`python -m benchmarks.language.decoding m.so [--threads 1] [--prompt 8] [--tokens 40]`

Prints milliseconds of the prompt and of a token: the least and the median, by the clock and of processor time.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from aot.runtime import Generator, load


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.language.decoding", description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--prompt", type=int, default=8, help="tokens fed at once")
    parser.add_argument("--tokens", type=int, default=40, help="tokens fed one by one")
    args = parser.parse_args()
    generator = Generator(load(args.model, threads=args.threads))
    fed = [list(range(1, args.prompt + 1)), *([n % 50 + 1] for n in range(args.tokens))]
    times: list[tuple[float, float]] = []
    for ids in fed:
        begin = time.perf_counter(), time.process_time()
        generator.feed(ids)
        times.append(((time.perf_counter() - begin[0]) * 1e3, (time.process_time() - begin[1]) * 1e3))
    print(f"prompt of {args.prompt}: {times[0][0]:.1f} ms, processor {times[0][1]:.1f} ms")
    clock, processor = np.array(times[1:]).T
    for name, found in (("token", clock), ("token, processor", processor)):
        print(f"{name}: least {found.min():.2f} ms, median {np.median(found):.2f} ms")


if __name__ == "__main__":
    main()
