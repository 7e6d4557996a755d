"""Runs one campaign on a local AWS: a file is uploaded, and the rest happens."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from localaws.conditions import Conditions
from localaws.containers import real
from rehearsal import campaign, grid, grid_screen
from rehearsal.deployment import context
from rehearsal.grid_run import keep, keep_logs, prepare
from rehearsal.options import LAST_LAYER_S, bound_wait
from rehearsal.runs import Run, leave, shorten
from rehearsal.screen import Screen
from rehearsal.yard import Yard

STACKS = ("campaigns", "catalogue", "images", "reaper")
"""Stacks that a campaign needs, without those they depend on; `images` builds the child's image."""
START_S, RUNS_S = 3600.0, 3600.0
"""How long the grid may take to start, and the keeper to write its lines, in the account's seconds."""
RESERVED = "g5.xlarge"


def carry_out(options: argparse.Namespace, screen: Screen, run: Run) -> int:
    """Returns 0 only if the grid started by itself, every line completed, the catalogue has its lines, and nothing runs."""
    conditions = Conditions(speed=options.speed, seed=options.seed)
    really = real.announced(screen.say)
    settings = {**options.settings, "regions": regions(options)}
    with Yard(run.work, conditions, settings=settings, wanted=STACKS, parts=screen.parts, real_images=really) as yard:
        prepare(yard, screen, options)
        with yard.faults(options.faults):
            return rehearse(yard, screen, options, run)


def regions(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Returns home with its network, as in the settings, and the named regions, which have networks too: prices are asked there."""
    settings = context(1.0)["trainyard"]
    (home,) = (place for place in settings["regions"] if place["region"] == settings["home_region"])
    more = sorted(set(options.region) - {home["region"]})
    return [home, *({"region": region, "cidr": f"10.{110 + place}.0.0/16"} for place, region in enumerate(more))]


def rehearse(yard: Yard, screen: Screen, options: argparse.Namespace, run: Run) -> int:
    """Fills the catalogue, uploads the object, and follows what it starts."""
    (name,) = options.settings["campaigns"]
    with screen.parts.part("catalogue: tables, prices, reservations"):
        catalogue = campaign.Catalogue(yard)
        for statement in options.statements:
            catalogue.run(statement)
        campaign.reserve(yard, RESERVED, options.region[:2])
        catalogue.learn()
    _show_market(screen, catalogue)
    screen.say(f"query: {escape(options.settings['campaigns'][name]['input'].get('query', ''))}")
    job = campaign.upload_marker(yard, name, run.name)
    began, speed = time.monotonic(), options.speed
    late, rows = list[str](), list[dict[str, Any]]()
    try:
        with screen.parts.part("start by the uploaded object"):
            campaign.wait_for_start(job, bound_wait(START_S, speed))
        screen.say(f"grid [bold]{job.name}[/bold] started {(time.monotonic() - began) * speed:.0f} s after the upload")
        with screen.parts.part("execution"):
            grid_screen.follow(job, screen.say, options.limit)
        _show_manifest(screen, job)
        job.settle_grid(bound_wait(LAST_LAYER_S, speed))
        with screen.parts.part("catalogue: the grid's lines"):
            rows = campaign.wait_for_runs(catalogue, job.name, len(job.records()), bound_wait(RUNS_S, speed))
    except TimeoutError as problem:
        late.append(str(problem))
    return _end(yard, screen, run, job, rows, late)


def _end(
    yard: Yard, screen: Screen, run: Run, job: campaign.StartedGrid, rows: Sequence[Mapping[str, Any]], late: list[str]
) -> int:
    if not job.has_started():
        leave(run.out, {"grid": job.name, "problems": late}, yard.aws.recorder.calls)
        keep_logs(yard, run.out)
        screen.say(f"[red]{escape('; '.join(late))}; the functions' logs and recorded calls: {run.out}[/red]")
        return 1
    summary = grid.summarise(job, wall_s=time.monotonic() - screen.began)
    wrong = [*late, *grid.shortcomings(summary)]
    keep(job, summary, run.out, whole=bool(wrong))
    _show_rows(screen, "What the catalogue has of it (table runs)", rows)
    if summary.lines:
        grid_screen.show(
            screen.console, summary, yard.aws.conditions, wrong, yard.left_out, out=run.out, real_images=yard.real_images,
            verbose=screen.verbose,
        )  # fmt: skip
    if summary.cause:
        screen.say(f"[red]{escape(summary.cause)}[/red]")
    screen.say(
        "PostgreSQL is real; Aurora's waking and sleeping are imitated. results.csv, report.json, summary.json, recorded calls: "
        f"{shorten(run.out)}"
    )
    return 1 if wrong else 0


def _show_market(screen: Screen, catalogue: campaign.Catalogue) -> None:
    _show_rows(
        screen,
        "Spot prices and free reservations (tables prices, capacity)",
        catalogue.run(
            "select p.region, p.type, p.usd, coalesce(sum(c.free), 0) as free from trainyard.prices p left join trainyard.capacity c "
            "on c.region = p.region and c.type = p.type where p.market = 'spot' group by p.region, p.type, p.usd order by p.usd"
        ),
    )


def _show_manifest(screen: Screen, job: grid.GridJob) -> None:
    """Prints the lines that the query's rows became."""
    plan = job.plan()
    body = job.read(plan.manifest.key) if plan else None
    for line in (body or b"").decode().splitlines():
        shown = {name: value for name, value in json.loads(line).items() if name != "hyperparameters"}
        screen.say(f"manifest: {escape(json.dumps(shown))}")


def _show_rows(screen: Screen, title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    table = Table(title=title)
    for column in rows[0] if rows else ():
        table.add_column(column)
    for row in rows:
        table.add_row(*(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()))
    screen.console.print(table)
