"""Shows a person how a grid is rehearsed, and the table at its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from contract.grid import Backend
from contract.text import one_line
from localaws.conditions import Conditions
from localaws.containers import real
from localaws.services import batch, codebuild, ecr, kubernetes, sagemaker
from rehearsal.grid import GridJob, GridSummary
from rehearsal.replaced import REPLACED as ON_CLUSTERS
from rehearsal.replaced import not_deployed, write_replaced

OF_IMAGES = (sagemaker.NOT_SHOWN[-1], batch.NOT_SHOWN[-1], codebuild.NOT_SHOWN)
REPLACED = (
    *sagemaker.NOT_SHOWN[:-1],
    *batch.NOT_SHOWN[:-1],
    ecr.NOT_SHOWN,
    "IAM: calls are recorded; tests put them to a simulator",
    "AWS's network: its pace and latency",
    "the Price List: a few types' prices stand in, and billable seconds are those that this computer took",
)
REAL = "The templates, the state machine, its functions, the child and the training program are the real ones."
MODELS = 10
"""The most models that are listed one by one."""
REASONS, MOST_REASON = 20, 1000
"""The most reasons that are listed, and characters of each."""


def follow(job: GridJob, say: Callable[[str], None], limit_s: float, every_s: float = 1.0) -> None:
    """Prints a line whenever something has changed, until the execution ends. Raises TimeoutError after `limit_s` seconds."""
    deadline, last = time.monotonic() + limit_s, ""
    while job.runs():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{job.name} still runs after {limit_s:.0f} s, in {', '.join(job.states())}")
        states = job.states()
        counts = ", ".join(f"{number} {state}" for state, number in sorted(job.progress().items()))
        line = ": ".join(filter(None, (states[-1] if states else "starting", counts)))
        if line != last:
            last = line
            say(line)
        time.sleep(every_s)


def show(
    console: Console,
    summary: GridSummary,
    conditions: Conditions,
    wrong: list[str],
    left_out: Sequence[str] = (),
    *,
    out: Path,
    real_images: bool = False,
    verbose: bool = False,
) -> None:
    """Prints how every line ended (results.csv says more), the figures, where it says what was replaced, and the verdict."""
    console.print(_lines(summary))
    for line in list_reasons(summary):
        console.print(line, markup=False, highlight=False)
    models = [(one["index"], one["artifact"]) for one in summary.results if one["artifact"]]
    for index, artifact in models[:MODELS]:
        console.print(f"model of #{index}: {artifact}", highlight=False)
    if len(models) > MODELS:
        console.print(f"and {len(models) - MODELS} models more: results.csv")
    figures = Table(title="Rehearsal", show_header=False)
    for name, value in (
        ("execution", f"{summary.status}{f': {summary.error}' if summary.error else ''}"),
        ("states", " → ".join(summary.state_path)),
        ("lines", f"{summary.lines} in {', '.join(f'{region} ({n})' for region, n in summary.regions.items())}"),
        ("outcomes", ", ".join(f"{number} {name}" for name, number in summary.outcomes.items()) or "none"),
        ("billable, cost", f"{_sum(summary, 'billable_seconds'):.0f} s, ${_sum(summary, 'cost_usd'):.4f}"),
        ("trainings", f"{summary.trainings} of SageMaker, interrupted {summary.interruptions} times; {summary.jobs} jobs on clusters"),
        ("children", f"{summary.children}, attempts {summary.attempts}"),
        ("left", f"{len(summary.trainings_left)} trainings, {len(summary.children_left)} children, "
                 f"{summary.processes_left} processes, {summary.instances_left} instances"),
        ("execution, whole", f"{summary.execution_s} s, {summary.wall_s} s"),
    ):  # fmt: skip
        figures.add_row(name, str(value))
    console.print(figures)
    on_clusters = [f"Jobs on clusters. {ON_CLUSTERS}"] if summary.jobs else []
    replaced = describe_replaced(conditions, real_images=real_images, has_pods=_has_pods(summary))
    about = [*replaced, *on_clusters, not_deployed(left_out)]
    show_replaced(console, about, out, verbose=verbose)
    for line in wrong:
        console.print(f"[red]{escape(line)}[/red]")


def show_replaced(console: Console, about: Sequence[str], out: Path, *, verbose: bool) -> None:
    """Writes what was not the real thing to a file, and prints where it is; with `verbose`, all of it."""
    short = write_replaced(out, about)
    for line in about if verbose else [short]:
        console.print(f"[dim]{escape(line)}[/dim]", highlight=False)


def _has_pods(summary: GridSummary) -> bool:
    return any(one["backend"] == Backend.KUBERNETES for one in summary.results)


def describe_replaced(conditions: Conditions, *, real_images: bool, has_pods: bool) -> list[str]:
    """Returns under which conditions grids ran, and what was not the real thing. `has_pods`: lines ran on Kubernetes."""
    what = [*REPLACED, *(kubernetes.NOT_SHOWN if has_pods else ()), *((real.NOT_SHOWN,) if real_images else OF_IMAGES)]
    return [_conditions(conditions), "What this rehearsal replaces:", *(f"- {one}" for one in what), REAL]


def list_reasons(summary: GridSummary) -> list[str]:
    """Returns a line for each reason, with the lines of the manifest that ended for it: in a column nothing of it would be left."""
    numbers: dict[str, list[int]] = {}
    for one in summary.results:
        if one["reason"]:
            numbers.setdefault(one_line(one["reason"], MOST_REASON), []).append(one["index"])
    shown = [*numbers.items()][:REASONS]
    lines = [
        f"{', '.join(f'#{index}' for index in some[:MODELS])}{' ...' if len(some) > MODELS else ''}: {why}"
        for why, some in shown
    ]
    return [*lines, *([f"and {len(numbers) - REASONS} reasons more: results.csv"] if len(numbers) > REASONS else [])]


def _lines(summary: GridSummary) -> Table:
    table = Table(title=f"Grid {summary.grid}")
    for column in ("#", "line", "backend", "region", "status", "billable s", "cost $", "metrics"):
        table.add_column(column, overflow="fold")
    for one in summary.results:
        table.add_row(
            str(one["index"]),
            str(one["line"]),
            getattr(one["backend"], "value", str(one["backend"])),
            one["region"],
            getattr(one["outcome"], "value", str(one["outcome"])),
            f"{one['billable_seconds']:.0f}" if one["billable_seconds"] is not None else "",
            f"{one['cost_usd']:.4f}" if one["cost_usd"] is not None else "",
            ", ".join(f"{name} {value:g}" for name, value in one["metrics"].items()),
        )
    return table


def _sum(summary: GridSummary, name: str) -> float:
    return sum(one[name] or 0.0 for one in summary.results)


def _conditions(conditions: Conditions) -> str:
    (soonest, latest), (task, slowest) = conditions.training_start_s, conditions.task_start_s
    faults = ", ".join(fault.name for fault in conditions.faults) or "none"
    return (
        f"Conditions, in real seconds before the division by {conditions.speed:g}: {soonest:g} to {latest:g} s until a training has "
        f"its instances, {task:g} to {slowest:g} s until a child runs; {conditions.events_lost:.0%} of events lost; "
        f"{conditions.throttled:.0%} of calls throttled; pages of {conditions.page_size}; "
        f"functions timed out at the processor share of their memory; faults: {faults}."
    )
