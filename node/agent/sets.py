"""Decides what a rank does about a set, and whether its parts are a checkpoint: facts in, verdict with a reason out.

In a set the ranks commit the same checkpoint. The rank that opens it writes a plan, which names the checkpoint; each rank answers
with a part; whoever answers last closes it (docs/decisions/checkpoints.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from agent.progress import Named
from contract.commits import Commit, Part, SetPlan
from contract.jobs import Scope

LAG_S = 20.0
"""A rank that has never named a checkpoint, and has nothing in its folder, may be about to write its first: trainers in lockstep begin
within this time, or an interval where that is shorter."""
POLL_S, LONGEST_POLL_S, POLL_SHARE = 5.0, 300.0, 0.05
"""Between looks for a plan: a share of the time since it was due, within these bounds, of which the first is smaller in short intervals."""
RESTS_S = 10.0
"""A trainer that has not changed its files for so long has finished them, and would have named them by now."""
FRESH_SHARE = 0.2
"""Of the time between two checkpoints: for so long other ranks surely have the newest one as well."""
OTHERS_FIRST = 0.9
"""Share of the interval for which rank 0, without files, leaves it to others to open a set."""
ROUNDED_S = 1e-6
"""A float has a time in UTC epoch seconds to a quarter of a microsecond; two that the kernel took from one tick of its clock are equal."""
FEW, LEAST_S = 3, 600.0
"""So many sets whose parts are no checkpoint, and none that is closed, show that the trainer's ranks do not save the same; or twice as many
that a rank missed, over so many seconds."""


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
    plan: SetPlan, named: Named | None, own: Mapping[str, float], *, empty: bool, scope: Scope, waited_s: float,
    every_s: float, patience_s: float, clock_is_right: bool,
) -> Answer:  # fmt: skip
    """What a rank does about `plan`: `named` is the checkpoint that its own trainer named last, `own` the files in its folder and when
    each changed, `empty` whether not even an unfinished one is there, `waited_s` the time since it saw the plan.

    A set is torn by a rank that commits another checkpoint, and by one that commits before its files are complete. A trainer that names
    its checkpoints says both. One that names none commits what was there when the rank that opened the set named its own: this is
    complete where that rank had waited for all others, as trainers with a barrier do.
    """
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
            Now.MISS, "the clock of a machine is wrong, so the agent cannot tell which files belong to that checkpoint"
        )
    if newer := newer_than(own, plan.named_at):
        return Answer(Now.MISS, f"{newer} is newer than checkpoint {plan.step} of rank {plan.rank}")
    return Answer(Now.COMMIT)


def waits_for_next(named: Named, now: float, due: float, every_s: float, scope: Scope) -> bool:
    """Whether to open the set with the trainer's next checkpoint and not with `named`, which the other ranks may be about to replace:
    where it is not fresh, and the next one is near. Nor with the first one, while the next may be near: only from the second one on do
    ranks know who names, unless the request says that all have files. Times are of the machine's clock."""
    if named.count == 1 and scope is Scope.AUTO:
        return now < due + every_s / 2
    if named.at >= due or named.period_s <= 0.0 or now - named.at < FRESH_SHARE * named.period_s:
        return False
    next_at = named.at + named.period_s
    return next_at - due < every_s / 2 and now < next_at + named.period_s


def newer_than(own: Mapping[str, float], moment: float) -> str:
    """The first file that changed after the moment; empty where none did."""
    return next((path for path, changed_s in own.items() if changed_s > moment + ROUNDED_S), "")


def poll_s(since_s: float, every_s: float) -> float:
    """Pause before the next look for a plan that was due `since_s` ago, where one is due every `every_s`."""
    return min(max(min(POLL_S, POLL_SHARE * every_s), POLL_SHARE * since_s), LONGEST_POLL_S)


class Result(Enum):
    """What a set has come to."""

    OPEN = "open"
    CLOSED = "closed"
    EMPTY = "empty"
    """No rank has any file."""
    MISSED = "missed"
    REFUSED = "refused"


@dataclass(frozen=True)
class Outcome:
    """What a set has come to, and why where it is refused."""

    state: Result
    reason: str = ""


def outcome(parts: Mapping[int, Part], *, ranks: int, named: bool, scope: Scope) -> Outcome:
    """What the parts of a set make of it. `ranks` answer in it; `named` is whether its plan names a checkpoint."""
    if len(parts) < ranks:
        return Outcome(Result.OPEN)
    if Part.MISSED in parts.values():
        return Outcome(Result.MISSED)
    writers = sorted(rank for rank, part in parts.items() if part is Part.FILES)
    if not writers:
        return Outcome(Result.EMPTY)
    if scope is Scope.SHARDS and len(writers) < ranks:
        without = ", ".join(str(rank) for rank in sorted(parts) if rank not in writers)
        return Outcome(
            Result.REFUSED, f"checkpoint_scope is shards, and these ranks have nothing in CHECKPOINT_DIR: {without}"
        )
    if not named and len(writers) > 1:
        return Outcome(Result.REFUSED, unnamed(writers))
    return Outcome(Result.CLOSED)


def unnamed(writers: Sequence[int]) -> str:
    """Why files of several ranks without the name of a checkpoint are refused, and what to do."""
    shown = ", ".join(map(str, writers[:8])) + (", ..." if len(writers) > 8 else "")
    return (
        f"ranks {shown} write to CHECKPOINT_DIR, and none says which of their files belong together. Either each rank that writes puts the "
        'step of its newest finished checkpoint into PROGRESS_FILE ({"step": 120, "checkpoint": 120}), or only rank 0 writes, or '
        "the request has checkpoint_scope: rank0, so that only rank 0's files are committed"
    )


def is_hopeless(answered: Mapping[int, Mapping[int, Part]], *, any_closed: bool, since_s: float) -> bool:
    """Whether sets that all ranks answered show that no set of this job will ever be closed. One that a rank missed says less than one
    whose parts are no checkpoint: a rank may be late again and again. `since_s` is the age of the attempt's first set."""
    missed = sum(Part.MISSED in parts.values() for parts in answered.values())
    unfit = sum(Part.MISSED not in parts.values() and Part.FILES in parts.values() for parts in answered.values())
    return not any_closed and (unfit >= FEW or (missed >= 2 * FEW and since_s >= LEAST_S))


def agreed(parts: Sequence[Commit]) -> Outcome:
    """Whether the last commits of the ranks, each made after its training process had ended, are of one checkpoint. Where every command
    ended well, files that came after its name are of it as well."""
    namers, others = [one for one in parts if one.named], [one for one in parts if not one.named]
    if len({one.step for one in namers}) > 1:
        steps = ", ".join(f"rank {one.rank} {one.step}" for one in namers[:8])
        return Outcome(Result.MISSED, f"the newest checkpoints differ: {steps}")
    if not namers:
        return (
            Outcome(Result.CLOSED)
            if len(others) == 1
            else Outcome(Result.REFUSED, unnamed([one.rank for one in others]))
        )
    if all(one.ended_well for one in parts):
        return Outcome(Result.CLOSED)
    if beyond := [one.rank for one in parts if one.goes_beyond]:
        return Outcome(
            Result.MISSED, f"rank {beyond[0]} ended with files after checkpoint {namers[0].step}, others did not"
        )
    named_at = min(one.moment for one in namers)
    late = [one.rank for one in others if not named_at or not one.moment or one.moment > named_at]
    if late:
        return Outcome(Result.MISSED, f"rank {late[0]} has files that are newer than checkpoint {namers[0].step}")
    return Outcome(Result.CLOSED)
