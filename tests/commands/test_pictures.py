"""`aot run` reads pictures, and names the likeliest classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from PIL import Image as image
from typer.testing import CliRunner

import aot
from aot import cli
from aot.runtime.errors import UsageError
from aot.runtime.loading.manifest import TensorInfo
from aot.tools.running.classes import likeliest
from aot.tools.running.pictures import read_pictures

DIGITS = Path(__file__).parents[2] / "examples" / "digits"


def info(shape: str, kind: str = "float") -> TensorInfo:
    text = f"m ({kind}[{shape}] x) => ({kind}[{shape}] y) {{ y = Identity(x) }}"
    return aot.compile_model(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}')).inputs[0]


@pytest.mark.parametrize(
    ("shape", "kind", "mode", "expected"),
    [
        ("1,3,4,6", "float", "RGB", (1, 3, 4, 6)),
        ("n,3,h,w", "float16", "RGB", (1, 3, 4, 6)),
        ("1,4,6,3", "uint8", "RGB", (1, 4, 6, 3)),
        ("1,2,3,3", "float", "RGB", (1, 2, 3, 3)),
        ("n,1,4,6", "float", "L", (1, 1, 4, 6)),
        ("n,4,4,6", "float", "RGBA", (1, 4, 4, 6)),
        ("n,h,w,1", "uint8", "P", (1, 4, 6, 1)),
    ],
)
def test_forms_of_inputs(shape: str, kind: str, mode: str, expected: Any, tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (4, 6, 3), np.uint8)
    image.fromarray(pixels).convert(mode).save(tmp_path / "x.png")
    found = read_pictures([tmp_path / "x.png"], info(shape, kind))
    assert found.shape == expected
    if mode == "RGB" and expected[-2:] != (3, 3):
        rows = found[0] if expected[-1] == 3 else found[0].transpose(1, 2, 0)
        np.testing.assert_array_equal(rows, pixels)


def test_a_picture_of_another_size_is_said_to_be_resized(tmp_path: Path) -> None:
    said: list[str] = []
    for size in ((20, 12), (8, 6)):
        image.new("RGB", size).save(tmp_path / "x.png")
        assert read_pictures([tmp_path / "x.png"], info("1,3,6,8"), said.append).shape == (1, 3, 6, 8)
    assert said == [f"{tmp_path / 'x.png'}: resized from 20 x 12 to 8 x 6, read as N,C,H,W, RGB"]


@pytest.mark.parametrize(
    ("shape", "kind", "data", "says"),
    [
        ("1,8", "float", None, "must be N,C,H,W or N,H,W,C"),
        ("1,2,8,8", "float", None, "must be N,C,H,W or N,H,W,C"),
        ("1,3,8,8", "int64", None, "must be u8 or a float type"),
        ("1,3,8,8", "float", b"", "must be a picture"),
        ("1,3,8,8", "float", b"\x89PNG\r\n\x1a\n" + bytes(50), "must be a picture"),
    ],
)
def test_invalid_pictures_are_refused(shape: str, kind: str, data: bytes | None, says: str, tmp_path: Path) -> None:
    image.new("RGB", (4, 4)).save(tmp_path / "x.png")
    if data is not None:
        (tmp_path / "x.png").write_bytes(data)
    with pytest.raises(UsageError, match=says):
        read_pictures([tmp_path / "x.png"], info(shape, kind))


def test_the_command_names_the_digit(tmp_path: Path) -> None:
    seven = np.load(DIGITS / "seven.npy")[0, 0]
    image.fromarray(seven.astype(np.uint8)).save(tmp_path / "seven.png")
    (tmp_path / "names.txt").write_text("\n".join("zero one two three four five six seven eight nine".split()))
    words = ["run", str(DIGITS / "model.xml"), str(tmp_path / "seven.png"), "--top", "2", "--labels"]
    done = CliRunner().invoke(cli.app, [*words, str(tmp_path / "names.txt")])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[1].split()[:2] == ["7", "seven"]
    (tmp_path / "names.txt").write_text("one")
    done = CliRunner().invoke(cli.app, [*words, str(tmp_path / "names.txt")])
    assert done.exit_code == 2
    assert "labels: must be 10, one a class, got 1" in done.output


def test_the_likeliest_classes_are_listed_by_score() -> None:
    assert likeliest(np.array([0.5, 2, 1]), 2, ["a", "b", "c"]) == ["      1 b  2", "      2 c  1"]
    assert likeliest(np.array([[1, 2], [4, 3]]), 1, []) == ["row 0", "      1 2", "row 1", "      0 4"]
    for wrong in (np.array(1.0), np.array(["a"]), np.empty((2, 0))):
        with pytest.raises(UsageError, match="scores must be numbers"):
            likeliest(wrong, 1, [])


@pytest.mark.parametrize("words", [["-h"], ["run", "-h"], ["serve", "-h"]])
def test_short_help(words: list[str]) -> None:
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 0
    assert "Usage:" in done.stdout
