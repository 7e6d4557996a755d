"""The settings' own tags: which keys and values every service takes, and what keeps several of them from making sense together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from contract.tag_forms import find_twins

MOST_CHARACTERS = 1_000
"""The most characters of all tags together, as JSON: they are variables of functions, which have 4 KB in all."""


def problems(tags: Mapping[str, str]) -> Iterator[str]:
    """Says what does not fit."""
    yield from twin_problems("tags", tags)
    if (characters := len(json.dumps(dict(tags)))) > MOST_CHARACTERS:
        yield f"tags take {characters} characters as JSON; allowed: {MOST_CHARACTERS}, because a function's variables have 4 KB"


def twin_problems(setting: str, keys: Iterable[str]) -> Iterator[str]:
    """Says which keys of a setting IAM takes for one."""
    for one, other in find_twins(keys):
        yield f"{setting} has {one} and {other}; allowed: one of them, because IAM does not tell capitals apart in keys"
