"""`compile_model(model, shapes=…, target=…)`: keywords become CompileOptions, and wrong ones say what is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aot
import runtime
from aot.options import CompileOptions
from aot.options.keywords import with_keywords
from aot.options.typed import CompileKeywords
from aot.runtime.errors import UsageError
from aot.runtime.version import VERSION
from tests.options.samples import ROWS, sample

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits" / "model.xml"

GIVEN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"target": "x86-64-v3"}, {"target": "x86-64-v3"}),
    ({"shapes": {"x": (1, "n", "?", np.int64(3)), "y": ()}}, {"shapes": (("x", (1, "n", "?", 3)), ("y", ()))}),
    ({"shapes": {"x": [-1, 3], "y": ("n2x3",)}}, {"shapes": (("x", ("?", 3)), ("y", ("n2x3",)))}),
    ({"shapes": {"x": "1x3x?", "y": "n,?"}}, {"shapes": (("x", (1, 3, "?")), ("y", ("n", "?")))}),
    (
        {"dims": {"n": (1, 64), "m": 8, "k": (2, None), "h": "1..9"}},
        {"dims": (("n", 1, 64), ("m", 8, 8), ("k", 2, None), ("h", 1, 9))},
    ),
    (
        {"values": {"k": 5, "shape": [1, -1], "t": np.ones((2, 1)), "f": True}},
        {"values": (("k", 5), ("shape", (1, -1)), ("t", ((1.0,), (1.0,))), ("f", True))},
    ),
    ({"layouts": {"x": "nhwc"}}, {"layouts": (("x", "NHWC"),)}),
    ({"specialise": {"n": (1, 8), "m": 4}}, {"specialise": (("n", (1, 8)), ("m", (4,)))}),
    ({"feeds": ["scale"]}, {"feeds": ("scale",)}),
    ({"mean": {"x": 2, "y": (1, 2)}}, {"mean": (("x", (2.0,)), ("y", (1.0, 2.0)))}),
    ({"scale": {"x": [2.0]}, "reverse_channels": ["x"]}, {"scale": (("x", (2.0,)),), "reverse_channels": ("x",)}),
    ({"mean_file": "m", "mean_file_offsets": [1, 2]}, {"mean_file": Path("m"), "mean_file_offsets": (1, 2)}),
    ({"max_memory": "2GB", "max_seconds": 3}, {"max_memory": 2_000_000_000, "max_seconds": 3}),
    ({"tune": 1, "tune_file": "m.json"}, {"tune": 1, "tune_file": Path("m.json")}),
    ({"kernel_cache": "off"}, {"kernel_cache": Path("off")}),
    ({"extensions": "mine", "seed": 3}, {"extensions": Path("mine"), "seed": 3}),
    (
        {"transformations_config": ["a.json", Path("b.json")]},
        {"transformations_config": (Path("a.json"), Path("b.json"))},
    ),
    (
        {"enable_transforms": ["A"], "disable_transforms": ("B",)},
        {"enable_transforms": ("A",), "disable_transforms": ("B",)},
    ),
    ({"level": None}, {"level": None}),
    *(({name: sample(name)},) * 2 for name, row in ROWS.items() if row.keyword is True),
]

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"shape": {}}, "an option must be one of target, cores"),
    ({"target": 3}, "target must be str"),
    ({"shapes": (("x", (1,)),)}, "shapes must be a mapping"),
    ({"shapes": {"x": (1.5,)}}, "shapes must have entries:"),
    ({"shapes": {"x": (True,)}}, "shapes must have entries:"),
    ({"shapes": {"x": ("1 2",)}}, "shapes must have entries:"),
    ({"shapes": {3: (1,)}}, "shapes must have entries:"),
    ({"dims": {"n": (1, 2, 3)}}, "dims must have entries:"),
    ({"dims": {"n": (8, 1)}}, "dims must have entries:"),
    ({"values": {"k": "5"}}, "values must have entries:"),
    ({"values": {"k": [[1], [1, 2]]}}, "values must have entries:"),
    ({"layouts": {"x": 4}}, "layouts must have entries:"),
    ({"specialise": {"n": ()}}, "specialise must have entries:"),
    ({"specialise": {"n": (-1,)}}, "specialise must have entries:"),
    ({"feeds": "scale"}, "feeds must be list or tuple"),
    ({"mean_file_offsets": (1, -2)}, "mean_file_offsets must be a row and a column"),
    ({"feeds": [3]}, "feeds must be a tuple of names"),
    ({"max_memory": "much"}, "max-memory"),
    ({"max_memory": -1}, "max_memory must be above 0"),
    ({"verify": 1}, "verify must be bool"),
    ({"seed": True}, "seed must be int or None"),
    ({"seed": "1"}, "seed must be int or None"),
    ({"tune_file": 3}, "tune_file must be str"),
]


@pytest.mark.parametrize(("keywords", "options"), GIVEN, ids=",".join)
def test_keywords_become_options(keywords: Any, options: Any) -> None:
    assert with_keywords(None, keywords) == CompileOptions(**options)


@pytest.mark.parametrize(("keywords", "error"), WRONG, ids=str)
def test_wrong_keywords_are_usage_errors(keywords: Any, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        aot.compile_model(DIGITS, **keywords)


def test_keywords_win_over_options() -> None:
    given = CompileOptions(target="x86-64-v2", seed=1)
    assert with_keywords(given, {"target": "x86-64-v3"}) == CompileOptions(target="x86-64-v3", seed=1)
    assert with_keywords(given, {}) == given


def test_every_keyword_is_tested() -> None:
    assert CompileKeywords.__annotations__.keys() == {name for keywords, _ in GIVEN for name in keywords}


def test_model_compiled_with_keywords() -> None:
    model = aot.compile_model(DIGITS, shapes={"image": ("n", 1, 8, 8)}, dims={"n": (1, 4)}, target="x86-64-v2")
    seven = np.load(DIGITS.parent / "seven.npy")
    both = model(np.concatenate([seven, seven]))[0]
    assert both.shape == (2, 10)
    assert both.argmax(1).tolist() == [7, 7]
    assert aot.stages(DIGITS, target="x86-64-v2").options.target == "x86-64-v2"


def test_aot_runtime_has_the_public_names_of_runtime() -> None:
    assert aot.runtime.__all__ == runtime.__all__
    assert all(getattr(aot.runtime, name) is getattr(runtime, name) for name in runtime.__all__)


def test_dir_and_version() -> None:
    assert dir(aot) == sorted(aot.__all__)
    assert all(getattr(aot, name) is not None for name in dir(aot))
    assert aot.__version__ == VERSION
    assert [(ROOT / package / "py.typed").exists() for package in ("aot", "runtime")] == [True, True]


def test_import_of_aot_does_without_the_compiler() -> None:
    code = "import sys, aot, aot.runtime; aot.__version__; sys.exit('llvmlite' in sys.modules or 'lxml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
