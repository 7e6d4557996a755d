"""Judges an attempt: all nodes' reports and instances and the time in, one verdict with its reason out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from aws.facts import ENDING, Instance, Seen
from contract import names
from contract.errors import DeadlineReached, NodeLost, TrainingFailed
from contract.jobs import Job
from contract.orders import Order, OrderKind
from contract.reports import Exit

GONE = ENDING | {"stopping", "stopped"}
"""States in which a node works no more. A stopped one has not ended, but its work has."""
UNSEEN_S = 60.0
"""An instance that EC2 does not know so long after its launch is gone. EC2 calls itself eventually consistent without a
figure; seconds are usual, so a minute, and ten of the visibility setting at most."""


class Action(str, Enum):
    """What the attendant does with Train's token."""

    HEARTBEAT = "heartbeat"
    ORDER = "order"
    """A heartbeat, and an order for the nodes."""
    SUCCEED = "succeed"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything known of an attempt, instances looked at before reports: a node that is gone reported before it went."""

    job: Job
    attempt: int
    launched_at: float
    ids: tuple[str, ...]
    """Instance ids by rank, from the intent."""
    instances: Mapping[str, Instance] | None
    """By id; None when EC2 could not be asked, which proves nothing."""
    reports: Mapping[int, Seen]
    order: Order | None = None
    console: Mapping[int, str] = field(default_factory=dict)
    """By rank, the end of the console of nodes that never reported; asked for once a verdict says that they are lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """An action with its reason."""

    action: Action
    reason: str
    error: str = ""
    order: Order | None = None
    progress: dict[str, object] = field(default_factory=dict)
    unheard: tuple[int, ...] = ()
    """Ranks that are lost without a report: only their console can say why."""


def judge(facts: Facts, *, now: float) -> Verdict:
    """One verdict over all nodes; one lost node fails the gang. Without a reason to end, a heartbeat."""
    exits = {rank: heard.report.exit for rank, heard in facts.reports.items() if heard.report.exit is not None}
    return (
        _failed(facts, exits)
        or _succeeded(facts, exits)
        or _lost(facts, exits, now)
        or _overdue(facts, now)
        or _ordered(facts, now)
        or Verdict(action=Action.HEARTBEAT, reason=_summary(facts, exits), progress=_progress(facts))
    )


def _failed(facts: Facts, exits: Mapping[int, Exit]) -> Verdict | None:
    """A node that ended with an error ends the attempt; after an order, all nodes get until its time to end by themselves."""
    bad = {rank: exit_ for rank, exit_ in exits.items() if exit_.code != 0 or exit_.error or exit_.ordered}
    unordered = {rank: exit_ for rank, exit_ in bad.items() if not exit_.ordered}
    if unordered:
        rank = min(unordered, key=lambda one: facts.reports[one].report.timeline.get("ended", float("inf")))
        exit_ = unordered[rank]
        return _fail(
            exit_.error or TrainingFailed.__name__, _cause(facts, rank, exit_, others=sorted(bad.keys() - {rank}))
        )
    if bad and len(exits) == facts.job.nodes:
        rank = min(bad)
        error = facts.order.error if facts.order else bad[rank].error or DeadlineReached.__name__
        why = facts.order.reason if facts.order else bad[rank].reason
        return _fail(error, f"{why} All {facts.job.nodes} nodes stopped as ordered. {_checkpoints(facts)}")
    return None


def _succeeded(facts: Facts, exits: Mapping[int, Exit]) -> Verdict | None:
    if len(exits) < facts.job.nodes:
        return None
    return Verdict(
        action=Action.SUCCEED, reason=f"all {facts.job.nodes} nodes ended with exit code 0", progress=_progress(facts)
    )


def _lost(facts: Facts, exits: Mapping[int, Exit], now: float) -> Verdict | None:
    for rank, id_ in enumerate(facts.ids):
        if rank not in exits and (why := _why_lost(facts, rank, id_, now)):
            error, reason = (
                (NodeLost.__name__, "") if facts.order is None else (facts.order.error, f" {facts.order.reason}")
            )
            lost = _fail(error, f"rank {rank} ({id_}) {why}.{reason} {_last_words(facts, rank)} {_checkpoints(facts)}")
            return replace(lost, unheard=() if rank in facts.reports else (rank,))
    return None


