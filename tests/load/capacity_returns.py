"""A thousand jobs wait, new ones arrive, and then capacity comes back for 300 of them."""

from __future__ import annotations

from dataclasses import dataclass

from tests.load.waiting_jobs import HOUR, LADDER, PLACES, WaitingJobs

JOBS, NODES, RETURNS = 1000, 4, 300
WAIT_S, ARRIVAL_S, ARRIVE_S = 3.25 * HOUR, 300.0, HOUR
"""How long nothing is free; between two new jobs; for how long new jobs come."""
RETURN_S = 3 * HOUR
"""Within this time all of the capacity must be taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What the jobs asked of EC2, and what they got. By region in the order of the ladder."""

    calls: dict[str, int]
    """Launch calls for waiting jobs, while nothing was free."""
    throttled: dict[str, int]
    least_calls: dict[str, float]
    """The fewest tokens left of the bucket of calls."""
    least_instances: dict[str, float]
    longest_gap_s: float
    arrived: int
    invocations: int
    killed: int
    at_once: int
    launched: int
    """Jobs that got capacity once it came back."""
    returned_s: float
    """Until the last of it was taken."""
    twice: list[str]
    running: int
    problems: list[str]


def load(jobs: int = JOBS, *, wait_s: float = WAIT_S, returns: int = RETURNS) -> Load:
    world = WaitingJobs(jobs, NODES)
    with world.installed():
        world.arrivals(ARRIVAL_S, world.clock.now + ARRIVE_S)
        world.clock.run(wait_s)
        calls = {region: len(world.calls[region]) for region in PLACES}
        gap_s, began = world.longest_gap_s(), world.clock.now
        assert not world.launched
        world.free(returns * NODES)
        while len(world.launched) < returns and world.clock.now < began + RETURN_S:
            world.clock.run(60.0)
        returned_s = world.clock.now - began
        world.clock.run(HOUR / 4)  # nobody takes more than there is, and nobody twice
    ec2 = world.aws.ec2[LADDER[1].region]
    return Load(
        calls=calls,
        throttled={region: one.throttled for region, one in world.throttles.items()},
        least_calls={region: one.calls.least for region, one in world.throttles.items()},
        least_instances={region: one.instances.least for region, one in world.throttles.items()},
        longest_gap_s=gap_s,
        arrived=len(world.executions),
        invocations=sum(name == "launcher" for _, name, _ in world.functions.log),
        killed=world.killed,
        at_once=world.most_at_once,
        launched=len(world.launched),
        returned_s=returned_s,
        twice=world.twice(),
        running=len(ec2.running()),
        problems=world.problems,
    )
