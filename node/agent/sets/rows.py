"""Tells the saves of a trainer apart that numbers its files: which files are of a save that is not whole, beside saves that are."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

from agent.snapshot import FileState

NUMBER = re.compile(r"\d{1,18}")


def find_open_saves(
    own: Sequence[FileState], taken: Collection[str], *, is_open: Callable[[FileState], bool], born: Mapping[str, float],
    changes: Mapping[str, float], apart_s: float,
) -> frozenset[str]:  # fmt: skip
    """Returns the paths of saves that are not whole: files that are `is_open`, and new ones that share a number with one of these.

    None unless each of these has a peer: a whole file whose name differs in its numbers alone. Shards of one save may be numbered as well,
    so the peer's like is in the last set (`taken`), or it was there for `apart_s` before the open one was `born`.
    """
    fresh = [one for one in own if one.path not in taken and NUMBER.search(one.path)]
    opened = [one for one in fresh if is_open(one)]
    if not opened:
        return frozenset()
    rows = defaultdict[str, list[FileState]](list)
    for one in own:
        rows[mask(one.path)].append(one)
    known = {mask(path) for path in taken}
    left = frozenset[str]()
    for one in opened:
        row = rows[mask(one.path)]
        common = frozenset.intersection(*(list_numbers(other.path) for other in row)) if len(row) > 1 else frozenset()
        numbers = list_numbers(one.path) - common
        left |= {one.path} | {other.path for other in fresh if numbers & list_numbers(other.path)}
    for one in opened:
        row = mask(one.path)
        peers = [other for other in rows[row] if other.path not in left]
        began = born.get(one.path, 0.0)
        is_apart = any(began - changes.get(other.path, began) >= apart_s for other in peers)
        if not peers or not (row in known or is_apart):
            return frozenset()
    return left


def mask(path: str) -> str:
    """Returns a path with `#` for each of its numbers."""
    return NUMBER.sub("#", path)


def list_numbers(path: str) -> frozenset[int]:
    """Returns the numbers in a path."""
    return frozenset(map(int, NUMBER.findall(path)))