def _why_lost(facts: Facts, rank: int, id_: str, now: float) -> str:
    timing, age = facts.job.timing, now - facts.launched_at
    heard = facts.reports.get(rank)
    if facts.instances is not None:
        instance = facts.instances.get(id_)
        if instance is not None and instance.state in GONE:
            return f"is {instance.state} before its work was done ({instance.why or 'EC2 gives no reason'})"
        if instance is None and age > min(UNSEEN_S, 12 * timing.visibility_s):
            return "is unknown to EC2"
    if heard is None:
        return (
            f"has sent no report {age:.0f} s after its launch (allowed: {timing.boot_allowance_s:.0f} s)"
            if age > timing.boot_allowance_s
            else ""
        )
    if heard.age_s > timing.silence_s:
        return f"has been silent for {heard.age_s:.0f} s (allowed: {timing.silence_s:.0f} s)"
    return ""


def _overdue(facts: Facts, now: float) -> Verdict | None:
    """Past an order's time, or past the deadline: the nodes had their chance."""
    grace = facts.job.timing.silence_s
    if facts.order is not None and now > facts.order.by + grace:
        return _fail(
            facts.order.error,
            f"{facts.order.reason} Nodes were still running {now - facts.order.by:.0f} s later. {_checkpoints(facts)}",
        )
    if now > facts.job.deadline + grace:
        return _fail(
            DeadlineReached.__name__, f"The job's {facts.job.max_hours:g} hours are over. {_checkpoints(facts)}"
        )
    return None


def _ordered(facts: Facts, now: float) -> Verdict | None:
    """The one order of an attempt, created once: a last checkpoint ahead of the deadline."""
    if facts.order is not None or now < facts.job.stop_at:
        return None
    order = Order(
        kind=OrderKind.CHECKPOINT_AND_STOP,
        error=DeadlineReached.__name__,
        reason=f"The job's {facts.job.max_hours:g} hours are over.",
        by=facts.job.deadline,
        author="attendant",
    )
    return Verdict(action=Action.ORDER, reason="its deadline is near", order=order, progress=_progress(facts))


def _fail(error: str, reason: str) -> Verdict:
    return Verdict(action=Action.FAIL, error=error, reason=reason.strip())


def _cause(facts: Facts, rank: int, exit_: Exit, *, others: list[int]) -> str:
    """For a person: what happened, the last lines, where the whole log is."""
    also = f" (so did ranks {', '.join(map(str, others))})" if others else ""
    lines = [f"{exit_.reason or f'rank {rank}: the command exited with code {exit_.code}'}{also}."]
    if exit_.tail:
        lines += ["Last lines of its output:", *(f"  {line}" for line in exit_.tail)]
    stream = names.log_stream(facts.job.id, facts.attempt, rank)
    return "\n".join([*lines, f"The whole log: log group {facts.job.log_group}, stream {stream}."])


def _last_words(facts: Facts, rank: int) -> str:
    heard = facts.reports.get(rank)
    if heard is None:
        return f"It never reported.{facts.console.get(rank, '')}"
    report = heard.report
    return f"Its last report, {heard.age_s:.0f} s old, said: {report.phase.value}{f', {report.note}' if report.note else ''}."


def _checkpoints(facts: Facts) -> str:
    steps = [heard.report.checkpoint_step for heard in facts.reports.values() if heard.report.checkpoint]
    return f"The newest checkpoint is of step {max(steps)}." if steps else "There is no checkpoint of this attempt."


def _summary(facts: Facts, exits: Mapping[int, Exit]) -> str:
    phases = [
        facts.reports[rank].report.phase.value if rank in facts.reports else "booting"
        for rank in range(facts.job.nodes)
    ]
    counts = ", ".join(f"{phases.count(phase)} {phase}" for phase in dict.fromkeys(phases))
    return f"{counts}; {len(exits)} of {facts.job.nodes} have ended"


def _progress(facts: Facts) -> dict[str, object]:
    """What the execution shows of the training: the progress of the lowest rank that reports one."""
    for rank in sorted(facts.reports):
        report = facts.reports[rank].report
        if report.progress is not None:
            progress = report.progress
            return {
                "step": progress.step,
                "world_size": progress.world_size,
                "metric": progress.metric,
                "restored_step": report.restored_step,
            }
    return {}
