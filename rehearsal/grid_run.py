"""Runs one grid on a local AWS, from its deployment to its results."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from pathlib import Path

from rich.markup import escape

from localaws.conditions import Conditions
from localaws.containers import real
from rehearsal import grid, grid_screen
from rehearsal.deployment import context
from rehearsal.fault_check import list_missing_lines
from rehearsal.grid_command import describe_cluster, has_clusters, regions
from rehearsal.options import LAST_LAYER_S, bound_wait
from rehearsal.pages import leave_page
from rehearsal.runs import Run, leave, shorten
from rehearsal.screen import Screen
from rehearsal.yard import Yard

STACKS = ("grid", "images", "reaper", "pages")
"""Stacks that a grid needs, without those they depend on; `images` builds the child's image."""
CLUSTERS = ("workflow",)
"""Stacks that its lines on clusters of our own need beside them."""
PODS = ("kubernetes",)
"""Stacks that its lines on Kubernetes need beside them."""


def carry_out(options: argparse.Namespace, screen: Screen, run: Run) -> int:
    """Returns 0 only if every line completed and nothing runs; see `rehearsal.grid.shortcomings`."""
    conditions = Conditions(speed=options.speed, seed=options.seed)
    kubernetes = describe_cluster(options, context(1.0)["trainyard"].get("kubernetes", {}))
    settings = {"regions": regions(options), **({"kubernetes": kubernetes} if kubernetes else {})}
    wanted = (*STACKS, *(CLUSTERS if has_clusters(options) else ()), *(PODS if kubernetes else ()))
    really = real.announced(screen.say)
    with Yard(run.work, conditions, settings=settings, wanted=wanted, parts=screen.parts, real_images=really) as yard:
        prepare(yard, screen, options)
        with yard.faults(options.faults):
            return rehearse(yard, screen, options, run)


def prepare(yard: Yard, screen: Screen, options: argparse.Namespace) -> None:
    """Builds the image and uploads the data, where the command line names them."""
    if options.image:
        with screen.parts.part(f"image of {options.image}, into every region"):
            grid.build_image(yard, options.image, options.limit)
    if options.grid_data:
        for region, address in grid.upload_data(yard, options.grid_data).items():
            screen.say(f"data of {region}: {address}")


def rehearse(yard: Yard, screen: Screen, options: argparse.Namespace, run: Run) -> int:
    """Runs one grid from its manifest to its summary."""
    address = grid.upload_manifest(yard, options.text, f"{run.name}{options.manifest.suffix}")
    job = grid.start(yard, {**options.request, "manifest": address}, run.name)
    screen.say(f"grid [bold]{run.name}[/bold]: {address}")
    late = []
    try:
        with screen.parts.part("execution"):
            grid_screen.follow(job, screen.say, options.limit)
        job.settle_grid(bound_wait(LAST_LAYER_S, options.speed))
    except TimeoutError as problem:
        late.append(str(problem))
    summary = grid.summarise(job, wall_s=time.monotonic() - screen.began)
    wrong = [*late, *grid.shortcomings(summary), *list_missing_lines(options.faults, summary.lines)]
    keep(job, summary, run.out, whole=bool(wrong))
    if summary.lines:
        grid_screen.show(
            screen.console, summary, yard.aws.conditions, wrong, yard.left_out, out=run.out, real_images=yard.real_images,
            verbose=screen.verbose,
        )  # fmt: skip
    else:
        screen.say(f"[red]the execution ended as {summary.status}: {summary.error}[/red]")
    if summary.cause:
        screen.say(f"[red]{escape(summary.cause)}[/red]")
    leave_page(job, job.prefix.page, run.out, screen.say)
    screen.say(
        f"report.html (open it), results.csv, failed.jsonl, report.json, summary.json, recorded calls: {shorten(run.out)}"
    )
    return 1 if wrong else 0


def keep(job: grid.GridJob, summary: grid.GridSummary, out: Path, *, whole: bool) -> None:
    """Writes everything that a person may want to read afterwards to files; with `whole`, the functions' logs too."""
    leave(out, asdict(summary), job.yard.aws.recorder.calls)
    written = (job.prefix.results_csv, job.prefix.results_jsonl, job.prefix.failed, job.prefix.report)
    for key in (job.prefix.description, *written):
        if (body := job.read(key)) is not None:
            (out / key.rpartition("/")[2]).write_bytes(body)
    if whole:
        keep_logs(job.yard, out)


def keep_logs(yard: Yard, out: Path) -> None:
    """Writes what every function said to a file of its own."""
    for function, lines in yard.aws.workers.logs().items():
        (out / f"{function}.log").write_text("\n".join(lines) + "\n")
