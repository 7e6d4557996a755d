"""Judges an attempt: all nodes' reports and instances and the time in, one verdict with its reason out.

A cause explains its effects: a lost node explains the errors of its peers, an order the exits that it caused, and the code's
earliest error those that follow it (docs/decisions/verdicts.md has the rules).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from attendant import roles, words
from attendant.ages import CheckpointAge, checkpoint_age
from attendant.causes import Cause, format_cause
from attendant.costs import RunningCost
from attendant.facts import SURE_S, AttemptFacts, MissingAttempt
from attendant.phases import find_slow
from attendant.points import JobPoint
from attendant.silence import find_lost
from attendant.stalls import DUMP_S, StallFacts, find_stall
from attendant.unhealthy import before_training, find_examining, find_unhealthy
from contract.errors import (
    BY_NAME,
    BudgetExceeded,
    DeadlineReached,
    Interrupted,
    NodeLost,
    NodeUnhealthy,
    RetriedExit,
    RoleRefused,
    Stalled,
    TrainingFailed,
)
from contract.jobs import Reaction
from contract.orders import Order, OrderKind
from contract.reports import Phase
from contract.roles import name_author
from contract.sessions import LASTS_S

SAVED_S = LASTS_S / 6
"""So long before the nodes' credentials expire a last checkpoint is ordered, where STS refuses new ones: ten minutes."""


class Action(str, Enum):
    """What the attendant does with Train's token."""

    HEARTBEAT = "heartbeat"
    AWAIT = "await"
    """A heartbeat: a command has failed, and a look some seconds later may find out why."""
    ORDER = "order"
    """A heartbeat, and an order for the nodes."""
    SUCCEED = "succeed"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """An action with its reason."""

    action: Action
    reason: str
    error: str = ""
    order: Order | None = None
    released: tuple[int, ...] = ()
    """Ranks whose order it is alone, because the job is done; empty for an order to all."""
    progress: dict[str, object] = field(default_factory=dict)
    unheard: tuple[int, ...] = ()
    """The lost rank that ends the attempt, if it never reported: only its console can say why."""
    awaits: str = ""
    """The instance whose error is not explained yet."""
    checkpoint: CheckpointAge | None = None
    """Of an attempt that trains on."""
    unhealthy: Mapping[int, str] = field(default_factory=dict)
    """Ranks because of whose machines the attempt ends, and what is wrong with each."""
    stall: StallFacts | None = None
    """Of an attempt that makes no progress, trains on all the same, and of which people have to know."""
    cost: RunningCost | None = None
    """Of an attempt that goes on."""
    point: JobPoint | None = None
    """For the job's page; nothing is judged by it."""

    @property
    def ends(self) -> bool:
        """Whether the attempt is over with it."""
        return self.action in (Action.SUCCEED, Action.FAIL)


def judge(facts: AttemptFacts | MissingAttempt, *, now: float) -> Verdict:
    """Returns one verdict over all nodes: a heartbeat, unless there is a reason to end. One lost node fails the whole attempt."""
    if isinstance(facts, MissingAttempt):
        return _fail(NodeLost.__name__, facts.why)
    verdict = _blame_money(facts, _judge_nodes(facts, find_lost(facts, now), now))
    return verdict if verdict.ends else replace(verdict, cost=facts.cost)


def find_unheard(facts: AttemptFacts, *, now: float) -> tuple[int, ...]:
    """Returns the rank whose loss ends the attempt, if it has never reported: only its console can say why."""
    if all(rank in facts.nodes for rank in find_lost(facts, now)):
        return ()
    return judge(facts, now=now).unheard


def _judge_nodes(facts: AttemptFacts, every: Mapping[int, str], now: float) -> Verdict:
    lost = {rank: why for rank, why in every.items() if roles.is_needed(facts, rank)}
    failed = _judge_errors(facts, lost)
    if failed is not None and failed.action is Action.AWAIT:
        # An error that a node reports anew each second must not keep an attempt from its deadline.
        failed = _judge_deadline(facts, now) or failed
    return (
        _judge_success(facts, every, now)
        or _judge_role(facts)
        or _judge_session(facts)
        or failed
        or _judge_losses(facts, lost)
        or _judge_left(facts)
        or _judge_starts(facts)
        or _judge_stop(facts)
        or _judge_deadline(facts, now)
        or _judge_phases(facts)
        or _order_checkpoint(facts, now)
        or _order_before_expiry(facts, now)
        or _judge_stall(facts, now)
        or _let_train(facts, now)
    )


