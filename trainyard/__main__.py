"""Runs the command line for `bin/trainyard`, which sets the folders that it imports from."""

from __future__ import annotations

import io
import signal
import sys

from trainyard.interrupts import LEFT, leave_at_once, leave_quietly

LIBRARIES = frozenset({"typer", "rich", "boto3"})


def main() -> None:
    """Reads the arguments of the process. A missing library and Ctrl-C are a line, and not a traceback."""
    # Until here the shell's script has Ctrl-C ignored: Python would end with a traceback while it begins.
    signal.signal(signal.SIGINT, leave_at_once)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal need not have every letter
    try:
        from trainyard.app import run_app
    except ModuleNotFoundError as problem:
        if problem.name not in LIBRARIES:
            raise
        print(f"trainyard: the library {problem.name} is missing; run: make cli", file=sys.stderr)
        sys.exit(2)
    code = run_app(sys.argv[1:])
    if code == LEFT:
        leave_quietly()
    sys.exit(code)


if __name__ == "__main__":
    main()
