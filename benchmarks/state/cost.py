"""Eight hours of four nodes, and an hour of nothing: recorded calls of the attendant's handler and of the node's Reporter and OrderWatch,
which live on one virtual clock. The other steps of a job run once in it, and are counted from the calls of a whole execution."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

from agent.orders import OrderWatch
from agent.reports import Reporter
from agent.table import NodeItems
from contract.reports import Exit, NodeReport, Phase, Progress
from localaws.services.dynamodb_state import Knobs
from tests.builders import JOB, NODE_ROLE, NOW
from tests.fakes.aws import CALL_S
from tests.fakes.fleet import SHARE, Fleet
from tests.fakes.functions import CLOCK_S, Functions
from tests.fakes.state import TABLE
from tests.fakes.yard import deployed
from tests.node.watching import Notices, watch
from tests.properties.jobs_world import JobsWorld

NODES, HOURS, HOUR_S = 4, 8, 3600.0
MONTH_H = 730
READ_USD, WRITE_USD = 0.125e-6, 0.625e-6
"""A request unit of DynamoDB on demand: aws.amazon.com/dynamodb/pricing/on-demand, us-east-1, since November 2024. Streams that only
Lambda reads cost nothing, nor do deletions by TTL."""
S3_WRITE_USD, S3_READ_USD = 5e-6, 0.4e-6
"""A PUT or LIST, and a GET: aws.amazon.com/s3/pricing, us-east-1."""
GB_S_USD, INVOCATION_USD = 0.0000166667, 0.2e-6
"""aws.amazon.com/lambda/pricing, x86, us-east-1."""
EVENT_USD = 1e-6
"""aws.amazon.com/eventbridge/pricing; ticks of a rule are counted with it, although the page names no price for them."""
TRANSITION_USD, TRANSITIONS = 0.025e-3, 15
"""aws.amazon.com/step-functions/pricing; a job without a recovery enters fewer states."""
LOG_USD, LOG_BYTES = 0.5e-9, 1000
"""A byte of logs that CloudWatch takes in, and those of an invocation: Lambda's three lines, and the attendant's verdict."""
MEMORY_GB = 0.5
STEP_S = 3.0
"""How long a step beside Train runs, with its cold start."""
BEFORE_USD = 0.046
BEFORE_TICK = {"S3 PUT, LIST": 2, "S3 GET": 1}
"""What a tick without jobs asked of S3: the note of the last pass, read and written, and a list of tokens."""
SILENT_AT_FIRST = NodeReport(job="", attempt=1, rank=0, instance="", phase=Phase.TRAINING, sent_at=NOW)


@dataclass
class Bill:
    """Amounts and dollars, by what was used."""

    lines: dict[str, tuple[float, float]] = field(default_factory=dict)

    def add(self, what: str, amount: float, usd: float) -> None:
        self.lines[what] = (amount, amount * usd)

    @property
    def usd(self) -> float:
        return sum(usd for _, usd in self.lines.values())


class Direct:
    """The two calls of a node's client, answered by the fleet's table."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def put_item(self, **request: Any) -> dict[str, Any]:
        return self._answer("PutItem", request)

    def get_item(self, **request: Any) -> dict[str, Any]:
        return self._answer("GetItem", request)

    def _answer(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        answer = self._fleet.aws.table.answer(operation, request)
        date = {"HTTPHeaders": {"date": formatdate(self._fleet.clock.now, usegmt=True)}}
        return {name: value for name, value in answer.items() if value is not None} | {"ResponseMetadata": date}


class Node:
    """The agent's two threads, at the pace of the contract."""

    def __init__(self, fleet: Fleet, rank: int) -> None:
        job, clock = fleet.jobs[0], fleet.clock
        instance = fleet.instances[job.id][rank]
        store = NodeItems(Direct(fleet), TABLE, NODE_ROLE, instance, monotonic=clock.monotonic)
        self._clock, self._step = clock, 0
        first = NodeReport(job=job.id, attempt=1, rank=rank, instance=instance, phase=Phase.TRAINING, sent_at=NOW)
        self._reporter = Reporter(
            store, first, nodes=NODES, every_s=job.timing.report_every_s, expires=job.deadline,
            progress=self._progress, note=lambda _: None, now=clock.time,
        )  # fmt: skip
        for moment in ("booted", "prepared", "addressed", "started", "first_step"):
            self._reporter.moment(moment)
        self._reporter.change(note="restored s3://bucket/checkpoints of step 1200 in 41 s", restored_step=1200)
        self._orders: OrderWatch = watch(store, Notices(), rank, now=NOW, monotonic=clock.monotonic)
        self._report()
        self._read_orders()

    def _progress(self) -> Progress:
        return Progress(step=self._step, world_size=NODES * 8, metric=0.1234567)

    def _report(self) -> None:
        self._step += 100
        key = f"jobs/job-0000/checkpoints/commits/attempt-0001/step-{self._step:010}/rank-00003.json"
        self._reporter.change(checkpoint=key, checkpoint_step=self._step)
        assert self._reporter.send()
        self._clock.at(self._clock.now + JOB.timing.report_every_s, self._report)

    def _read_orders(self) -> None:
        assert self._orders.read_order() is None
        self._clock.at(self._clock.now + JOB.timing.orders_every_s, self._read_orders)


def eight_hours(call_s: float, item_s: float) -> Bill:
    fleet = _run([NODES], HOURS * HOUR_S, call_s, item_s)
    bill, spent = Bill(), fleet.aws.table.spent
    node = {
        name: used
        for name, used in spent.items()
        if name[1].startswith(NODE_ROLE) and name[0] in {"PutItem", "GetItem"}
    }
    rest = [used for name, used in spent.items() if name not in node]
    bill.add("nodes: units written (reports)", sum(one.written for one in node.values()), WRITE_USD)
    bill.add("nodes: units read (orders)", sum(one.read for one in node.values()), READ_USD)
    bill.add("attendant: units written", sum(one.written for one in rest), WRITE_USD)
    bill.add("attendant: units read", sum(one.read for one in rest), READ_USD)
    _functions(bill, fleet)
    _launchers_clock(bill, call_s, HOURS)
    once = whole_execution()
    bill.add("other steps: units written, at most", once["dynamodb writes"] * 4, WRITE_USD)
    bill.add("other steps: units read, at most", once["dynamodb reads"] * 4, READ_USD)
    bill.add("other steps: S3 PUT, LIST", once["s3 writes"], S3_WRITE_USD)
    bill.add("other steps: S3 GET, HEAD", once["s3 reads"], S3_READ_USD)
    bill.add("other steps: GB-seconds", 8 * STEP_S * MEMORY_GB, GB_S_USD)
    bill.add("Step Functions: transitions, at most", TRANSITIONS, TRANSITION_USD)
    bill.add("stream: reads by Lambda", 0, 0.0)
    return bill


def idle_month(call_s: float, item_s: float) -> tuple[Bill, float]:
    """A deployment without jobs; and what the ticks' requests to S3 cost before."""
    fleet = _run([], HOUR_S, call_s, item_s)
    hour, month = Bill(), Bill()
    total = fleet.aws.table.total()
    hour.add("units written", total.written, WRITE_USD)
    hour.add("units read", total.read, READ_USD)
    _functions(hour, fleet)
    _launchers_clock(hour, call_s, 1)
    for what, (amount, usd) in hour.lines.items():
        month.lines[what] = (amount * MONTH_H, usd * MONTH_H)
    ticks = len(fleet.ticks) * MONTH_H
    asked = BEFORE_TICK["S3 PUT, LIST"] * S3_WRITE_USD + BEFORE_TICK["S3 GET"] * S3_READ_USD
    return month, ticks * asked


def _launchers_clock(bill: Bill, call_s: float, hours: int) -> None:
    """The launcher's own clock, while no job waits for capacity."""
    aws = deployed()
    aws.table.knobs = Knobs.plain()
    functions, ticks = Functions(aws), round(hours * HOUR_S / CLOCK_S)
    with functions.installed():
        for _ in range(ticks):
            assert functions.invoke("launcher", aws.events.event("aws.events", "Scheduled Event", {})).error == ""
    used = aws.table.total()
    bill.add("launcher: units written", used.written, WRITE_USD)
    bill.add("launcher: units read", used.read, READ_USD)
    lasted_s = len(aws.calls) * (CALL_S + call_s / SHARE)
    bill.add("launcher: GB-seconds", lasted_s * MEMORY_GB, GB_S_USD)
    bill.add("launcher: invocations", ticks, INVOCATION_USD)
    bill.add("launcher: ticks of its clock", ticks, EVENT_USD)
    bill.add("launcher: bytes of log", ticks * LOG_BYTES, LOG_USD)


def whole_execution() -> Counter[str]:
    """Calls of all functions but the attendant, in an execution of four nodes without trouble."""
    world, found = JobsWorld(0), Counter[str]()
    real, reads = world.watch.before, ("Get", "Head", "Query", "BatchGet")

    def before(call: Any) -> None:
        real(call)
        if world.watch.task.function not in {"", "attendant"}:
            found[f"{call.service} {'reads' if call.operation.startswith(reads) else 'writes'}"] += 1

    world.watch.before = before  # type: ignore[method-assign]
    try:
        run = world.ask("job", nodes=NODES)
        world.run(900.0)
        for node in world.living(run):
            world.leave(node, Exit(code=0))
        world.run(900.0)
        assert (run.execution.state, run.execution.problem) == ("Done", None)
    finally:
        world.close()
    return found


def _run(nodes: list[int], seconds: float, call_s: float, item_s: float) -> Fleet:
    fleet = Fleet(nodes, now=NOW, warm=1, reporting=False)
    fleet.aws.call_cpu_s, fleet.aws.item_cpu_s = call_s, item_s
    fleet.aws.table.knobs = Knobs.plain()
    fleet.aws.table.spent.clear()
    with fleet.installed():
        _living = [Node(fleet, rank) for rank in range(sum(nodes))]
        fleet.clock.run(seconds)
    assert fleet.problems == []
    assert {outcome for _, _, outcome in fleet.functions.log} == {"ok"}
    return fleet


def _functions(bill: Bill, fleet: Fleet) -> None:
    bill.add("attendant: GB-seconds", sum(fleet.lasted) * MEMORY_GB, GB_S_USD)
    bill.add("attendant: invocations", len(fleet.lasted), INVOCATION_USD)
    bill.add("clock: ticks", len(fleet.ticks), EVENT_USD)
    bill.add("attendant: bytes of log", len(fleet.lasted) * LOG_BYTES, LOG_USD)
