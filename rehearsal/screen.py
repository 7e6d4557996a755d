"""Shows a person how a job is rehearsed, and the table at its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from contract.reports import NodeReport
from contract.text import one_line
from localaws.machines.separation import can_separate
from rehearsal.parts import Part, Parts

if TYPE_CHECKING:
    from rehearsal.summary import Summary
    from rehearsal.yard import StartedJob

STATES = ("Admit", "Launch", "Train", "Sync", "Terminate", "Decide", "Done", "Failed")
MOST_SAID = 500
"""Characters that are shown of what a node says."""
REPLACED = (
    "What this rehearsal replaces: EC2, its capacity and placement groups (interfaces are checked as EC2 checks them, and no node "
    "has EFA; nodes are processes on loopback, in one network: each rehearsal has a `master_port` of its own, and security "
    "groups, which launches must name as on EC2, keep no node out; nodes have the computer's own name, so variables of the machines "
    "keep the shared memory of Open MPI apart and leave out its hierarchical collectives), the AMI and its "
    "drivers (a virtual environment with PyTorch), disks (a folder for each node, which is gone when it ends), "
    "systemd (stand-ins run the same units), Docker (the Dockerfile of the platform's own image is read, not "
    "run), IAM (a simulator decides for nodes; calls of functions are recorded, and tests put them to it), "
    "`cdk bootstrap` (its template is deployed without it), "
    "the pace and latency of AWS's network, DynamoDB's partitions and their throughput, "
    "the Price List (a few types' prices stand in), spot prices (made up), capacity and interruptions of "
    "spot (only when a fault says so), the delay "
    "of metrics. Rates of schedules, periods of alarms and time-outs of queues run at the rehearsal's speed, time-outs of "
    "functions do not. pip's download cache is shared between nodes, and so are processors: each node computes with one thread "
    "(OMP_NUM_THREADS)."
)
SAME_PATH = "Every node sees its own disk at one path, as on EC2, and no other node's."
OWN_PATHS = (
    "This computer gives no process mounts of its own, so the work folder has another path on each node: a job that writes absolute paths "
    "into its checkpoints finds none of them after a restart, but would on EC2. A node also sees the disks of nodes that still run, "
    "which it would not on EC2."
)


class Screen:
    """Shows progress on a terminal; prints lines where there is no terminal."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.parts = Parts(self._print_part)
        self.began = self.parts.began

    def say(self, text: str) -> None:
        self.console.print(f"[dim]{time.monotonic() - self.began:6.1f} s[/dim]  {text}", highlight=False)

    def _print_part(self, part: Part) -> None:
        """Prints a line at once, so that a long silence explains itself."""
        if part.took_s is None:
            self.say(f"{part.name} ...")
        else:
            self.say(f"{part.name}: {part.took_s:.1f} s{f' ({part.note})' if part.note else ''}")

    def follow(self, job: StartedJob, limit_s: float, every_s: float = 1.0) -> None:
        """Shows states and nodes until the execution ends; raises TimeoutError after `limit_s` seconds."""
        show = self._live if self.console.is_terminal else self._lines
        deadline = time.monotonic() + limit_s
        with show(job) as refresh:
            while job.runs():
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{job.name} still runs after {limit_s:.0f} s, in {', '.join(job.states())}")
                refresh()
                time.sleep(every_s)
            refresh()

    @contextmanager
    def _live(self, job: StartedJob) -> Iterator[Callable[[], None]]:
        with Live(console=self.console, transient=True, refresh_per_second=4) as live:
            yield lambda: live.update(self._picture(job))

    @contextmanager
    def _lines(self, job: StartedJob) -> Iterator[Callable[[], None]]:
        last: list[str] = []

        def refresh() -> None:
            states = job.states()
            nodes = ", ".join(_words(report) for report in job.reports(attempt_of(states)).values())
            line = f"{states[-1] if states else 'starting'}  {nodes}"
            if [line] != last:
                last[:] = [line]
                self.say(line)

        yield refresh

    def _picture(self, job: StartedJob) -> Table:
        states = job.states()
        attempt = attempt_of(states)
        path = Text("  ")
        for name in STATES:
            if name != "Failed" or "Failed" in states:
                style = "bold reverse" if states and states[-1] == name else "green" if name in states else "dim"
                path.append(name, style).append(" → " if name not in {"Done", "Failed"} else "", "dim")
        table = Table(box=None, title=f"{job.name}, attempt {attempt}, {time.time() - job.started:.0f} s", caption=path)
        for column in ("rank", "instance", "phase", "step", "metric", "note"):
            table.add_column(column)
        for rank, report in sorted(job.reports(attempt).items()):
            progress = report.progress
            table.add_row(
                str(rank),
                _plain(report.instance),
                report.phase.value,
                str(progress.step) if progress else "",
                f"{progress.metric:.4f}" if progress and progress.metric is not None else "",
                _plain(report.note),
            )
        return table

    def summary(self, summary: Summary, shortcomings: list[str], left_out: Sequence[str]) -> None:
        """Prints the table, what was replaced or not deployed, and the verdict."""
        table = Table(title="Rehearsal", show_header=False)
        for name, value in (
            ("job", summary.job),
            ("execution", f"{summary.status}{f': {summary.error}' if summary.error else ''}"),
            ("states", " → ".join(summary.state_path)),
            ("attempts", summary.attempts),
            ("world size", summary.world_size),
            ("metric", f"{summary.metric:.4f}" if summary.metric is not None else "none"),
            ("artifacts", len(summary.artifacts)),
            ("log streams", ", ".join(summary.log_streams)),
            ("instances left", summary.instances_left),
            ("transitions, events", f"{summary.transitions}, {summary.history_events}"),
            ("overhead", f"{summary.overhead_s} s (boot {summary.boot_s} s, imports {summary.import_s} s apart)"),
            ("execution, whole", f"{summary.execution_s} s, {summary.wall_s} s"),
            ("functions ran with", summary.layer),
            ("AWS calls", sum(summary.calls.values())),
        ):
            table.add_row(name, str(value))
        self.console.print(table)
        if summary.interruptions:
            self.console.print(_interruptions(summary.interruptions))
        self.console.print(f"[dim]{_conditions(summary.conditions)}[/dim]")
        self.console.print(f"[dim]{describe_replaced()}[/dim]")
        self.console.print(f"[dim]{not_deployed(left_out)}[/dim]", highlight=False)
        for line in shortcomings:
            self.console.print(f"[red]{line}[/red]")


