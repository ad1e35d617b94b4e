"""Operations of domain com.microsoft that exports contain."""

from __future__ import annotations
