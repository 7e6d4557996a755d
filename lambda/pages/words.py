"""Words texts, numbers and times for a page. Code of a job may have written any of them, and any may be absent or absurd."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from markupsafe import escape

from aws.times import utc

UNKNOWN = "unknown"
MOST = 2000
"""Characters of a text that no template limits further."""
BYTES_EACH = 2
"""Bytes of a page that a text may take for each character that it may have: a letter beyond ASCII has two to four of them, and & or a quote
has five, as it is written."""
REPLACED = "\N{REPLACEMENT CHARACTER}"
"""Stands for a character that cannot be seen, steers a terminal, or turns the direction of reading."""
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
"""What colours the output of a program on a terminal."""
_WHOLE = 1e15
"""Larger numbers are shown with a power of ten."""
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400


def visible(text: str, most: int = MOST) -> str:
    """Returns the text on one line, of at most `most` characters of its own and BYTES_EACH times as many bytes. Where it was cut, it says
    so."""
    part = _COLOURS.sub("", text[: 4 * most + 100]).expandtabs(4)
    letters = part[:most]
    if not letters.isprintable():
        letters = "".join(_visible_letter(letter) for letter in letters)
    letters = letters.rstrip()
    shown = _fit(letters, BYTES_EACH * most)
    is_whole = len(part) <= most and len(text) <= 4 * most + 100 and len(shown) == len(letters)
    return shown if is_whole else f"{shown}… (cut, {len(text):,} characters)"


def _visible_letter(letter: str) -> str:
    return letter if letter.isprintable() else " " if letter.isspace() else REPLACED


def count_bytes(text: str) -> int:
    """Returns how many bytes of a page the text takes, as a template writes it."""
    return len(str(escape(text)).encode("utf-8", "replace"))


def _fit(text: str, most: int) -> str:
    """Returns as much of the text's beginning as takes at most `most` bytes."""
    if count_bytes(text) <= most:
        return text
    return text[: bisect_right(range(len(text) + 1), most, key=lambda count: count_bytes(text[:count])) - 1]


def finite(value: object) -> float | None:
    """Returns a finite number; None for everything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) and abs(found) < 1e300 else None


def number(value: object) -> str:
    """Words a number with at most six digits that count, whole ones with all of theirs; UNKNOWN for what is no finite number."""
    found = finite(value)
    if found is None:
        return UNKNOWN
    found += 0.0  # minus zero becomes zero
    if found.is_integer() and abs(found) < _WHOLE:
        return f"{found:,.0f}"
    return f"{found:,.6g}"


def usd(value: object) -> str:
    """Words US dollars."""
    found = finite(value)
    if found is None:
        return UNKNOWN
    # What rounds to nothing has no sign.
    return f"${round(found, 2) + 0.0:,.2f}" if abs(found) < _WHOLE else f"${found:.3g}"


def count(amount: int, thing: str, several: str = "") -> str:
    """Words how many there are of a thing: 1 node, 2,000 nodes."""
    return f"{amount:,} {thing if amount == 1 else several or f'{thing}s'}"


def duration(seconds: object) -> str:
    """Words a duration with its two largest units."""
    found = finite(seconds)
    if found is None or found < 0 or found > 1e10:
        return UNKNOWN
    # Each is rounded before it is compared, so that no unit is shown as often as a larger one has it: 59.7 s is 1 min.
    if (whole := round(found)) < _MINUTE_S:
        return f"{whole} s"
    if whole < _HOUR_S:
        return _pair(whole, _MINUTE_S, "min", 1, "s")
    if (minutes := round(found / _MINUTE_S)) < _DAY_S // _MINUTE_S:
        return _pair(minutes, 60, "h", 1, "min")
    return _pair(round(found / _HOUR_S), 24, "d", 1, "h")


def _pair(whole: int, large: int, unit: str, small: int, rest: str) -> str:
    first, second = divmod(whole, large)
    return f"{first} {unit}" if second < small else f"{first} {unit} {second} {rest}"


def moment(at: object) -> str:
    """Words a time in UTC."""
    found = finite(at)
    try:
        return utc(found) if found is not None and found > 0 else UNKNOWN
    except (OverflowError, ValueError, OSError):
        return UNKNOWN


def text_of(document: Mapping[str, Any] | None, name: str) -> str:
    """Returns a text of a document; empty where there is none."""
    found = (document or {}).get(name)
    return found if isinstance(found, str) else ""


def entries_of(document: Mapping[str, Any] | None, name: str) -> list[Mapping[str, Any]]:
    """Returns the objects of a list in a document; none where there is none."""
    found = (document or {}).get(name)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def entry_of(document: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    """Returns an object in a document; an empty one where there is none."""
    found = (document or {}).get(name)
    return found if isinstance(found, Mapping) else {}
