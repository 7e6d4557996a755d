"""Runs searches on a local AWS, from the deployment to a table that compares them with Optuna alone."""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from localaws.conditions import Conditions
from localaws.containers import real
from localaws.services import kubernetes
from rehearsal import grid, grid_screen, search
from rehearsal.grid_run import keep_logs
from rehearsal.options import LAST_LAYER_S, bound_wait
from rehearsal.pages import leave_page
from rehearsal.replaced import not_deployed
from rehearsal.runs import Run, leave, shorten
from rehearsal.screen import Screen
from rehearsal.search_command import regions
from rehearsal.yard import Yard

STACKS = ("search", "images", "reaper", "pages")
"""Stacks that a search needs, without those they depend on; `images` builds the child's image."""
NO_SCORE = "the image's folder has no train.py with a function `score`, so Optuna alone has nothing to search"


def carry_out(options: argparse.Namespace, screen: Screen, run: Run) -> int:
    """Returns 0 only if every search ended well, asked what Optuna asks, and left nothing behind."""
    conditions = Conditions(speed=options.speed, seed=options.seed)
    really = real.announced(screen.say)
    settings = {"regions": regions(options)}
    score = read_score(options.image)
    with Yard(run.work, conditions, settings=settings, wanted=STACKS, parts=screen.parts, real_images=really) as yard:
        if options.image:
            with screen.parts.part(f"image of {options.image}, into every region"):
                grid.build_image(yard, options.image)
        with yard.faults(options.faults):
            return rehearse(yard, screen, options, run, score)


def read_score(image: Path | None) -> Callable[..., float]:
    """Returns the function that the image's training computes, for Optuna alone. Raises ValueError where it has none."""
    file = image / "train.py" if image else None
    if file is None or not file.exists():
        raise ValueError(NO_SCORE)
    spec = importlib.util.spec_from_file_location("searched", file)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, "score"):
        raise ValueError(NO_SCORE)
    found: Callable[..., float] = module.score
    return found


def rehearse(yard: Yard, screen: Screen, options: argparse.Namespace, run: Run, score: Callable[..., float]) -> int:
    """Runs a search for each seed, and shows the table."""
    late, jobs = list[str](), list[search.SearchJob]()
    requests = [{**options.request, "seed": seed} for seed in range(options.searches)]

    def one(request: dict[str, Any]) -> search.SearchJob:
        job = search.start(yard, request, f"{run.name}-s{request['seed']}")
        jobs.append(job)
        try:
            job.wait(options.limit)
        except TimeoutError as problem:
            late.append(str(problem))
        return job

    with screen.parts.part(f"{len(requests)} searches"), ThreadPoolExecutor(options.at_once) as pool:
        done = pool.map(one, requests)
        _follow(screen, jobs, len(requests))
        ended = list(done)
    ended[0].settle_grid(bound_wait(LAST_LAYER_S, options.speed))
    summaries = [
        search.summarise(job, request, score, options.found_at) for job, request in zip(ended, requests, strict=True)
    ]
    wrong = [*late, *(line for one in summaries for line in search.shortcomings(one)), *search.left(ended)]
    keep(yard, ended, summaries, run.out, whole=bool(wrong))
    show(screen, summaries, yard, wrong, options.found_at, run.out)
    for job in ended:
        leave_page(job, job.files.page, run.out / job.name.rpartition("-")[2], screen.say)
    screen.say(
        f"report.html (open it), trials.csv, best.json, report.json of each search, summary.json, recorded calls: {shorten(run.out)}"
    )
    return 1 if wrong else 0


def _follow(screen: Screen, jobs: list[search.SearchJob], count: int, every_s: float = 2.0) -> None:
    """Prints a line whenever a search has begun another round or has ended."""
    last = ""
    while True:
        states = [
            f"{job.name.rpartition('-')[2]} round {len(job.rounds())}" if job.runs() else "" for job in list(jobs)
        ]
        running = [one for one in states if one]
        line = ", ".join(running)
        if line and line != last:
            last = line
            screen.say(line)
        if len(states) == count and not running:
            return
        time.sleep(every_s)


def keep(
    yard: Yard, jobs: list[search.SearchJob], summaries: list[search.SearchSummary], out: Path, *, whole: bool
) -> None:
    """Writes everything that a person may want to read afterwards to files; with `whole`, the functions' logs too."""
    leave(out, {"searches": [asdict(one) for one in summaries]}, yard.aws.recorder.calls)
    for job in jobs:
        for key in (job.files.description, job.files.trials, job.files.best, job.files.report):
            if (body := job.read(key)) is not None:
                place = out / job.name.rpartition("-")[2]
                place.mkdir(exist_ok=True)
                (place / key.rpartition("/")[2]).write_bytes(body)
    if whole:
        keep_logs(yard, out)


def show(
    screen: Screen, summaries: list[search.SearchSummary], yard: Yard, wrong: list[str], found_at: float, out: Path
) -> None:
    """Prints a row for each search, what was replaced, and the verdict."""
    table = Table(title=f"Searches: trials until the objective is at least {found_at:g}")
    for column in ("seed", "rounds", "trials", "found", "alone", "seq.", "same", "best", "cost $"):
        table.add_column(column, no_wrap=True)
    for one in summaries:
        table.add_row(
            str(one.seed),
            str(one.rounds),
            str(one.trials),
            str(one.found_after),
            str(one.alone_after),
            str(one.in_sequence_after),
            "yes" if one.same_questions else "no",
            f"{one.best:.4f}" if one.best is not None else "",
            f"{one.cost_usd:.4f}",
        )
    screen.console.print(table)
    for one in summaries:
        screen.say(f"seed {one.seed} {one.status} after {one.execution_s:.0f} s: {escape(one.why)}")
    where = Counter[str]()
    for one in summaries:
        where.update(one.regions)
    screen.say(f"trainings: {sum(where.values())}, {', '.join(f'{region} {n}' for region, n in sorted(where.items()))}")
    screen.console.print(
        "[dim]found: trials until then. alone: the same of Optuna alone, one study in this process, told every round at once, with the "
        "same seeds. seq.: Optuna's own defaults, "
        "told each trial before the next. same: the search asked what Optuna alone asks.[/dim]"
    )
    about = [
        *grid_screen.describe_replaced(
            yard.aws.conditions, real_images=yard.real_images, has_pods=bool(kubernetes.clusters())
        ),
        not_deployed(yard.left_out),
    ]
    grid_screen.show_replaced(screen.console, about, out, verbose=screen.verbose)
    for line in wrong:
        screen.console.print(f"[red]{escape(line)}[/red]")
