"""Tells lost nodes from those that are slow, or that nobody can hear: by EC2's word, and by how long they have been silent."""

from __future__ import annotations

from collections.abc import Collection

from attendant.facts import Facts
from aws.facts import ENDING, Pass
from contract.timing import Timing

GONE = ENDING | {"stopping", "stopped"}
"""States in which a node works no more. A stopped one has not ended, but its work has."""
UNSEEN_S = 60.0
"""An instance that EC2 does not know so long after its launch is gone. EC2 calls itself eventually consistent without a
figure; seconds are usual, so a minute, and ten of the visibility setting at most."""
TOGETHER = 2.0
"""Several nodes that fall silent together, while EC2 says that all of them run, have so many times the allowed silence: their way
to S3 is more likely gone than all of their hosts."""


def trusts_silence(before: Pass | None, timing: Timing, *, in_pass: bool) -> bool:
    """Whether a look may take a silent node for a lost one.

    While S3 answers nobody, nodes cannot be heard and the attendant cannot look. So the clock's first pass over all jobs after a gap
    trusts no silence, nor does any look before the next pass; until then every node that lives was heard. Gaps one after the other
    give no more than this one pass, so that a clock that is always slow delays the end of a lost node and does not prevent it.
    """
    if before is None:
        return False
    no_gap = before.age_s <= timing.silence_s - 2 * timing.report_every_s
    return no_gap or not before.trusts_silence if in_pass else no_gap and before.trusts_silence


def why_lost(facts: Facts, now: float) -> dict[int, str]:
    """The nodes that went away before their work was over, each with how that is known."""
    working = [rank for rank in range(len(facts.ids)) if rank not in facts.ends]
    allowed_s = facts.job.timing.silence_s * (TOGETHER if _together(facts, working) else 1.0)
    lost = {rank: _gone(facts, rank, now) or _silent(facts, rank, now, allowed_s) for rank in working}
    return {rank: why for rank, why in lost.items() if why}


def _gone(facts: Facts, rank: int, now: float) -> str:
    """EC2's word. It may call a host running for minutes that has vanished, and in one look not know an instance that runs."""
    if facts.instances is None:
        return ""
    instance, timing = facts.instances.get(facts.ids[rank]), facts.job.timing
    if instance is not None and instance.state in GONE:
        return f"is {instance.state} before its work was done ({instance.why or 'EC2 gives no reason'})"
    age_s, heard = now - facts.launched_at, facts.nodes.get(rank)
    if instance is None and age_s > min(UNSEEN_S, 12 * timing.visibility_s):
        if heard is None:
            return "is unknown to EC2"
        if heard.age_s > 2 * timing.report_every_s:
            return f"is unknown to EC2, and has been silent for {heard.age_s:.0f} s"
    return ""


def _silent(facts: Facts, rank: int, now: float, allowed_s: float) -> str:
    if not facts.trusts_silence:
        return ""
    heard, age_s, boot_s = facts.nodes.get(rank), now - facts.launched_at, facts.job.timing.boot_allowance_s
    if heard is None:
        return f"has sent no report {age_s:.0f} s after its launch (allowed: {boot_s:.0f} s)" if age_s > boot_s else ""
    if heard.age_s > allowed_s:
        return f"has been silent for {heard.age_s:.0f} s (allowed: {allowed_s:.0f} s)"
    return ""


def _together(facts: Facts, working: Collection[int]) -> bool:
    """Whether nobody at all is heard of any more, at least two nodes were, and EC2 does not say that one of them is gone."""
    silence_s = facts.job.timing.silence_s
    if any(node.age_s <= silence_s for node in facts.nodes.values()):
        return False
    states = {rank: _state(facts, rank) for rank in working if rank in facts.nodes}
    return len(states) > 1 and all(state == "running" for state in states.values())


def _state(facts: Facts, rank: int) -> str:
    if facts.instances is None:
        return "running"  # nobody says otherwise
    instance = facts.instances.get(facts.ids[rank])
    return instance.state if instance else "unknown"
