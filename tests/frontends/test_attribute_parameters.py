"""Attributes as parameters of conversions: read by their annotations, with the defaults of the operation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from aot.frontends.conversion.attributes import with_attributes
from aot.frontends.conversion.dialect import rule_of_inputs
from aot.frontends.conversion.node_context import NodeContext
from aot.runtime.errors import ModelError, UsageError
from tests.frontends.onnx.models import converted, model, save


def kept(node: Any, x: Any, *, low: int | None = None, axes: Sequence[int] = (0, 2), flat: bool = False) -> Any:
    return x, low, axes, flat


class Node:
    """The attributes of a node, and their readers."""

    def __init__(self, **attrs: Any) -> None:
        self.attrs, self.kind = attrs, "Kept"

    def __getattr__(self, name: str) -> Any:
        return getattr(NodeContext, name).__get__(self)


def test_attributes_are_read_by_their_annotations() -> None:
    assert with_attributes(kept)(Node(), 1) == (1, None, (0, 2), False)
    assert with_attributes(kept)(Node(low=3, axes=(1,), flat=1), 1) == (1, 3, (1,), True)


def test_attributes_are_no_inputs() -> None:
    assert rule_of_inputs(with_attributes(kept), Node(), [1]) == ""
    assert "2 inputs do not fit" in rule_of_inputs(with_attributes(kept), Node(), [1, 2])


def test_a_conversion_needs_no_hash() -> None:
    class Unhashable:
        __hash__ = None

        def __call__(self, node: Any, x: Any) -> Any:
            return x

    assert rule_of_inputs(Unhashable(), Node(), [1]) == ""
    assert "2 inputs do not fit" in rule_of_inputs(Unhashable(), Node(), [1, 2])


def test_an_attribute_without_default_must_be_there(tmp_path: Path) -> None:
    x = np.zeros((1, 4, 2, 2), np.float32)
    path = save(tmp_path, model([helper.make_node("DepthToSpace", ["x"], ["y"])], {"x": x}, ["y"]))
    with pytest.raises(ModelError, match="DepthToSpace: attribute blocksize is missing"):
        converted(path)


def test_an_attribute_of_an_unknown_type_is_refused() -> None:
    def wrong(node: Any, *, size: complex = 1j) -> Any: ...

    with pytest.raises(UsageError, match=r"attribute size must be one of int, float, .*, got complex"):
        with_attributes(wrong)
