"""The page: facts as JSON, style and script in one HTML file that loads nothing."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

Facts = dict[str, Any]
FILES = ("page.html", "page.css", "graph.js", "tabs.js")


def page(facts: Facts) -> str:
    """Return the HTML text; names of a model cannot end its script, nor be read as HTML."""
    here = files("aot.tools.report")
    text, style, *script = [(here / name).read_text("utf-8") for name in FILES]
    html = text.replace("/*STYLE*/", style).replace("/*SCRIPT*/", "".join(script))
    return html.replace("/*FACTS*/", in_script(facts))


def in_script(facts: Facts) -> str:
    """Return facts as JSON for a script inside of a page."""
    data = json.dumps(facts, separators=(",", ":"), default=str, allow_nan=False)
    return data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
