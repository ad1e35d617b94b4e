"""Archives of torch.export.save, made of their parts."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

PLACES = {
    "weights": "data/weights/model_weights_config.json",
    "constants": "data/constants/model_constants_config.json",
}
MODEL = "models/model.json"


def entries(
    program: Any, configs: dict[str, Any] | None = None, data: dict[str, bytes] | None = None
) -> dict[str, bytes]:
    """Entries by name: a program, what it says of its weights and constants, their elements by path."""
    found = {"archive_version": b"0", MODEL: json.dumps(program).encode()}
    found |= {PLACES[k]: json.dumps(config).encode() for k, config in (configs or {}).items()}
    return found | {f"data/{path}": raw for path, raw in (data or {}).items()}


def packed(files: dict[str, bytes], root: str = "m", compression: int = zipfile.ZIP_STORED) -> bytes:
    """A zip of entries in one folder."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as archive:
        for name, raw in files.items():
            archive.writestr(f"{root}/{name}", raw)
    return made.getvalue()
