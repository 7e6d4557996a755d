"""Finds nodes that report and stay in one phase for too long. Progress within the training is judged by attendant.stalls."""

from __future__ import annotations

from attendant import words
from attendant.causes import Cause
from attendant.facts import AttemptFacts
from attendant.roles import is_needed
from contract.reports import Phase


def find_slow(facts: AttemptFacts) -> Cause | None:
    """Returns why the attempt is stalled: a node takes longer for a phase than its setting allows, or nodes of a job without roles work on
    long after another has ended; None otherwise.

    The last commits of a node that does not decide delay nothing before the job is done. Nodes of roles may work for different times, so
    nothing bounds how long some work on after others."""
    timing = facts.job.timing
    allowed = {
        Phase.RESTORING: ("restore_allowance_s", timing.restore_allowance_s),
        Phase.PREPARING: ("prepare_allowance_s", timing.prepare_allowance_s),
        Phase.WAITING: ("meet_allowance_s", timing.meet_allowance_s),
        Phase.CHECKING: ("gate_allowance_s", timing.gate_allowance_s),
        Phase.SAVING: ("save_allowance_s", timing.save_allowance_s),
    }
    for rank, node in sorted(facts.nodes.items()):
        setting, most = allowed.get(node.report.phase, ("", float("inf")))
        counts = is_needed(facts, rank) and (rank in facts.deciding or node.report.phase is not Phase.SAVING)
        if counts and node.phase_s > most:
            return words.stall(facts, rank, setting, most)
    if facts.job.roles or facts.obeyed is not None:
        return None
    done = [rank for rank, node in facts.nodes.items() if node.report.exit is not None]
    first = max(done, key=lambda rank: facts.nodes[rank].age_s, default=None)
    if first is not None and facts.nodes[first].age_s > timing.uneven_allowance_s:
        return Cause(words.uneven(facts, first))
    return None
