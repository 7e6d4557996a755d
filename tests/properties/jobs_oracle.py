"""Names the ends that an execution may have; it alone knows what really happened:

1. Admit refuses (InvalidRequest) what asks for too much, and a name that has a job already; nothing else, and then nothing was written.
2. An attempt without an instance ends as CapacityUnavailable after the launch patience, and after what is left of the hours that its job
   may wait, if EC2 refused for capacity or, while an attempt before may count against the quota, for a quota; as QuotaExceeded if EC2
   refused for a quota.
3. If every node told an exit with 0 the attempt ends well: as SyncIncomplete where a file that a last report's commits name is not
   whole, else with exactly those files in its list of artifacts.
4. Otherwise each of these may name it, if it happened: NodeLost (a node broke, or fell silent, before it told its end), TrainingFailed
   (a command failed by itself), DeadlineReached (the time to stop was there), Stalled (one node went on for two hours alone).
5. NodeLost and Stalled are followed by a new attempt while recoveries and time are left, and by nothing else; no other end is.
6. Aborted is what a person stopped, and only that; its report says so in the end.
7. No trouble of calls and functions that is shorter than the machine's patience names an end: no throttle, no lost answer, no kill.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from contract.reports import Exit
from localaws.services.ec2_instance import Machine
from tests.fakes import executions
from tests.fakes.faults import Mishap
from tests.properties.execution import MENDABLE, Execution
from tests.properties.world import Node

QUOTA = "VcpuLimitExceeded"


@dataclass
class Fate:
    """What really happened to an attempt."""

    nodes: dict[str, Node] = field(default_factory=dict)
    """By instance, of every launch."""
    refusals: list[tuple[float, str]] = field(default_factory=list)
    """When EC2 refused to launch, and why."""
    lost: bool = False
    failed: bool = False
    torn: set[str] = field(default_factory=set)
    """Instances of which a file that was committed is not whole."""
    files: dict[int, tuple[int, str, int, str]] = field(default_factory=dict)
    """By rank: rank, path, size and address of the artifacts that last reports name."""
    first_told_at: float = float("inf")

    def cluster(self) -> list[Node]:
        """The nodes of the newest launch."""
        newest = max((node.machine.launched_at for node in self.nodes.values()), default=0.0)
        return [node for node in self.nodes.values() if node.machine.launched_at == newest]

    def all_well(self) -> bool:
        return all(node.exit == Exit(code=0) for node in self.cluster())


@dataclass
class Run:
    """An execution, and what the world knows of it."""

    execution: Execution
    known: executions.Execution
    refused: bool
    """Admit has to refuse it."""
    nodes: int
    stopped: bool = False
    armed: dict[str, Mishap] = field(default_factory=dict)
    """Function to what befalls its next invocation."""
    fates: dict[int, Fate] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.execution.id

    def fate(self, attempt: int) -> Fate:
        return self.fates.setdefault(attempt, Fate())

    def machines(self) -> list[Machine]:
        return [node.machine for fate in self.fates.values() for node in fate.nodes.values()]


def allowed_ends(run: Run, now: float, stop_at: float) -> set[str]:
    """The errors with which the attempt at hand may go to Terminate now; empty text is success."""
    attempt, timing = run.execution.attempt, run.execution.timing
    fate = run.fate(attempt)
    if not fate.nodes:
        return _nowhere(fate, run.execution, now)
    if fate.all_well():
        return {"SyncIncomplete"} if any(node.machine.id in fate.torn for node in fate.cluster()) else {""}
    happened = {
        "NodeLost": fate.lost,
        "TrainingFailed": fate.failed,
        "DeadlineReached": now >= stop_at,
        "Stalled": now >= fate.first_told_at + timing.uneven_allowance_s,
    }
    return {name for name, did in happened.items() if did}


def _nowhere(fate: Fate, execution: Execution, now: float) -> set[str]:
    """Rule 2."""
    found, attempt, timing = set[str](), execution.attempt, execution.timing
    patience_s = max(timing.launch_patience_s, execution.wait_left_s)
    if not fate.refusals:
        return found
    waited_s, codes = now - fate.refusals[0][0], {code for _, code in fate.refusals}
    recovers = attempt > 1 and waited_s < timing.quota_patience_s
    if QUOTA in codes and not recovers:
        found.add("QuotaExceeded")
    if codes - {QUOTA} or attempt > 1:
        found |= {"CapacityUnavailable"} if waited_s >= patience_s - 60.0 else set()
    return found


def right_end(run: Run, now: float) -> bool:
    """Rules 1, 5 and 6; that an attempt's verdict is right was asked when it was given."""
    execution, said = run.execution, run.execution.problem[0] if run.execution.problem else ""
    if execution.state == "Aborted":
        return run.stopped
    if run.refused or not execution.verdicts:
        return run.refused and not execution.verdicts and (execution.state, said) == ("Failed", "InvalidRequest")
    before = [error for attempt, error in execution.verdicts.items() if attempt < execution.attempt]
    if any(error not in MENDABLE for error in before) or said != execution.verdicts[execution.attempt]:
        return False
    spent = execution.attempt > execution.recoveries or now >= execution.deadline
    return execution.state == ("Failed" if said else "Done") and (said not in MENDABLE or spent)
