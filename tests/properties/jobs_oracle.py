"""Names the ends that an execution may have; it alone knows what really happened:

1. Admit refuses (InvalidRequest) what asks for too much, and a name that has a job already; nothing else, and then nothing was written.
2. An attempt without an instance ends as CapacityUnavailable after the launch patience, and after what is left of the hours that its job
   may wait, if EC2 refused for capacity or, while an attempt before may count against the quota, for a quota; as QuotaExceeded if EC2
   refused for a quota. So may an attempt whose nodes had all ended before anybody knew of its launch: they are asked for once more.
3. If every node told an exit with 0 the attempt ends well: as SyncIncomplete where a file that a last report's commits name is not
   whole, else with exactly those files in its list of artifacts.
4. Otherwise each of these may name it, if it happened: NodeLost (a node broke, or fell silent, before it told its end; or AWS took one
   back before its launch was known), NodeUnhealthy (a node said that its machine is at fault, and failed), TrainingFailed (a command
   failed by itself, or one that serves the others ended), DeadlineReached or BudgetExceeded (the time to stop was there, by hours or
   by money), Stalled (one node of a job without roles went on for two hours alone, or all stood still for as long as a request says
   that wants an end of that). BudgetExceeded is also the end of
   an attempt for which too little money was left to launch it.
5. NodeLost and Stalled are followed by a new attempt while time and recoveries are left, and by nothing else. A recovery is left unless
   so many were made since an attempt closed a checkpoint of a higher step than all before. A stall is followed by none where the
   request wants the job to end there. TrainingFailed is followed by one while time
   and retries of the request are left, if its command's exit code is one that the request names; no other end is.
6. Aborted is what a person stopped, and only that; its report says so in the end.
7. An attempt that was stopped and goes on after a redrive may be lost: what follows a stop has ended its nodes, or keeps it from having
   any. PatienceOver names its end only where the machine tells the time of its first entry.
8. Of a job with roles only the nodes of those that end it tell an end, and what they told stands whatever then becomes of the others.
   Where EC2 refuses some of its nodes after it launched others, the attempt ends as LaunchIncomplete; another follows, takes no
   recovery, and has what is left of the patience.
9. No trouble of calls and functions that is shorter than the machine's patience names an end: no throttle, no lost answer, no kill.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from contract import money
from contract.jobs import NoProgress, Reaction
from contract.reports import Exit
from contract.roles import RoleEnd
from localaws.services.ec2_instance import Machine
from tests.fakes import executions
from tests.fakes.faults import Mishap
from tests.properties.execution import HALF, MENDABLE, TAKEN, Execution
from tests.properties.world import Node

QUOTA = "VcpuLimitExceeded"
RETRIED_CODE = 75
HOUR, LATEST_S, UNSURE_S = 3600.0, 600.0, 1200.0
ON_DEMAND = {"g5.xlarge": 1.25, "g4dn.xlarge": 0.5}
USD = {kind: usd + 0.08 * 100 / 720 for kind, usd in ON_DEMAND.items()}
"""An hour of a node with its disk, by the prices of the fake."""


@dataclass
class Fate:
    """What really happened to an attempt."""

    nodes: dict[str, Node] = field(default_factory=dict)
    """By instance, of every launch."""
    refusals: list[tuple[float, str]] = field(default_factory=list)
    """When EC2 refused to launch, and why."""
    lost: bool = False
    taken: bool = False
    """AWS took a node back for its spot capacity."""
    unfit: bool = False
    """A node said that its machine is at fault, and its command failed."""
    failed: bool = False
    codes: set[int] = field(default_factory=set)
    """Exit codes with which commands failed by themselves."""
    closed: list[int] = field(default_factory=list)
    """Steps of the sets that were closed."""
    torn: set[str] = field(default_factory=set)
    """Instances of which a file that was committed is not whole."""
    files: dict[int, tuple[int, str, int, str]] = field(default_factory=dict)
    """By rank: rank, path, size and address of the artifacts that last reports name."""
    first_told_at: float = math.inf
    stands_since: float = math.inf
    """When its trainers began to stand still."""
    stood_s: float = 0.0
    """For how long they did, at most, before they went on again."""

    def cluster(self) -> list[Node]:
        """The nodes of the newest launch."""
        newest: dict[int, Node] = {}
        for node in sorted(self.nodes.values(), key=lambda one: one.machine.launched_at):
            newest[node.rank] = node
        return list(newest.values())

    def stands_s(self, now: float, warm_up_s: float) -> float:
        """For how long its trainers have stood still, beyond what they had to warm up once the last of them had begun."""
        every = [node for node in self.cluster() if node.exit is None or node.trains_since < math.inf]
        begun_at = max((node.trains_since for node in every), default=math.inf)
        return now - max(self.stands_since, begun_at + warm_up_s)

    def all_well(self, run: Run) -> bool:
        deciding = [node for node in self.cluster() if run.decides(node)]
        whole = not run.ends or len(deciding) == run.ends.count(RoleEnd.JOB)
        return whole and all(node.exit == Exit(code=0) for node in deciding)


@dataclass
class Run:
    """An execution, and what the world knows of it."""

    execution: Execution
    known: executions.Execution
    refused: bool
    """Admit has to refuse it."""
    nodes: int
    retries: int = 0
    """Of the request: after exit code 75."""
    cap_usd: float | None = None
    """Of the request."""
    stall: NoProgress | None = None
    """Of the request."""
    ends: tuple[RoleEnd, ...] = ()
    """What the end of each rank means; empty without roles."""
    stopped: bool = False
    status: str = "ABORTED"
    """How it was stopped."""
    redriven: set[int] = field(default_factory=set)
    """Attempts that were stopped, and were to go on by a redrive."""
    old_entry: bool = False
    """Whether the last redrive told the time at which its state was entered first."""
    armed: dict[str, Mishap] = field(default_factory=dict)
    """Function to what befalls its next invocation."""
    fates: dict[int, Fate] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.execution.id

    def fate(self, attempt: int) -> Fate:
        return self.fates.setdefault(attempt, Fate())

    def decides(self, node: Node) -> bool:
        """Whether the job ends by how the node's command ends."""
        return not self.ends or self.ends[node.rank] is RoleEnd.JOB

    def serves(self, node: Node) -> bool:
        """Whether the others need the node until the job is done."""
        return bool(self.ends) and self.ends[node.rank] is RoleEnd.SERVED

    def tries(self) -> tuple[int, Fate]:
        """The first of the attempts in a row that found no place for all nodes, up to the one at hand, and what EC2 refused to them."""
        first = self.execution.attempt
        while self.execution.verdicts.get(first - 1) == HALF:
            first -= 1
        each = (self.fate(number) for number in range(first, self.execution.attempt + 1))
        return first, Fate(refusals=[one for fate in each for one in fate.refusals])

    @property
    def endable(self) -> int:
        """The last attempt whose nodes may be ended: Terminate was entered for it, or a stop has closed it, and the one after it."""
        return max({*self.execution.terminating, *(attempt + 1 for attempt in self.redriven)}, default=0)

    def machines(self) -> list[Machine]:
        return [node.machine for fate in self.fates.values() for node in fate.nodes.values()]

    def billed(self, now: float) -> float:
        """What EC2 would bill for its nodes so far, US dollars."""
        return sum(
            USD[one.request["InstanceType"]] * (min(one.ending_at, now) - one.launched_at) / HOUR
            for one in self.machines()
        )

    def ends_after(self, stood_s: float) -> bool:
        """Whether the request wants an attempt to end that has stood still for so long."""
        wanted = self.stall is not None and self.stall.then is not Reaction.NOTIFY
        return wanted and self.stall is not None and stood_s >= self.stall.minutes * 60

    def nearly_broke(self, now: float) -> bool:
        """Whether its money cannot pay for an attempt that is worth a launch; what was spent is known to some minutes."""
        if self.cap_usd is None or self.execution.attempt == 1:
            return False
        worth_s = money.least_s(self.execution.timing) + UNSURE_S
        return self.cap_usd - self.billed(now) < self.nodes * max(USD.values()) * worth_s / HOUR

    def overspent(self, now: float) -> bool:
        """Whether it has cost more than its cap, and what ten minutes of it cost: so long after a deadline nothing may run."""
        most = (self.cap_usd or 0.0) + self.nodes * max(USD.values()) * LATEST_S / HOUR
        return self.cap_usd is not None and self.billed(now) > most


