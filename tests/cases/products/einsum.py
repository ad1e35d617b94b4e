"""Einstein summation."""

from __future__ import annotations

from aot.opset.products.einsum import Diagonal, Einsum
from aot.runtime.abi import DType
from tests.cases import EXACT, LOOSE, Case


def case(equation: str, *shapes: tuple[int | str, ...]) -> Case:
    return Case(Einsum(equation), [(DType.F32, s) for s in shapes], LOOSE)


CASES = [
    case("ij->ji", (2, 3)),
    case("ij->", (2, 3)),
    case("ii->i", (4, 4)),
    case("bii->b", (2, 3, 3)),
    case("ij,jk", (2, 3), (3, 4)),
    case("i,j->ij", (3,), (4,)),
    case("i,i->", (5,), (5,)),
    case("abc,cd,de->abe", (2, 3, 4), (4, 5), (5, 2)),
    case("...ij,...jk->...ik", (2, 1, 4, 5), (3, 5, 2)),
    case("bhqd,bhkd->bhqk", ("b=2", 2, "q=3", 4), ("b=2", 2, "k=5", 4)),
    case("bqhd,bkhd->bhqk", (2, 3, 4, 5), (2, 6, 4, 5)),
    case("abcd,cdef->abef", (2, 3, 4, 5), (4, 5, 2, 3)),
    case("ab,cb->a", (2, 3), (4, 3)),
    case("i...->...", (3, 2, 4)),
    case("nchw,nc->nhw", (2, 3, 4, 5), (2, 3)),
    case("iij->ij", ("n=3", 3, "m=2")),
    case("iii->i", ("n=3", "n=3", "n=3")),
    case("abc,cde->abed", ("a=2", "b=3", "c=4"), ("c=4", "d=5", "e=2")),
    case("abc,bcd->da", ("a=2", "b=3", "c=4"), ("b=3", "c=4", "d=5")),
    case("ij,jk->ik", (2, 1), (9, 3)),
    case("ij,jk->ik", (2, 1), ("n=9", 3)),
    case("ij,jk->ik", ("m=2", "n=4"), (1, 3)),
    case("i,i,i->", (1,), ("n=3",), (1,)),
    case("bi,bi->bi", (1, "n=3"), ("b=2", 1)),
    case("...ij,...jk->...ik", (1, "q=4", 1), ("b=2", "n=5", 2)),
    Case(Diagonal(), [(DType.F32, (2, 3, 3))], EXACT),
    Case(Diagonal(), [(DType.F32, ("b=2", "n=3", "n=3"))], EXACT),
]
