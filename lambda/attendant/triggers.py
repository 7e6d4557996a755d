"""What single events lead to: a new token, urgent reports, an error that waits for its explanation, instances that end."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from aws_lambda_powertools import Logger

from attendant.attempt import handle_attempt
from attendant.invocation import Invocation
from attendant.noise import hints_seen
from attendant.passes import A_LOOK_S, handle_attempts
from attendant.policy import Verdict
from attendant.records import read_hints
from aws.clients import PATIENT
from aws.functions import invoke_later
from aws.state import Token
from contract import items

logger = Logger(service="attendant")
LOOKS_A_REPORT = 4
"""Looks within one `report_every_s`: an error counts as the command's own once the other nodes have reported after it, and with this
many looks the verdict need not wait for the clock."""
LONGEST_S = 60.0
"""The time-out of an invocation."""


def keep_token(invocation: Invocation, event: Mapping[str, Any]) -> list[Verdict]:
    """Keeps the token of a Train state, and looks at once: after a redrive, this look finds the nodes gone.

    Train does not fail if the look does: the clock looks again.
    """
    digest = hashlib.sha256(event["token"].encode()).hexdigest()
    key = items.waiting(event["job"], event["attempt"], digest)
    token = Token(job=event["job"], attempt=event["attempt"], token=event["token"], key=key)
    invocation.state.keep_token(token)
    try:
        return [handle_attempt(invocation, invocation.begin_round(), token, now=invocation.clock())]
    except Exception:
        logger.exception("the first look failed; the clock looks again", job=token.job)
        return []


def follow_reports(invocation: Invocation, records: Iterable[Mapping[str, Any]]) -> list[Verdict]:
    """Looks once at each job of which nodes have sent urgent reports, however many. Records are hints, never evidence. A node that sends
    them again and again is answered without a look: the records of other jobs wait behind it."""
    hints = hints_seen.select(read_hints(records), invocation.clock())
    verdicts = _handle_jobs(invocation, dict.fromkeys(hint.job for hint in hints), is_urgent=True)
    unexplained = {verdict.awaits for verdict in verdicts} - {""}
    # One invocation a job, and few in all, wait for explanations, however many nodes fail, and however often one of them says so.
    for job in dict.fromkeys(hint.job for hint in hints if hint.instance in unexplained):
        if invocation.state.may_await(job, lasts_s=LONGEST_S):
            invoke_later(invocation.function, {"action": "await", "job": job})
    return verdicts


def await_explanation(invocation: Invocation, event: Mapping[str, Any]) -> list[Verdict]:
    """Looks again and again while an error of the job waits to be explained; the clock looks in any case."""
    verdicts, pause_s = list[Verdict](), invocation.env.timing.report_every_s / LOOKS_A_REPORT
    while invocation.remaining_s() > pause_s + A_LOOK_S:
        invocation.sleep(pause_s)
        verdicts = _handle_jobs(invocation, [event["job"]])
        if not any(verdict.awaits for verdict in verdicts):
            break
    return verdicts


def follow_instances(invocation: Invocation, records: Iterable[Mapping[str, Any]]) -> list[Verdict]:
    """Looks once at each job of the instances of which EC2 reports that they end. It does not fail if a look does: the clock looks again,
    and a message that came back would only ask for a third look."""
    events = [json.loads(record["body"]) for record in records]
    named: dict[str, set[str]] = {}
    for event in events:
        named.setdefault(event["region"], set()).add(event["detail"]["instance-id"])
    try:
        found = [
            one
            for region, instances in sorted(named.items())
            for one in invocation.ec2(region, PATIENT).of_deployment(sorted(instances), invocation.env.deployment)
        ]
        return _handle_jobs(invocation, sorted({one.job for one in found if one.job}))
    except Exception:
        logger.exception("a look at ending instances failed; the clock looks again", instances=named)
        return []


def _handle_jobs(invocation: Invocation, jobs: Iterable[str], *, is_urgent: bool = False) -> list[Verdict]:
    """Looks once at each attempt of these jobs for which a Train state waits."""
    tokens = [token for job in jobs for token in invocation.state.tokens(job)]
    return handle_attempts(invocation, tokens, invocation.begin_round(is_urgent=is_urgent)) if tokens else []
