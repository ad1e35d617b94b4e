"""Every rewrite rule is proved by z3, or tested with numbers and says why; wrong rules are refuted."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import aot
from aot.passes.rewrite import Rule
from tests.rules.numbers import differences
from tests.rules.page import PAGE, page
from tests.rules.proof import Entry, counterexample
from tests.rules.table import ENTRIES
from tests.rules.wrong import WRONG

PROVED = [e for e in ENTRIES if e.is_proved]
OPTIONAL = ("aot.pytorch", "aot.serve", "aot.commands", "aot.runtime.systems")  # no rules; need packages, or a system


def rules_of_the_compiler() -> dict[str, Rule]:
    def check(name: str) -> None:
        assert name.startswith(OPTIONAL), f"{name} cannot be imported"

    names = [m.name for m in walk_packages(aot.__path__, "aot.", check) if not m.name.startswith(OPTIONAL)]
    values = [value for name in names for value in vars(import_module(name)).values()]
    return {value.name: value for value in values if isinstance(value, Rule)}


def test_every_rule_is_in_the_table_once() -> None:
    found = rules_of_the_compiler()
    assert sorted(e.rule.name for e in ENTRIES) == sorted(found)
    assert all(found[e.rule.name] is e.rule for e in ENTRIES)


def test_rules_have_equations_and_reasons() -> None:
    assert [e.rule.name for e in ENTRIES if "->" not in e.rule.equation or not e.patterns] == []
    assert [e.rule.name for e in ENTRIES if e.why and e.note] == []


@pytest.mark.parametrize("entry", PROVED, ids=lambda e: e.rule.name)
def test_no_counterexample_to_the_rule_is_found(entry: Entry) -> None:
    for pattern in entry.patterns:
        assert counterexample(*pattern.graphs(entry.rule), pattern.within) is None


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.rule.name)
def test_the_rule_keeps_results_on_numbers(entry: Entry) -> None:
    for pattern in entry.patterns:
        assert list(differences(entry, pattern)) == []


@pytest.mark.parametrize("wrong", WRONG, ids=lambda w: w.rule.name)
def test_wrong_rules_are_refuted(wrong: Entry) -> None:
    assert any(counterexample(*p.graphs(wrong.rule), p.within) is not None for p in wrong.patterns)


def test_the_page_is_that_of_the_table() -> None:
    """Write it by `python -m tests.rules.page`."""
    assert PAGE.read_text(encoding="utf-8") == page()
    assert PAGE.is_relative_to(Path(aot.__file__).parent.parent)
