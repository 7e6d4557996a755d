"""The settings' own tags: which keys and values every service takes, and what keeps several of them from making sense together."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import combinations

MOST_CHARACTERS = 1_000
"""The most characters of all tags together, as JSON: they are variables of functions, which have 4 KB in all."""


def problems(tags: Mapping[str, str]) -> Iterator[str]:
    """Says what does not fit."""
    for one, other in combinations(tags, 2):
        if one.lower() == other.lower():
            yield f"tags has {one} and {other}; allowed: one of them, because IAM does not tell capitals apart in keys"
    if (characters := len(json.dumps(dict(tags)))) > MOST_CHARACTERS:
        yield f"tags take {characters} characters as JSON; allowed: {MOST_CHARACTERS}, because a function's variables have 4 KB"
