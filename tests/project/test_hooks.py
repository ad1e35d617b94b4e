"""The hooks of git in scripts/hooks: subjects of commits fit a line of a log."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

HOOK = Path(__file__).parents[2] / "scripts" / "hooks" / "commit-msg"


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ("docs: a page says where things are\n\nIt was not said anywhere.\n", ""),
        ("# a comment of git\n\ndocs: " + "ü" * 66 + "\n", ""),
        ("Merge branch 'pools' into main, " + "long " * 20, ""),
        ("docs: " + "ü" * 67 + "\n\nBody.\n", "subject: at most 72 characters, got 73"),
        ("a page says where things are\n", "subject: 'area: what is done'"),
        ("\n", "subject: 'area: what is done'"),
    ],
)
def test_subject_is_checked(message: str, error: str, tmp_path: Path) -> None:
    file = tmp_path / "COMMIT_EDITMSG"
    file.write_text(message, encoding="utf-8")
    done = subprocess.run(["sh", HOOK, file], capture_output=True, text=True, check=False)
    assert (done.returncode, error in done.stderr) == (int(bool(error)), True)
    assert done.stderr.startswith("subject: ") if error else done.stderr == ""
