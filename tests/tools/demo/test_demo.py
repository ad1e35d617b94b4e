"""The page that tries a classifier: a picture in, its class out, in a browser; and what no page can be made for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from selenium.webdriver.support.wait import WebDriverWait
from typer.testing import CliRunner

from aot import cli
from tests.browser import chromium, served

DIGITS = Path(__file__).parents[3] / "examples" / "digits"
MOST = 16  # value of a full pixel


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from chromium()


def aot(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(cli.app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of grey pictures of 0 to 255, with weights in a file of their own."""
    path = tmp_path_factory.mktemp("demo") / "digits.wasm"
    aot("compile", DIGITS / "model.xml", "-o", path, "--target", "wasm", "--weights", "external", "--scale", 255 / MOST)
    return path


@pytest.mark.slow
def test_a_page_says_what_is_in_a_picture(browser: Any, module: Path, tmp_path: Path) -> None:
    """Chosen or dropped; a file that is no picture is said to be none."""
    names = [f"<b>digit {k}</b>" for k in range(10)]
    (tmp_path / "names.txt").write_text("\n".join(names))
    told = aot("demo", module, "-o", tmp_path / "site", "--labels", tmp_path / "names.txt", "--top", 3)
    site = {path.name for path in (tmp_path / "site").iterdir()}
    assert site == {"index.html", "aot.mjs", "aot.more.mjs", "digits.wasm", "digits.weights"}
    assert all(name in told for name in site)
    aot("demo", tmp_path / "site" / "digits.wasm", "-o", tmp_path / "site", "--labels", tmp_path / "names.txt")
    pixels = np.load(DIGITS / "seven.npy").reshape(8, 8) * (255 / MOST)
    Image.fromarray(pixels.round().astype(np.uint8)).save(tmp_path / "seven.png")
    (tmp_path / "text.png").write_text("no picture")
    with served(tmp_path / "site") as address:
        browser.get_log("browser")  # of other pages
        browser.get(address)
        wait = WebDriverWait(browser, 60)
        wait.until(lambda page: page.execute_script("return document.body.dataset.ready"))
        state, chosen = browser.find_element("id", "state"), browser.find_element("css selector", "input")
        assert state.text == "Ready"
        chosen.send_keys(str(tmp_path / "seven.png"))
        wait.until(lambda page: state.text.endswith(" ms"))
        rows = [row.text.split("\n") for row in browser.find_elements("css selector", "li")]
        assert rows[0][0] == names[7] and float(rows[0][-1]) > 0.9 and len(rows) == 5
        chosen.send_keys(str(tmp_path / "text.png"))
        wait.until(lambda page: state.get_attribute("class") == "wrong")
        browser.execute_script(DROP, list((tmp_path / "seven.png").read_bytes()))
        wait.until(lambda page: state.text.endswith(" ms"))
        assert browser.get_log("browser") == []


DROP = """
const data = new DataTransfer();
data.items.add(new File([new Uint8Array(arguments[0])], "seven.png", { type: "image/png" }));
document.querySelector("label").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true }));
"""


def other_target(folder: Path) -> Path:
    aot("compile", DIGITS / "model.xml", "-o", folder / "m.so")
    return folder / "m.so"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (other_target, "a page needs a module for wasm, got one for linux"),
        (lambda folder: DIGITS / "model.xml", "must be a whole compiled model"),
    ],
)
def test_what_no_page_is_made_for(make: Callable[[Path], Path], says: str, tmp_path: Path) -> None:
    path = make(tmp_path)
    told = CliRunner().invoke(cli.app, ["demo", str(path), "-o", str(tmp_path / "site")])
    assert told.exit_code in (2, 4) and says in told.output
    assert not (tmp_path / "site").exists()


def test_labels_are_as_many_as_classes(module: Path, tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("one\ntwo\n")
    told = aot("demo", module, "-o", tmp_path / "site", "--labels", tmp_path / "names.txt", code=2)
    assert "labels: must be 10, one a class, got 2" in told