def _blame_money(facts: AttemptFacts, verdict: Verdict) -> Verdict:
    """Names the money as the cause where it set the deadline: a node knows its deadline alone."""
    if verdict.error != DeadlineReached.__name__ or not facts.job.money_ends:
        return verdict
    cause = words.over(facts.job)
    reason = verdict.reason if cause in verdict.reason else f"{cause} {verdict.reason}"
    return replace(verdict, error=BudgetExceeded.__name__, reason=reason)


def _let_train(facts: AttemptFacts, now: float) -> Verdict:
    return Verdict(
        action=Action.HEARTBEAT,
        reason=words.summary(facts),
        progress=words.progress(facts),
        checkpoint=checkpoint_age(facts, now=now),
    )


def _judge_success(facts: AttemptFacts, lost: Mapping[int, str], now: float) -> Verdict | None:
    """Ends the attempt well once every node that decides has, and the others have been stopped or waited for."""
    done = roles.find_completion(facts, lost, now)
    if done is None:
        return None
    if done.to_stop:
        order = roles.release(now, facts.job.timing.stop_grace_s)
        return Verdict(
            action=Action.ORDER, reason=order.reason, order=order, released=done.to_stop, progress=words.progress(facts)
        )
    action = Action.HEARTBEAT if done.awaited else Action.SUCCEED
    return Verdict(action=action, reason=words.done(facts, done.awaited), progress=words.progress(facts))


def _judge_role(facts: AttemptFacts) -> Verdict | None:
    """Fails an attempt whose training never got the role that the request names, because STS has denied it for so long. It comes before
    losses: another attempt would meet the same. A training that had the role goes on without."""
    known = facts.sessions
    if known.training_until or known.refused_last - known.refused_from < facts.job.timing.role_patience_s:
        return None
    return _fail(RoleRefused.__name__, words.refused_role(facts)) if known.refused_from and facts.job.job_role else None


def _judge_session(facts: AttemptFacts) -> Verdict | None:
    """Fails an attempt whose nodes never got credentials, because STS has refused the job's session for so long."""
    refused = _is_refused(facts) and not facts.sessions.since
    return _fail(RoleRefused.__name__, words.refused_session(facts)) if refused else None


def _is_refused(facts: AttemptFacts) -> bool:
    """Whether STS has refused the job's own session for longer than its patience."""
    known = facts.sessions
    refused_s = known.own_refused_last - known.own_refused_from
    return known.own_refused_from > 0 and refused_s >= facts.job.timing.role_patience_s


def _judge_errors(facts: AttemptFacts, lost: Mapping[int, str]) -> Verdict | None:
    """Judges the first error that no order and no machine explains. It is the code's own only once every other node has ended, or has
    reported after it: until then one of them may be lost, and the error may only be a broken connection."""
    bad = [
        rank for rank, end in facts.ends.items() if roles.is_bad(end) and not end.ordered and not _of_order(facts, rank)
    ]
    errors = [rank for rank in bad if roles.is_judged(facts, rank)]
    if verdict := _judge_machines(facts, errors):
        return verdict
    if not errors:
        return None
    if (rank := find_examining(facts, errors)) is not None:
        return Verdict(
            action=Action.AWAIT,
            reason=words.examining(facts, rank),
            progress=words.progress(facts),
            awaits=facts.ids[rank],
        )
    first = _find_first(facts, errors)
    end, others = facts.ends[first], sorted(facts.ends.keys() - {first})
    if end.error == NodeLost.__name__:
        return _fail(NodeLost.__name__, words.own_failure(facts, first, others), words.checkpoints(facts))
    if "started" in facts.nodes[first].report.timeline:  # before its start, code depends on no other node
        since_s = roles.count_settled_s(facts, first)
        unheard = sorted({*roles.list_unheard(facts, since_s=since_s), *roles.list_failing(facts, first)})
        for rank in unheard:
            if rank in lost:
                return _fail_lost(facts, rank, lost[rank])
        if unheard:
            return Verdict(
                action=Action.AWAIT,
                reason=words.waiting(facts, first, unheard),
                progress=words.progress(facts),
                awaits=facts.ids[first],
            )
    return _fail(_name_error(facts, first), words.own_failure(facts, first, others))