def _interruptions(each: Sequence[dict[str, Any]]) -> Table:
    table = Table(title="Interruptions")
    for column in ("attempt", "error", "steps lost", "recovery, s", "cause"):
        table.add_column(column)
    for one in each:
        told = (one["attempt"], one["error"], one["steps_lost"], one["recovery_s"], one["cause"])
        table.add_row(*("" if value is None else escape(str(value)) for value in told))
    return table


def describe_replaced() -> str:
    """Returns what the rehearsal of a job replaces on this computer."""
    return f"{REPLACED} {SAME_PATH if can_separate() else OWN_PATHS}"


def not_deployed(left_out: Sequence[str]) -> str:
    """Returns a sentence for the printed result."""
    if not left_out:
        return "Every stack was deployed."
    return f"Not deployed, because this run needs none of it: {', '.join(left_out)}."


def attempt_of(states: Sequence[str]) -> int:
    """Returns the number of the attempt that the states entered so far have reached."""
    return max(1, states.count("Launch"))


def _conditions(conditions: dict[str, Any]) -> str:
    (soonest, latest), (short, long) = conditions["event_delay_s"], conditions["boot_s"]
    early, late = conditions["stream_delay_s"]
    return (
        f"Conditions, in real seconds before the division by {conditions['speed']:g}: boot {short:g} to {long:g} s; "
        f"{conditions['events_lost']:.0%} of events lost, the others {soonest:g} to {latest:g} s late; "
        f"{conditions['throttled']:.0%} of calls throttled; {conditions['metadata_lost']:.0%} of requests to a node's metadata "
        f"unanswered; pages of {conditions['page_size']}; DynamoDB: reads up to {conditions['table_lag_s']:g} s old unless consistent, "
        f"{conditions['table_short_pages']:.0%} of pages short, {conditions['table_unprocessed']:.0%} of a batch's keys left out, "
        f"{conditions['table_conflicts']:.0%} of writes met a transaction, records of its stream {early:g} to {late:g} s late and "
        f"{conditions['stream_doubled']:.0%} twice; functions timed out at the processor share of their memory; "
        f"faults: {', '.join(conditions['faults']) or 'none'}."
    )


def _plain(said: str) -> Text:
    """Returns what a node says of itself: code of a job may write it, and steer a terminal."""
    return Text(one_line(said, MOST_SAID))


def _words(report: NodeReport) -> str:
    step = f" step {report.progress.step}" if report.progress else ""
    return f"rank {report.rank} {report.phase.value}{step}"
