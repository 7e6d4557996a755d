"""Judges the network between nodes by what they measured: no node, one whose links are all slow, or the two of the only slow link.

A machine is at fault only where another one would do better (docs/decisions/verdicts.md). So a slow link counts where another link of the
same attempt, with the same image, request and code, is not slow. Two nodes have one link: it counts once, in the job's first attempt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent.links.facts import Measured, Reached

FLOW_GBPS = 5.0
"""What one TCP connection reaches between any two instances: EC2 limits it so outside of a cluster placement group, whatever the type has
(docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-network-bandwidth.html). NCCL and gloo may use a single one."""
EFA = ", efa"
"""At the end of NCCL's words for the network, where it goes over EFA ("AWS Libfabric, efa")."""

Said = Sequence[Measured | None]
Pair = tuple[int, int]


@dataclass(frozen=True)
class Expected:
    """What is expected of the network."""

    gbps: float
    """Gbit/s that it always gives a node of the type, as EC2 says; 0 where that is not known."""
    share: float
    """The least part of it that an all-reduce has to reach."""


@dataclass(frozen=True)
class LinkFinding:
    """What is known of the network."""

    wrong: Mapping[int, str] = field(default_factory=dict)
    """What is wrong with the machine of a rank, in words for a person."""
    note: str = ""
    unsure: bool = False
    """Whether the links have to be measured one by one to know more."""


def floor_gbps(known: Expected, said: Said) -> float:
    """The least bus bandwidth in Gbit/s: a part of what EC2 says that the type's network always gives, or of one TCP connection's rate
    unless all that measured went over EFA. 0 where the type's rate is not known."""
    done = [one for one in said if one is not None and one.outcome is Reached.DONE]
    over_efa = bool(done) and all(one.network.lower().endswith(EFA) for one in done)
    return known.share * (known.gbps if over_efa else min(known.gbps, FLOW_GBPS))


def judged(said: Said, known: Expected, *, attempt: int) -> LinkFinding:
    """By the all-reduce of all nodes, in the order of their ranks."""
    nodes = len(said)
    rate, floor = _rate(said), floor_gbps(known, said)
    if rate is not None and rate >= floor:
        return LinkFinding(note=f"an all-reduce between {nodes} nodes reached {shown(rate, said)}, {_least(floor)}")
    if rate is None and (why := _unknown(said)):
        return LinkFinding(note=f"the network was not measured: {why}")
    what = f"an all-reduce between {nodes} nodes " + (
        "did not complete" if rate is None else f"reached {shown(rate, said)}, {_least(floor)}"
    )
    if nodes > 2:
        return LinkFinding(note=what, unsure=True)
    if rate is None and (failed := next((one for one in said if one and one.outcome is Reached.FAILED), None)):
        return LinkFinding(note=f"{what}: {failed.words}")
    if attempt > 1:
        return LinkFinding(note=f"{what}; an earlier attempt has had other machines, so this one trains")
    return LinkFinding(
        note=what, wrong=dict.fromkeys((0, 1), f"{what}; the check cannot tell which of the two machines is the cause")
    )


def judged_alone(said: Measured) -> LinkFinding:
    """By the all-reduce between the GPUs of the only node: there is no rate to compare it with."""
    what = f"an all-reduce between its {said.gpus} GPUs"
    if said.outcome is Reached.DONE:
        return LinkFinding(note=f"{what} reached {shown(said.gbps, [said])}")
    if said.outcome is Reached.STUCK:
        return LinkFinding(wrong={0: f"{what} did not complete"}, note=f"{what} did not complete")
    return LinkFinding(note=f"its GPUs were not measured together: {said.words}")


def rounds(nodes: int) -> list[list[Pair]]:
    """The links of a ring, three or more nodes, each in a round in which no node has another: two rounds, three for an odd number."""
    ring = [(rank, rank + 1) for rank in range(nodes - 1)]
    last = (0, nodes - 1)
    if nodes % 2:
        return [ring[0::2], ring[1::2], [last]]
    return [ring[0::2], [*ring[1::2], last]]


def judged_links(links: Mapping[Pair, Said], known: Expected) -> LinkFinding:
    """By each link of the ring alone. None of a link's two words is None where that node is gone: such a link is not known."""
    floor = floor_gbps(known, [one for said in links.values() for one in said])
    rates = {pair: _link(said) for pair, said in links.items()}
    fast = [rate for rate in rates.values() if rate is not None and rate >= max(floor, 1e-9)]
    slow = {pair: rate for pair, rate in rates.items() if rate is not None and rate < max(floor, 1e-9)}
    if not slow:
        return LinkFinding(note="no link between two nodes alone is slow")
    if not fast:
        return LinkFinding(note="no link between two nodes is fast, which no single machine explains")
    ranks = sorted({rank for pair in slow for rank in pair})
    alone = [rank for rank in ranks if all(pair in slow for pair in rates if rank in pair)]
    wrong = {rank: _words(rank, slow, floor, max(fast)) for rank in alone or ranks}
    return LinkFinding(wrong=wrong, note=f"{len(slow)} of {len(rates)} links between two nodes are slow")


def _rate(said: Said) -> float | None:
    """In Gbit/s; None where no node saw the end. All saw the same, so where they differ the best is nearest to the truth."""
    return max((one.gbps for one in said if one is not None and one.outcome is Reached.DONE), default=None)


def _link(said: Said) -> float | None:
    """0 for a link on which an all-reduce fails or does not end; None where nothing is known."""
    if (rate := _rate(said)) is not None:
        return rate
    return None if _unknown(said) else 0.0


def _unknown(said: Said) -> str:
    """Why no machine of the others is to blame that it did not complete; empty where there is no such reason."""
    for rank, one in enumerate(said):
        if one is None:
            return f"rank {rank} stopped answering"
        if one.outcome is Reached.UNREADY:
            return f"rank {rank}: {one.words}"
    return ""


def _words(rank: int, slow: Mapping[Pair, float], floor: float, best: float) -> str:
    own = [
        f"to rank {other} {f'reaches {rate:.3g} Gbit/s' if rate else 'carries no all-reduce'}"
        for pair, rate in sorted(slow.items())
        if rank in pair
        for other in pair
        if other != rank
    ]
    return (
        f"its link {', and '.join(own)}, {_least(floor)}, while another link of the attempt reaches {best:.3g} Gbit/s"
    )


def _least(floor: float) -> str:
    return f"and {floor:.3g} Gbit/s are expected at least" if floor else "and the expected rate is not known"


def shown(rate: float, said: Said) -> str:
    """The rate, and by what it was reached."""
    first = next((one for one in said if one is not None and one.outcome is Reached.DONE), None)
    by = "" if first is None else f" over {first.network}" if first.network else "" if first.gpus else " (CPU)"
    return f"{rate:.3g} Gbit/s{by}"
