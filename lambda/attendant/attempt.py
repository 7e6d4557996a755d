"""Looks at one attempt: reads its facts, judges them, and acts on the verdict, in this order."""

from __future__ import annotations

from dataclasses import replace

from aws_lambda_powertools import Logger

from attendant.acting import act
from attendant.invocation import Invocation
from attendant.points import read_point
from attendant.policy import Verdict, judge
from attendant.reading import read_facts
from attendant.rounds import LookRound
from aws.state import Token

logger = Logger(service="attendant")


def handle_attempt(invocation: Invocation, looks: LookRound, token: Token, *, now: float) -> Verdict:
    """Judges the attempt that `token` waits for, and acts. May run twice, late, or at the same time: a dead token is not an error."""
    facts = read_facts(invocation, looks, token, now=now)
    verdict = judge(facts, now=now)
    logger.info(
        "judged",
        job=token.job,
        attempt=token.attempt,
        action=verdict.action,
        error=verdict.error,
        reason=verdict.reason,
    )
    act(invocation, looks, token, facts, verdict, now=now)
    return replace(verdict, point=read_point(facts, now=now))
