"""Tells lost nodes from those that are slow, or that nobody can hear: by EC2's word, and by how long they have been silent."""

from __future__ import annotations

from collections.abc import Collection

from attendant.facts import AttemptFacts
from aws.facts import ENDING, Pass

NOT_WORKING = ENDING | {"stopping", "stopped"}
"""States in which a node works no more. A stopped one has not ended, but its work has."""
UNSEEN_S = 60.0
"""An instance that EC2 does not know so long after its launch, and of which nobody has heard, is gone. EC2 calls itself
eventually consistent without a figure; seconds are usual, so a minute, and ten of the visibility setting at most."""
KEPT = 15
"""Passes that are remembered, a minute each: more than twice the allowed silence."""
TOGETHER = 2.0
"""Several nodes that fall silent together, while EC2 says that all of them run, have so many times the allowed silence: their way
to S3 is more likely gone than all of their hosts."""


def gaps(before: Pass | None) -> tuple[float, ...]:
    """Seconds between the attendant's passes over all jobs, from now backwards."""
    return () if before is None else (before.age_s, *before.gaps_s)[:KEPT]


def counted(silent_s: float, facts: AttemptFacts) -> float:
    """How much of a silence counts as the node's.

    While S3 answers nobody, nodes cannot be heard and the attendant cannot look. So of the time between two passes only half of the
    allowed silence counts: after a gap, however long, every node that lives is heard before it is lost, and a clock that is always
    slow delays the end of a lost node and does not prevent it.
    """
    if facts.gaps_s is None:
        return silent_s
    most_s, left_s, total_s = facts.job.timing.silence_s / 2, silent_s, 0.0
    for gap_s in facts.gaps_s:
        total_s += min(gap_s, left_s, most_s)
        left_s = max(0.0, left_s - gap_s)
    # What lies before the passes that are remembered counts; before the first one ever it was nobody's time.
    return total_s + (left_s if len(facts.gaps_s) == KEPT else min(left_s, most_s))


def why_lost(facts: AttemptFacts, now: float) -> dict[int, str]:
    """The nodes that went away before their work was over, each with how that is known."""
    working = [rank for rank in range(len(facts.ids)) if rank not in facts.ends]
    allowed_s = facts.job.timing.silence_s * (TOGETHER if _together(facts, working) else 1.0)
    lost = {rank: _gone(facts, rank, now) or _silent(facts, rank, now, allowed_s) for rank in working}
    return {rank: why for rank, why in lost.items() if why}


def _gone(facts: AttemptFacts, rank: int, now: float) -> str:
    """EC2's word. It may call a host running for minutes that has vanished, and in one look not know an instance that runs: what was
    ever heard of exists, and EC2 knows instances for an hour after their end. For such a node its silence counts alone."""
    if facts.instances is None:
        return ""
    instance, timing = facts.instances.get(facts.ids[rank]), facts.job.timing
    if instance is not None and instance.state in NOT_WORKING:
        return f"is {instance.state} before its work was done ({instance.why or 'EC2 gives no reason'})"
    age_s = now - facts.launched_at
    if instance is None and rank not in facts.nodes and age_s > min(UNSEEN_S, 12 * timing.visibility_s):
        return "is unknown to EC2"
    return ""


def _silent(facts: AttemptFacts, rank: int, now: float, allowed_s: float) -> str:
    heard, age_s, boot_s = facts.nodes.get(rank), now - facts.launched_at, facts.job.timing.boot_allowance_s
    if heard is None:
        late = counted(age_s, facts) > boot_s
        return f"has sent no report {age_s:.0f} s after its launch (allowed: {boot_s:.0f} s)" if late else ""
    if counted(heard.age_s, facts) > allowed_s:
        return f"has been silent for {heard.age_s:.0f} s (allowed: {allowed_s:.0f} s)"
    return ""


def _together(facts: AttemptFacts, working: Collection[int]) -> bool:
    """Whether nobody at all is heard of any more, at least two nodes were, and EC2 does not say that one of them is gone."""
    silence_s = facts.job.timing.silence_s
    if any(counted(node.age_s, facts) <= silence_s for node in facts.nodes.values()):
        return False
    states = {rank: _state(facts, rank) for rank in working if rank in facts.nodes}
    return len(states) > 1 and all(state == "running" for state in states.values())


def _state(facts: AttemptFacts, rank: int) -> str:
    if facts.instances is None:
        return "running"  # nobody says otherwise
    instance = facts.instances.get(facts.ids[rank])
    return instance.state if instance else "unknown"
