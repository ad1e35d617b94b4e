"""The page docs/develop/rules.md: `python -m tests.rules.page` writes it."""

from __future__ import annotations

from pathlib import Path

from tests.rules.proof import Entry
from tests.rules.table import ENTRIES, THEMES

PAGE = Path(__file__).parent.parent.parent / "docs" / "develop" / "rules.md"
HEAD = """# Rewrite rules, proved or tested

Each rule of the optimiser, from the table in `tests/rules`; `python -m tests.rules.page` writes this page.

{proved} of {all} rules are **proved**: the rule runs on graphs of its pattern, the graph before and after it become
terms of the compiler's own definitions, and z3 shows that no input, and no size where sizes are symbols, gives another
element. Floats are real numbers there, integers have no limit: rounding, NaN and infinities are not part of a proof.
The others are **tested**, for the reason that is given. All rules, proved ones too, are tested with numbers: zeros of
both signs, ones, a denormal, NaN, noise of three scales and several sizes. Fixed sizes are 1 to 7, ranks up to 4.

A rule that is not in the table, and a wrong rule that passes the proof, turn `tests/rules/test_rules.py` red. A new
rule gets a line in `tests/rules/entries/<theme>.py`: `Entry(rule, patterns)`; with `why=` if z3 cannot prove it.

A proof is about what a rule does where it fires. That it keeps off the near misses is tested in `tests/passes`; that a
definition is the operation's meaning, and code computes what the definition says, in the tables of `tests/cases`.
"""
TABLE = "| rule | equation | | of what, or why not |\n|--|--|--|--|\n"


def page() -> str:
    """Return the page as Markdown."""
    head = HEAD.format(proved=sum(e.is_proved for e in ENTRIES), all=len(ENTRIES))
    parts = [f"## {theme}\n\n{TABLE}{''.join(map(_row, entries))}" for theme, entries in THEMES.items()]
    return "\n".join([head, *parts])


def _row(entry: Entry) -> str:
    equation = " ".join(entry.rule.equation.split("\n\n", maxsplit=1)[0].split()).replace("|", "\\|")
    symbolic = any(isinstance(size, str) for p in entry.patterns for shape in p.shapes for size in shape)
    patterns = (
        f"{len(entry.patterns)} pattern{'s' * (len(entry.patterns) > 1)}, {'symbolic' if symbolic else 'fixed'} sizes"
    )
    what = entry.why or "; ".join(filter(None, (patterns, entry.note)))
    return f"| `{entry.rule.name}` | {equation} | {'proved' if entry.is_proved else 'tested'} | {what} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
