"""Shared by the command lines of both rehearsals, of a job and of a grid. It imports little, so mistakes are reported at once."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from rehearsal.faults import table

LAST_LAYER_S = 1500.0
"""How long after an execution's end the reaper, the last layer, has ended what was left: its grace period of ten
minutes, two passes of five, and a margin. In real-world seconds."""
LEAST_WAIT_S = 300.0


def bound_wait(seconds: float, speed: float) -> float:
    """Returns how long to wait for what takes at most `seconds` in a real account: functions, builds and nodes are processes here, which a
    speed does not make faster, so never less than five minutes."""
    return max(seconds / speed, LEAST_WAIT_S)


class Parser(argparse.ArgumentParser):
    """Exits with code 2 and a line for each mistake, without the usage; `--help` prints the usage."""

    def __init__(self, description: str) -> None:
        super().__init__(
            prog="python -m rehearsal",
            allow_abbrev=False,
            description=description,
            epilog=f"faults (seconds are a real account's: the rehearsal divides them by its speed):\n{table()}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{message.removeprefix('argument ')}\n")

    def refuse(self, problems: Sequence[str]) -> None:
        """Exits if there is any problem."""
        if problems:
            self.error("\n".join(problems))


def add_conditions(parser: argparse.ArgumentParser, *, speed: float) -> None:
    """`speed` is the default. `numbers` converts the values."""
    parser.add_argument(
        "--fault", action="append", default=[], metavar="NAME[:key=value,...]", help="may be given again"
    )
    parser.add_argument("--speed", default=f"{speed:g}", metavar="K", help=f"divides all durations (default {speed:g})")
    parser.add_argument("--seed", default="0", help="of the delays and losses (default 0)")
    parser.add_argument(
        "--verbose", action="store_true", help="all figures, and all that a rehearsal replaces, on the screen too"
    )
    parser.add_argument("--limit", default="900", metavar="S", help="give up after this many seconds (default 900)")


def numbers(options: argparse.Namespace) -> Iterator[str]:
    """Converts the text of every numeric option to a number; yields a line for each one that is not a number."""
    for name, (kind, allowed, fits) in NUMBERS.items():
        text = getattr(options, name, None)
        if text is None:
            continue
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not fits(value):
            yield f"--{name.replace('_', '-')} {text}: must be {allowed}"
        else:
            setattr(options, name, value)


NUMBERS: dict[str, tuple[type[float] | type[int], str, Callable[[float], bool]]] = {
    "speed": (float, "a number above 0, such as 10 or 0.5", lambda value: 0 < value < math.inf),
    "limit": (float, "a number of seconds above 0, such as 900", lambda value: 0 < value < math.inf),
    "seed": (int, "a whole number, such as 7", lambda _: True),
    "searches": (int, "a whole number of at least 1, such as 5", lambda value: value >= 1),
    "at_once": (int, "a whole number of at least 1, such as 5", lambda value: value >= 1),
    "found_at": (float, "a number, such as 0.95", math.isfinite),
    "nodes": (int, "a whole number of at least 1, such as 2", lambda value: value >= 1),
    "metric_at_least": (float, "a number, such as 0.93", math.isfinite),
}
"""Each option's kind, its allowed values in words, and a check of a value."""


def folder_problem(option: str, folder: Path) -> str | None:
    """Says why the option's value is not a folder that can be read."""
    if not folder.exists():
        return f"{option} {folder}: there is no such folder"
    if not folder.is_dir():
        return f"{option} {folder}: is a file; it must be a folder"
    try:
        next(folder.iterdir(), None)
    except OSError as problem:
        return f"{option} {folder}: {problem.strerror}; it must be a folder that you may read"
    return None


class UnreadableFile(Exception):
    """A file that the command line names; the message says what is wrong with it."""


def parse_json(option: str, file: Path) -> object:
    """Returns what the file has. Raises UnreadableFile, with the line of what is no JSON."""
    text = read(option, file)
    try:
        return json.loads(text)
    except json.JSONDecodeError as problem:
        comma = " (JSON has no comma there)" if text[: problem.pos].rstrip().endswith(",") else ""
        where = f"line {problem.lineno}, column {problem.colno}"
        raise UnreadableFile(
            f"{option} {file}: is not JSON: {problem.msg} in {where}{comma}; allowed: a JSON object"
        ) from None
    except (ValueError, RecursionError) as problem:
        raise UnreadableFile(f"{option} {file}: is not JSON: {problem}; allowed: a JSON object") from None


def read(option: str, file: Path) -> str:
    """Returns the file's text. Raises Unreadable."""
    if file.is_dir():
        raise UnreadableFile(f"{option} {file}: is a folder; it must be a file")
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UnreadableFile(f"{option} {file}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "is not a string in UTF-8"
        raise UnreadableFile(f"{option} {file}: {reason}") from None
