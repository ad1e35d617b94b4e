"""The site: `sphinx-build -W -n docs build/docs`; Markdown by MyST, the Python API by autodoc."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from aot.runtime.version import VERSION

project = "aot"
release = version = VERSION
author = "The aot authors"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = f"aot {VERSION}"
pygments_style, pygments_dark_style = "friendly", "monokai"
highlight_language = "none"

myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]  # `…` in shortened dumps is no token of a language

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
# Types without a page: those of other packages, and private ones that a signature names.
nitpick_ignore_regex = [(r"py:.*", r"(?!aot\.|runtime\.).*")]
nitpick_ignore = [
    ("py:class", "aot.ir.graph.Graph"),
    ("py:class", "aot.codegen.ir.loops.Kernel"),
    ("py:class", "aot.compilation.library_state.LibraryState"),
    ("py:class", "aot.compilation.sources.Message"),
    ("py:class", "aot.compilation.search.precision.LayerError"),
    ("py:class", "aot.runtime.loading.library.Library"),
    ("py:class", "aot.runtime.loading.library.Pool"),
    ("py:class", "aot.runtime.loading.manifest.Manifest"),
    ("py:class", "aot.runtime.loading.manifest.VariableInfo"),
    ("py:class", "aot.runtime.inference.outputs.CallTime"),
    ("py:class", "aot.runtime.inference.variables.Variables"),
]