def _judge_machines(facts: AttemptFacts, errors: list[int]) -> Verdict | None:
    """Fails an attempt that has an unhealthy machine, before its training begins or once a command has failed beside it: the machine
    explains errors of all ranks. One that trains on although something is wrong with it ends nothing, nor does one under an order."""
    wrong = {rank: why for rank, why in find_unhealthy(facts).items() if roles.is_needed(facts, rank)}
    early = before_training(facts, wrong) if facts.obeyed is None else []
    if not early and not (wrong and errors):
        return None
    verdict = _fail(NodeUnhealthy.__name__, words.unhealthy(facts, wrong, errors), words.checkpoints(facts))
    return replace(verdict, unhealthy=wrong)


def _name_error(facts: AttemptFacts, rank: int) -> str:
    """Names the rank's own error. Only the exit code of a command that has started can match `retries.exit_codes`."""
    end = facts.ends[rank]
    error = end.error or TrainingFailed.__name__
    began = "started" in facts.nodes[rank].report.timeline
    retried = error == TrainingFailed.__name__ and began and facts.job.retries.wants(end.code)
    return RetriedExit.__name__ if retried else error


def _find_first(facts: AttemptFacts, ranks: list[int]) -> int:
    """Returns the rank whose error came first by AWS's clock. Among errors too close to tell, one that a node reports as NodeLost explains
    the others; otherwise the nodes' own clocks decide."""
    earliest = max(facts.nodes[rank].failed_s for rank in ranks)
    close = [rank for rank in ranks if facts.nodes[rank].failed_s >= earliest - SURE_S]

    def order(rank: int) -> tuple[bool, float, int]:
        failed_at = facts.nodes[rank].report.timeline.get("failed", float("inf"))
        return facts.ends[rank].error != NodeLost.__name__, failed_at, rank

    return min(close, key=order)


def _of_order(facts: AttemptFacts, rank: int) -> bool:
    """Whether the order came before the node's error, and so explains it: a peer that obeyed sooner broke its connections."""
    return facts.obeyed is not None and facts.ordered_s >= facts.nodes[rank].failed_s - SURE_S


def _judge_losses(facts: AttemptFacts, lost: Mapping[int, str]) -> Verdict | None:
    for rank, why in lost.items():
        return _fail_lost(facts, rank, why)
    return None


def _fail_lost(facts: AttemptFacts, rank: int, why: str) -> Verdict:
    verdict = _fail(_name_loss(facts, rank), words.loss(facts, rank, why), words.checkpoints(facts))
    return replace(verdict, unheard=() if rank in facts.nodes else (rank,))


def _judge_left(facts: AttemptFacts) -> Verdict | None:
    """Fails an attempt that a server has left: those that it serves may wait for it for ever."""
    rank = roles.find_left(facts)
    return (
        None
        if rank is None
        else _fail(
            TrainingFailed.__name__, words.left(facts, rank, roles.count_left_s(facts, rank)), words.checkpoints(facts)
        )
    )


def _judge_starts(facts: AttemptFacts) -> Verdict | None:
    """Fails an attempt whose ranks did not all start from the same checkpoint: what they train is no model. A new attempt restores anew,
    and counts as a recovery."""
    started = {
        rank: (node.report.restored, node.report.restored_step)
        for rank, node in sorted(facts.nodes.items())
        if "prepared" in node.report.timeline  # before that, and on a node that failed to restore, nothing is known
    }
    if len(set(started.values())) < 2:
        return None
    return _fail(NodeLost.__name__, words.apart(facts, started), words.checkpoints(facts))


def _name_loss(facts: AttemptFacts, rank: int) -> str:
    """Names the error of an attempt that lost a node: the order's where there is one, since an order makes nodes leave; and EC2's, where it
    says that AWS took a spot node back, of which no notice came."""
    if facts.obeyed:
        return facts.obeyed.error
    instance = facts.instances.get(facts.ids[rank]) if facts.instances else None
    return (Interrupted if instance is not None and instance.taken_back else NodeLost).__name__


