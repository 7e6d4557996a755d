"""Decides when a rank opens a set, how often it looks for one, and what it answers: facts and time in, verdict with a reason out."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from agent.layouts import Shards
from agent.position import Position
from agent.progress import Named
from agent.sets.recognising import Saved
from agent.snapshot import FileState
from contract.commits import Part, SetPlan, name_checkpoint
from contract.jobs import CheckpointLayout, Scope

LAG_S = 20.0
"""A rank that has never named a checkpoint, and has nothing in its folder, may be about to write its first: trainers in lockstep begin
within this time, or an interval where that is shorter."""
WRONG_CLOCK = "the clock of a machine is wrong, so the agent cannot tell which files belong to that checkpoint"
CLOCKS_S = 4.0
"""Two machines whose clocks are right differ by no more."""
ROUNDED_S = 1e-6
"""A float has a time in UTC epoch seconds to a quarter of a microsecond; two that the kernel took from one tick of its clock are equal."""
POLL_S, LONGEST_POLL_S, POLL_SHARE = 5.0, 300.0, 0.05
"""Between looks for a plan: a share of the time since it was due, within these bounds, of which the first is smaller in short intervals."""
LONGEST_LOOK_S, GOLDEN = 10.0, 0.6180339887498949
"""Between looks at the folder, which ask S3 nothing. They are of varied length, so that no trainer's rhythm hides from all of them."""
FRESH_SHARE = 0.2
"""Of the time between two checkpoints: for so long other ranks surely have the newest one as well."""
OTHERS_FIRST = 0.9
"""Share of the interval for which rank 0, without files, leaves it to others to open a set."""
NUMBER = re.compile(r"[1-9]\d*|0$")


@dataclass(frozen=True)
class Answer:
    """What a rank does about a plan now, and why where it waits or misses the set."""

    part: Part | None
    """None where it waits."""
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class AnsweringRank:
    """A rank that answers a plan, and what it has for it."""

    plan: SetPlan
    place: Position
    saved: Saved
    shards: Shards | None
    """Its files of the plan's checkpoint, where a layout has a place for it."""
    doubt: str = ""
    """Why its files may not be whole yet, or not those of that checkpoint, where no name says so."""
    is_saving: bool = False
    """Whether an unfinished file lies there."""
    any_closed: bool = False
    """Whether it knows of a closed set of its attempt."""
    waited_s: float
    """Since it saw the plan; infinite once its trainer has ended."""
    clock_is_right: bool = True

    @property
    def has_ended(self) -> bool:
        return math.isinf(self.waited_s)

    @property
    def lags(self) -> bool:
        """Whether it may be about to write its first files."""
        return self.waited_s <= min(LAG_S, self.place.every_s)

    @cached_property
    def chosen(self) -> Sequence[FileState]:
        """What it would commit."""
        return self.saved.choose(self.plan, self.shards)

    @cached_property
    def has_nothing_to_say(self) -> bool:
        """Whether it has none, or only what is no part of a checkpoint; where the request wants files of it, whatever it has is a part."""
        wanted = self.place.rank in self.place.must_have
        return not self.chosen or (
            not wanted and self.saved.word is None and all(map(self.saved.is_beside, self.chosen))
        )

    @property
    def files(self) -> Mapping[str, float]:
        """The same by path: when each changed, UTC epoch seconds by its machine's clock."""
        return {one.path: self.saved.changes.get(one.path, 0.0) for one in self.chosen}


def answer(rank: AnsweringRank) -> Answer:
    """What a rank does about a plan with what it has. A rank that would wait for too long misses the set.

    A set is torn by a rank that commits another checkpoint, and by one that commits before its files are complete. A trainer that names
    its checkpoints says both. In a layout the marker comes after the bytes of all ranks, or after those of its own rank only: each
    framework's module says which, so a rank with less than it had of the checkpoint before is in doubt. One that has neither commits
    what was there when the rank that opened the set named its own: this is complete where that rank had waited for all others, as
    trainers with a barrier do. A command that has ended well has written what it wanted.
    """
    if rank.saved.unfit:
        return Answer(Part.MISSED, rank.saved.unfit)
    found = None if rank.saved.ended_well else _find_obstacle(rank)
    if found is None:
        return Answer(Part.FILES if rank.files else Part.NOTHING)
    is_over = found.part is None and rank.waited_s > rank.place.patience_s
    return Answer(Part.MISSED, found.reason) if is_over else found


def answer_again(before: AnsweringRank, rank: AnsweringRank) -> Answer:
    """The same once the files are open, of a rank that had them all `before`."""
    verdict, began = answer(rank), f"the commit of {name_checkpoint(rank.plan.step, rank.plan.name)} began"
    if before.shards and rank.shards and (gone := before.shards.files - rank.shards.files):
        return Answer(Part.MISSED, f"{min(gone)} was removed while {began}")
    if verdict.part is Part.NOTHING and not rank.chosen:
        return Answer(Part.MISSED, f"all files were removed while {began}")
    return (
        verdict
        if verdict.part in (Part.FILES, Part.NOTHING)
        else replace(verdict, reason=f"{verdict.reason}, as {began}")
    )


