"""Writes the page of a job: how it ended and what to do next, then its attempts, its metric, its cost, its nodes and its links."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from contract import links, money
from contract.intents import Intent, LaunchOutcome, ran_in
from contract.jobs import Job
from contract.roles import Role
from contract.shapes import find_missing, list_types, name_markets
from pages import words
from pages.attempts import (
    MOST_CODE,
    MOST_SPOTS,
    AttemptHistory,
    Spot,
    TimeSpan,
    count_lost,
    draw_attempt,
    find_span,
    find_time_of,
    list_answers,
    list_attempts,
    name_place,
)
from pages.charts import percent
from pages.curves import draw_curves, list_points, show_metric
from pages.document import keep_links, render
from pages.facts import JobFacts
from pages.nodes import list_nodes, list_tails
from pages.outcomes import Outcome, judge_job

MOST_ATTEMPTS, MOST_ANSWERS, MOST_CHECKPOINTS = 30, 60, 20
"""The newest of them are shown."""
MOST_COMMAND = 600
LINKS = {"execution": "Execution", "log": "Logs of all nodes", "report": "report.json", "waiting": "waiting.json"}
"""Links that a page names in other words than the job's output does."""
TONES = {
    LaunchOutcome.LAUNCHED: "good",
    LaunchOutcome.NO_CAPACITY: "busy",
    LaunchOutcome.UNKNOWN: "unsure",
    LaunchOutcome.RENEW: "unsure",
}
"""Answers that do not close a place for the job, with their colour."""


