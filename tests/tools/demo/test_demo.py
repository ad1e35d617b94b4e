"""Pages in a browser: pictures with classes and boxes, a chat, a search; and what no page can be made for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from PIL import Image
from selenium.webdriver.support.wait import WebDriverWait
from typer.testing import CliRunner

from aot import cli
from aot.compilation.driver import stages
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.text.tokenizers.tokenizer import read_tokenizer
from tests.browser import chromium, served
from tests.codegen.web import Call, run_in_node
from tests.frontends.huggingface.test_encoders import network
from tests.passes.check import graph_of
from tests.text.talking import Talking

DIGITS = Path(__file__).parents[3] / "examples" / "digits"
MOST = 16  # value of a full pixel
TOKENS = 12  # of an answer


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


def opened(browser: Any, address: str) -> WebDriverWait[Any]:
    """Open a page and wait until it is ready."""
    browser.get_log("browser")  # of other pages
    browser.get(address)
    wait = WebDriverWait(browser, 60)
    wait.until(lambda page: page.execute_script("return document.body.dataset.ready"))
    return wait


@pytest.mark.slow
def test_a_page_says_what_is_in_a_picture(browser: Any, module: Path, tmp_path: Path) -> None:
    """Chosen or dropped; a file that is no picture is said to be none."""
    names = [f"<b>digit {k}</b>" for k in range(10)]
    (tmp_path / "names.txt").write_text("\n".join(names))
    told = aot("demo", module, "-o", tmp_path / "site", "--labels", tmp_path / "names.txt", "--top", 3)
    site = {path.name for path in (tmp_path / "site").iterdir()}
    assert site == {"index.html", "aot.mjs", "aot-more.mjs", "digits.wasm", "digits.weights"}
    assert all(name in told for name in site)
    aot("demo", tmp_path / "site" / "digits.wasm", "-o", tmp_path / "site", "--labels", tmp_path / "names.txt")
    pixels = np.load(DIGITS / "seven.npy").reshape(8, 8) * (255 / MOST)
    Image.fromarray(pixels.round().astype(np.uint8)).save(tmp_path / "seven.png")
    (tmp_path / "text.png").write_text("no picture")
    with served(tmp_path / "site") as address:
        wait = opened(browser, address)
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


def sides(b: Builder, picture: OutPort) -> OutPort:
    """Boxes in 8 places, of which the classes left and right have the brightness of these sides; one is there twice."""
    boxes = np.zeros((1, 4, 8), np.float32)
    boxes[0, :, 2], boxes[0, :, 3], boxes[0, :, 5] = (4, 8, 8, 16), (4, 8, 7, 16), (12, 8, 8, 16)
    weights = np.zeros((3, 16, 16, 2, 8), np.float32)
    weights[:, :, :8, 0, 2], weights[:, :, :8, 0, 3], weights[:, :, 8:, 1, 5] = 0.95, 0.9, 0.95
    flat = b.const((weights / (3 * 16 * 8 * 255)).reshape(768, 16), DType.F32)
    scores = b.MatMul(b.Reshape(picture, b.const(np.array([1, 768]), DType.I64)), flat)
    return b.Concat(b.const(boxes, DType.F32), b.Reshape(scores, b.const(np.array([1, 2, 8]), DType.I64)), axis=1)


@pytest.mark.slow
def test_a_page_draws_boxes(browser: Any, tmp_path: Path) -> None:
    """Around what is in a picture, and in those of a camera."""
    stages(graph_of(sides, (1, 3, 16, 16)), CompileOptions(target="wasm")).built.write_shared(tmp_path / "m.wasm")
    (tmp_path / "names.txt").write_text("left\nright\n")
    aot("demo", tmp_path / "m.wasm", "-o", tmp_path / "site", "--labels", tmp_path / "names.txt")
    pixels = np.zeros((100, 200, 3), np.uint8)
    pixels[:, 100:] = 255
    Image.fromarray(pixels).save(tmp_path / "right.png")
    Image.fromarray(pixels[:, ::-1]).save(tmp_path / "left.png")
    with served(tmp_path / "site") as address:
        wait = opened(browser, address)
        state, chosen = browser.find_element("id", "state"), browser.find_element("css selector", "input")
        for name, box in (("left", "0,0,100,100"), ("right", "100,0,200,100")):
            chosen.send_keys(str(tmp_path / f"{name}.png"))
            wait.until(lambda page, name=name: page.find_elements("css selector", "li") and name in rows_of(page)[0])
            ((told, score),) = [row.split("\n") for row in rows_of(browser)]
            assert told == f"{name}: {box}" and float(score) == pytest.approx(0.95, abs=0.01)
        pen = "document.querySelector('canvas').getContext('2d')"
        red, green, *_ = browser.execute_script(f"return Array.from({pen}.getImageData(100, 50, 1, 1).data)")
        assert green > 100 + red  # the left side of the box
        browser.execute_script("document.querySelector('#state').textContent = ''")
        browser.find_element("css selector", "button").click()
        wait.until(lambda page: state.text.endswith(" ms"))
        assert browser.execute_script("return document.querySelector('canvas').width") > 200
        browser.find_element("css selector", "button").click()
        assert browser.get_log("browser") == []


def rows_of(page: Any) -> list[str]:
    return [row.text for row in page.find_elements("css selector", "li")]


@pytest.mark.slow
def test_a_page_answers(browser: Any, tmp_path: Path) -> None:
    """The page answers with the likeliest tokens: from a server, in a worker, and as one file opened from a disk."""
    model = Talking("qwen2")
    aot("compile", model.write(tmp_path / "talk.gguf"), "-o", tmp_path / "talk.wasm", "--target", "wasm")
    questions, text, wanted = ["12?", "3+4="], "", list[str]()
    tokenizer = read_tokenizer(tmp_path / "talk.wasm")
    for question in questions:
        text += f"1:{question};2:"
        ids = tokenizer.encode(text)
        while len(wanted) <= questions.index(question):
            ids.append(int(model.logits(ids)[-1].argmax()))
            if ids[-1] in tokenizer.stop or len(ids) == len(tokenizer.encode(text)) + TOKENS:
                wanted.append(tokenizer.decode(ids)[len(text) :])
        text += f"{wanted[-1]};"
    for place in ("site", "talk.html"):
        aot("demo", tmp_path / "talk.wasm", "-o", tmp_path / place, "--tokens", TOKENS)
    with served(tmp_path / "site") as address:
        for page in (address, (tmp_path / "talk.html").as_uri()):
            wait = opened(browser, page)
            for count, question in enumerate([*questions, questions[0]]):
                if count == 2:
                    browser.find_element("css selector", "[type=button]").click()
                browser.execute_script("document.querySelector('#state').textContent = ''")
                browser.find_element("css selector", "input").send_keys(f"{question}\n")
                wait.until(lambda page: " tokens, the first " in page.find_element("id", "state").text)
                script = "return Array.from(document.querySelectorAll('.answer'), (one) => one.textContent)"
                assert browser.execute_script(script) == (wanted[: count + 1] if count < 2 else wanted[:1])
            assert browser.get_log("browser") == []


@pytest.mark.slow
def test_a_page_searches(browser: Any, tmp_path: Path) -> None:
    """Sentences by the likeness of their vectors, which the same network makes in Node.js."""
    network("mpnet", tmp_path / "m")
    words = {f"w{n}": n for n in range(64)}
    inner = tokenizers.Tokenizer(tokenizers.models.WordPiece(words, unk_token="w0"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    inner.post_processor = tokenizers.processors.TemplateProcessing("w2 $A w3", special_tokens=[("w2", 2), ("w3", 3)])
    inner.save(str(tmp_path / "m" / "tokenizer.json"))
    aot("compile", tmp_path / "m", "-o", tmp_path / "m.wasm", "--target", "wasm")
    aot("demo", tmp_path / "m.wasm", "-o", tmp_path / "m.html")
    lines, question = ["w5 w40 w9", "w7, w33", "w12 w5"], "w5 other"
    tokens = [[2, 5, 0, 3], [2, 5, 40, 9, 3], [2, 7, 0, 33, 3], [2, 12, 5, 3]]
    calls: list[Call] = [
        {"input_ids": np.array([ids]), "attention_mask": np.ones((1, len(ids)), np.int64)} for ids in tokens
    ]
    (answers,) = run_in_node(tmp_path, [("m.wasm", calls)])
    vectors = np.concatenate([one["sentence_embedding"] for one in answers if isinstance(one, dict)])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    likeness = dict(zip(lines, vectors[1:] @ vectors[0], strict=True))
    wait = opened(browser, (tmp_path / "m.html").as_uri())
    browser.execute_script("document.querySelector('textarea').value = arguments[0]", "\n".join(lines))
    browser.find_element("css selector", "[type=text]").send_keys(question)
    best = sorted(lines, key=lambda line: -likeness[line])
    wait.until(lambda page: [row.split("\n")[0] for row in rows_of(page)] == best)
    scores = [float(row.split("\n")[1]) for row in rows_of(browser)]
    np.testing.assert_allclose(scores, [likeness[line] for line in best], atol=1e-2)
    assert browser.get_log("browser") == []


def other_target(folder: Path) -> Path:
    aot("compile", DIGITS / "model.xml", "-o", folder / "m.so")
    return folder / "m.so"


def no_module(folder: Path) -> Path:
    return DIGITS / "model.xml"


def other_outputs(folder: Path) -> Path:
    def relu(b: Builder, x: OutPort) -> OutPort:
        return b.Relu(x)

    stages(graph_of(relu, (1, 3, 16, 16)), CompileOptions(target="wasm")).built.write_shared(folder / "m.wasm")
    return folder / "m.wasm"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (other_target, "a page needs a module for wasm, got one for linux"),
        (no_module, "must be a whole compiled model"),
        (other_outputs, "must be N,classes, boxes as of YOLO or DetectionOutput, logits of a language model, or"),
    ],
)
def test_unsupported_models_get_no_page(make: Callable[[Path], Path], says: str, tmp_path: Path) -> None:
    path = make(tmp_path)
    told = CliRunner().invoke(cli.app, ["demo", str(path), "-o", str(tmp_path / "site")])
    assert told.exit_code in (2, 4) and says in told.output
    assert not (tmp_path / "site").exists()


def test_labels_are_as_many_as_classes(module: Path, tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("one\ntwo\n")
    told = aot("demo", module, "-o", tmp_path / "site", "--labels", tmp_path / "names.txt", code=2)
    assert "labels: must be 10, one a class, got 2" in told
    told = aot("demo", module, "-o", tmp_path / "names.txt", code=2)
    assert "output: must be a folder, or one file m.html" in told


def test_one_file_has_its_weights(module: Path, tmp_path: Path) -> None:
    told = aot("demo", module, "-o", tmp_path / "m.html", code=2)
    assert "needs a module with its weights, without threads, got external weights" in " ".join(told.split())
