"""The keys of faults: what may be said of each, and its default."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

ALL = "all"
MOMENTS = ("boot", "agent", "preparing", "waiting", "checking", "training", "saving")
"""`boot` is the first line of user data, `agent` the agent's first; the rest are the phases that a node reports."""
BOOT = MOMENTS[0]
MOST_NAMED = 10
"""Faults or keys that are all named beside one that is meant."""


def any_seconds(text: str) -> bool:
    """Whether it is a number of seconds, below 0 too."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _whole(text: str) -> bool:
    return text.isdecimal()


def _is_attempt(text: str) -> bool:
    return _whole(text) and int(text) >= 1


@dataclass(frozen=True, slots=True)
class FaultKey:
    """One key of a fault."""

    default: str
    what: str
    allowed: str
    """The allowed values in words for a person, after `allowed`."""
    fits: Callable[[str], bool]


def seconds(default: str, what: str) -> FaultKey:
    """Returns a key for real-world seconds, which the rehearsal divides by its speed."""
    return FaultKey(default, what, "seconds, 0 or more", lambda text: any_seconds(text) and float(text) >= 0)


def number(default: str, what: str, least: int = 0) -> FaultKey:
    return FaultKey(default, what, f"a whole number from {least}", lambda text: _whole(text) and int(text) >= least)


def _factor(text: str) -> bool:
    return any_seconds(text) and float(text) > 0


def factor(default: str, what: str) -> FaultKey:
    return FaultKey(default, what, "a number more than 0", _factor)


def choice(default: str, what: str, *among: str) -> FaultKey:
    return FaultKey(default, what, " or ".join(filter(None, among)), lambda text: text in among)


def moment(default: str, what: str, *, least: str = BOOT) -> FaultKey:
    """Returns a key for a phase of the node's life, or a step of the training."""
    among = MOMENTS[MOMENTS.index(least) :]
    return FaultKey(default, what, f"{', '.join(among)} or a step", lambda text: text in among or _whole(text))


JOB = FaultKey("", "name of the job; empty: every job", "a job's name", lambda _: True)
RANK = FaultKey("0", "of the node, or `all`", "a whole number or all", lambda text: text == ALL or _whole(text))
SECOND = FaultKey("1", f"{RANK.what}; by default 0 in a job of one node", RANK.allowed, RANK.fits)
EVERY_RANK = FaultKey(ALL, RANK.what, RANK.allowed, RANK.fits)
ATTEMPTS = number("1", "this many first attempts of the job", least=1)
STEP = number("5", "once rank 0 reports this many steps; 0: once it trains, whether it tells steps or not")
CLOSED = FaultKey(
    "",
    "and not before the attempt has a checkpoint of this step, or of a later one, that another attempt can restore",
    "a step",
    lambda text: not text or _whole(text),
)
OF_NODE = {"rank": RANK, "attempts": ATTEMPTS, "job": JOB}
"""Keys of what befalls a node of a job."""
LATER_ON_NODE = {"closed": CLOSED, **OF_NODE}
"""Keys of what strikes it at a moment of its life."""
OF_SPOT = {
    "step": STEP,
    "closed": CLOSED,
    "rank": SECOND,
    "times": number("1", "in this many attempts", least=1),
    "attempt": FaultKey(
        "", "of the job; empty: any that no other interruption has struck", "a whole number from 1", _is_attempt
    ),
    "job": JOB,
}
"""Keys of what takes spot nodes back: several in a job strike one attempt after the other."""
AFTER = seconds("0", "from the start of the job (in tests: of the block) to the beginning")


@dataclass(frozen=True, slots=True)
class FaultKind:
    """A kind of fault. `keys` may be empty."""

    what: str
    outcome: str
    keys: Mapping[str, FaultKey]
    handlers: str = ""
    """Prefix of the handlers whose functions are dead while the fault lasts."""


GRID = FaultKey("", "name of the grid; empty: every grid", "a grid's name", JOB.fits)
LINE = FaultKey("0", "of the grid, from 0, or `all`", RANK.allowed, RANK.fits)
STATES = ("Admit", "Launch", "Train", "Sync", "Terminate")
LASTING = {"seconds": seconds("", "how long; empty: for ever"), "after": AFTER}
HOW_DEAD = choice("fails", "an error at once, or the function's time-out", "fails", "hangs")
HOW_AWAY = choice("fails", "an error at once, or no answer", "fails", "hangs")


def name_nearest(word: str, among: Mapping[str, object]) -> str:
    """Returns the end of a line about an unknown name: the one that is meant, and which there are, unless they are many."""
    if (near := difflib.get_close_matches(word, among, 1)) and len(among) > MOST_NAMED:
        return f" (did you mean {near[0]}?); the others: python -m rehearsal --help"
    return f"{f' (did you mean {near[0]}?)' if near else ''}; there are {', '.join(sorted(among))}"
