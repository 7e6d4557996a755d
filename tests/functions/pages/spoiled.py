"""Facts in which every text, or every number, is another one: what code of a job, or a defect, may have written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import Any

from contract.grid import Grid
from contract.intents import Intent
from contract.jobs import Job


def change_texts(facts: Any, change: Callable[[str], str]) -> Any:
    """Returns the facts with every text changed, names and keys among them."""
    changed = cache(change)  # nodes share their lines; a copy for each node fills gigabytes
    return _walk(facts, lambda value: changed(value) if isinstance(value, str) else value, keys=True)


def change_fractions(facts: Any, number: float) -> Any:
    """Returns the facts with another number in the place of every one that may have a fraction."""
    return _walk(facts, lambda value: number if isinstance(value, float) else value, keys=False)


def change_counts(facts: Any, number: int) -> Any:
    """Returns the facts with another number in the place of every whole one, but for those that Admit, Launch and Plan write."""
    return _walk(
        facts,
        lambda value: number if isinstance(value, int) and not isinstance(value, bool) else value,
        keys=False,
        kept=(Job, Intent, Grid),
    )


def _walk(value: Any, change: Callable[[Any], Any], *, keys: bool, kept: tuple[type, ...] = ()) -> Any:
    if isinstance(value, (Enum, *kept)):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        changed = {
            one.name: _walk(getattr(value, one.name), change, keys=keys, kept=kept) for one in fields(value) if one.init
        }
        return replace(value, **changed)
    if isinstance(value, Mapping):
        return {change(one) if keys else one: _walk(held, change, keys=keys, kept=kept) for one, held in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        held = [_walk(one, change, keys=keys, kept=kept) for one in value]
        return tuple(held) if isinstance(value, tuple) else held
    return change(value)
