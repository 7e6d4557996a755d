"""Summarises a rehearsed job: the figures of `summary.json`, and whether they are as promised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from contract import tags
from contract.jobs import Launcher
from contract.reports import NodeReport
from contract.roles import name_place
from localaws.services import ec2
from rehearsal.interruptions import AttemptRecord, Interruption, interruptions
from rehearsal.intervals import ORDERLY, Interval
from rehearsal.node_faults import list_harmless
from rehearsal.yard import StartedJob

ABORT = "abort-in-state"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """`rehearsal/out/summary.json`."""

    status: str
    """Status of the execution: SUCCEEDED, FAILED, ABORTED, TIMED_OUT."""
    job: str
    attempts: int
    world_size: int
    metric: float | None
    artifacts: list[str]
    log_streams: list[str]
    instances_left: int
    state_path: list[str]
    transitions: int
    history_events: int
    overhead_s: float | None
    """Seconds from the start of the execution to the first attempt's first training step, less node boot and framework import."""
    wall_s: float
    """Seconds of the whole rehearsal, including set-up of the account and deployment."""
    execution_s: float
    boot_s: float | None
    import_s: float | None
    processes_per_node: int = 0
    """Processes that the launcher of the request starts on each node; 0 where the command itself decides."""
    roles: list[str] = field(default_factory=list)
    """Of a job with roles, how each node of the last attempt ended."""
    error: str = ""
    cause: str = ""
    interruptions: list[dict[str, Any]] = field(default_factory=list)
    """Of `rehearsal.interruptions`: attempt, error, cause, steps_lost, recovery_s and began_anew of each attempt that another
    one followed."""
    idle_faults: list[str] = field(default_factory=list)
    """Of the faults that were asked for and struck nothing: the name, and why."""
    harmless_faults: list[str] = field(default_factory=list)
    """Of the faults that ended a machine and interrupted nothing: a sentence each."""
    cost_usd: float | None = None
    """What the instances cost at most by the prices of an account, as the job's report has it; None where nothing was launched."""
    layer: str = ""
    """From where the functions imported their libraries."""
    calls: dict[str, int] = field(default_factory=dict)
    """AWS calls by role."""
    conditions: dict[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        return asdict(self)


def summarise(job: StartedJob, *, wall_s: float) -> Summary:
    """Reads everything back from the places that the product's documentation names."""
    aws, execution, history = job.yard.aws, job.describe(), job.history()
    states = job.states()
    retries = sum(event["type"] == "TaskScheduled" for event in history) - sum(
        event["type"] == "TaskStateEntered" for event in history
    )
    reports = job.reports(job.attempt())
    first, last = job.reports(1).get(0), reports.get(0)
    begun = execution["startDate"].timestamp()
    boot = _boot_s(job)
    imports = first.progress.import_s if first and first.progress else None
    first_step = first.timeline.get("first_step") if first else None
    whole, detail = aws.workers.imported_layer()
    return Summary(
        status=execution["status"],
        job=job.name,
        attempts=job.attempt(),
        world_size=_world(reports),
        metric=last.progress.metric if last and last.progress else None,
        artifacts=job.artifacts(),
        log_streams=job.log_streams(),
        instances_left=job.instances_left(),
        state_path=states,
        transitions=len(states) + 1 + max(0, retries),
        history_events=len(history),
        overhead_s=round(first_step - begun - (boot or 0.0) - (imports or 0.0), 2) if first_step else None,
        wall_s=round(wall_s, 1),
        execution_s=round(execution.get("stopDate", execution["startDate"]).timestamp() - begun, 1),
        boot_s=round(boot, 2) if boot is not None else None,
        import_s=imports,
        processes_per_node=_count_processes(job) if execution["status"] == "SUCCEEDED" else 0,
        roles=_list_roles(job, reports),
        error=execution.get("error", ""),
        cause=execution.get("cause", ""),
        interruptions=[asdict(one) for one in _interruptions(job)],
        idle_faults=_list_idle(job, states),
        harmless_faults=_list_harmless(job) if execution["status"] == "SUCCEEDED" else [],
        cost_usd=read_cost(job.read_report()),
        layer=("the deployed layer" if whole else "NOT the deployed layer") + f": {detail}",
        calls=_calls(job),
        conditions=_conditions(job),
    )


def read_cost(report: Mapping[str, Any]) -> float | None:
    """Returns the dollars of a job's report; None where it has none, or where a price is not known."""
    usd = (report.get("cost") or {}).get("usd_at_most")
    return float(usd) if isinstance(usd, (int, float)) else None


def count_nodes(request: Mapping[str, Any]) -> int:
    """Returns how many nodes a request asks for, which Admit has taken."""
    return sum(role.get("count", 1) for role in request.get("roles", ())) or int(request.get("nodes", 1))


def shortcomings(summary: Summary, *, nodes: int, metric_at_least: float | None) -> list[str]:
    """Returns why a rehearsal is not a success, a line per reason; empty if all is as promised."""
    lines = [f"the fault {one}" for one in summary.idle_faults]
    if summary.status != "SUCCEEDED":
        lines.append(f"the execution ended as {summary.status} ({summary.error})")
    if summary.instances_left:
        lines.append(f"{summary.instances_left} instances are left")
    if summary.status != "SUCCEEDED":
        return lines
    processes, world = summary.processes_per_node, summary.world_size
    if world and (world != nodes * processes if processes else world % nodes):
        lines.append(f"the trainer saw a world of {world}; expected: {_format_world(nodes, processes)}")
    if metric_at_least is not None and (summary.metric is None or summary.metric < metric_at_least):
        lines.append(f"the metric is {summary.metric}; expected: at least {metric_at_least}")
    if metric_at_least is not None and not world:
        lines.append(f"the trainer reported no world of {_format_world(nodes, processes)}")
    for rank in range(nodes):
        stream = f"{summary.job}/{summary.attempts}/{rank}"
        if stream not in summary.log_streams:
            lines.append(f"there is no log stream {stream}")
        if metric_at_least is not None and not any(f"/artifacts/rank-{rank:04d}/" in key for key in summary.artifacts):
            lines.append(f"there are no artifacts of rank {rank}")
    return lines


def _format_world(nodes: int, processes: int) -> str:
    return str(nodes * processes) if processes else f"{nodes}, or a multiple of it"


def _list_idle(job: StartedJob, states: Sequence[str]) -> list[str]:
    faults = job.yard.aws.conditions.faults
    machines = [one for one in ec2.machines().all() if one.marks.get(tags.JOB) == job.name]
    never = [
        f"{one.name} stopped nothing: the execution did not come to {one.text('state')}"
        for one in faults
        if one.name == ABORT and one.text("job") in {"", job.name} and one.text("state") not in states
    ]
    return [*job.yard.node_faults.list_idle(faults, job.name, machines), *never]


def _list_harmless(job: StartedJob) -> list[str]:
    return list_harmless((one for one in job.yard.node_faults.strikes if one.job == job.name), job.attempt())


def _interruptions(job: StartedJob) -> list[Interruption]:
    count = job.attempt()
    if count < 2:
        return []
    admitted = job.describe_admitted()
    interval = Interval(admitted_at=admitted.admitted_at, every_s=admitted.checkpoint_minutes * 60)
    return interruptions([_record(job, number) for number in range(1, count + 1)], job.recovered(), interval)


def _record(job: StartedJob, attempt: int) -> AttemptRecord:
    of = {tags.JOB: job.name, tags.ATTEMPT: str(attempt)}
    return AttemptRecord(
        reports=job.reports(attempt),
        last_steps=[
            job.yard.node_faults.last_step(node)
            for node in job.yard.nodes.all()
            if of.items() <= node.machine.marks.items()
        ],
        struck_at=[
            strike.at
            for strike in job.yard.node_faults.strikes
            if (strike.job, strike.attempt) == (job.name, attempt) and strike.fault.name not in ORDERLY
        ],
    )


def _world(reports: dict[int, NodeReport]) -> int:
    return max((report.progress.world_size for report in reports.values() if report.progress), default=0)


def _list_roles(job: StartedJob, reports: dict[int, NodeReport]) -> list[str]:
    admitted = job.describe_admitted() if reports else None
    lines = list[str]()
    for rank, report in sorted(reports.items()):
        if admitted is None or not (place := name_place(admitted.roles, rank)):
            continue
        end = report.exit
        how = "had not ended" if end is None else "was stopped" if end.ordered else f"exited with code {end.code}"
        lines.append(f"rank {rank}, {place}: {how}")
    return lines


def _count_processes(job: StartedJob) -> int:
    """Returns how many processes the launcher of the request starts on each node; 0 without a launcher, and where nothing was launched."""
    wanted = {tags.JOB: job.name, tags.ATTEMPT: str(job.attempt())}.items()
    types = {one.request["InstanceType"] for one in ec2.machines().all() if wanted <= one.marks.items()}
    admitted = job.describe_admitted() if types else None
    if admitted is None or admitted.launcher is Launcher.NONE:
        return 0
    return max(map(admitted.processes_of, types))


def _boot_s(job: StartedJob) -> float | None:
    """Returns the seconds from RunInstances to the first line of user data, for the slowest node of the first attempt."""
    times = [
        machine.booted_at - machine.launched_at
        for machine in ec2.machines().all()
        if machine.booted_at is not None
        and machine.tags.get(tags.JOB) == job.name
        and machine.tags[tags.ATTEMPT] == "1"
    ]
    return max(times, default=None)


def _conditions(job: StartedJob) -> dict[str, Any]:
    conditions = job.yard.aws.conditions
    whole = asdict(conditions) | {"faults": {fault.name: dict(fault.given) for fault in conditions.faults}}
    del whole["faults_since"]
    return whole


def _calls(job: StartedJob) -> dict[str, int]:
    counts: dict[str, int] = {}
    for (role, _), number in job.yard.aws.recorder.counts().items():
        counts[role.rsplit("/", 1)[-1]] = counts.get(role.rsplit("/", 1)[-1], 0) + number
    return dict(sorted(counts.items()))
