"""Programs of engines, run in a process of their own: engines start others, and keep threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Ray waits for ever for a worker that has not begun within 60 seconds, as on a machine that is busy
_LIMITS = {"RAY_raylet_start_wait_time_s": "300", "RAY_worker_register_timeout_seconds": "500"}


def run(program: str | Path, *arguments: str | Path) -> list[str]:
    """Return the lines that a program prints; engines may log among them. It begins in the root of the project."""
    environment = os.environ | _LIMITS | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, program, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