def allowed_ends(run: Run, now: float, stop_at: float) -> set[str]:
    """The errors with which the attempt at hand may go to Terminate now; empty text is success."""
    attempt, timing = run.execution.attempt, run.execution.timing
    fate = run.fate(attempt)
    redriven = attempt - 1 in run.redriven or attempt in run.redriven
    late = {"PatienceOver"} if redriven and run.old_entry else set[str]()
    first, tries = run.tries()
    if not fate.nodes:
        named = _nowhere(first, tries, run.execution, now) | ({"BudgetExceeded"} if run.nearly_broke(now) else set())
        return named | late | ({"NodeLost"} if redriven else set())
    well = late | ({"SyncIncomplete"} if any(node.machine.id in fate.torn for node in fate.cluster()) else {""})
    if fate.all_well(run) and not run.ends:
        return well
    stood_s = max(fate.stood_s, fate.stands_s(now, timing.warm_up_s))
    happened = {
        "NodeLost": fate.lost or redriven or (fate.taken and attempt not in run.execution.launched),
        TAKEN: fate.taken,
        "NodeUnhealthy": fate.unfit,
        "TrainingFailed": fate.failed,
        run.execution.late_error: now >= stop_at,
        HALF: bool(run.ends) and bool(fate.refusals),
        "Stalled": (not run.ends and now >= fate.first_told_at + timing.uneven_allowance_s) or run.ends_after(stood_s),
    }
    asked_again = attempt not in run.execution.launched and not any(
        node.machine.runs(now) for node in fate.nodes.values()
    )
    return (
        late
        | {name for name, did in happened.items() if did}
        | (well if fate.all_well(run) else set())
        | (_nowhere(first, tries, run.execution, now) if asked_again else set())
    )


