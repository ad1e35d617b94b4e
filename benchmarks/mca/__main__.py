"""Prints the table of inner loops: `python -m benchmarks.mca [LAYERS] [--cpu CPU]...`."""

from __future__ import annotations

import argparse

from benchmarks.mca.layers import LAYERS, loops_of
from benchmarks.mca.model import LEVELS, UNITS, busiest, cycles, find_mca


def main() -> None:
    """Print a row of Markdown for each loop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("layers", nargs="?", default="", help="part of the names of layers; all by default")
    parser.add_argument("--cpu", action="append", choices=[*UNITS], help="processor; by default all")
    options = parser.parse_args()
    if find_mca() is None:
        parser.error("needs llvm-mca of LLVM 17 or newer, as in the package llvm-19")
    print("| layer | processor | kernel | arithmetic | cycles | of the units | busiest | stack |")
    print("|--" * 8 + "|")
    for name in (n for n in LAYERS if options.layers in n):
        for cpu in options.cpu or UNITS:
            for loop in loops_of(name, LEVELS[cpu]):
                count, taken = len(loop.arithmetic), cycles(loop, cpu)
                share, busy = f"{count / taken / UNITS[cpu]:.0%}", f"{busiest(loop, cpu):.0%}"
                arithmetic = f"{count} {loop.instruction}"
                cells = name, cpu, loop.function, arithmetic, f"{taken:.1f}", share, busy, loop.spills
                print("|", " | ".join(map(str, cells)), "|", flush=True)


if __name__ == "__main__":
    main()
