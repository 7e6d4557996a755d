"""Runs one job on a local AWS, from its deployment to its summary."""

from __future__ import annotations

import argparse
import time
from typing import Any

from contract import keys, workbench
from localaws.conditions import Conditions
from localaws.containers import real
from localaws.ports import Port
from rehearsal.diagnosis import diagnose
from rehearsal.director import Director
from rehearsal.grid import build_image
from rehearsal.intervals import describe_interval, list_early
from rehearsal.options import LAST_LAYER_S, bound_wait
from rehearsal.pages import leave_page
from rehearsal.parts import Parts
from rehearsal.runs import Run, leave, shorten
from rehearsal.screen import Screen, describe_next
from rehearsal.summary import count_nodes, shortcomings, summarise
from rehearsal.yard import StartedJob, Yard

STACKS = ("workflow", "reaper", "pages")
"""Stacks that a job needs, without those they depend on; the reaper is one of the layers that end what a job leaves."""

BENCH_TAKEN = (
    f"port {workbench.PORT}, on which every workbench listens, is taken on this computer: by another rehearsal of one, or by a JupyterLab "
    "of your own. End it first"
)
PHASES = {
    "Train: nodes boot and prepare": ("booted", "prepared"),
    "Train: nodes wait for each other": ("prepared", "started"),
    "Train: command to its first step": ("started", "first_step"),
    "Train: training": ("first_step", "ended"),
}
"""Moments of a node's timeline between which each part lies."""


def carry_out(options: argparse.Namespace, screen: Screen, run: Run) -> int:
    """Returns 0 only if the job is what was asked for; see `rehearsal.summary.shortcomings`."""
    if "workbench" not in options.request:
        return _carry_out(options, screen, run)
    try:
        port = Port(workbench.PORT, many=1)
    except OSError:
        screen.say(f"[red]{BENCH_TAKEN}[/red]")
        return 1
    try:
        return _carry_out(options, screen, run)
    finally:
        port.release()


def _carry_out(options: argparse.Namespace, screen: Screen, run: Run) -> int:
    _announce_interval(options, screen)
    conditions = Conditions(speed=options.speed, seed=options.seed)
    wanted = (*STACKS, "builds") if options.image else STACKS
    really = bool(options.image) and real.announced(screen.say)
    yard = Yard(run.work, conditions, wanted=wanted, parts=screen.parts, real_images=really)
    with yard, yard.faults(options.faults):
        if options.image:
            with screen.parts.part(f"image of {options.image}"):
                build_image(yard, options.image, options.limit)
        return rehearse(yard, screen, options, run)


def _announce_interval(options: argparse.Namespace, screen: Screen) -> None:
    """Says before anything is deployed how often checkpoints are due, and which faults may come before the first."""
    screen.say(describe_interval(options.checkpoint_minutes, options.request["checkpoint_minutes"]))
    waiting = [one.fault for one in options.entries if one.begin.closed is None]
    for line in list_early([*options.faults, *waiting]):
        screen.say(line)


def rehearse(yard: Yard, screen: Screen, options: argparse.Namespace, run: Run) -> int:
    """Runs one job from its upload to its summary."""
    request = dict(options.request)
    if options.archive is not None:
        with screen.parts.part("upload"):
            request["code"] = yard.upload_archive(options.archive, run.name)
    director = Director(yard, run.name, options.entries)
    with director:
        return _followed(yard, director, request, screen, options, run)


def _followed(
    yard: Yard, director: Director, request: dict[str, Any], screen: Screen, options: argparse.Namespace, run: Run
) -> int:
    """Starts the job, and follows it to its summary."""
    job = yard.start(request, run.name)
    offset = time.time() - time.monotonic() + screen.began
    screen.say(f"job [bold]{run.name}[/bold]: {request.get('image') or request['code']}")
    late = []
    try:
        with screen.parts.part("execution"):
            screen.follow(job, options.limit)
    except TimeoutError as problem:
        late.append(str(problem))
    if not late:
        with screen.parts.part("nodes' processes end"):
            job.settle(bound_wait(LAST_LAYER_S, options.speed))
    with screen.parts.part("summary"):
        time_execution(job, screen.parts, offset)
        summary = summarise(job, wall_s=time.monotonic() - screen.began)
        job.download(run.out)
        leave(run.out, summary.document(), yard.aws.recorder.calls)
    wrong = late or shortcomings(summary, nodes=count_nodes(request), metric_at_least=options.metric_at_least)
    wrong = [*wrong, *(f"fault {one}" for one in director.missing())]
    if options.entries:
        director.write(run.out / "scenario.json")
    if wrong:
        diagnose(job, screen.console, run.out)
    screen.summary(summary, wrong, yard.left_out, run.out)
    leave_page(job, keys.JobPrefix(run.name).page, run.out, screen.say)
    screen.say(f"summary, artifacts, logs and recorded calls: {shorten(run.out)}")
    if step := describe_next(run.out, is_well=not wrong, attempts=summary.attempts):
        screen.say(step)
    return 1 if wrong else 0


def time_execution(job: StartedJob, parts: Parts, offset: float) -> None:
    """Times the job's states, and the slowest node of the last attempt in them; `offset` is the rehearsal's start, since the epoch."""
    for name, at, until in job.spans():
        parts.known(name, at - offset, until - at)
    for name, (begin, end) in PHASES.items():
        moments = [one.timeline for one in job.reports(job.attempt()).values()]
        spans = [(one[begin], one[end]) for one in moments if begin in one and end in one]
        if spans:
            at, until = min(at for at, _ in spans), max(until for _, until in spans)
            parts.known(name, at - offset, until - at)
