"""The text of a page: one skeleton with the scripts of its kind; in a single file, with loader and module, too."""

from __future__ import annotations

import base64
import re
from importlib.resources import files
from pathlib import Path

from aot.codegen.llvm.callers import loader_files
from aot.tools.demo.options import Kind
from aot.tools.report.page import Facts, in_script

SCRIPTS = {
    Kind.CLASSES: ("picture.js", "classes.js"),
    Kind.BOXES: ("picture.js", "boxes.js"),
    Kind.CHAT: ("words.js", "chat.js"),
    Kind.SEARCH: ("words.js", "search.js"),
}
LOADER = Path("aot.mjs")


def page(kind: Kind, facts: Facts, module: bytes | None = None) -> str:
    """Return the HTML text; with the bytes of a `module` it needs no other file."""
    here = files("aot.tools.demo")
    text, *scripts = [(here / name).read_text("utf-8") for name in ("page.html", *SCRIPTS[kind])]
    loader, embedded = f'import {{ load }} from "./{LOADER}";', ""
    if module is not None:
        inside = base64.b64encode(module).decode()
        loader, embedded = _inside(), f'<script type="text/plain" id="module">{inside}</script>'
    parts = {
        "/*LOADER*/": loader,
        "/*FACTS*/": in_script(facts),
        "/*SCRIPTS*/": "\n".join(scripts),
        "<!--MODULE-->": embedded,
    }
    return re.sub("|".join(map(re.escape, parts)), lambda match: parts[match[0]], text)


def _inside() -> str:
    """Return the loader as a part of another script, without imports."""
    texts = {path.name: text for path, text in loader_files(LOADER).items() if path.suffix == LOADER.suffix}
    first = texts.pop(LOADER.name)
    (name, second), *_ = texts.items()
    first = first.replace(f'import("./{name}")', "aotMore")
    second = re.sub(r"^import \{(.*)\} from .*;$", _taken, second, count=1, flags=re.MULTILINE)
    return f"const aot = {_closed(first)}\nconst {{ load }} = aot;\nconst aotMore = {_closed(second)}"


def _taken(imported: re.Match[str]) -> str:
    names = imported[1].replace(" as ", ": ")
    return f"const {{{names}}} = aot;"


def _closed(module: str) -> str:
    """Return an expression with what a module exports."""
    pattern = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)
    names = ", ".join(match[1] for match in pattern.finditer(module))
    return f"await (async () => {{\n{pattern.sub('', module)}return {{ {names} }};\n}})();"
