"""A value of each option other than its default: by the type of its field, or by name where the type is not enough."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

from aot.options import CompileOptions
from aot.options.table import options

ROWS = options()
HINTS = get_type_hints(CompileOptions)
BY_TYPE: dict[object, object] = {
    bool: True,
    bool | None: True,
    int | None: 3,
    float | None: 0.5,
    str: "a",
    str | None: "a",
}
BY_TYPE |= {tuple[str, ...]: ("a",), tuple[str, ...] | None: ("a",), Path | None: Path("a")}
SAMPLES: Mapping[str, Any] = {  # values other than the default, of options whose type does not say one
    "target": "x86-64-v3",
    "layouts": (("x", "NHWC"),),
    "mean": (("x", (1.0, 2.0)), (0, (3.0,))),
    "mean_file_offsets": (1, 2),
    "scale": (("", (2.0,)),),
    "shapes": (("x", ("n", 3, "?")),),
    "dims": (("n", 1, 8), ("m", 2, None)),
    "values": (("k", 5), ("t", ((1.0, 2.0), (3.0, 4.0)))),
    "specialise": (("n", (1, 4)),),
    "cut": (("a",), ("b", "c")),
    "precision": "bf16,head.*=f32",
    "activations": "int8",
    "weights": "int4",
    "level": 2,
    "max_memory": 1 << 40,
    "max_seconds": 1000.0,
    "transformations_config": (Path("a.json"),),
    "print_after": ("all",),
    "on_event": lambda stage, done, total: None,
    "on_dump": lambda name, text: None,
}


def sample(name: str) -> Any:
    return SAMPLES[name] if name in SAMPLES else BY_TYPE[HINTS[name]]
