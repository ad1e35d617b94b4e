"""Errors about what cannot be read: one node behind the rule, several on lines of their own."""

from __future__ import annotations

from aot.frontends.unsupported import Problem, unconverted

FIRST = Problem("head/gcd", "gcd.default", "", 0, "there is no conversion for it; from net.py:7: y = gcd(x, 3)")
SECOND = Problem("old", "Crop", "caffe", 7, "there is no conversion for it")


def test_one_node_is_behind_the_rule() -> None:
    text = "m.pt2: 1 node is not supported: gcd.default in 'head/gcd': there is no conversion for it"
    assert str(unconverted("m.pt2", [FIRST])).startswith(text)


def test_several_nodes_have_a_line_each() -> None:
    lines = str(unconverted("m.pt2", [FIRST, SECOND])).splitlines()
    assert lines == ["m.pt2: 2 nodes are not supported:", f"  {FIRST}", f"  {SECOND}"]
