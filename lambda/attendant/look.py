"""Looks at one attempt: gathers the facts, judges them, and acts on Train's token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from attendant import console
from attendant.facts import AttemptFacts
from attendant.policy import Action, Verdict, judge
from aws import states
from aws.ec2 import Ec2
from aws.facts import Instance
from aws.heard import heard, strange
from aws.s3 import JobStore, Raced, Token
from contract.errors import NodeLost
from contract.intents import LaunchAnswer
from contract.jobs import Job

logger = Logger(service="attendant")
TOLD = 20
"""Lines of a log entry, at most."""


def look(store: JobStore, token: Token, *, now: float, gaps_s: tuple[float, ...]) -> Verdict:
    """Judges the attempt that `token` waits for, and acts. May run twice, late, or at the same time: a dead token is not an error."""
    verdict = _verdict(store, token, now, gaps_s=gaps_s)
    logger.info(
        "judged",
        job=token.job,
        attempt=token.attempt,
        action=verdict.action,
        error=verdict.error,
        reason=verdict.reason,
    )
    if verdict.order is not None:
        try:
            store.create_order(token.job, token.attempt, verdict.order)
        except Raced:
            logger.info("ordered before", job=token.job, attempt=token.attempt)
    if not _send(token, verdict):
        store.delete(token.key)
    return verdict


def _send(token: Token, verdict: Verdict) -> bool:
    """Sends the verdict to Train. False where the token is used up, by this verdict or an earlier one."""
    if verdict.action is Action.SUCCEED:
        states.success(token.token, {"reason": verdict.reason, "progress": verdict.progress})
        return False
    if verdict.action is Action.FAIL:
        states.failure(token.token, verdict.error, verdict.reason)
        return False
    return states.heartbeat(token.token)


def _verdict(store: JobStore, token: Token, now: float, *, gaps_s: tuple[float, ...]) -> Verdict:
    job = store.job(token.job)
    if job is None:
        return Verdict(action=Action.FAIL, error=NodeLost.__name__, reason=f"job {token.job} has no job.json any more")
    step = store.launch(job.id, token.attempt)
    if step is None or step.answer is None:
        return Verdict(
            action=Action.FAIL, error=NodeLost.__name__, reason=f"attempt {token.attempt} has no launch on record"
        )
    answer, timing = step.answer, job.timing
    job = replace(job, timing=replace(timing, boot_allowance_s=timing.boot_allowance_of(step.rung.instance_type)))
    # Instances before reports: a node that is gone has sent its last report by then.
    instances = _instances(job, step.rung.region, answer)
    reports = store.reports(job.id, token.attempt)
    if lines := strange(reports, job=job.id, attempt=token.attempt, ids=answer.instances):
        logger.warning("reports that count for nothing", job=job.id, attempt=token.attempt, reports=lines[:TOLD])
    facts = AttemptFacts(
        job=job,
        attempt=token.attempt,
        launched_at=answer.at,
        ids=answer.instances,
        instances=instances,
        nodes=heard(reports, job=job.id, attempt=token.attempt, ids=answer.instances),
        order=store.order(job.id, token.attempt),
        gaps_s=gaps_s,
    )
    verdict = judge(facts, now=now)
    if not verdict.unheard:
        return verdict
    return judge(replace(facts, console=_consoles(facts, verdict.unheard, step.rung.region)), now=now)


def _consoles(facts: AttemptFacts, ranks: Sequence[int], region: str) -> dict[int, str]:
    """The consoles of ranks that are lost. A console that cannot be read does not change the verdict."""
    found = {}
    for rank in ranks:
        instance, output = facts.ids[rank], ""
        try:
            output = Ec2(region).console(instance)
        except (ClientError, BotoCoreError) as problem:
            logger.warning("no console", job=facts.job.id, instance=instance, problem=str(problem))
        found[rank] = console.told(instance, region, output)
    return found


def _instances(job: Job, region: str, answer: LaunchAnswer) -> dict[str, Instance] | None:
    try:
        return {one.id: one for one in Ec2(region).by_id(answer.instances)}
    except (ClientError, BotoCoreError) as problem:
        logger.warning("EC2 could not be asked; nothing is concluded", job=job.id, problem=str(problem))
        return None
