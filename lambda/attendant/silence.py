"""Tells lost nodes from slow ones and from those whose reports cannot arrive: by EC2's state and by how long they are silent."""

from __future__ import annotations

from collections.abc import Collection

from attendant.facts import AttemptFacts
from aws.facts import ENDING, Pass

NOT_WORKING = ENDING | {"stopping", "stopped"}
"""States in which a node no longer works. The work of a stopped one has ended, even though the instance has not."""
UNSEEN_S = 60.0
"""An instance that never reported and that EC2 does not know this long after its launch is gone. EC2 is eventually consistent
without a stated bound, and usually needs seconds."""
KEPT = 15
"""Passes that are remembered, a minute each: more than twice the allowed silence."""
TOGETHER = 2.0
"""The allowed silence is multiplied by this where several nodes fall silent together while EC2 says that all of them run: their
connection to DynamoDB has more likely failed than all of their hosts."""


def list_gaps(before: Pass | None) -> tuple[float, ...]:
    """Returns the seconds between the attendant's passes over all jobs, from now backwards."""
    return () if before is None else (before.age_s, *before.gaps_s)[:KEPT]


def count_silence(silent_s: float, facts: AttemptFacts) -> float:
    """Returns how much of a silence counts against the node.

    While DynamoDB does not answer, nodes cannot report and the attendant cannot look. So between two passes at most half of the allowed
    silence counts: after a gap of any length, a node that lives can report before it counts as lost. A clock that is always late
    delays the end of a lost node, but does not prevent it.
    """
    if facts.gaps_s is None:
        return silent_s
    most_s, left_s, total_s = facts.job.timing.silence_s / 2, silent_s, 0.0
    for gap_s in facts.gaps_s:
        total_s += min(gap_s, left_s, most_s)
        left_s = max(0.0, left_s - gap_s)
    # Time before the remembered passes counts whole, unless there were no passes before them.
    return total_s + (left_s if len(facts.gaps_s) == KEPT else min(left_s, most_s))


def find_lost(facts: AttemptFacts, now: float) -> dict[int, str]:
    """Returns the ranks that were lost before their work was over, each with what shows it."""
    working = [rank for rank in range(len(facts.ids)) if rank not in facts.ends]
    allowed_s = facts.job.timing.silence_s * (TOGETHER if _together(facts, working) else 1.0)
    lost = {rank: _gone(facts, rank, now) or _silent(facts, rank, now, allowed_s) for rank in working}
    return {rank: why for rank, why in lost.items() if why}


def _gone(facts: AttemptFacts, rank: int, now: float) -> str:
    """Returns how EC2 shows that the node is gone; empty where it does not. EC2 may call a vanished host running for minutes, and one
    answer may lack an instance that runs: for a node that has ever reported, an answer without it proves nothing, and only
    silence counts."""
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
    heard, boot_s = facts.nodes.get(rank), facts.job.timing.boot_allowance_s
    if heard is None:
        if not facts.sessions.since:
            return ""  # it waits for credentials, which we owe it: a new attempt would wait for them as well
        since, what = max(
            (facts.launched_at, "its launch"), (facts.sessions.since, "it got the credentials of its job")
        )
        late = count_silence(now - since, facts) > boot_s
        return f"has sent no report {now - since:.0f} s after {what} (allowed: {boot_s:.0f} s)" if late else ""
    if count_silence(heard.age_s, facts) > allowed_s:
        return f"has been silent for {heard.age_s:.0f} s (allowed: {allowed_s:.0f} s)"
    return ""


def _together(facts: AttemptFacts, working: Collection[int]) -> bool:
    """Whether all nodes, of which at least two have reported, are silent while EC2 says that all of them run."""
    silence_s = facts.job.timing.silence_s
    if any(count_silence(node.age_s, facts) <= silence_s for node in facts.nodes.values()):
        return False
    states = {rank: _state(facts, rank) for rank in working if rank in facts.nodes}
    return len(states) > 1 and all(state == "running" for state in states.values())


def _state(facts: AttemptFacts, rank: int) -> str:
    if facts.instances is None:
        return "running"  # EC2 did not answer, so nothing says otherwise
    instance = facts.instances.get(facts.ids[rank])
    return instance.state if instance else "unknown"
