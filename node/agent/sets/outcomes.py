"""Decides whether the parts of a set are a checkpoint: facts in, and out the reason why they are none."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from agent.position import Position
from contract.commits import Commit, Part, SetPlan, name_checkpoint
from contract.jobs import Scope
from contract.keys import LAST_SET
from contract.roles import Role, name_rank, name_ranks

FEW, LEAST_S = 3, 600.0
"""So many sets whose parts are no checkpoint, and none that is closed, show that the trainer's ranks do not save the same; or twice as many
that a rank missed, over so many seconds."""
RANK0_ADVICE = "checkpoint_scope is rank0: shards of other ranks are committed with checkpoint_scope: auto or shards"
SHOWN = 3
"""The most shards that a sentence names."""


def explain_unnamed(writers: Sequence[int], scope: Scope, roles: Sequence[Role] = ()) -> str:
    """Why files of several ranks without the name of a checkpoint are refused, and what to do, as far as the request allows it."""
    shown = name_ranks(roles, writers[:8]) + (", ..." if len(writers) > 8 else "")
    ways = (
        "each rank that writes puts the step of its newest finished checkpoint into PROGRESS_FILE "
        '({"step": 120, "checkpoint": 120})'
    )
    if scope is Scope.SHARDS:
        ways += ", or rank 0 does so for all after a barrier"
    else:
        ways += ", or only rank 0 writes, or checkpoint_scope: rank0 in the request has only rank 0's files committed"
    return (
        f"{shown} write to CHECKPOINT_DIR in no layout that is known, and none says which of their files belong together. "
        f"Either {ways}"
    )  # fmt: skip


def list_unnamed(parts: Sequence[Commit]) -> list[int]:
    """Returns the ranks whose files may be shards of one checkpoint, where no rank says so; none where one rank alone has a checkpoint.
    What others have beside it belongs to none: logs, small texts and tables."""
    weights = [one.rank for one in parts if not one.beside] or [one.rank for one in parts]
    return weights if len(weights) > 1 else []


def is_hopeless(answered: Mapping[int, Mapping[int, Part]], *, any_closed: bool, since_s: float) -> bool:
    """Whether sets that all ranks answered show that no set of this job will ever be closed. One that a rank missed says less than one
    whose parts are no checkpoint: a rank may be late again and again. `since_s` is the age of the attempt's first set."""
    missed = sum(Part.MISSED in parts.values() for parts in answered.values())
    unfit = sum(Part.MISSED not in parts.values() and Part.FILES in parts.values() for parts in answered.values())
    return not any_closed and (unfit >= FEW or (missed >= 2 * FEW and since_s >= LEAST_S))


def judge_parts(
    plan: SetPlan,
    parts: Sequence[Commit],
    scope: Scope,
    ranks: int,
    must_have: Collection[int] = (),
    roles: Sequence[Role] = (),
) -> str:
    """Why the parts of the ranks that have files, in the order of rank, are no checkpoint, or not all of it; empty where they are. All
    `ranks` have answered, and none missed the set. `must_have`: ranks of which each has to have files. `roles`: those
    of the job, for the words."""
    writers = [one.rank for one in parts]
    if not any(one.files or one.links for one in parts):
        return "no rank has any file"
    if lacking_ranks := sorted(set(must_have) - set(writers)):
        return f"checkpoint_scope is shards, and nothing is in CHECKPOINT_DIR of {name_ranks(roles, lacking_ranks)}"
    if plan.names == 0 and plan.number != LAST_SET and (shards := list_unnamed(parts)):
        return explain_unnamed(shards, scope, roles)
    names = {one.step: one.rank for one in reversed(parts) if one.named}
    if len(names) > 1:
        each = sorted(names.items(), key=lambda one: one[1])[:8]
        shown = ", ".join(f"{name_rank(roles, rank)} {step}" for step, rank in each)
        return f"the newest checkpoints differ: {shown}"
    places = sorted({one.place for one in parts if one.place})
    if len(places) > 1:
        return f"the newest checkpoints differ: {', '.join(places[:8])}"
    if plan.layout and plan.name and (without := _find_rank_without(plan, parts, ranks, roles)):
        return without
    if lacking := sorted(set(plan.needs) - {file.path for one in parts for file in one.files}):
        return explain_lacking(plan, lacking, scope)
    return _judge_last(parts, scope, roles) if plan.number == LAST_SET and not places else ""


def find_left_out(plan: SetPlan, parts: Sequence[Commit], place: Position) -> str:
    """Why a checkpoint of rank 0 alone can never be whole: it needs shards of other ranks, which the request leaves out; empty where it
    can."""
    if place.job.checkpoint_scope is not Scope.RANK0 or place.job.nodes == 1 or not parts:
        return ""
    have = {file.path for one in parts for file in one.files}
    if lacking := sorted(set(plan.needs) - have):
        return explain_lacking(plan, lacking, Scope.RANK0)
    within = {path for path in have if plan.name and path.startswith(f"{plan.name}/")}
    if not place.job.roles and any("zero_pp_rank_" in path for path in within):
        return f"{name_checkpoint(plan.step, plan.name)} ({plan.layout}) has states on every rank; {RANK0_ADVICE}"
    return ""


def _find_rank_without(plan: SetPlan, parts: Sequence[Commit], ranks: int, roles: Sequence[Role]) -> str:
    """Which rank has to have files of the plan's checkpoint and has none; empty where there is no such rank. DeepSpeed's ZeRO has states on
    each rank, and its marker comes before a barrier."""
    having = {
        one.rank: [file.path for file in one.files if file.path == plan.name or file.path.startswith(f"{plan.name}/")]
        for one in parts
    }
    if not having.get(plan.rank):
        return f"{name_rank(roles, plan.rank)} has nothing of {plan.name} any more"
    is_sharded = any("zero_pp_rank_" in path for path in having[plan.rank])
    lacks = next((rank for rank in range(ranks) if is_sharded and not having.get(rank)), None)
    return "" if lacks is None else f"{name_rank(roles, lacks)} has no states in {plan.name}"


def explain_lacking(plan: SetPlan, lacking: Collection[str], scope: Scope) -> str:
    """Why a checkpoint whose marker lists files that no rank has is refused, and what to do."""
    first = ", ".join(sorted(lacking)[:SHOWN]) + (f" and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else "")
    advice = RANK0_ADVICE if scope is Scope.RANK0 else "each rank has to write its shards to its own CHECKPOINT_DIR"
    return f"checkpoint {plan.name or plan.step} ({plan.layout}) lists files that no rank has: {first}; {advice}"


def _judge_last(parts: Sequence[Commit], scope: Scope, roles: Sequence[Role]) -> str:
    """Why the last commits of the ranks are not of one checkpoint: each was made after its training process had ended, and before there was
    a plan. Where every command ended well, files that came after its name are of it as well."""
    namers = [one for one in parts if one.named]
    if not namers:
        shards = list_unnamed(parts)
        return explain_unnamed(shards, scope, roles) if shards else ""
    if all(one.ended_well for one in parts):
        return ""
    if beyond := [one.rank for one in parts if one.goes_beyond]:
        return f"{name_rank(roles, beyond[0])} ended with files after checkpoint {namers[0].step}, others did not"
    named_at = min(one.moment for one in namers)
    late = [one.rank for one in parts if not one.named and not one.beside and not 0.0 < one.moment <= named_at]
    return f"{name_rank(roles, late[0])} has files that are newer than checkpoint {namers[0].step}" if late else ""
