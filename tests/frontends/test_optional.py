"""What an extra brings is not needed by the rest."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["aot", "cli"])
def test_the_compiler_works_without_the_onnx_package(module: str) -> None:
    code = f"import sys; sys.modules['onnx'] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
