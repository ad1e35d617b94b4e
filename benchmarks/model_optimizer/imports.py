"""How many of Model Optimizer's own extension files import under our names.

    python -m benchmarks.model_optimizer.imports SITE_PACKAGES [REASONS]

SITE_PACKAGES holds openvino/tools/mo of `openvino-dev==2024.6.0`, in an environment of its own. Each file is loaded
alone, as a file of an extension folder; what it imports of Model Optimizer is this project's.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

from aot.extensions.modules import Modules

FOLDERS = ("front", "front/onnx", "front/tf", "middle", "back", "ops")


def tried(root: Path, folder: str) -> list[tuple[str, str]]:
    """Return each file of a folder with what stops it; an empty text: it imports."""
    found: list[tuple[str, str]] = []
    for path in sorted((root / folder).glob("*.py")):
        if path.stem == "__init__":
            continue
        modules = Modules(root)
        try:
            modules.load(".".join((*Path(folder).parts, path.stem)))
            found.append((path.name, ""))
        except Exception as error:
            found.append((path.name, f"{type(error).__name__}: {error}"))
        modules.forget()
    return found


def main() -> None:
    root = Path(sys.argv[1]) / "openvino" / "tools" / "mo"
    reasons: Counter[str] = Counter()
    whole = [0, 0]
    for folder in FOLDERS:
        rows = tried(root, folder)
        good = sum(not reason for _, reason in rows)
        whole = [whole[0] + good, whole[1] + len(rows)]
        print(f"{folder:12} {good:4} of {len(rows):4}")
        reasons.update(re.sub(r"; .*", "", reason) for _, reason in rows if reason)
    print(f"{'all':12} {whole[0]:4} of {whole[1]:4}, {100 * whole[0] / whole[1]:.0f} %")
    for reason, count in reasons.most_common(int(sys.argv[2]) if len(sys.argv) > 2 else 20):
        print(f"{count:4}  {reason[:150]}")


if __name__ == "__main__":
    main()
