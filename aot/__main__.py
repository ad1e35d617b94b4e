"""`python -m aot`, and the console script."""

from aot.cli import main

if __name__ == "__main__":
    main()
