"""Says which rungs an answer closes beside the one that was asked: those of the same quota, region, or type."""

from __future__ import annotations

import re

from contract.intents import LaunchAnswer, LaunchOutcome
from contract.jobs import Market, Rung
from launcher.answers import Reach, find_meaning

LETTERS = re.compile(r"[a-z]+")
OWN_QUOTA = {name: name for name in ("p", "f", "x", "inf", "trn", "dl", "u", "hpc", "mac")} | {
    "g": "g",
    "gr": "g",
    "vt": "g",
}
"""Leading letters of a type to its quota (EC2 user guide, On-Demand instance quotas)."""
SHARED_SPOT_P = "p2, p3, p4"
"""On spot these share a quota, and each later generation has its own ("All P5 Spot Instance Requests"; EC2 user guide, Spot quotas)."""


def list_kinds(rung: Rung) -> list[Rung]:
    return [one.rung for one in rung.shapes] or [rung]


def find_kind(rung: Rung, answer: LaunchAnswer) -> Rung:
    """Returns the type and market that the answer is about."""
    return list_kinds(rung)[answer.shape]


def is_closed_with(one: Rung, other: Rung, answer: LaunchAnswer) -> bool:
    """Whether what closes one rung closes the other. Every limit and every refusal is of one region; how far it reaches there its code
    says."""
    if one.region != other.region:
        return False
    match _find_reach(answer):
        case Reach.REGION:
            return True
        case Reach.ZONE:
            return one.zone == other.zone
        case Reach.FAMILY:
            return _family(one) == _family(other) and one.market is other.market
        case _:
            kinds = [(rung.instance_type, rung.market, rung.reservation) for rung in (one, other)]
            return kinds[0] == kinds[1]


def _find_reach(answer: LaunchAnswer) -> Reach:
    """Returns how far an answer reaches; of one with a code that no table has, what its outcome says."""
    if answer.outcome is LaunchOutcome.CLOSED:
        return Reach.REGION
    meaning = find_meaning(answer.code, answer.message)
    if answer.outcome is LaunchOutcome.QUOTA and meaning.outcome is not LaunchOutcome.QUOTA:
        return Reach.FAMILY
    return meaning.reach


def _family(rung: Rung) -> str:
    """Returns the quota that a type counts against: accelerated families have their own, the others share the standard one."""
    letters = LETTERS.match(rung.instance_type)
    if rung.market is Market.SPOT and letters and letters.group() == "p":
        return SHARED_SPOT_P if rung.instance_type[1] in "234" else rung.instance_type[:2]
    return OWN_QUOTA.get(letters.group() if letters else "", "standard")
