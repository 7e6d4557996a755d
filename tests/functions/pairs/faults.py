"""The table of faults: at which state each strikes, what it does, and how the execution ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from contract.jobs import Reaction
from contract.reports import Exit
from tests.fakes.events import Weather, fair
from tests.fakes.faults import Death, Kind, Mishap
from tests.functions.pairs.played import Played, doubled, late, nothing
from tests.properties.jobs_oracle import Run
from tests.properties.retrying import WAIT

MINUTE = 60.0
KINDS = ("g5.xlarge", "g4dn.xlarge")
Strike = Callable[[Played, Run], None]


@dataclass(frozen=True, slots=True)
class End:
    """How an execution ends."""

    state: str = "Done"
    error: str = ""
    attempts: int | None = 1
    """None where it depends on what had been ended when the execution went on."""


STOPPED = End("Aborted")


@dataclass(frozen=True, slots=True)
class Fault:
    """`at`: the state of the execution when it strikes."""

    at: str
    strike: Strike
    end: End = End()
    request: Mapping[str, object] = field(default_factory=dict)


# Control


def boots_slowly(world: Played, _: Run) -> None:
    world.boot_s = 10 * MINUTE


def events_dropped(world: Played, _: Run) -> None:
    world.tell(nothing)
    world.clock.at(world.clock.now + 3 * MINUTE, lambda: world.tell(fair))


def clock_late(world: Played, _: Run) -> None:
    world.clock_late_s = 2 * MINUTE


def attendant_dead(world: Played, _: Run) -> None:
    world.dead_until = world.clock.now + 10 * MINUTE


# Launch


def launch_meets(mishap: Mishap) -> Strike:
    def strike(_: Played, run: Run) -> None:
        run.armed["launcher"] = Mishap(mishap.name, mishap.nth, mishap.times, fault=mishap.fault, death=mishap.death)

    return strike


def no_capacity(world: Played, _: Run | None = None, *, zones: int = 3, back_s: float | None = None) -> None:
    for ec2 in world.aws.ec2.values():
        ec2.capacity = {(kind, zone): 0 for kind in KINDS for zone in ec2.catalogue.zones[:zones]}
    if back_s is not None:
        world.clock.at(world.clock.now + back_s, world.heal)


def quota(world: Played, _: Run) -> None:
    for ec2 in world.aws.ec2.values():
        ec2.vcpu_quota = 0


def reads_lag(world: Played, _: Run) -> None:
    for ec2 in world.aws.ec2.values():
        ec2.invisible_s, ec2.lag_s = 4.0, 20.0


def one_never_boots(world: Played, run: Run) -> None:
    def silenced() -> None:
        if nodes := world.living(run):
            world.silence(nodes[-1])
        else:
            world.clock.at(world.clock.now + 5.0, silenced)

    silenced()


# Nodes


def breaks(rank: int, *, peers_fail: bool = False) -> Strike:
    def strike(world: Played, run: Run) -> None:
        nodes = world.nodes(run)
        world.break_down(nodes.pop(rank))
        for node in nodes if peers_fail else []:
            world.leave(node, Exit(code=1, tail=("RuntimeError: Connection reset by peer",)))

    return strike


def freezes(world: Played, run: Run) -> None:
    world.silence(world.nodes(run)[-1])


def fails(code: int, error: str = "") -> Strike:
    def strike(world: Played, run: Run) -> None:
        world.leave(world.nodes(run)[0], Exit(code=code, error=error))

    return strike


def stands_still(world: Played, run: Run) -> None:
    world.stand_still(run)


def lost_and_stands_still(world: Played, run: Run) -> None:
    """The first attempt has used up some of the money by then."""
    world.run(35 * MINUTE)
    breaks(0)(world, run)
    world.play_until_attempt(run, 2)
    world.stand_still(run)


def clock_off(skew_s: float) -> Strike:
    def strike(world: Played, run: Run) -> None:
        world.nodes(run)[-1].skew_s = skew_s

    return strike


def gpu_is_bad(world: Played, run: Run) -> None:
    world.falls_ill(world.nodes(run)[-1])


# Spot


def taken(world: Played, run: Run) -> None:
    world.take_back(world.nodes(run)[-1])


def noticed(*ranks: int, commits: bool = False) -> Strike:
    def strike(world: Played, run: Run) -> None:
        nodes = world.nodes(run)
        for rank in ranks:
            world.notice(nodes[rank])
        if commits:
            world.clock.at(world.clock.now + 5.0, lambda: world.close_set(nodes[-1], 10))

    return strike


def taken_again(world: Played, run: Run) -> None:
    """As soon as its next attempt is launched."""
    taken(world, run)

    def again() -> None:
        if run.execution.attempt == 1 or not world.living(run):
            world.clock.at(world.clock.now + 1.0, again)
        else:
            world.take_back(world.living(run)[0])

    again()


# Storage


def s3_answers(kind: Kind) -> Strike:
    def strike(world: Played, _: Run) -> None:
        world.aws.faults.add(kind, "s3:*", times=8)

    return strike


def torn(how: str) -> Strike:
    def strike(world: Played, run: Run) -> None:
        for node in world.nodes(run):
            world.leave(node, Exit(code=0), torn=how)

    return strike


# Workflow


def stopped(world: Played, run: Run, status: str = "ABORTED") -> None:
    world.stop(run, status)


def stopped_during(function: str, call: str) -> Strike:
    """Right before the function's next call of that name, if it comes so far within moments; its answer then finds nobody."""

    def strike(world: Played, run: Run) -> None:
        def stop() -> None:
            if not run.execution.over:
                world.stop(run)

        run.armed[function] = Mishap(call, meanwhile=stop)
        world.clock.at(world.clock.now + 20.0, stop)

    return strike


