"""The weekly summary: the week's figures, what runs, what is protected. Its arrival proves that all other messages can arrive."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws.belongings import Belongings, tagged
from aws.clients import BRISK
from aws.facts import Belonging
from aws.figures import sums
from aws.state import State
from aws.topic import publish
from contract import metrics
from contract.environments import ReaperEnvironment
from contract.links import of_runbook
from ending.policy import find_alive, find_protected
from reaper.words import SECTIONS, SHOWN, when

logger = Logger(service="reaper")
DAYS = 7
PASSES = DAYS * 24 * 60 // 5
"""One every five minutes."""
ENOUGH = 0.9
"""The share of the passes that is enough: the schedule may skip one, and a deployment of the stack takes some."""
TROUBLE = (metrics.TOLD, metrics.REFUSED, metrics.LIMITED, metrics.FAILED_REGIONS)


@dataclass(slots=True)
class Running:
    """The deployment's instances in all regions."""

    counts: Counter[str] = field(default_factory=Counter)
    """By region and state."""
    protected: list[Belonging] = field(default_factory=list)
    unseen: dict[str, str] = field(default_factory=dict)
    """Regions that could not be read."""


def publish_summary(env: ReaperEnvironment, *, now: float) -> dict[str, Any]:
    """Publishes the summary. Raises ClientError or BotoCoreError where that fails, or where the figures cannot be read."""
    week = sums(env.deployment, metrics.ALL, days=DAYS, until=now)
    running = _read_instances(env)
    subject, message = word_summary(env.deployment, week, running, env.runbook)
    publish(env.topic, subject, message)
    logger.info("sent the weekly summary", subject=subject)
    return {"subject": subject}


def word_summary(deployment: str, week: dict[str, float], running: Running, runbook: str = "") -> tuple[str, str]:
    """Returns subject and text. `runbook` is the address of the settings."""
    passes = week[metrics.PASSES]
    missing = passes < ENOUGH * PASSES
    well = not missing and not running.unseen and not any(week[name] for name in TROUBLE)
    lines = [
        f"The reaper of the deployment {deployment} made {passes:.0f} passes in the last {DAYS} days; {PASSES} were due."
    ]
    if missing:
        lines.append(
            "That is too few, unless the deployment is younger than that: while the reaper does not run, only the machines' own "
            f"timers end what was left behind. What to do: {of_runbook(runbook, SECTIONS[0])}."
        )
    lines += [
        f"It ended {week[metrics.ENDED]:.0f} things, and would have ended {week[metrics.WOULD_END]:.0f} in report-only mode.",
        f"Counted once a pass: kept because too little is known {week[metrics.TOLD]:.0f}, not ended by AWS "
        f"{week[metrics.REFUSED]:.0f}, left for the next pass {week[metrics.LIMITED]:.0f}, regions not read "
        f"{week[metrics.FAILED_REGIONS]:.0f}. All four should be 0; the messages of those passes say more.",
        "",
        *_list_instances(running),
        "",
        "This message comes every week. If it does not come, alarms may not reach you either.",
    ]
    state = "all is well" if well else "please check"
    return f"Trainyard {deployment}: {state}", "\n".join(lines)


def _list_instances(running: Running) -> list[str]:
    lines = [f"{count} in {where}" for where, count in sorted(running.counts.items())]
    lines = [f"Instances now: {', '.join(lines) or 'none'}."]
    lines += [f"{region} could not be read: {why}." for region, why in sorted(running.unseen.items())]
    if running.protected:
        lines.append("A person protects these, so nothing of Trainyard ends them:")
        lines += [
            f"- {one.id} ({one.instance_type}) in {one.region}, job {one.job or 'unknown'}, owner {one.owner or 'unknown'}"
            + (f", launched {when(one.born_at)}" if one.born_at is not None else "")
            for one in running.protected[:SHOWN]
        ]
        if len(running.protected) > SHOWN:
            lines.append(f"- and {len(running.protected) - SHOWN} more")
    return lines


def _read_instances(env: ReaperEnvironment) -> Running:
    found = Running()
    for region in sorted({*env.regions, *State(env.table, BRISK).launched_regions()}):
        try:
            for page in Belongings(region).instances(tagged(env.deployment)):
                found.counts.update(f"{region} ({one.state})" for one in find_alive(page.things))
                found.protected += find_protected(page.things)
        except (ClientError, BotoCoreError) as problem:
            found.unseen[region] = str(problem)
    return found
