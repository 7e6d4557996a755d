"""Decides what the end of a node means by its role, and when a job is done whose roles end in different ways."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from attendant.facts import FAILING_S, SURE_S, AttemptFacts
from contract.errors import TrainingFailed
from contract.orders import Order, OrderKind
from contract.reports import Exit, Phase
from contract.roles import RoleEnd, find_place


@dataclass(frozen=True, slots=True, kw_only=True)
class EndRule:
    """What the job makes of the end of a node's command."""

    decides: bool
    """Whether the job needs its end with 0, and ends by another exit code."""
    must_begin: bool
    """Whether the attempt fails where its command cannot be started."""
    must_last: bool
    """Whether the attempt fails where its command ends by itself while the job needs it."""
    is_stopped: bool
    """Whether it is stopped once the job is done; otherwise the job waits for it."""


RULES = {
    RoleEnd.JOB: EndRule(decides=True, must_begin=True, must_last=False, is_stopped=False),
    RoleEnd.SERVED: EndRule(decides=False, must_begin=True, must_last=True, is_stopped=True),
    RoleEnd.FREELY: EndRule(decides=False, must_begin=True, must_last=False, is_stopped=True),
    RoleEnd.ALONE: EndRule(decides=False, must_begin=False, must_last=False, is_stopped=False),
}
"""Losses, silence, interruptions and machines at fault are no ends of a command: until the job is done they end an attempt whichever role
the node has, because every role has to be there."""
SETTLES_S = 10.0
"""A node may still report that it trains this long after its command has ended: its agent reads the last lines first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A job whose deciding nodes have all ended with 0."""

    to_stop: tuple[int, ...]
    """Ranks that have nothing left to serve, and do not know it yet."""
    awaited: tuple[int, ...]
    """Ranks without which the attempt does not end yet."""


def find_rule(facts: AttemptFacts, rank: int) -> EndRule:
    """Returns what the rank's role says; in a job without roles every rank decides."""
    place = find_place(facts.job.roles, rank)
    return RULES[place.role.ends if place else RoleEnd.JOB]


def is_judged(facts: AttemptFacts, rank: int) -> bool:
    """Whether the error with which a rank ended is a reason to end the attempt."""
    rule, end = find_rule(facts, rank), facts.ends[rank]
    if not is_needed(facts, rank):
        return False
    is_of_command = end.error in {"", TrainingFailed.__name__}
    has_begun = "started" in facts.nodes[rank].report.timeline
    return rule.decides or rule.must_last or not is_of_command or (rule.must_begin and not has_begun)


def is_needed(facts: AttemptFacts, rank: int) -> bool:
    """Whether what befalls the node may end the attempt. Once the commands of all nodes that decide have ended with 0, the others have
    nothing left to do for them, although the last commits may still be on their way."""
    return find_rule(facts, rank).decides or not all(_has_ended_well(facts, one) for one in facts.deciding)


def _has_ended_well(facts: AttemptFacts, rank: int) -> bool:
    node = facts.nodes.get(rank)
    if node is None:
        return False
    if node.end is not None:
        return not is_bad(node.end)
    return node.report.phase is Phase.SAVING  # an error, or an order, would be in its report


def find_left(facts: AttemptFacts) -> int | None:
    """Returns a server whose command has ended with 0 although the job still needs it; None if there is none.

    Servers may end in an orderly way a little before the nodes that they serve. So every node that has not ended has to work on for as
    long as a node may be silent, which also tells a server that left its peers from one whose peers were lost."""
    if facts.obeyed is not None:
        return None
    for rank in facts.others:
        if not find_rule(facts, rank).must_last or not is_needed(facts, rank) or not _has_ended_well(facts, rank):
            continue
        if not list_unheard(facts, since_s=count_left_s(facts, rank) - facts.job.timing.silence_s):
            return rank
    return None


def count_left_s(facts: AttemptFacts, rank: int) -> float:
    """Returns how long ago the command of the rank ended with 0."""
    node = facts.nodes[rank]
    return node.phase_s if node.end is None else node.age_s


def list_unheard(facts: AttemptFacts, *, since_s: float) -> list[int]:
    """Returns the ranks that have not ended, and have sent no report in the last `since_s` seconds."""
    working = [rank for rank in range(facts.job.nodes) if rank not in facts.ends]
    return [rank for rank in working if rank not in facts.nodes or facts.nodes[rank].age_s > since_s]


def list_failing(facts: AttemptFacts, failed: int) -> list[int]:
    """Returns the ranks with a failed process that have not ended, as long as the end of the rank `failed` is recent: torchrun ends the
    node's other processes first, and the node may still report an error that came before."""
    if facts.nodes[failed].failed_s > FAILING_S:
        return []
    working = (rank for rank in facts.nodes if rank not in facts.ends)
    return [rank for rank in working if "failed" in facts.nodes[rank].report.timeline]


def count_settled_s(facts: AttemptFacts, failed: int) -> float:
    """Returns how long ago the end of the rank had certainly been noticed by its peers: a report since then is one after it. Peers that
    end well end the connections of a server, which may fail by that before they report."""
    sure_s = SURE_S if find_rule(facts, failed).decides else SETTLES_S
    return facts.nodes[failed].failed_s - sure_s


def is_bad(end: Exit) -> bool:
    """Whether the node's work ended otherwise than well and by itself."""
    return end.code != 0 or bool(end.error) or end.ordered


def find_completion(facts: AttemptFacts, lost: Collection[int], now: float) -> Completion | None:
    """Returns what is left to do of a job that is done; None as long as a deciding node has not ended with 0. Nothing that happens to the
    other nodes afterwards undoes it: one that is lost is waited for no more, nor is any after the deadline."""
    deciding = [facts.nodes[rank] for rank in facts.deciding if rank in facts.nodes]
    if len(deciding) < len(facts.deciding):
        return None
    if any(node.report.exit is None or is_bad(node.report.exit) for node in deciding):
        return None
    since_s = min(node.age_s for node in deciding)
    left = [rank for rank in facts.others if rank not in lost and not _has_ended(facts, rank)]
    stopped = [rank for rank in left if find_rule(facts, rank).is_stopped]
    alone = [rank for rank in left if rank not in stopped]
    if now > facts.job.deadline + facts.job.timing.silence_s:
        return Completion(to_stop=(), awaited=())
    stopped = [rank for rank in stopped if not _is_given_up(facts, rank, since_s)]
    uninformed = tuple(rank for rank in stopped if rank not in facts.nodes or facts.nodes[rank].report.order is None)
    return Completion(to_stop=uninformed, awaited=(*stopped, *alone))


def release(now: float, grace_s: float) -> Order:
    """Returns the order for nodes whose job is done. It names no error, because no attempt ends by it."""
    reason = "the job is done, and nothing is left to serve"
    return Order(kind=OrderKind.STOP, error="", reason=reason, by=int(now + grace_s), author="attendant")


def _has_ended(facts: AttemptFacts, rank: int) -> bool:
    return rank in facts.nodes and facts.nodes[rank].report.exit is not None


def _is_given_up(facts: AttemptFacts, rank: int, since_s: float) -> bool:
    """Whether a server has had its time to stop, `since_s` after the job was done: Terminate needs no order. Its time begins with the
    order: without one, as where no pass was made, it serves on, and its last commits are still to come."""
    node, timing = facts.nodes.get(rank), facts.job.timing
    grace_s = timing.stop_grace_s + timing.silence_s
    if node is None or node.report.phase is Phase.SAVING:
        return since_s > grace_s and (node is None or node.phase_s > timing.save_allowance_s)
    return node.report.order is not None and min(since_s, node.ordered_s) > grace_s
