"""Decides what a rank answers about a set: facts and time in, verdict with a reason out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from agent.layouts import Shards
from agent.progress import Named
from contract.commits import SetPlan
from contract.jobs import CheckpointLayout, Scope

LAG_S = 20.0
"""A rank that has never named a checkpoint, and has nothing in its folder, may be about to write its first: trainers in lockstep begin
within this time, or an interval where that is shorter."""
WRONG_CLOCK = "the clock of a machine is wrong, so the agent cannot tell which files belong to that checkpoint"
CLOCKS_S = 4.0
"""Two machines whose clocks are right differ by no more."""
ROUNDED_S = 1e-6
"""A float has a time in UTC epoch seconds to a quarter of a microsecond; two that the kernel took from one tick of its clock are equal."""


NUMBER = re.compile(r"[1-9]\d*|0$")


class Now(Enum):
    """What a rank does about a plan now."""

    WAIT = "wait"
    COMMIT = "commit"
    NOTHING = "nothing"
    MISS = "miss"


@dataclass(frozen=True)
class Answer:
    """What to do, and why where it is a miss."""

    now: Now
    reason: str = ""


def answer(
    plan: SetPlan, named: Named | None, own: Mapping[str, float], *, empty: bool, doubt: str, scope: Scope, waited_s: float,
    every_s: float, patience_s: float, clock_is_right: bool,
) -> Answer:  # fmt: skip
    """What a rank does about `plan`: `named` is the checkpoint that its own trainer named last, `own` the files in its folder and when
    each changed, `empty` whether not even an unfinished one is there, `doubt` why files that nothing names may not be whole, `waited_s` the
    time since it saw the plan.

    A set is torn by a rank that commits another checkpoint, and by one that commits before its files are complete. A trainer that names
    its checkpoints says both. One that names none commits what was there when the rank that opened the set named its own: this is
    complete where that rank had waited for all others, as trainers with a barrier do.
    """
    if plan.names == 0 and doubt and named is None:
        return Answer(Now.MISS if waited_s > patience_s else Now.WAIT, doubt)
    if plan.names == 0:
        return Answer(Now.COMMIT if own else Now.NOTHING)
    if named is not None:
        return _of_namer(plan, named, own, overdue=waited_s > patience_s)
    if empty and (plan.names > 1 or waited_s > min(LAG_S, every_s)):
        return Answer(Now.NOTHING)
    if not empty and (plan.names > 1 or scope is Scope.SHARDS):
        return _judge_by_time(plan, own, clock_is_right=clock_is_right)
    if waited_s > patience_s:
        return Answer(Now.MISS, f"it has not named checkpoint {plan.step} in PROGRESS_FILE, as rank {plan.rank} has")
    return Answer(Now.WAIT)


def _of_namer(plan: SetPlan, named: Named, own: Mapping[str, float], *, overdue: bool) -> Answer:
    if named.step > plan.step:
        return Answer(Now.MISS, f"its trainer had finished checkpoint {named.step} when it learned of {plan.step}")
    if named.step < plan.step:
        why = f"it has not finished checkpoint {plan.step}, its newest is {named.step}"
        return Answer(Now.MISS, why) if overdue else Answer(Now.WAIT)
    if newer := newer_than(own, named.at):
        return Answer(Now.MISS, f"{newer} is newer than its checkpoint {named.step}")
    return Answer(Now.COMMIT if own else Now.NOTHING)


def _judge_by_time(plan: SetPlan, own: Mapping[str, float], *, clock_is_right: bool) -> Answer:
    if not own:
        return Answer(Now.NOTHING)
    if not (plan.named_at and clock_is_right):
        return Answer(
            Now.MISS, f"{WRONG_CLOCK}; where each rank names its checkpoints in PROGRESS_FILE it needs no clock"
        )
    if newer := newer_than(own, plan.named_at):
        return Answer(Now.MISS, f"{newer} is newer than checkpoint {plan.step} of rank {plan.rank}")
    return Answer(Now.COMMIT)


def newer_than(own: Mapping[str, float], moment: float) -> str:
    """The first file that changed after the moment; empty where none did."""
    return next((path for path, changed_s in own.items() if changed_s > moment + ROUNDED_S), "")


def answer_place(
    plan: SetPlan, shards: Shards, changes: Mapping[str, float], *, beside: bool, opened: bool, stale: str, scope: Scope,
    waited_s: float, every_s: float, patience_s: float, clock_is_right: bool,
) -> Answer:  # fmt: skip
    """What a rank does about a plan whose checkpoint has a place in a layout: `shards` are this rank's files of it, `beside` is whether it
    has files that belong to none, `opened` whether it has opened the set itself, `stale` a file of the place that is still the one of an
    earlier checkpoint in it.

    The marker comes after the bytes of all ranks, or after those of its own rank only: each framework's module says which. So a rank with
    less than it had of the checkpoint before is waited for.
    """
    if opened and not shards.files:
        return Answer(Now.MISS, f"{plan.name or 'the checkpoint'} is gone: its trainer has removed it")
    if stale:
        return Answer(Now.MISS if waited_s > patience_s else Now.WAIT, f"{stale} is still of the checkpoint before")
    if shards.files and not shards.reason:
        return _of_same_place(plan, shards, changes, clock_is_right=clock_is_right)
    waits = shards.files or shards.reason or scope is Scope.SHARDS
    if waits and waited_s > patience_s:
        return Answer(
            Now.MISS,
            shards.reason or f"it has no files of {plan.name or 'the checkpoint'}, as it had of the one before",
        )
    if waits or (plan.names == 1 and waited_s <= min(LAG_S, every_s)):
        return Answer(Now.WAIT, shards.reason or f"files of {plan.name} may still come")
    return Answer(Now.COMMIT if beside else Now.NOTHING)


def _of_same_place(plan: SetPlan, shards: Shards, changes: Mapping[str, float], *, clock_is_right: bool) -> Answer:
    """A place with the step in its name has one checkpoint, and another one has the next one's files as soon as these are written. A
    number may also be part of a name that is used again, which shows where the marker comes after the files of all ranks."""
    is_numbered = str(plan.step) in NUMBER.findall(plan.name)[-1:]
    if is_numbered and (plan.layout != CheckpointLayout.DCP or not plan.named_at or not clock_is_right):
        return Answer(Now.COMMIT)
    if not (plan.named_at and clock_is_right):
        return Answer(Now.MISS, f"{WRONG_CLOCK}; a folder with the step at the end of its name needs no clock")
    limit = plan.named_at + (CLOCKS_S if is_numbered else 0.0)
    newer = newer_than({path: at for path, at in changes.items() if path in shards.files}, limit)
    return (
        Answer(Now.MISS, f"{newer} is newer than checkpoint {plan.step} of rank {plan.rank}")
        if newer
        else Answer(Now.COMMIT)
    )


@dataclass(frozen=True)
class RankEnding:
    """What a rank has once its trainer has ended."""

    named: Named | None
    """By the trainer itself."""
    newer: str
    """A file that is newer than that name; empty for none."""
    files: bool
    """Whether it has files for the set."""
    shards: Shards | None
    """Its files of the checkpoint of the plan, where a layout has a place for it."""
    unplanned: bool
    """Whether it has files of a framework, and no rank says which checkpoint of them is whole."""
    doubt: str
    """Why its files may not be whole."""
    any_closed: bool
    saving: bool
    """Whether an unfinished file lies there."""


def answer_last(ending: RankEnding, *, ended_well: bool) -> Answer:
    """What a rank answers in the last set. A command that has ended well, by itself and with 0, has written what it wanted: all that is
    there is of its last checkpoint."""
    one = ending
    if ended_well:
        return Answer(Now.COMMIT if one.files else Now.NOTHING)
    if one.named is not None and one.newer:
        return Answer(
            Now.MISS, f"{one.newer} is newer than its checkpoint {one.named.step}: its trainer ended while it saved"
        )
    if one.unplanned:
        return Answer(Now.MISS, "no rank says which checkpoint is whole")
    if one.shards is not None and one.shards.reason:
        return Answer(Now.MISS, one.shards.reason)
    if one.doubt:
        return Answer(Now.MISS, one.doubt)
    if one.files:
        return Answer(Now.COMMIT)
    if one.named is not None and not one.named.count:
        return Answer(
            Now.MISS, f"its restored files are gone, and it has not finished a checkpoint after {one.named.step}"
        )
    if one.named is None and not one.any_closed and one.saving:
        return Answer(Now.MISS, "its trainer ended while it saved its first checkpoint")
    return Answer(Now.NOTHING)