def _judge_stop(facts: AttemptFacts) -> Verdict | None:
    """Fails with the order's error once every node has stopped because of it."""
    order = facts.obeyed
    exits = [node for node in facts.nodes.values() if node.report.exit is not None]
    if order is None or len(exits) < facts.job.nodes:
        return None
    stopped = f"All {facts.job.nodes} nodes stopped as ordered."
    return _fail(order.error, words.order(facts, order), stopped, words.checkpoints(facts))


def _judge_deadline(facts: AttemptFacts, now: float) -> Verdict | None:
    """Fails an attempt whose nodes still run after an order's time, or after the deadline."""
    grace, order, job = facts.job.timing.silence_s, facts.obeyed, facts.job
    if order is not None and now > order.by + grace and not _saves_after_dump(facts, order):
        late = f"Nodes were still running {now - order.by:.0f} s later."
        return _fail(order.error, words.order(facts, order), late, words.checkpoints(facts))
    if now > job.deadline + grace:
        return _fail(DeadlineReached.__name__, words.over(job), words.checkpoints(facts))
    return None


def _saves_after_dump(facts: AttemptFacts, order: Order) -> bool:
    """Whether every node that an order of ours has to stop has stopped its training: none is in a hurry, so the last commits have the
    time that the phase has."""
    left = [node for node in facts.nodes.values() if node.report.phase in (Phase.SAVING, Phase.ENDED)]
    return order.kind is OrderKind.DUMP and len(left) == facts.job.nodes


def _judge_stall(facts: AttemptFacts, now: float) -> Verdict | None:
    """Does what the request says of a training that makes no progress: orders all nodes to write their stacks and to stop, or has people
    notified."""
    stall = find_stall(facts, now=now)
    if stall is None:
        return None
    if stall.then is Reaction.NOTIFY:
        return replace(_let_train(facts, now), reason=words.still(facts, stall), stall=stall)
    order = Order(
        kind=OrderKind.DUMP,
        error=Stalled.__name__,
        reason=words.still(facts, stall),
        by=int(now + DUMP_S + facts.job.timing.stop_grace_s),
        author="attendant",
    )
    return Verdict(action=Action.ORDER, reason=order.reason, order=order, progress=words.progress(facts))


def _judge_phases(facts: AttemptFacts) -> Verdict | None:
    slow = find_slow(facts)
    return None if slow is None else _fail(Stalled.__name__, slow, words.checkpoints(facts))


def _order_checkpoint(facts: AttemptFacts, now: float) -> Verdict | None:
    """Orders a last checkpoint, once in an attempt: what a node orders itself, after a spot notice, becomes the order of all; and
    shortly before the deadline."""
    if facts.order is not None:
        return None
    if facts.obeyed is not None:
        reason = f"{name_author(facts.job.roles, facts.obeyed.author)} stops: {facts.obeyed.reason}"
        return Verdict(action=Action.ORDER, reason=reason, order=facts.obeyed, progress=words.progress(facts))
    if now < facts.job.stop_at:
        return None
    order = Order(
        kind=OrderKind.CHECKPOINT_AND_STOP,
        error=DeadlineReached.__name__,
        reason=words.over(facts.job),
        by=facts.job.deadline,
        author="attendant",
    )
    return Verdict(action=Action.ORDER, reason="the deadline is near", order=order, progress=words.progress(facts))


def _order_before_expiry(facts: AttemptFacts, now: float) -> Verdict | None:
    """Orders a last checkpoint while the nodes' credentials still allow to save it, where STS refuses new ones: without them a training
    would go on, at its cost, and leave nothing."""
    known = facts.sessions
    if facts.obeyed is not None or not _is_refused(facts) or known.until - now > SAVED_S:
        return None
    order = Order(
        kind=OrderKind.CHECKPOINT_AND_STOP,
        error=RoleRefused.__name__,
        reason=words.refused_session(facts),
        by=int(max(known.until, now + facts.job.timing.stop_grace_s)),
        author="attendant",
    )
    return Verdict(action=Action.ORDER, reason=order.reason, order=order, progress=words.progress(facts))


def _fail(error: str, *parts: Cause | str) -> Verdict:
    """Fails the attempt with an error name of the contract: a node may write any text, such as the name of one of Lambda's errors."""
    known = error if error in BY_NAME else TrainingFailed.__name__
    return Verdict(action=Action.FAIL, error=known, reason=format_cause(*parts))
