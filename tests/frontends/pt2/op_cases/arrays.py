"""Shapes, indices, and movement of elements."""

from tests.frontends.pt2.case import case, f

CASES = [
    case("view.default", f(2, 3, 4), [6, -1]),
    case("flatten.using_ints", f(2, 3, 4), 1),
    case("unflatten.int", f(2, 12), 1, [3, -1]),
    case("permute.default", f(2, 3, 4), [2, -3, 1]),
    case("transpose.int", f(2, 3, 4), -1, 0),
    case("select.int", f(2, 3, 4), 1, -1),
    case("chunk.default", f(2, 7), 3, 1),
]
