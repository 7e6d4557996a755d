"""Words a pass's message for a person who has never heard of the reaper: what, where, since when, at what cost, what was done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone

from aws.facts import Belonging, Sort
from contract.links import of_runbook
from contract.text import one_line
from reaper.findings import Case, Findings
from reaper.policy import TIMED_BY_AWS, span

SHOWN = 40
"""At most this many things of a kind are named; the log has the others."""
SHOWN_TAG = 128
"""Characters of a tag: whoever may tag instances chose it."""
SECTIONS = ("A machine is still running", "The reaper ended something", "Protect an instance", "Turn it off now")
"""Of the runbook."""
DONE = {
    Sort.INSTANCE: "EC2 terminates it; it costs nothing from the moment it shuts down.",
    Sort.SPOT_REQUEST: "It was cancelled.",
    Sort.TRAINING: "SageMaker stops it: it gives the training two minutes, and then uploads what that has written.",
    Sort.JOB: "Batch terminates it with all its children.",
    Sort.LINE: "It is stopped; its instances end as those of every stopped job.",
    Sort.MPI_JOB: "It is suspended: its pods have two minutes to save their checkpoints, and their machines go after them.",
    Sort.ROUND: "It is stopped; its trainings end as those of every stopped grid.",
}
Price = Callable[[str, str], float | None]
"""Region and instance type to dollars an hour."""


def when(at: float) -> str:
    return f"{datetime.fromtimestamp(at, timezone.utc):%Y-%m-%d %H:%M} UTC"


def subject(deployment: str, findings: Findings) -> str:
    """Words the subject of the pass's one message; empty where the pass needs none."""
    parts = [
        (len(findings.refused), "could not end {n}"),
        (len(findings.limited), "reached its limit, {n} left for later"),
        (len(findings.ended), "ended {n}"),
        (len(findings.news), "asks you to check {n}"),
    ]
    said = [text.format(n=number) for number, text in parts if number]
    return f"Trainyard {deployment}: the reaper {', '.join(said)}" if said else ""


def message(deployment: str, findings: Findings, price: Price, runbook: str = "") -> str:
    """Words the message: sections in the order of their urgency, each with the page that helps; `runbook` is where it is read."""
    running, ended, protect, off = (of_runbook(runbook, section) for section in SECTIONS)
    sections = [
        _section(
            f"AWS refused to end these {len(findings.refused)}, or they still run although the reaper ended them. They cost money "
            f"until they end; every pass tries again. What to do: {running}.",
            [(case, f"Not ended: {problem}") for case, problem in findings.refused.values()],
            price,
        ),
        _section(
            "A pass may end only a limited number of things before their deadlines, and there were more. It ended the first; these "
            f"{len(findings.limited)} wait for the next pass. If they should stay, act now: {protect}.",
            [(case, "Left for the next pass.") for case in findings.limited],
            price,
        ),
        _section(
            f"The reaper ended these {len(findings.ended)}. If that was wrong: {ended}.",
            [(case, _describe_end(case.thing)) for case in findings.ended],
            price,
        ),
        _section(
            f"These {len(findings.news)} were kept, because too little is known of them to end them. Please check them: "
            f"{running}.",
            [(case, "Kept.") for case in findings.news],
            price,
        ),
        f"To switch everything off at once: {off}. This is the reaper of the deployment "
        f"{deployment}; its log says more about each of them.",
    ]
    return "\n\n".join(section for section in sections if section)


def _section(title: str, cases: Sequence[tuple[Case, str]], price: Price) -> str:
    if not cases:
        return ""
    lines = [describe(case, done, price) for case, done in cases[:SHOWN]]
    if len(cases) > SHOWN:
        lines.append(f"- and {len(cases) - SHOWN} more")
    return "\n".join([title, *lines])


def describe(case: Case, done: str, price: Price) -> str:
    """Describes one thing in a few sentences."""
    thing = case.thing
    what = f"- {thing.sort.value} {thing.id}"
    if thing.instance_type:
        what += f" ({thing.instance_type}, {thing.state})"
    owner_kind = "grid" if thing.sort in TIMED_BY_AWS else "job"
    whose = f" of {owner_kind} {one_line(thing.job, SHOWN_TAG)}" if thing.job else f", whose tags name no {owner_kind}"
    owner = f", owner {one_line(thing.owner, SHOWN_TAG)}" if thing.owner else ""
    return f"{what} in {thing.region}{whose}{owner}. {_describe_cost(thing, case.at, price)}Why: {case.verdict.reason}. {done}"


def _describe_end(thing: Belonging) -> str:
    return DONE.get(thing.sort, "It was deleted.")


def _describe_cost(thing: Belonging, now: float, price: Price) -> str:
    if thing.born_at is None:
        return ""
    age = span(now - thing.born_at)
    if thing.sort is not Sort.INSTANCE:
        return f"There since {when(thing.born_at)} ({age}). "
    hours = max(0.0, now - thing.born_at) / 3600
    dollars = price(thing.region, thing.instance_type)
    cost = f"about ${hours * dollars:.2f} at the on-demand price" if dollars else "at an unknown price"
    return f"Launched {when(thing.born_at)}: {hours:.1f} instance-hours, {cost}. "


def line(case: Case) -> str:
    """Words the case as a line of a report-only pass's answer."""
    thing, verdict = case.thing, case.verdict
    return f"{thing.sort.value} {thing.id} in {thing.region} ({verdict.action.value}): {verdict.reason}"
