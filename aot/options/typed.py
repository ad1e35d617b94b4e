"""Keywords of `compile_model`, for type checkers: made of the table by `python -m aot.options.typed_text`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, TypedDict

from numpy.typing import NDArray

from aot.options.texts import Nested


class CompileKeywords(TypedDict, total=False):
    """Keywords of `compile_model` and `stages`, which win over those of `options`. Absent keywords have their defaults.

    `shapes`: for each dimension of an input a number, a name or `?` (as in the file): `{"x": (1, 3, "h", "?")}` or
    `{"x": "1,3,h,?"}`. `dims`: for names of dimensions a size, or the least and the greatest one: `{"h": (1, 640)}`
    or `{"h": "1..640"}`; None as the greatest one: no bound. `values`: inputs that become constants.
    `layouts`: the layout in which an input is given: `{"x": "NHWC"}`. `mean`, `scale`: of an input, one number or one
    for each channel: `{"x": (123.7, 116.3, 103.5)}`. `specialise`: sizes of dimensions that get a version of their
    own: `{"batch": (1, 8)}`. `max_memory`: bytes, or a text such as `2GB`. The others are as in CompileOptions.
    """

    target: str
    cores: int | None
    layouts: Mapping[str, str]
    mean: Mapping[str, float | Sequence[float]]
    mean_file: str | PathLike[str] | None
    mean_file_offsets: Sequence[int]
    scale: Mapping[str, float | Sequence[float]]
    reverse_channels: Sequence[str]
    shapes: Mapping[str, Sequence[int | str] | str]
    dims: Mapping[str, int | tuple[int, int | None] | str]
    values: Mapping[str, Nested | Sequence[Any] | NDArray[Any]]
    feeds: Sequence[str]
    specialise: Mapping[str, int | Sequence[int]]
    signature: str | None
    extensions: str | PathLike[str] | None
    transformations_config: Sequence[str | PathLike[str]]
    enable_transforms: Sequence[str]
    disable_transforms: Sequence[str]
    verify: bool
    level: int | None
    external_weights: bool
    weights: str | None
    small_weights: bool
    plain_products: bool
    fast_compile: bool
    disable_layout_change: bool
    max_context: int | None
    last_logits: bool | None
    row_lengths: bool
    lora_rank: int | None
    precision: str | None
    fast_math: bool
    activations: str
    seed: int | None
    max_memory: int | str | None
    max_seconds: float | None
    tune: float | None
    tune_file: str | PathLike[str] | None
    kernel_cache: str | PathLike[str] | None
