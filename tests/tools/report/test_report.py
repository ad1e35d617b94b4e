"""The page about a compiled model: its facts, that it needs nothing else, and that it works in a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from aot import cli
from aot.tools.report.drawing import chain
from aot.tools.report.page import page
from tests.browser import chromium

DIGITS = Path(__file__).parents[3] / "examples" / "digits"
MODEL = DIGITS / "model.xml"


def aot(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(cli.app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result.stdout + result.stderr


def facts_of(text: str) -> dict[str, Any]:
    """The facts in a page; all else that it has must be in the page."""

    class Reader(HTMLParser):
        facts = ""
        inside = False
        open = 0

        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            named = dict(attributes)
            assert not {"src", "href"} & named.keys(), named
            self.inside = named.get("id") == "facts"
            self.open += tag == "script"

        def handle_endtag(self, tag: str) -> None:
            self.inside = False

        def handle_data(self, data: str) -> None:
            self.facts += data if self.inside else ""

    reader = Reader()
    reader.feed(text)
    assert reader.open == 2
    assert re.findall(r"https?://[^\s\"']+", text) == ["http://www.w3.org/2000/svg"]  # a name space, not loaded
    return json.loads(reader.facts)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with m.so and old.so of the digits, and pages about the first, alone and with its model."""
    folder = tmp_path_factory.mktemp("report")
    aot("compile", MODEL, "-o", folder / "m.so")
    aot("compile", MODEL, "-o", folder / "old.so", "--target", "x86-64-v2")
    aot("report", folder / "m.so", "-o", folder / "alone.html", "--seconds", 0)
    options = ("--model", MODEL, "--against", folder / "old.so", "--seconds", 0, "--data", DIGITS / "seven.npy")
    aot("report", folder / "m.so", "-o", folder / "all.html", *options)
    return folder


def test_a_page_has_layers_calls_memory_and_constants(pages: Path) -> None:
    facts = facts_of((pages / "all.html").read_text())
    kinds = [n["kind"] for n in facts["graph"]["nodes"]]
    assert kinds.count("Convolution") == 3 and kinds.count("MatMul") == 1 and "Constant" not in kinds
    fused = {n["call"] for n in facts["graph"]["nodes"] if n["kind"] in ("Convolution", "Relu")}
    assert fused <= set(range(len(facts["calls"])))
    assert all(c["median"] > 0 and c["traffic"] > 0 for c in facts["calls"])
    assert sum(c["percent"] for c in facts["calls"]) == pytest.approx(100)
    assert set(facts["loops"]) == {c["kernel"] for c in facts["calls"]}
    assert all(facts["groups"][str(c["index"])].startswith(f"call {c['index']} ") for c in facts["calls"])
    assert max(m["offset"] + m["size"] for m in facts["memory"]) == facts["arena"]
    assert {c["type"] for c in facts["constants"]} >= {"f32[32,16,3,3]", "f32[10,48]"}
    assert facts["same_code"] is True and facts["precision"] == "f32"
    assert facts["against"]["options"]["target"] == "x86-64-v2" and facts["against"]["calls"]
    spans = facts["timeline"]
    assert {s["run"] for s in spans} == {0, 1, 2} and spans[0]["begin"] == 0.0
    assert all(a["begin"] + a["seconds"] <= b["begin"] + 1e-9 for a, b in pairwise(spans))


def test_values_alive_at_once_do_not_overlap(pages: Path) -> None:
    memory = facts_of((pages / "all.html").read_text())["memory"]
    for i, a in enumerate(memory):
        for b in memory[i + 1 :]:
            together = a["first"] <= b["last"] and b["first"] <= a["last"]
            assert not together or a["offset"] + a["size"] <= b["offset"] or b["offset"] + b["size"] <= a["offset"]


def test_a_library_alone_has_its_calls(pages: Path) -> None:
    facts = facts_of((pages / "alone.html").read_text())
    assert len(facts["graph"]["nodes"]) == len(facts["calls"]) and "loops" not in facts


