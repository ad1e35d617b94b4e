"""The command: draws cases of each kind in turn, judges them in children, and keeps the smallest form of what fails.

python -m tests.fuzz --minutes 5 --seed 1 --only ir --jobs 2 --out found
python -m tests.fuzz --minutes 5 --seed 1 --only ir --first 800 --out found    goes on behind the case 799 of that run
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import zlib
from collections import Counter
from pathlib import Path

from tests.fuzz.case import Case, Fuzzer
from tests.fuzz.fuzzers import FUZZERS
from tests.fuzz.server import GOOD, STAGE, Limits, Outcome, run

REDUCE_SECONDS = 120
NUMBERS = ("wrong", "peer")  # outcomes that do not tell their cause: two of them may be two faults
STEP = 1_000_003  # seeds of one run and of the next are far apart


def main() -> int:
    """0, or 1 if anything was found."""
    asked = arguments()
    asked.out.mkdir(parents=True, exist_ok=True)
    if asked.show is not None:
        return show(FUZZERS[asked.only[0]], asked.show, asked.out)
    children = list[int]()
    for job in range(1, asked.jobs):
        if not (pid := os.fork()):
            os._exit(work(asked, job))
        children.append(pid)
    found = [work(asked, 0)]
    for pid in children:
        _, status = os.waitpid(pid, 0)
        found.append(os.waitstatus_to_exitcode(status))
    return int(any(found))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the number of the first case")
    parser.add_argument("--only", action="append", choices=sorted(FUZZERS), help="a kind; may be given several times")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, default=Path("fuzz-found"), help="a folder for what is found")
    parser.add_argument("--show", type=int, metavar="SEED", help="write the case of a seed to --out, and judge it")
    asked = parser.parse_args()
    asked.only = asked.only or sorted(FUZZERS)
    return asked


def show(fuzzer: Fuzzer, seed: int, out: Path) -> int:
    case = fuzzer.draw(seed)
    case.write(out)
    outcome = run(lambda: fuzzer.judge(case))
    sys.stdout.write(f"{outcome.kind} {outcome.code} in {outcome.seconds:.1f} s: {outcome.place}\n{outcome.text}\n")
    return int(outcome.finding)


def work(asked: argparse.Namespace, job: int) -> int:
    """Judge cases until the time is over; prints a line for each finding, and counts at the end."""
    STAGE.renew()
    for name in asked.only:
        FUZZERS[name].draw(0)  # seeds are made here, once, and not in each child
    until, counts = time.monotonic() + 60 * asked.minutes, Counter[str]()
    number = asked.first + job
    while time.monotonic() < until:
        fuzzer = FUZZERS[asked.only[number % len(asked.only)]]
        seed = asked.seed * STEP + number
        outcome = run(lambda f=fuzzer, s=seed: f.judge(f.draw(s)))
        counts[f"{fuzzer.name} {outcome.kind}"] += 1
        if outcome.finding:
            keep(fuzzer, seed, outcome, asked.out)
        number += asked.jobs
    lines = [f"  {count:7} {name}" for name, count in sorted(counts.items())]
    sys.stdout.write(
        "\n".join([f"job {job}: {sum(counts.values())} cases, the next one is --first {number}", *lines, ""])
    )
    sys.stdout.flush()
    return int(any(name.split()[1] not in GOOD for name in counts))


def keep(fuzzer: Fuzzer, seed: int, outcome: Outcome, out: Path) -> None:
    """Reduce a finding whose cause is new to this folder, and write it."""
    cause = f"{outcome.key} {seed}" if outcome.kind in NUMBERS else outcome.key
    name = f"{fuzzer.name}-{zlib.crc32(cause.encode()):08x}"
    with (out / "log.txt").open("a") as log:
        log.write(f"{fuzzer.name} {seed} {name} {outcome.key}\n")
    if (out / f"{name}.json").exists():
        return
    (out / f"{name}.json").touch()
    sys.stdout.write(f"{name}: seed {seed}, {outcome.key}\n")
    sys.stdout.flush()
    try:
        case = fuzzer.draw(seed)
        case.keep(out, name, fuzzer.name, outcome.kind, outcome.text)
        small = reduced(fuzzer, case, outcome)
        last = run(lambda: fuzzer.judge(small))
        small.keep(out, name, fuzzer.name, last.kind, last.text)
    except Exception as error:  # the next case may be a better one
        sys.stdout.write(f"{name}: the case cannot be reduced: {error!r}\n")


def reduced(fuzzer: Fuzzer, case: Case, outcome: Outcome, seconds: float = REDUCE_SECONDS) -> Case:
    """A smaller case with the same outcome, found in about so many seconds."""
    until = time.monotonic() + seconds
    limits = Limits(seconds=min(60, max(5, int(4 * outcome.seconds)))) if outcome.kind != "hang" else Limits(seconds=10)

    def holds(small: Case) -> bool:
        return time.monotonic() < until and run(lambda: fuzzer.judge(small), limits).key == outcome.key

    small = fuzzer.smallest(case, holds)
    return small if run(lambda: fuzzer.judge(small), limits).key == outcome.key else case


if __name__ == "__main__":
    sys.exit(main())