def write_job(facts: JobFacts) -> bytes:
    """Returns the page of a job as one file of HTML."""
    attempts = list_attempts(facts)
    outcome = judge_job(facts, attempts)
    last = attempts[-1] if attempts else None
    shown = attempts[-MOST_ATTEMPTS:]
    newest = sorted(facts.closed, key=lambda one: (one.attempt, one.number), reverse=True)
    span = find_span(facts, shown)
    roles = facts.job.roles if facts.job else ()
    node_span = TimeSpan(begin=last.begin, end=last.end) if last else span
    return render(
        "job.html",
        facts=facts,
        outcome=outcome,
        title=f"job {facts.name}: {outcome.word}",
        tiles=_list_tiles(facts, attempts, outcome),
        attempts=[_show_attempt(facts, attempts, one, span, outcome, MOST_SPOTS // len(shown)) for one in shown],
        ran=any(one.begun or one.reports for one in attempts),
        left_attempts=len(attempts) - len(shown),
        ticks=_list_ticks(span),
        answers=_list_answers(facts.walks),
        left_answers=max(0, sum(step.answer is not None for walk in facts.walks for step in walk.steps) - MOST_ANSWERS),
        charts=draw_curves(facts, attempts),
        points=list_points(facts),
        cost=_describe_cost(facts, attempts, shown),
        nodes=list_nodes(last.reports, node_span, _find_launch(last), roles) if last else [],
        all_nodes=len(last.reports) if last else 0,
        node_attempt=last.number if last else 0,
        node_ticks=_list_ticks(node_span),
        tails=list_tails(last.reports, roles) if last else [],
        checkpoints=newest[:MOST_CHECKPOINTS],
        left_checkpoints=max(0, len(newest) - MOST_CHECKPOINTS),
        kept=_list_kept(facts.report),
        links=keep_links(lambda: _list_links(job, facts)) if (job := facts.job) else [],
        request=_describe_request(facts.job) if facts.job else [],
    )


def _list_links(job: Job, facts: JobFacts) -> list[tuple[str, str]]:
    """Returns the links of the job, its artifacts in every region where it ran among them. What was not written has none."""
    absent = {"page", *(["report"] if facts.report is None else []), *(["waiting"] if facts.waiting is None else [])}
    found = {name: address for name, address in links.of_job(job).items() if name not in absent}
    if facts.walks:
        found = {name: address for name, address in found.items() if not name.startswith("artifacts")}
        found |= {
            f"Artifacts in {words.visible(one, MOST_CODE)}": links.of_artifacts(job, one)
            for one in sorted(ran_in(facts.walks))
        }
    return [(LINKS.get(name, name[:1].upper() + name[1:]), address) for name, address in found.items()]


def _list_kept(report: Mapping[str, Any] | None) -> list[str]:
    """Returns the machines that ran on after the end, each with the reason."""
    reasons = {
        "protected": "a person protects it, by its tag",
        "without_our_profile": "it has another instance profile than this deployment's",
    }
    return [
        f"{words.text_of(one, 'instance')} in {words.text_of(one, 'region')}: {reason}"
        for name, reason in reasons.items()
        for one in words.entries_of(report, name)
    ]


def _find_launch(one: AttemptHistory) -> float:
    step = one.begun
    return min(max(step.answer.at, one.begin), one.end) if step and step.answer else one.begin


def _list_tiles(facts: JobFacts, attempts: Sequence[AttemptHistory], outcome: Outcome) -> list[tuple[str, str]]:
    """Returns the figures that people want first."""
    began = facts.status.started_at if facts.status else None
    ended = facts.status.ended_at if facts.status else None
    last = attempts[-1] if attempts else None
    tiles = [("began", words.moment(began))] if began else []
    if began:
        lasted = words.duration((ended or facts.now) - began)
        tiles.append(("lasts for" if outcome.runs else "lasted", lasted))
    if last:
        tiles.append(("attempts", f"{len(attempts):,}"))
    if last and last.place:
        nodes = f"{facts.job.nodes:,} × " if facts.job and not facts.job.roles else ""
        tiles.append(("nodes", f"{nodes}{last.place}"))
    if last and last.reached is not None:
        tiles.append(("last step", words.number(last.reached)))
    metrics = [shown for one in (facts.curve.points if facts.curve else ()) if (shown := show_metric(one))]
    if metrics:
        tiles.append(("last metric", metrics[-1]))
    return tiles


def _show_attempt(
    facts: JobFacts,
    attempts: Sequence[AttemptHistory],
    one: AttemptHistory,
    span: TimeSpan,
    outcome: Outcome,
    most_answers: int,
) -> dict[str, Any]:
    """Returns an attempt as the template shows it."""
    following = next((other for other in attempts if other.number > one.number), None)
    lost = count_lost(one, following)
    resumed = max(0, following.restored) if following and following.restored is not None else None
    again_from = find_time_of(facts, one.number, resumed) if lost and resumed is not None else None
    if lost and resumed == 0:
        again_from = again_from or _find_launch(one)
    word, tone = (
        ("runs" if one.launched else "ends" if one.half else "asks", "busy")
        if one.runs
        else (words.visible(one.error, MOST_CODE), "bad")
        if one.error
        else ("ended", "unsure")
    )
    if not one.runs and not one.error and outcome.tone == "good" and following is None:
        word, tone = "completed", "good"
    return {
        "number": one.number,
        "place": one.place or "nothing was launched in its newest walk",
        "lasted": words.duration(one.end - one.begin),
        "began": words.moment(one.begin),
        "segments": draw_attempt(one, span, again_from=again_from),
        "answers": list_answers(one, span, most=most_answers),
        "diamonds": _list_checkpoints(facts, one, span),
        "word": word,
        "tone": tone,
        "cause": words.visible(one.cause, 300) if following or not outcome.cause else "",
        "steps": _describe_steps(one, following, lost),
    }


def _describe_steps(one: AttemptHistory, following: AttemptHistory | None, lost: int | None) -> str:
    """Says from which step an attempt went on, how far it came, and what of that was lost."""
    parts = []
    if one.restored is not None and one.restored >= 0:
        parts.append(f"went on from step {words.number(one.restored)}")
    if one.reached is not None:
        parts.append(f"reached step {words.number(one.reached)}")
    if lost is not None and following is not None:
        again = following.restored if following.restored is not None and following.restored > 0 else 0
        parts.append(f"{words.count(lost, 'step')} lost: the next attempt went on from step {words.number(again)}")
    said = "; ".join(parts)
    return said[:1].upper() + said[1:]


def _list_checkpoints(facts: JobFacts, one: AttemptHistory, span: TimeSpan) -> list[Spot]:
    """Returns the checkpoints that the attempt closed, where their time is known."""
    found = list[Spot]()
    for closed in sorted(facts.closed, key=lambda other: other.number)[-1000:]:
        if closed.attempt != one.number:
            continue
        at = words.finite(closed.closed_at) or find_time_of(facts, one.number, closed.step)
        if at is not None and one.begin <= at <= one.end:
            step = (
                f"checkpoint at step {words.number(closed.step)}"
                if closed.step >= 0
                else f"checkpoint {closed.number:,}"
            )
            found.append(Spot(at=percent(span.place(at)), words=step))
    return found[-MOST_CHECKPOINTS:]


def _list_ticks(span: TimeSpan) -> list[str]:
    """Returns the beginning, the middle and the end of a time line."""
    whole = max(60.0, span.end - span.begin)
    return [words.duration(share * whole) for share in (0.0, 0.5, 1.0)]


def _list_answers(walks: Sequence[Intent]) -> list[dict[str, Any]]:
    """Returns EC2's newest answers, the newest last."""
    rows = [(walk, step) for walk in walks for step in walk.steps if step.answer]
    return [
        {
            "attempt": walk.attempt,
            "walk": walk.walk,
            "place": name_place(find_missing(step) or step.rung),
            "markets": name_markets(find_missing(step) or step.rung),
            "answer": answer,
            "tone": TONES.get(answer.outcome, "bad"),
            "said": answer.code or answer.outcome.value,
        }
        for walk, step in rows[-MOST_ANSWERS:]
        if (answer := step.answer) is not None
    ]


def _describe_cost(
    facts: JobFacts, attempts: Sequence[AttemptHistory], shown: Sequence[AttemptHistory]
) -> Mapping[str, Any] | None:
    """Returns what the attempts cost beside the cap; None where nothing was launched."""
    if facts.job is None or not attempts:
        return None
    known = [words.finite(one.usd) for one in attempts]
    total = None if None in known else sum(one for one in known if one is not None)
    cap = words.finite(facts.job.max_cost_usd)
    whole = max(cap or 0.0, total or 0.0)
    at, bars = 0.0, list[dict[str, Any]]()
    for one, usd in zip(attempts, known, strict=True):
        share = (usd or 0.0) / whole if whole else 0.0
        bars.append({"number": one.number, "at": percent(at), "width": percent(share), "even": one.number % 2 == 0})
        at += share
    return {
        "total": _round_up(total),
        "cap": cap,
        "cap_at": percent(cap / whole) if cap and whole else "",
        "share": f"{100 * total / cap:.0f} %" if cap and total is not None else "",
        "bars": bars[-100:] if total else [],
        "rows": [
            {
                "number": one.number,
                "place": one.place or "–",
                "lasted": words.duration(one.end - one.begin),
                "usd": _round_up(words.finite(one.usd)),
            }
            for one in shown
        ],
    }


def _round_up(usd: float | None) -> float | None:
    return None if usd is None else money.up_to_cents(usd)


def _describe_request(job: Job) -> list[tuple[str, str]]:
    """Returns what was asked for."""
    image = job.container.source if job.container else ", ".join(dict.fromkeys(one.image.id for one in job.ladder))
    types = ", ".join(list_types(job))
    program = [("Command", _word_command(job.command)), ("Image", image)]
    facts = [
        ("Owner", job.owner),
        ("Nodes", f"{job.nodes:,} of {types}"),
        *([_describe_role(role) for role in job.roles] or program),
        ("Code", job.code.source if job.code else "in the image"),
        ("Hours", f"{words.number(job.max_hours)} at most"),
        ("Money", f"{words.usd(job.max_cost_usd)} at most" if job.max_cost_usd is not None else "no cap"),
        ("Checkpoints", f"every {words.number(job.checkpoint_minutes)} min"),
        ("New attempts", f"{job.recoveries:,} in a row after a loss"),
        ("Goes on from", f"{job.resume.job}, step {words.number(job.resume.step)}" if job.resume else ""),
    ]
    return [(name, words.visible(said, MOST_COMMAND)) for name, said in facts if said]


def _word_command(command: Sequence[str]) -> str:
    return shlex.join(command) if command else "the image's entry point"


def _describe_role(role: Role) -> tuple[str, str]:
    """Returns how many nodes a role has, what they run, and what its end means."""
    image = f" in {role.container.source}" if role.container else ""
    return f"Role {role.name}", f"{role.count:,}, ends {role.ends.value}: {_word_command(role.command)}{image}"