def test_names_of_a_model_cannot_end_the_script() -> None:
    hostile = "</script><img src=x onerror=alert(1)>"
    facts = {"calls": [], "graph": chain([{"layers": [hostile], "kernel": "\u2028<!--"}])}
    assert facts_of(page(facts)) == json.loads(json.dumps(facts))


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ((MODEL, "--model", MODEL), 2, "--model"),
        (("m.so", "-o", "m.so"), 2, "output"),
        (("m.so", "--against", MODEL), 4, "ELF"),
    ],
)
def test_wrong_arguments_are_refused(pages: Path, arguments: tuple[Any, ...], code: int, says: str) -> None:
    given = [pages / a if a == "m.so" else a for a in arguments]
    assert says in aot("report", *given, *(() if "-o" in given else ("-o", pages / "no.html")), code=code)
    assert not (pages / "no.html").exists()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium; tests that drive it are left out only where there is none."""
    yield from chromium()


@pytest.mark.parametrize("name", ["all", "alone"])
def test_every_tab_shows_in_a_browser(pages: Path, browser: Any, name: str) -> None:
    browser.get((pages / f"{name}.html").as_uri())
    tabs = [button.text for button in browser.find_elements("css selector", "nav button")]
    assert tabs == ["Overview", "Graph", "Time", "Roofline", "Memory", "Weights", *["Difference"] * (name == "all")]
    for tab in tabs:
        browser.find_element("xpath", f"//nav/button[text()='{tab}']").click()
        view = browser.find_element("id", "view")
        assert view.find_elements("css selector", "canvas, svg, table, .dim"), tab
        assert "[object" not in view.text and "undefined" not in view.text and "NaN" not in view.text
    assert browser.get_log("browser") == []


def test_a_page_fits_a_phone(pages: Path, browser: Any) -> None:
    """At 390 pixels no panel without facts covers the page, the graph has most of it, and nothing is cut off."""
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        browser.get((pages / "all.html").as_uri())
        panel = browser.find_element("id", "detail")
        for tab in [button.text for button in browser.find_elements("css selector", "nav button")]:
            browser.find_element("xpath", f"//nav/button[text()='{tab}']").click()
            assert browser.execute_script("return document.documentElement.scrollWidth") == 390, tab
            assert not panel.is_displayed()
        browser.find_element("xpath", "//nav/button[text()='Graph']").click()
        canvas = browser.find_element("css selector", "canvas.graph").size
        assert canvas["width"] == 390 and canvas["height"] > 500
        browser.find_element("id", "search").send_keys("conv\n")
        assert panel.is_displayed() and panel.size["height"] < 400
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_areas_of_constants_have_their_names(pages: Path, browser: Any) -> None:
    browser.get((pages / "all.html").as_uri())
    browser.find_element("xpath", "//nav/button[text()='Weights']").click()
    name, size = (p.text for p in browser.find_elements("css selector", ".tree div:first-child p"))
    cells = [cell.text for cell in browser.find_elements("css selector", "tbody tr:first-child td")]
    assert (name.lstrip("…"), size) == (cells[0][-len(name.lstrip("…")) :], cells[2])
    browser.find_element("xpath", "//nav/button[text()='Time']").click()
    assert browser.find_elements("css selector", ".tree div:first-child p")[1].text.endswith(" %")


def test_search_and_click_lead_from_a_layer_to_its_loops(pages: Path, browser: Any) -> None:
    browser.get((pages / "all.html").as_uri())
    box = browser.find_element("id", "search")
    box.send_keys("softmax")
    assert browser.find_element("css selector", "#found li").text.endswith(" aten::softmax/Softmax")
    box.send_keys("\ue007")
    detail = browser.find_element("id", "detail").text
    assert "aten::softmax/Softmax" in detail and "kernel k9_" in detail and "y0[" in detail
    browser.find_element("css selector", "nav button:nth-child(3)").click()
    browser.find_element("css selector", ".tree div").click()
    assert "kernel k" in browser.find_element("id", "loops").text
    browser.find_element("css selector", "nav button:nth-child(2)").click()
    canvas = browser.find_element("css selector", "canvas")
    browser.find_element("css selector", ".bar button:nth-child(3)").click()
    browser.execute_script("eye.x = nodes[1].x; eye.y = nodes[1].y; redraw()")
    canvas.click()
    assert browser.execute_script("return state.node === nodes[1].id")
    before = browser.execute_script("return eye.scale")
    browser.find_element("id", "zoom-in").click()
    assert browser.execute_script("return eye.scale") == pytest.approx(before * 1.4)
    assert browser.get_log("browser") == []


def test_ten_thousand_layers_show_in_three_seconds(pages: Path, browser: Any, tmp_path: Path) -> None:
    facts = facts_of((pages / "all.html").read_text())
    node = facts["graph"]["nodes"][0]
    nodes = [node | {"id": n, "name": f"layer{n}", "x": n % 7 * 190, "y": n * 62} for n in range(10000)]
    lines = [[[n % 7 * 190, n * 62], [(n + 1) % 7 * 190, n * 62 + 62]] for n in range(9999)]
    (tmp_path / "large.html").write_text(page(facts | {"graph": {"nodes": nodes, "edges": lines}}))
    browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    browser.get((tmp_path / "large.html").as_uri())
    browser.execute_script("show('Graph'); eye.scale = 0.01; eye.y = 310000; redraw()")
    assert browser.execute_script("return nodes.length") == 10000
    found = {m["name"]: m["value"] for m in browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]}
    assert 0 < found["TaskDuration"] < 3  # seconds of the page's thread, wherever it had to wait
    assert browser.get_log("browser") == []
