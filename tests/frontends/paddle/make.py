"""Store PaddlePaddle's files and results of the cases: `python -m tests.frontends.paddle.make`, with PaddlePaddle.

Once with version 3, and once with version 2, for files of both. A version that lacks a function says so.
"""

from __future__ import annotations

import importlib
import json
import lzma
import sys
import tempfile
from base64 import b64encode
from pathlib import Path
from typing import Any

import numpy as np

from tests.frontends.paddle.case import STORED, Case
from tests.frontends.paddle.cases import CASES


def built(p: Any, case: Case, is_older: bool) -> tuple[str, list[Any]]:
    """Return the file of a case, in base64, and its results."""
    program = p.static.Program()
    with p.static.program_guard(program, p.static.Program()), tempfile.TemporaryDirectory() as folder:
        inputs = [p.static.data(f"x{i}", list(x.shape), str(x.dtype)) for i, x in enumerate(case.inputs)]
        found = case.call(p, *inputs)
        listed = list(found) if isinstance(found, (list, tuple)) else [found]
        runner = p.static.Executor(p.CPUPlace())
        feed = {f"x{i}": x for i, x in enumerate(case.inputs)}
        arrays = [np.asarray(y) for y in runner.run(program, feed=feed, fetch_list=listed)]
        p.static.save_inference_model(f"{folder}/m", inputs, listed, runner, program=program)
        data = Path(folder, "m.pdmodel" if is_older else "m.json").read_bytes()
    kept = [[y.dtype.str, y.shape, b64encode(y.tobytes()).decode()] for y in arrays]
    return b64encode(_shorter(data, is_older)).decode(), kept


def _shorter(data: bytes, is_older: bool) -> bytes:
    """Return a file without what Python ran where it was made."""
    if not is_older:
        return data
    program = importlib.import_module("paddle.base.proto.framework_pb2").ProgramDesc.FromString(data)
    for block in program.blocks:
        for op in block.ops:
            for attr in [a for a in op.attrs if a.name == "op_callstack"]:
                op.attrs.remove(attr)
    return program.SerializeToString()


def main() -> None:
    p: Any = importlib.import_module("paddle")
    p.enable_static()
    is_older = p.__version__.startswith("2.")
    kept: dict[str, Any] = json.loads(lzma.decompress(STORED.read_bytes())) if STORED.exists() else {}
    chosen = sys.argv[1:]
    for case in CASES:
        if chosen and case.name not in chosen:
            continue
        entry = kept.setdefault(case.name, {})
        suffix = "pdmodel" if is_older else "json"
        entry.pop(suffix, None)
        if case.newer and is_older:
            continue
        try:
            entry[suffix] = dict(zip(("file", "results"), built(p, case, is_older), strict=True))
        except Exception as error:  # a version has its own kinds
            sys.stderr.write(f"{case.name}: {type(error).__name__}: {str(error)[-300:]}\n")
    names = {case.name for case in CASES}
    text = json.dumps({n: kept[n] for n in sorted(kept) if n in names})
    STORED.write_bytes(lzma.compress(text.encode(), preset=9))


if __name__ == "__main__":
    main()