def stop_with_events(weather: Weather) -> Strike:
    """Of whose end is told so."""

    def strike(world: Played, run: Run) -> None:
        world.tell(weather)
        world.stop(run)

    return strike


def redriven(after_s: float) -> Strike:
    def strike(world: Played, run: Run) -> None:
        world.stop(run)
        world.run(after_s)
        assert world.redrive(run)

    return strike


def cleanup_fails(world: Played, run: Run) -> None:
    world.armed["cleanup"] = Mishap("*", 3, death=Death.BEFORE)
    world.stop(run)


def delay_events(world: Played, run: Run) -> None:
    """What tells of the first attempt's nodes arrives when the second one trains."""
    world.tell(late)
    breaks(-1)(world, run)


def stalls(then: Reaction) -> dict[str, object]:
    return {"stall": {"minutes": 5.0, "then": then.value}}


SPOT = {"market": "spot"}
EMPTY = {"max_wait_hours": 2.0}
LOST = Mishap("ec2:RunInstances", fault=Kind.LOST)
AGAIN = End(attempts=2)
FAULTS: dict[str, Fault] = {
    # Control
    "ten minutes of boot": Fault("Launch", boots_slowly),
    "events dropped for three minutes": Fault("Launch", events_dropped),
    "the clock late by two minutes": Fault("Launch", clock_late),
    "the attendant dead for ten minutes": Fault("Train", attendant_dead),
    # Launch
    "the answer to a launch lost": Fault("Admit", launch_meets(LOST)),
    "a launcher killed after its call": Fault("Admit", launch_meets(Mishap("ec2:RunInstances", death=Death.AFTER))),
    "launches throttled": Fault("Admit", launch_meets(Mishap("ec2:RunInstances", times=20, fault=Kind.THROTTLED))),
    "no capacity in the first zones": Fault("Admit", partial(no_capacity, zones=2)),
    "no capacity for five minutes": Fault("Admit", partial(no_capacity, back_s=5 * MINUTE)),
    "no capacity anywhere": Fault("Admit", no_capacity, End("Failed", "CapacityUnavailable")),
    "no capacity for twenty minutes, which the job waits for": Fault(
        "Admit", partial(no_capacity, back_s=20 * MINUTE), request={"max_wait_hours": 2.0}
    ),
    "a quota reached": Fault("Admit", quota, End("Failed", "QuotaExceeded")),
    "invisible instances and stale states": Fault("Admit", reads_lag),
    "a node that never boots": Fault("Launch", one_never_boots, AGAIN),
    # Nodes
    "a worker that dies": Fault("Train", breaks(1), AGAIN),
    "a worker that dies and its peer of it": Fault("Train", breaks(1, peers_fail=True), AGAIN),
    "the master that dies": Fault("Train", breaks(0), AGAIN),
    "a node that freezes": Fault("Train", freezes, AGAIN),
    "a command that fails": Fault("Train", fails(3), End("Failed", "TrainingFailed")),
    "a command that fails and is retried": Fault(
        "Train", fails(75), AGAIN, {"retries": {"times": 1, "exit_codes": [75]}}
    ),
    "a node that cannot begin the command": Fault("Train", fails(1, "TrainingFailed"), End("Failed", "TrainingFailed")),
    "a training that hangs and is restarted": Fault("Train", stands_still, AGAIN, stalls(Reaction.RESTART)),
    "a training that hangs and is stopped": Fault(
        "Train", stands_still, End("Failed", "Stalled"), stalls(Reaction.STOP)
    ),
    "a training that hangs until its hours are over": Fault(
        "Train", stands_still, End("Failed", "DeadlineReached"), {"max_hours": 0.5, **stalls(Reaction.NOTIFY)}
    ),
    "a training that hangs until its money is used up": Fault(
        "Train", stands_still, End("Failed", "BudgetExceeded"), {"max_cost_usd": 2.6}
    ),
    "money used up in two attempts": Fault(
        "Train", lost_and_stands_still, End("Failed", "BudgetExceeded", 2), {"max_cost_usd": 2.6}
    ),
    "a clock five minutes ahead": Fault("Train", clock_off(300.0)),
    "a clock five minutes behind": Fault("Train", clock_off(-300.0)),
    "a bad GPU": Fault("Train", gpu_is_bad, AGAIN),
    # Spot
    "a notice": Fault("Train", noticed(1), AGAIN, SPOT),
    "a notice during a commit": Fault("Train", noticed(1, commits=True), AGAIN, SPOT),
    "a notice on all nodes at once": Fault("Train", noticed(0, 1), AGAIN, SPOT),
    "a node taken back without a notice": Fault("Train", taken, AGAIN, SPOT),
    "a node taken back again while the job recovers": Fault("Train", taken_again, End(attempts=3), SPOT),
    # Storage
    "S3 that fails during Sync": Fault("Sync", s3_answers(Kind.ERROR)),
    "S3 that throttles during Sync": Fault("Sync", s3_answers(Kind.THROTTLED)),
    "S3 that denies during Sync": Fault("Sync", s3_answers(Kind.DENIED)),
    "a file that is missing": Fault("Train", torn("missing"), End("Failed", "SyncIncomplete")),
    "a file that is torn": Fault("Train", torn("short"), End("Failed", "SyncIncomplete")),
    # Workflow
    "a stop in Admit": Fault("Admit", stopped_during("admission", "s3:CopyObject"), STOPPED),
    "a stop in Launch": Fault("Launch", stopped_during("launcher", "ec2:RunInstances"), STOPPED),
    "a stop in Train": Fault("Train", stopped, STOPPED),
    "a stop in Sync": Fault("Sync", stopped_during("artifact_check", "s3:PutObject"), STOPPED),
    "a stop in Terminate": Fault("Terminate", stopped_during("terminator", "ec2:TerminateInstances"), STOPPED),
    "a stop in Wait for capacity": Fault(WAIT, stopped, STOPPED, EMPTY),
    "a stop in Pause": Fault("Pause", stopped, End("Aborted", "", 2)),
    "a machine whose time is over": Fault("Train", partial(stopped, status="TIMED_OUT"), STOPPED),
    "an error that no state catches": Fault("Train", partial(stopped, status="FAILED"), STOPPED),
    "a stop of which nobody is told": Fault("Train", stop_with_events(nothing), STOPPED),
    "a stop of which is told twice": Fault("Train", stop_with_events(doubled), STOPPED),
    "a stop of which is told late": Fault("Train", stop_with_events(late), STOPPED),
    "a cleanup that fails": Fault("Train", cleanup_fails, STOPPED),
    "events of two attempts mixed up": Fault("Train", delay_events, AGAIN),
    "a redrive while the cleanup runs": Fault("Train", redriven(2.0), End(attempts=None)),
    "a redrive of a stopped training": Fault("Train", redriven(20 * MINUTE), End(attempts=None)),
    "a redrive of a stopped training that has a cap": Fault(
        "Train", redriven(20 * MINUTE), End(attempts=None), {"max_cost_usd": 2.6}
    ),
    "a redrive of a stopped launch": Fault("Launch", redriven(20 * MINUTE), End(attempts=None)),
    "a redrive of a stopped Terminate": Fault("Terminate", redriven(20 * MINUTE)),
    "a redrive of a stopped Sync": Fault("Sync", redriven(20 * MINUTE)),
}
