"""`python -m aot`, and the console script. The version is printed without the command line, which is slow to import."""

import sys
from importlib import import_module

from aot.runtime.version import VERSION


def main() -> None:
    """Entry point of the console script."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"{VERSION}\n")
    else:
        import_module("aot.cli").main()


if __name__ == "__main__":
    main()
