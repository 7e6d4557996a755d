"""What a failed test says in one screen: its sentence, what was found instead, and where to look further."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

PROCESSOR = "processor_s"
"""Property of every test in the results of a lane: processor time with its fixtures and the processes that ended in it."""
FILES = "files"
"""Property of a failed test in the results: its folder, in which its processes leave their logs."""
MOST_LINES = 14
"""Of what pytest says of an assertion; the rest is in the part's log."""
WIDEST = 160
"""Letters of such a line."""
_PLACE = re.compile(r"^(\S+\.py:\d+): ", re.MULTILINE)


def write_screen(name: str, case: ElementTree.Element, log: str) -> Iterator[str]:
    """Yields the lines for a failed test: `name` as pytest takes it, its element in the results, the file with all that was printed."""
    yield f"FAILED {name}"
    yield f"  {_write_sentence(case.get('name', ''))}"
    texts = [child.text or "" for child in case if child.tag in {"failure", "error"}]
    said = [line[1:].strip() for text in texts for line in text.splitlines() if line.startswith("E ")]
    yield from (f"    {line[:WIDEST]}" for line in said[:MOST_LINES])
    if len(said) > MOST_LINES:
        yield f"    ... and {len(said) - MOST_LINES} further lines"
    if places := [place for text in texts for place in _PLACE.findall(text)]:
        yield f"  at {places[-1]}"
    yield from (f"  its files: {one.get('value')}" for one in case.iter("property") if one.get("name") == FILES)
    yield f"  everything that was printed: {log}"


def write_end(log: str, last: int = MOST_LINES) -> Iterator[str]:
    """Yields the last lines of the log of a part that did not end as tests do; nothing if there is no log."""
    try:
        lines = Path(log).read_text(errors="backslashreplace").splitlines()
    except FileNotFoundError:
        return
    yield f"The end of {log}:"
    yield from (f"    {line[:WIDEST]}" for line in lines[-last:])


def _write_sentence(name: str) -> str:
    sentence, mark, case = name.removeprefix("test_").partition("[")
    return sentence.replace("_", " ") + (f" [{case}" if mark else "")
