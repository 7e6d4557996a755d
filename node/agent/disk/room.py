"""Decides whether a disk will be too small, before it is: figures in, a sentence with the `volume_gb` that would fit out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

GIB = 1024**3
FEW = 3
"""So many checkpoints ahead a shortage is told: there is time to start anew before all of the work is lost."""
SOON_S = 1800.0
"""So long ahead it is told where no checkpoint is named."""
LONGER_S = 3600.0
"""How much longer a disk is to last where the amount to come is unknown."""
LOW = 0.05
LOW_BYTES = 5 * GIB
"""A disk is nearly full with less than this share, and less than these bytes, free."""
STEADY = 0.05
"""A trainer that gives up less room than this share of a checkpoint removes the old ones."""
PACE_LEAST_S = 120.0
"""How long room has to be seen falling before its pace counts: a file that is written and removed is no pace."""
MARGIN = 1.1
"""A volume of N GiB has a file system of a little less, and no two checkpoints are equal."""
MOST_GB = 65_536
"""The largest gp3 volume, in GiB (EC2's API model, `EbsBlockDevice$VolumeSize`)."""


@dataclass(frozen=True, kw_only=True)
class Room:
    """A disk at one moment, in bytes."""

    size: int
    free: int
    beside: int = 0
    """What the root volume holds beside it, and would hold as well if it were used instead: 0 where it is the root volume."""
    what: str = "the root volume"


@dataclass(frozen=True, kw_only=True)
class Naming:
    """A moment at which the trainer had just named a checkpoint."""

    count: int
    """How many it had named."""
    at: float
    """UTC epoch seconds."""
    free: int


@dataclass(frozen=True, kw_only=True)
class Habit:
    """How the trainer saves."""

    count: int = 0
    """How many checkpoints it has named."""
    size: int = 0
    """Bytes of the newest; 0 where that is unknown."""
    kept: float = 0.0
    """Bytes by which the room shrinks from one checkpoint to the next."""
    period_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Shortage:
    """A disk that will be too small."""

    kind: str
    left: float
    """How much is left: checkpoints, seconds or bytes, by kind."""
    gb: int
    """The least `volume_gb` that would fit."""
    text: str


def habit(namings: Sequence[Naming], size: int) -> Habit:
    """Returns what the newest namings, in their order, tell about the trainer; `size` is of the newest checkpoint."""
    if not namings:
        return Habit()
    first, last = namings[0], namings[-1]
    steps = last.count - first.count
    if steps < 1:
        return Habit(count=last.count, size=size)
    kept, period_s = max(0.0, (first.free - last.free) / steps), max(0.0, (last.at - first.at) / steps)
    return Habit(count=last.count, size=size, kept=kept, period_s=period_s)


def pace(seen: Sequence[tuple[float, int]]) -> float:
    """Returns by how many bytes a second the room shrinks, of looks (seconds, bytes free) in their order; 0 where it does not, and
    where that was not seen for long enough."""
    if not seen:
        return 0.0
    (began, before), (ended, after) = seen[0], seen[-1]
    return max(0.0, (before - after) / (ended - began)) if ended - began >= PACE_LEAST_S else 0.0


def shortage(room: Room, habit: Habit, pace: float, left_s: float, volume_gb: int) -> Shortage | None:
    """Returns what will be missing within `left_s`, the seconds until the job's deadline; None while nothing will.

    Named checkpoints say more than the pace, and both say more than how full the disk is.
    """
    found = _of_checkpoints(room, habit, left_s, volume_gb) if habit.count else _of_pace(room, pace, left_s, volume_gb)
    return found or _of_room(room, volume_gb)


def is_news(now: Shortage, before: Shortage | None) -> bool:
    """Whether a shortage is to be told, after the last one of its kind that was: the first, less than half as much left, or a quarter
    more to ask for."""
    return before is None or now.left < before.left / 2 or now.gb > before.gb * 1.25


def _of_checkpoints(room: Room, habit: Habit, left_s: float, volume_gb: int) -> Shortage | None:
    if not habit.size:
        return None
    used = room.size - room.free
    if habit.count == 1:
        if room.free >= habit.size:
            return None
        text = f"{room.what} has no room for a second checkpoint beside the first ({_gib(habit.size)}; {_free(room)})"
        return _describe_shortage("checkpoints", 0, text, used + habit.size, room, volume_gb)
    due = int(left_s / habit.period_s) if habit.period_s > 0 else 0
    if habit.kept <= STEADY * habit.size:
        return None
    fit = 1 + int((room.free - habit.size) / habit.kept) if room.free >= habit.size else 0
    if fit > FEW or fit >= due:
        return None
    text = (
        f"{room.what} holds {fit} more checkpoint{'' if fit == 1 else 's'} ({_gib(habit.size)} each; {_free(room)}), and until the "
        f"job's deadline there is time for {due}: keep fewer"
    )
    return _describe_shortage("checkpoints", fit, text, used + habit.size + habit.kept * (due - 1), room, volume_gb)


def _of_pace(room: Room, pace: float, left_s: float, volume_gb: int) -> Shortage | None:
    if pace <= 0 or (full_s := room.free / pace) > min(SOON_S, left_s):
        return None
    text = f"{room.what} is full in {max(1, round(full_s / 60))} min at the pace of the last minutes ({_free(room)}): write less"
    return _describe_shortage(
        "pace", full_s, text, room.size - room.free + pace * min(left_s, LONGER_S), room, volume_gb
    )


def _of_room(room: Room, volume_gb: int) -> Shortage | None:
    if room.free >= min(LOW * room.size, LOW_BYTES):
        return None
    return _describe_shortage(
        "room", room.free, f"{room.what} is nearly full ({_free(room)}): write less", room.size * 1.25, room, volume_gb
    )


def _describe_shortage(kind: str, left: float, text: str, need: float, room: Room, volume_gb: int) -> Shortage:
    least = max(volume_gb + 1, math.ceil(round((need + room.beside) * MARGIN / GIB, 3)))
    gb = math.ceil(least / 10) * 10
    instead = ", which is then used instead" if room.beside else ""
    way = (
        f", or ask for volume_gb of at least {gb}{instead}"
        if gb <= MOST_GB
        else "; no volume is as large as this needs"
    )
    return Shortage(kind=kind, left=left, gb=gb, text=f"{text}{way}")


def _free(room: Room) -> str:
    return f"{room.free / GIB:.1f} of {_gib(room.size)} free"


def _gib(size: float) -> str:
    return f"{size / GIB:.1f} GiB"