def _nowhere(attempt: int, fate: Fate, execution: Execution, now: float) -> set[str]:
    """Rule 2, of the first attempt in a row that found no place."""
    found, timing = set[str](), execution.timing
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
    if said != execution.verdicts[execution.attempt]:
        return False
    stops = run.stall is not None and run.stall.then is Reaction.STOP
    left, over = Left(recoveries=execution.recoveries, retries=run.retries, stops=stops), now >= execution.deadline
    for attempt, error in sorted(execution.verdicts.items()):
        may, must = left.after(error, run.fate(attempt))
        if attempt < execution.attempt and not may:
            return False
    return execution.state == ("Failed" if said else "Done") and (over or not must)


@dataclass
class Left:
    """What a job has left for new attempts, as its attempts end one after the other."""

    recoveries: int
    retries: int
    stops: bool = False
    """Whether the request wants the job to end where it is stalled."""
    row: int = 0
    step: int = -1

    def after(self, error: str, fate: Fate) -> tuple[bool, bool]:
        """Whether a new attempt may follow, and whether it must, but for the deadline. Of two commands that failed with different codes
        either may be the first."""
        newest = max(fate.closed, default=-1)
        self.row, self.step = 0 if newest > self.step else self.row, max(newest, self.step)
        if error == TAKEN:  # by AWS: it takes no recovery
            return (self.recoveries > 0,) * 2
        if error == HALF:
            return True, True
        if error == "Stalled" and self.stops:
            return False, False
        if error in MENDABLE:
            self.row += 1
            return (self.row <= self.recoveries,) * 2
        if error == "TrainingFailed" and self.retries and RETRIED_CODE in fate.codes:
            self.retries -= 1
            return True, fate.codes == {RETRIED_CODE}
        return False, False
