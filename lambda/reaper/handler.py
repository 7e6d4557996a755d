"""The reaper's actions: the pass every five minutes, the same in report-only mode, and the weekly summary."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from aws import figures
from aws.prices import on_demand_usd
from aws.topic import publish
from contract.environments import ReaperEnvironment
from reaper import weekly, words
from reaper.passes import ReaperPass


class Unfinished(Exception):
    """The pass did all it could, but something failed, AWS refused it, or there was more to end than a pass may.

    It is raised so that Lambda's error metric shows it, on which alarms rest: no code of a job can forge that metric.
    """


def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Runs a pass, or sends the weekly summary. Raises Unfinished at its very end, when everything is ended, counted and sent."""
    env = ReaperEnvironment.read()
    if event.get("action") == "weekly":
        return weekly.publish_summary(env, now=time.time())
    report_only = env.report_only or bool(event.get("report_only"))
    findings = ReaperPass(
        env,
        report_only=report_only,
        writer=context.aws_request_id,
        clock=time.time,
        left=lambda: context.get_remaining_time_in_millis() / 1000,
    ).run()
    figures.count(env.deployment, findings.counts())
    if not report_only and (subject := words.subject(env.deployment, findings)):
        publish(env.topic, subject, words.message(env.deployment, findings, on_demand_usd, env.runbook))
    problems = [f"{what}: {why}" for what, why in findings.failed.items()]
    problems += [f"{id_}: {why}" for id_, (_, why) in findings.refused.items()]
    if findings.limited and not report_only:
        problems.append(f"{len(findings.limited)} wait for the next pass, because this one reached its limit")
    if problems:
        raise Unfinished("; ".join(problems[: words.SHOWN]))
    would_end = [words.line(case) for case in findings.would_end[: words.SHOWN]]
    return {**findings.counts(), "past_deadline": findings.late, "would_end": would_end}
