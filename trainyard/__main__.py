"""Runs the command line: `python -m trainyard --help`, or `bin/trainyard` from any folder."""

from __future__ import annotations

import sys

LIBRARIES = frozenset({"typer", "rich", "boto3"})


def main() -> None:
    """Reads the arguments of the process. A missing library is a line, and not a traceback."""
    try:
        from trainyard.app import app
    except ModuleNotFoundError as problem:
        if problem.name not in LIBRARIES:
            raise
        print(f"trainyard: the library {problem.name} is missing; run: make cli", file=sys.stderr)
        sys.exit(2)
    app(prog_name="trainyard")


if __name__ == "__main__":
    main()
