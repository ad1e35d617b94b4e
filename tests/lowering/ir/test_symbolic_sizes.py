"""The most that a size can be, over what is known before an inference."""

from __future__ import annotations

import pytest

from aot.codegen.ir.expressions import variables
from aot.codegen.ir.loops import Expr, Var, as_expr, prim
from aot.lowering.ir.symbolic_sizes import MAX_UNCAPPED_ELEMENTS, Sizes
from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError

N = Var("n", None, 1)


def late(sizes: Sizes, *names: str, low: int = 0, extent: int | None = None) -> list[Var]:
    found = [Var(n, extent, low) for n in names]
    sizes.late |= dict.fromkeys(found)
    return found


def test_known_sizes_are_their_own_bounds() -> None:
    assert Sizes().most(N + 1) == N + 1


def test_a_limit_needs_no_capacity() -> None:
    sizes = Sizes()
    (v,) = late(sizes, "v")
    assert sizes.most(prim("min", v, 7) * 3) == 21
    assert sizes.late == {v: None}


def test_sizes_without_a_limit_have_a_capacity() -> None:
    sizes = Sizes()
    (v,) = late(sizes, "v")
    found = sizes.most(v * 2)
    capacity = sizes.late[v]
    assert capacity is not None
    assert sizes.written_out(found) == capacity * 2


def test_a_limit_beyond_all_memory_is_one_of_the_capacity_too() -> None:
    sizes = Sizes()
    v, w = late(sizes, "v", "w")
    found = sizes.most(prim("min", v, MAX_UNCAPPED_ELEMENTS) * prim("min", w, MAX_UNCAPPED_ELEMENTS))
    assert isinstance(found, Expr)
    assert None not in sizes.late.values()


def test_elements_that_are_counted_make_no_more_than_their_count() -> None:
    """Sizes of a reshaped tensor, in any order, and with others beside them."""
    sizes = Sizes()
    v, w, z = late(sizes, "v", "w", "z")
    sizes.learn(v * w * z, 100)
    assert sizes.most(v * w * z) == 100
    assert sizes.most(z * v * w * 2) == 200
    assert sizes.most(v * z * prim("min", w, 3)) == 300
    assert set(sizes.late.values()) == {None}


def test_bounds_of_a_product_are_not_relied_on_by_part_of_it() -> None:
    """An expression may be computed once its own symbols are known, before the others are checked."""
    sizes = Sizes()
    v, w, z = late(sizes, "v", "w", "z")
    sizes.learn(v * w * z, 100)
    sizes.most(v * z)
    assert sizes.late[v] is not None
    assert sizes.late[z] is not None


def test_sizes_of_an_empty_tensor_may_be_anything() -> None:
    sizes = Sizes()
    v, w, z = late(sizes, "v", "w", "z")
    sizes.learn(v * w * z, 0)
    sizes.most(v * w + z)
    assert sizes.late[v] is not None
    assert sizes.late[w] is not None


def test_a_count_may_be_that_of_another_tensor() -> None:
    sizes = Sizes()
    v, w, z = late(sizes, "v", "w", "z")
    sizes.learn(v * w, z * 2)
    sizes.learn(z * 2, v * w)  # leads back
    found, capacity = sizes.written_out(sizes.most(v * w + z)), sizes.late[z]
    assert capacity is not None
    assert found == capacity * 3
    assert sizes.late[v] is None


def test_a_product_of_many_capacities_is_refused_where_nothing_limits_it() -> None:
    sizes = Sizes()
    many = late(sizes, *(f"v{i}" for i in range(11)))
    whole = many[0]
    for v in many[1:]:
        whole = whole * v
    with pytest.raises(
        UnsupportedError, match="10 sizes that only run time knows may be multiplied, got a bound of 11"
    ):
        sizes.most(whole)
    assert isinstance(sizes.most(prim("min", whole, N)), Expr)


@pytest.mark.parametrize(("count", "first", "scarce"), [(1, 64, 64), (4, 64, 16), (5, 64, 8), (6, 16, 4), (10, 4, 2)])
def test_capacities_that_are_multiplied_are_small_at_first(count: int, first: int, scarce: int) -> None:
    sizes, whole = Sizes(), Var("n") * 1
    for v in late(sizes, *(f"v{i}" for i in range(count))):
        whole = whole * v
    sizes.most(whole)
    assert (sizes.first_capacity(scarce=False), sizes.first_capacity(scarce=True)) == (first, scarce)


def test_a_part_of_a_size_may_be_negative() -> None:
    """Only a whole dimension is not negative: n - k elements in steps of 2, and two more, are (n - k) // 2 + 2."""
    sizes, n, k = Sizes(), Var("n"), Var("k")
    (longer,) = sizes.shape(((n - k) // 2 + 2,))
    (part,) = variables(as_expr(longer, DType.I64))
    assert longer == part + 2 and part.low < -2
    (whole,) = sizes.shape(((n - k) // 3,))
    assert isinstance(whole, Var) and whole.low == 0
    value = sizes.of((n - k) // 5)
    assert isinstance(value, Var) and value.low < 0


def test_a_rule_of_many_layers_makes_one_form() -> None:
    """Layers repeat their rules: as many forms as layers would take the square of that to compare."""
    sizes, n, k, m = Sizes(), Var("n"), Var("k"), Var("m")
    for one, other in ((n, k), (n, k), (k, m), (n, k)):
        sizes.equate(one, other)
    assert sizes.alike(n) == [n, k, m]
    assert sizes.alike(m) == [m, k, n]
