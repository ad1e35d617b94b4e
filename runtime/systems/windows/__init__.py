"""Windows 8 and later: calls of KERNEL32."""

from __future__ import annotations

import sys

assert sys.platform == "win32"

import ctypes

KERNEL32 = ctypes.WinDLL("kernel32", use_last_error=True)
