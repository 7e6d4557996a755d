"""1,000 jobs of four nodes and one of 512, in ten regions of which one is silent: two ticks of the clock, while 200 jobs end one
after the other, and the 512 nodes at once."""

from __future__ import annotations

import time
from dataclasses import dataclass

from attendant.passes import SLICE
from tests.builders import NOW
from tests.fakes.fleet import NAMES, Fleet
from tests.fakes.table import fair

JOBS, NODES, MANY, ENDS = 1000, 4, 512, 200
WARM = 20
"""Processes that Lambda keeps from the ticks before."""
FIRST_END_S, SECONDS, AT_ONCE_S = 65.0, 170.0, 95.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    late_s: float
    """The longest time from a tick to the begin of a job's look."""
    unbeaten_s: float
    """The longest time without a heartbeat."""
    looks: int
    invocations: int
    longest_s: float
    """Of an invocation."""
    verdicts_s: list[float]
    """From the last urgent write of a job to its verdict beyond the stream's delay, in order."""
    stream_s: float
    many_looks: int
    """Looks at the job of 512 nodes from the first end on."""
    many_s: float
    cpu_s: float
    """Of this machine, for all of it."""


def load() -> Load:
    began = time.process_time()
    fleet = Fleet([NODES] * JOBS + [MANY], now=NOW, silent=NAMES[1], warm=WARM)
    many = fleet.jobs[-1].id
    step = JOBS // ENDS
    with fleet.installed():
        for number in range(ENDS):
            job = fleet.jobs[number * step + number % step].id
            fleet.ends(job, after_s=FIRST_END_S + number * (SECONDS - FIRST_END_S - 10) / ENDS)
        fleet.ends(many, after_s=AT_ONCE_S)
        fleet.clock.run(SECONDS)
        verdicts = fleet.verdicts()
        failed = [job for job, token in fleet.tokens.items() if fleet.aws.states.waits[token].error]
    assert (fleet.problems, fleet.dropped, failed) == ([], 0, [])
    assert {outcome for _, _, outcome in fleet.functions.log} == {"ok"}
    return Load(
        late_s=max(fleet.late().values()),
        unbeaten_s=fleet.unbeaten(),
        looks=len(fleet.aws.looks),
        invocations=len(fleet.lasted),
        longest_s=max(fleet.lasted),
        verdicts_s=sorted(max(0.0, one) for job, one in verdicts.items() if job != many),
        stream_s=next(iter(fair({}))),
        many_looks=sum(job == many and at >= NOW + AT_ONCE_S for at, job in fleet.aws.looks),
        many_s=verdicts[many],
        cpu_s=time.process_time() - began,
    )


def slices(jobs: int) -> int:
    return -(-jobs // SLICE)
