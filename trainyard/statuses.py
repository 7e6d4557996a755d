"""The command `status`: what runs and what ended lately, or how one job, grid or search stands."""

from __future__ import annotations

import time
from typing import Any

from contract import links
from contract.roles import name_place
from pages.words import duration
from trainyard.deployment import Deployment
from trainyard.following import EVERY_S, describe_end, describe_nodes, follow_job, show_cost, show_time
from trainyard.options import Command
from trainyard.patience import keep_following
from trainyard.printer import Printer
from trainyard.stops import CannotProceed, CommandExit
from trainyard.watching import (
    Listed,
    NodeReports,
    Watched,
    find,
    list_lately,
    read_last_state,
    read_story,
)

SHOWN_STATES = 20
"""Running executions whose state a list looks up: one call each."""


def status(command: Command, name: str | None, *, kind: str | None, follow: bool, every_s: float = EVERY_S) -> int:
    """Returns the exit code; that of the job's end where it is followed."""
    printer, deployment = command.printer, command.open_deployment()
    if name is None:
        if follow:
            raise CannotProceed(
                "NAME: is missing, and --follow follows one; allowed: a name that `trainyard status` lists"
            )
        show_list(deployment, printer, time.time(), kind)
        return CommandExit.DONE
    found = find(deployment, name, (kind,) if kind else ())
    if found.kind != "job":
        from trainyard.grids import show_status

        return show_status(deployment, found, printer, follow=follow, every_s=every_s)
    if follow:
        return keep_following("job", name, printer, lambda: follow_job(deployment, found, printer, every_s=every_s))
    show_job(deployment, found, printer, time.time())
    return CommandExit.DONE


def show_list(deployment: Deployment, printer: Printer, now: float, kind: str | None = None) -> None:
    """Prints every execution that runs, and those that ended last; of one kind where it is given."""
    every = list_lately(deployment, kind)
    running = [one.arn for one in every if one.status == "RUNNING"][:SHOWN_STATES]
    states = {arn: read_last_state(arn) for arn in running}
    if printer.as_json:
        for one in every:
            printer.document(_describe_listed(one, states.get(one.arn, "")))
        return
    rows = [
        (
            one.kind,
            one.name,
            one.status,
            states.get(one.arn, ""),
            show_day(one.started_at),
            duration(max(0.0, (one.ended_at or now) - one.started_at)),
        )
        for one in every
    ]
    if not rows:
        printer.say(
            f"{deployment.name} in {deployment.region}: no{'thing' if kind is None else f' {kind}'} runs, and nothing ended in 90 days."
        )
        return
    printer.table(["kind", "name", "status", "state", "started", "for"], rows)


def _describe_listed(one: Listed, state: str) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "name": one.name,
        "status": one.status,
        "state": state,
        "started_at": one.started_at,
        "ended_at": one.ended_at,
        "execution": one.arn,
    }


def show_job(deployment: Deployment, job: Watched, printer: Printer, now: float) -> None:
    """Prints how a job stands: its state, attempt, place, progress and cost."""
    story = read_story(job.arn)
    newest = story.attempt
    nodes = NodeReports(deployment, job.name)
    reports = nodes.read(newest) if job.status.runs else {}
    first = reports.get(0)
    until = job.status.ended_at or now
    cost = story.cost_at_most(until)
    whole = describe_end(deployment, job, story) | {
        "state": story.state,
        "attempt": newest.number if newest else 0,
        "place": newest.rung if newest else "",
        "seconds": None if job.status.started_at is None else max(0.0, until - job.status.started_at),
        "cost_usd_at_most": cost,
        "step": first.progress.step if first and first.progress else None,
        "metric": first.progress.metric if first and first.progress else None,
        "nodes": {rank: one.phase.value for rank, one in reports.items()},
        "roles": {rank: name_place(nodes.roles, rank) for rank in reports if nodes.roles},
        "events": [{"at": at, "event": line} for at, line in story.lines],
    }
    printer.document(whole)
    if printer.as_json:
        return
    printer.say(
        f"{job.name}: {job.status.name}, in {story.state or 'no state yet'}, for {duration(whole['seconds'] or 0.0)}"
    )
    for at, line in story.lines:
        printer.say(f"  {show_day(at)}  {line}")
    if reports:
        printer.say(f"nodes: {describe_nodes(reports, nodes.roles)}")
    elif job.status.runs and nodes.denied:
        printer.say(f"nodes: not shown: {nodes.denied}")
    if whole["error"]:
        printer.say(f"{whole['error']}: {links.cut_links(whole['cause'])}")
    if story.tries:
        printer.say(f"cost{' so far' if job.status.runs else ''}: {show_cost(cost)}")
    for what, link in whole["links"].items():
        printer.say(f"{what}: {link}")


def show_day(at: float) -> str:
    """Returns date and time of day, a person's own."""
    return f"{time.strftime('%m-%d', time.localtime(at))} {show_time(at)}"
