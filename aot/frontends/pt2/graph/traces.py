"""The line of the user's program and the module that a node comes from, as the export keeps them."""

from __future__ import annotations

import re

FRAME = re.compile(r'File "([^"]*)", line (\d+), in [^\n]*\n\s*([^\n]*)')
LIBRARIES = ("/site-packages/", "/dist-packages/", "<eval_with_key>")
MAX_TRACE = 1 << 16  # characters that are looked at
MAX_CODE = 120  # characters of a line that are shown


def source_line(trace: object) -> str:
    """Return `model.py:12: y = self.conv(x)`, the innermost line outside of libraries; empty if there is none."""
    if not isinstance(trace, str):
        return ""
    frames = FRAME.findall(trace[:MAX_TRACE])
    own = [f for f in frames if not any(part in f[0] for part in LIBRARIES)] or frames
    if not own:
        return ""
    file, line, code = own[-1]
    return f"{file.rpartition('/')[2]}:{line}: {code.strip()[:MAX_CODE]}"


def module_path(stack: object) -> str:
    """Return the path of the module that a node lies in, `encoder.layers.0`; empty for the outermost."""
    if not isinstance(stack, str):
        return ""
    parts = stack.rpartition(";")[2].split(",")
    return parts[1] if len(parts) > 1 else ""
