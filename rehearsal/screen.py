"""Shows a person how a job is rehearsed, and the table at its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from contract.keys import PAGE
from contract.roles import name_rank
from contract.text import one_line
from rehearsal.parts import Part, Parts
from rehearsal.replaced import describe_conditions, describe_replaced, not_deployed, write_replaced
from rehearsal.runs import shorten
from rehearsal.story import Scene, Story, attempt_of

if TYPE_CHECKING:
    from rehearsal.summary import Summary
    from rehearsal.yard import StartedJob

STATES = ("Admit", "Launch", "Train", "Sync", "Terminate", "Decide", "Done", "Failed")
MOST_NODES = 8
"""Nodes of a job with roles that the table names, with their roles and ends."""
MOST_SAID = 500
"""Characters that are shown of what a node says."""


class Screen:
    """Shows progress on a terminal; prints lines where there is no terminal. With `verbose` it holds nothing back."""

    def __init__(self, console: Console, *, verbose: bool = False) -> None:
        self.console = console
        self.verbose = verbose
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
        """Tells the job's story until the execution ends; raises TimeoutError after `limit_s` seconds."""
        show = self._live if self.console.is_terminal else self._lines
        deadline, story = time.monotonic() + limit_s, Story()
        with show(job) as refresh:
            while True:
                runs = job.runs()
                if runs and time.monotonic() > deadline:
                    raise TimeoutError(f"{job.name} still runs after {limit_s:.0f} s, in {', '.join(job.states())}")
                for line in story.tell(read_scene(job), time.monotonic()):
                    self.say(escape(line))
                refresh()
                if not runs:
                    return
                time.sleep(every_s)

    @contextmanager
    def _live(self, job: StartedJob) -> Iterator[Callable[[], None]]:
        with Live(console=self.console, transient=True, refresh_per_second=4) as live:
            yield lambda: live.update(self._picture(job))

    @contextmanager
    def _lines(self, _job: StartedJob) -> Iterator[Callable[[], None]]:
        yield lambda: None

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
        reports = job.reports(attempt)
        roles = job.describe_admitted().roles if reports else ()
        for rank, report in sorted(reports.items()):
            progress = report.progress
            table.add_row(
                name_rank(roles, rank).removeprefix("rank "),
                _plain(report.instance),
                report.phase.value,
                str(progress.step) if progress else "",
                f"{progress.metric:.4f}" if progress and progress.metric is not None else "",
                _plain(report.note),
            )
        return table

    def summary(self, summary: Summary, shortcomings: list[str], left_out: Sequence[str], out: Path) -> None:
        """Prints the table, where the rest is, and the verdict; `out` receives what a rehearsal replaces."""
        table = Table(title="Rehearsal", show_header=False)
        for name, value in (*list_facts(summary), *(list_figures(summary) if self.verbose else ())):
            table.add_row(name, escape(value))
        if "Launch" in summary.state_path or self.verbose:  # of a refused request the reasons say everything
            self.console.print(table)
        for line in (*list_interruptions(summary.interruptions), *summary.harmless_faults):
            self.console.print(line, markup=False, highlight=False)
        about = [describe_conditions(summary.conditions), describe_replaced(), not_deployed(left_out)]
        short = write_replaced(out, about)
        for line in about if self.verbose else [short]:
            self.console.print(f"[dim]{escape(line)}[/dim]", highlight=False)
        for line in shortcomings:
            self.console.print(f"[red]{escape(line)}[/red]")


def read_scene(job: StartedJob) -> Scene:
    """Reads what can be seen of a job now."""
    states = job.states()
    attempt = attempt_of(states)
    reports = job.reports(attempt)
    return Scene(
        states=states,
        reports=reports,
        roles=job.describe_admitted().roles if reports else (),
        strikes=[
            (one.attempt, one.rank, one.fault.name) for one in job.yard.node_faults.strikes if one.job == job.name
        ],
        ends=job.read_ends() if attempt > 1 else {},
    )


def list_facts(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yields what everybody wants to know of a job that has ended; nothing that is unknown or does not exist."""
    yield "job", summary.job
    yield "execution", f"{summary.status}{f': {summary.error}' if summary.error else ''}"
    yield "states", " → ".join(summary.state_path)
    yield "attempts", str(summary.attempts)
    if summary.roles:
        more = len(summary.roles) - MOST_NODES
        yield "nodes", "\n".join([*summary.roles[:MOST_NODES], *([f"{more} more: summary.json"] if more > 0 else [])])
    if summary.world_size:
        yield "world size", str(summary.world_size)
    if summary.metric is not None:
        yield "metric", f"{summary.metric:.4f}"
    if summary.artifacts:
        yield "artifacts", str(len(summary.artifacts))
    yield "instances left", str(summary.instances_left)
    if summary.cost_usd is not None:
        yield "cost", f"${summary.cost_usd:.4g} at most, by the prices of an account"
    yield "time", f"{summary.execution_s:.0f} s of {summary.wall_s:.0f} s with the deployment"
    if not summary.layer.startswith("the deployed layer"):
        yield "functions ran with", summary.layer


def list_figures(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yields what a developer of Trainyard wants to know beside that."""
    yield "log streams", ", ".join(summary.log_streams)
    yield "transitions, events", f"{summary.transitions}, {summary.history_events}"
    known = {"overhead": summary.overhead_s, "boot": summary.boot_s, "imports": summary.import_s}
    if any(value is not None for value in known.values()):
        yield (
            "overhead, boot, imports",
            ", ".join(f"{name} {value} s" for name, value in known.items() if value is not None),
        )
    yield "functions ran with", summary.layer
    yield "AWS calls", str(sum(summary.calls.values()))


def describe_next(out: Path, *, is_well: bool, attempts: int) -> str:
    """Returns what a person does next: read the page of the run, where there is one. Empty where the cause has said it."""
    page = out / PAGE
    if page.exists():
        return f"Next: open the page of the run, {shorten(page)}"
    if not is_well:
        return ""
    if attempts > 1:
        return "Next: the same in an account (docs/tutorials/first-account-run.md)"
    return (
        "Next: what a lost node costs it: the same command with --fault node-lost:rank=0 (docs/tutorials/rehearse.md)"
    )


def list_interruptions(each: Sequence[dict[str, Any]]) -> list[str]:
    """Returns a line for each interruption, since a column would leave nothing of its cause, and one for each attempt that had no
    checkpoint to go on from."""
    lines = []
    for one in each:
        lost = "" if one["steps_lost"] is None else f", {one['steps_lost']} steps lost"
        again = "" if one["recovery_s"] is None else f", training again after {one['recovery_s']:.0f} s"
        why = one_line(str(one["cause"]).partition("\n")[0], MOST_SAID)
        lines.append(f"attempt {one['attempt']}: {one['error']}{lost}{again}. {why}")
        if one["began_anew"]:
            lines.append(f"attempt {one['attempt'] + 1} started from the beginning: {one['began_anew']}")
    return lines


def _plain(said: str) -> Text:
    """Returns what a node says of itself: code of a job may write it, and steer a terminal."""
    return Text(one_line(said, MOST_SAID))