def _find_obstacle(rank: AnsweringRank) -> Answer | None:
    """What keeps a rank from saying that it has these files, or none; None where nothing does."""
    plan, word = rank.plan, rank.saved.word
    if rank.saved.has_left(plan):
        return Answer(Part.MISSED, f"its trainer had gone on from {plan.name} when it learned of that")
    if rank.doubt:
        is_unnamed = plan.names == 0 and not plan.layout and not rank.saved.recognised.layout
        is_beside = rank.place.ranks > 1 and is_unnamed and rank.chosen and rank.has_nothing_to_say
        return Answer(Part.NOTHING) if is_beside else Answer(None, rank.doubt)
    if word is not None:
        return _judge_word(rank, word)
    if not rank.files and rank.has_ended and rank.is_saving and not rank.any_closed:
        return Answer(Part.MISSED, "its trainer ended while it saved its first checkpoint")
    if rank.shards is not None:
        return _judge_place(rank, rank.shards.files)
    return _judge_silent(rank) if plan.names > 0 else None


def _judge_word(rank: AnsweringRank, word: Named) -> Answer | None:
    """The same for a rank whose own trainer names its checkpoints."""
    step, must_match = rank.plan.step, rank.plan.names > 0 or rank.has_ended
    if must_match and word.step > step:
        return Answer(Part.MISSED, f"its trainer had finished checkpoint {word.step} when it learned of {step}")
    if must_match and word.step < step:
        return Answer(None, f"it has not finished checkpoint {step}, its newest is {word.step}")
    if newer := newer_than(rank.files, word.at):
        why = ": its trainer ended while it saved" if rank.has_ended else ""
        return Answer(Part.MISSED, f"{newer} is newer than its checkpoint {word.step}{why}")
    if must_match and not rank.files and not word.count:
        return Answer(Part.MISSED, f"its restored files are gone, and it has not finished a checkpoint after {step}")
    return None


def _judge_silent(rank: AnsweringRank) -> Answer | None:
    """The same for a rank whose trainer names none, where another rank's does."""
    plan = rank.plan
    if plan.names == 1 and not rank.has_ended:  # its own trainer may be about to name its first one
        if rank.has_nothing_to_say and not rank.is_saving:
            return Answer(None) if rank.lags else None
        if rank.place.rank not in rank.place.must_have:
            return Answer(
                None, f"it has not named checkpoint {plan.step} in PROGRESS_FILE, as {rank.place.name(plan.rank)} has"
            )
    if rank.has_nothing_to_say:
        return None
    advice = "where each rank names its checkpoints in PROGRESS_FILE it needs no clock"
    return _judge_time(rank, rank.files, plan.named_at, advice)


def _judge_place(rank: AnsweringRank, shards: Collection[str]) -> Answer | None:
    """The same for a checkpoint that has a place in a layout. A place with the step in its name has one checkpoint, and another one has the
    next one's files as soon as these are written. A number may also be part of a name that is used again, which shows where the marker
    comes after the files of all ranks."""
    plan, opened = rank.plan, rank.plan.rank == rank.place.rank
    if not shards and opened:
        return Answer(Part.MISSED, f"{plan.name or 'the checkpoint'} is gone: its trainer has removed it")
    if not shards:
        must_have = rank.place.rank in rank.place.must_have
        why = f"it has no files of {plan.name or 'the checkpoint'} yet"
        return Answer(None, why) if must_have or (plan.names == 1 and rank.lags) else None
    is_numbered = str(plan.step) in NUMBER.findall(plan.name)[-1:]
    is_timed = plan.layout == CheckpointLayout.DCP and plan.named_at and rank.clock_is_right
    if (is_numbered and not is_timed) or (opened and rank.has_ended):
        return None
    limit = plan.named_at + (CLOCKS_S if is_numbered else 0.0)
    return _judge_time(rank, shards, limit, "a folder with the step at the end of its name needs no clock")


def _judge_time(rank: AnsweringRank, paths: Collection[str], limit: float, advice: str) -> Answer | None:
    """The same for files of which only their time says whether they are of the checkpoint that another rank named."""
    plan = rank.plan
    if paths and not (plan.named_at and rank.clock_is_right):
        return Answer(Part.MISSED, f"{WRONG_CLOCK}; {advice}")
    newer = newer_than({path: at for path, at in rank.files.items() if path in paths}, limit)
    why = f"{newer} is newer than {name_checkpoint(plan.step, plan.name)} of {rank.place.name(plan.rank)}"
    return Answer(Part.MISSED, why) if newer else None


def newer_than(own: Mapping[str, float], moment: float) -> str:
    """The first file that changed after the moment; empty where none did."""
    return next((path for path, changed_s in own.items() if changed_s > moment + ROUNDED_S), "")


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


def look_s(since_s: float, every_s: float, now: float) -> float:
    """Pause before the next look at the folder for a set that was due `since_s` ago, where one is due every `every_s`."""
    return min(poll_s(since_s, every_s), LONGEST_LOOK_S) * (0.6 + 0.4 * (now * GOLDEN % 1.0))


def poll_s(since_s: float, every_s: float) -> float:
    """Pause before the next look for a plan that was due `since_s` ago, where one is due every `every_s`."""
    return min(max(min(POLL_S, POLL_SHARE * every_s), POLL_SHARE * since_s), LONGEST_POLL_S)
