"""`import numpy` in extension files: names that NumPy removed since the files were written are there again.

Extensions for Model Optimizer were written for NumPy 1.14 to 1.26. Each name below stands for what NumPy's guide to
migration says; all other names are those of the installed NumPy.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np


def _in1d(values: Any, among: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    return np.isin(np.ravel(values), among, assume_unique=assume_unique, invert=invert)


NAMES: dict[str, Any] = {
    "alltrue": np.all,
    "asfarray": lambda values, dtype=np.float64: np.asarray(values, dtype),
    "bool8": np.bool_,
    "complex": complex,
    "complex_": np.complex128,
    "cumproduct": np.cumprod,
    "float": float,
    "float_": np.float64,
    "in1d": _in1d,
    "Inf": np.inf,
    "Infinity": np.inf,
    "infty": np.inf,
    "int": int,
    "int0": np.intp,
    "mat": np.asmatrix,
    "NaN": np.nan,
    "NINF": -np.inf,
    "object": object,
    "object0": np.object_,
    "PINF": np.inf,
    "product": np.prod,
    "round_": np.round,
    "row_stack": np.vstack,
    "sometrue": np.any,
    "str": str,
    "str0": np.str_,
    "string_": np.bytes_,
    "trapz": np.trapezoid,
    "uint0": np.uintp,
    "unicode_": np.str_,
}


class NumPy(ModuleType):
    """NumPy with NAMES."""

    def __init__(self) -> None:
        super().__init__(np.__name__, np.__doc__)
        self.__path__ = np.__path__

    def __getattr__(self, name: str) -> Any:
        return NAMES[name] if name in NAMES and name not in vars(np) else getattr(np, name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(np), *NAMES})


NUMPY = NumPy()
