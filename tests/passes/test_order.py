"""Passes and extensions are sorted: topologically, the same every time, and a cycle prints itself."""

from __future__ import annotations

import pytest

from aot.ir.graph import Graph
from aot.passes.pass_order import sort_passes
from aot.runtime.errors import PassError


def a(graph: Graph) -> bool:
    return False


def b(graph: Graph) -> bool:
    return False


class Extension:
    """Extension that a user writes: a class."""

    def find_and_replace_pattern(self, graph: Graph) -> None: ...


class Late(Extension):
    def run_after(self) -> list[object]:
        return [b]


class Early(Extension):
    run_before = ("a",)


class Zebra(Extension):
    pass


class Alpha(Extension):
    pass


CHAIN = ("MiddleStart", a, b, "MiddleFinish")


def names(*extensions: object, chain: tuple[object, ...] = CHAIN) -> list[str]:
    return [item.name for item in sort_passes(chain, extensions)]


def test_built_in_order_stays() -> None:
    assert names() == ["MiddleStart", "a", "b", "MiddleFinish"]


def test_constraints_hold_and_defaults_keep_extensions_in_their_phase() -> None:
    assert names(Late, Early) == ["MiddleStart", "Early", "a", "b", "Late", "MiddleFinish"]


def test_order_does_not_depend_on_how_extensions_are_listed() -> None:
    expected = ["MiddleStart", "Alpha", "Zebra", "a", "b", "Late", "MiddleFinish"]
    assert names(Zebra, Alpha, Late) == names(Late, Alpha, Zebra) == expected


def test_phase_of_an_extension() -> None:
    class Back(Extension):
        phase = "back"

    chain = ("MiddleStart", a, "MiddleFinish", "BackStart", b, "BackFinish")
    assert names(Back, chain=chain) == ["MiddleStart", "a", "MiddleFinish", "BackStart", "Back", "b", "BackFinish"]


def test_repeated_passes_are_numbered() -> None:
    assert names(chain=(a, b, a)) == ["a", "b", "a.2"]

    class Between(Extension):
        run_after = ("b",)
        run_before = ("a.2",)

    assert names(Between, chain=(a, b, a)) == ["a", "b", "Between", "a.2"]


def test_cycle_prints_itself() -> None:
    class Wrong(Extension):
        run_after = (b,)
        run_before = (a,)

    with pytest.raises(PassError, match=r"cycle (a -> b -> Wrong -> a|Wrong -> a -> b -> Wrong)"):
        names(Wrong)


def test_a_name_that_no_pass_has_is_an_error() -> None:
    class Free(Extension):
        run_after = ("MiddelStart", "a")

    with pytest.raises(PassError, match="Free: run_after must name passes, got MiddelStart; did you mean MiddleStart"):
        names(Free)


def test_classes_that_take_no_part_are_ignored_and_the_pass_stays_in_its_phase() -> None:
    class Absent(Extension):
        pass

    class Free(Extension):
        run_after = (Absent,)
        run_before = (Absent,)

    assert names(Free) == ["MiddleStart", "Free", "a", "b", "MiddleFinish"]


def test_names_and_ids_are_unique() -> None:
    with pytest.raises(PassError, match="Alpha exists twice"):
        names(Alpha, Alpha)

    class One(Extension):
        id = "same"

    class Two(Extension):
        id = "same"

    with pytest.raises(PassError, match="One and Two have the same id 'same'"):
        names(One, Two)


def test_wrong_phase() -> None:
    class Lost(Extension):
        phase = "end"

    with pytest.raises(PassError, match="Lost: phase must be one of front, middle, back, got 'end'"):
        names(Lost)
