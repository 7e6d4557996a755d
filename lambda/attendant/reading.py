"""Reads all facts of one attempt: from the table, and from EC2 what it shows of the nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from attendant.console import quote_console
from attendant.costs import running_cost
from attendant.facts import AttemptFacts, MissingAttempt
from attendant.invocation import Invocation
from attendant.policy import find_unheard
from attendant.rounds import LookRound
from aws import breaker
from aws.clients import IN_PASSING, PATIENT
from aws.facts import Heard, Instance
from aws.heard import heard, strange
from aws.state import Token
from contract import money
from contract.sessions import AttemptSessions

logger = Logger(service="attendant")
LOGGED = 20
"""Lines of a log entry, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenNodes:
    """What is known of the nodes of an attempt."""

    instances: Mapping[str, Instance] | None
    """By id; None where EC2 was not asked or did not answer, which proves nothing."""
    reports: Mapping[int, Heard]
    """By rank; a node that never reported is not in it."""
    at: float
    """The time by AWS's clock at which the ages of the reports hold."""


def read_facts(invocation: Invocation, looks: LookRound, token: Token, *, now: float) -> AttemptFacts | MissingAttempt:
    """Returns the facts of the attempt; MissingAttempt where the table has no job or no launch of it.

    The console of a node is read only where its loss ends the attempt and it never reported.
    """
    state, env = invocation.state, invocation.env
    job = state.job(token.job)
    if job is None:
        return MissingAttempt(why=f"the table no longer has job {token.job}")
    walk = state.launched(token.job, token.attempt)
    step = walk.launched if walk else None
    if walk is None or step is None or step.answer is None:
        return MissingAttempt(why=f"the table has no launch of attempt {token.attempt}")
    ids, rung = step.answer.instances, step.rung
    seen = _read_nodes(invocation, looks, token, ids, rung.region)
    order = state.order(token.job, token.attempt, now=seen.at)
    # A node that has reported has had credentials, and an urgent look gives none.
    all_reported = looks.is_urgent and len(seen.reports) == job.nodes
    sessions = AttemptSessions() if all_reported else state.sessions(token.job, token.attempt)
    job = money.launched_as(job, walk, rung)
    job = replace(job, timing=replace(job.timing, boot_allowance_s=job.timing.boot_allowance_of(rung.instance_type)))
    facts = AttemptFacts(
        job=job,
        attempt=token.attempt,
        launched_at=step.answer.at,
        ids=ids,
        addresses=step.answer.addresses,
        instances=seen.instances,
        nodes=seen.reports,
        rung=rung,
        order=order,
        training_role=env.training_roles.get(job.job_role, ""),
        sessions=sessions,
        cost=running_cost(job, token.attempt, walk, rung, now=seen.at),
        gaps_s=looks.gaps_s,
    )
    unheard = find_unheard(facts, now=now)
    return replace(facts, console=_read_consoles(invocation, facts, unheard)) if unheard else facts


def _read_nodes(invocation: Invocation, looks: LookRound, token: Token, ids: tuple[str, ...], region: str) -> SeenNodes:
    """Reads instances before reports: a node that is gone has sent its last report by then. An urgent look reads instances only where a
    node has failed, and then the reports once more."""
    role, instances = invocation.env.node_role, None
    reports, at = invocation.state.reports(role, ids) if looks.is_urgent else ([], 0.0)
    nodes = heard(reports, job=token.job, attempt=token.attempt, ids=ids)
    if not looks.is_urgent or any(node.end and (node.end.code or node.end.error) for node in nodes.values()):
        instances = _read_instances(invocation, token.job, ids, region)
        reports, at = invocation.state.reports(role, ids)
        nodes = heard(reports, job=token.job, attempt=token.attempt, ids=ids)
    if lines := strange(reports, job=token.job, attempt=token.attempt, ids=ids):
        logger.warning("ignored reports", job=token.job, attempt=token.attempt, reports=lines[:LOGGED])
    return SeenNodes(instances=instances, reports=nodes, at=at)


def _read_instances(invocation: Invocation, job: str, ids: Sequence[str], region: str) -> dict[str, Instance] | None:
    """Returns what EC2 shows of the nodes; None where it does not answer, which proves nothing."""
    try:
        found = breaker.ask_region(region, lambda: invocation.ec2(region, IN_PASSING).by_id(ids))
    except (ClientError, BotoCoreError, breaker.Silent) as problem:
        logger.warning("EC2 did not answer; nothing is concluded", job=job, problem=str(problem))
        return None
    return {one.id: one for one in found}


def _read_consoles(invocation: Invocation, facts: AttemptFacts, ranks: Sequence[int]) -> dict[int, str]:
    """Returns the consoles of ranks that are lost. A console that cannot be read does not change the verdict."""
    found, region = {}, facts.region
    for rank in ranks:
        instance, output = facts.ids[rank], ""
        try:
            output = breaker.ask_region(region, lambda one=instance: invocation.ec2(region, PATIENT).console(one))  # type: ignore[misc]
        except (ClientError, BotoCoreError, breaker.Silent) as problem:
            logger.warning("could not read a console", job=facts.job.id, instance=instance, problem=str(problem))
        found[rank] = quote_console(instance, region, output)
    return found
