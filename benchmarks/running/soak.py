"""Models, requests and queues come and go for minutes, in several threads: errors, other bits, and what memory does.

python -m benchmarks.running.soak m.so --seconds 300
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import runtime
from aot.runtime.arrays.tensors import numpy_dtype

Answer = list[bytes]
_CALLERS = 3
_WARM = 0.2  # part of the time after which memory is looked at


@dataclass
class Soak:
    """What happened; `samples` are seconds since the start and resident bytes, one a second or ten in all."""

    inferences: int = 0
    models: int = 0
    errors: list[str] = field(default_factory=list[str])
    samples: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])
    files: tuple[int, int] = (0, 0)
    threads: tuple[int, int] = (0, 0)

    @property
    def slope(self) -> float:
        """Bytes a minute, by least squares, after a warm-up."""
        late = self.samples[int(len(self.samples) * _WARM) :]
        seconds, resident = zip(*late, strict=True)
        return float(np.polyfit(seconds, resident, 1)[0]) * 60

    def __str__(self) -> str:
        begin, end = self.samples[int(len(self.samples) * _WARM)][1], self.samples[-1][1]
        return (
            f"{self.inferences} inferences, {self.models} models loaded, {len(self.errors)} errors {self.errors[:3]}; "
            f"resident {begin / 1e6:.1f} -> {end / 1e6:.1f} MB, slope {self.slope / 1e3:.1f} kB/min; "
            f"open files {self.files[0]} -> {self.files[1]}, threads {self.threads[0]} -> {self.threads[1]}"
        )


def soak(path: Path, seconds: float) -> Soak:
    """Work on the compiled model `path`, whose sizes do not vary, in three threads."""
    done, lock = Soak(), threading.Lock()
    cases = _cases(path)
    shared = runtime.load(path, threads=2)
    _turn(path, shared, cases, random.Random(0), done, lock)
    done.files, done.threads = (_count("fd"), 0), (_count("task"), 0)
    begin = time.monotonic()

    def work(seed: int) -> None:
        dice = random.Random(seed)
        try:
            while time.monotonic() < begin + seconds:
                _turn(path, shared, cases, dice, done, lock)
        except Exception as error:
            done.errors.append(repr(error))

    callers = [threading.Thread(target=work, args=(seed,)) for seed in range(_CALLERS)]
    for caller in callers:
        caller.start()
    while any(caller.is_alive() for caller in callers):
        time.sleep(min(1.0, seconds / 10))
        gc.collect()  # what is part of a cycle goes with it
        done.samples.append((time.monotonic() - begin, resident()))
    gc.collect()
    done.files, done.threads = (done.files[0], _count("fd")), (done.threads[0], _count("task"))
    return done


def resident() -> int:
    """Bytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _cases(path: Path) -> list[tuple[list[np.ndarray], Answer]]:
    """Inputs and the bytes that they give, at one thread."""
    model = runtime.load(path, threads=1)
    made: list[tuple[list[np.ndarray], Answer]] = []
    for seed in range(4):
        numbers = np.random.default_rng(seed)
        inputs = [numbers.standard_normal(info.shape).astype(numpy_dtype(info)) for info in model.inputs]
        made.append((inputs, _bytes(model(*inputs))))
    return made


def _turn(
    path: Path,
    shared: runtime.CompiledModel,
    cases: list[tuple[list[np.ndarray], Answer]],
    dice: random.Random,
    done: Soak,
    lock: threading.Lock,
) -> None:
    """A model that is new or shared, a few requests of it, and a queue; pools are shared and resized."""
    choices: tuple[Callable[[], runtime.CompiledModel], ...] = (
        lambda: shared,
        lambda: runtime.load(path, threads=dice.randint(1, 4)),
        lambda: runtime.load(path, pool=shared.pool),
        lambda: runtime.import_model(path.read_bytes(), threads=2),
    )
    kind = dice.randrange(len(choices))
    model = choices[kind]()
    wrong, count = 0, 0
    for _ in range(3):
        request = model.create_infer_request()
        for _ in range(dice.randint(1, 5)):
            inputs, expected = dice.choice(cases)
            wrong += _bytes(request.infer(inputs)) != expected
            count += 1
        if dice.random() < 0.3:
            model.release_memory()
        if dice.random() < 0.2 and kind in (1, 3):
            model.threads = dice.randint(1, 4)
    queue, found = runtime.AsyncInferQueue(model, 2), list[tuple[int, Answer]]()
    queue.set_callback(lambda request, index: found.append((int(str(index)), _bytes(request.results))))
    for i in range(6):
        queue.start_async(cases[i % len(cases)][0], i)
    queue.wait_all()
    wrong += sum(answer != cases[i % len(cases)][1] for i, answer in found)
    with lock:
        done.inferences += count + len(found)
        done.models += kind > 0
        if wrong or len(found) != 6:
            done.errors.append(f"{wrong} results with other bits, {len(found)} of 6 callbacks")


def _bytes(outputs: runtime.Outputs) -> Answer:
    return [array.tobytes() for array in outputs.to_tuple()]


def _count(what: str) -> int:
    return len(os.listdir(f"/proc/self/{what}"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="see benchmarks/running/soak.py")
    parser.add_argument("model", type=Path)
    parser.add_argument("--seconds", type=float, default=300.0)
    given = parser.parse_args()
    result = soak(given.model, given.seconds)
    print(result)
    raise SystemExit(bool(result.errors))
