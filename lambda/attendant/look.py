"""Looks at one attempt: gathers the facts, judges them, and acts on Train's token."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from attendant import console, notices, sessions, unhealthy
from attendant.costs import running_cost
from attendant.facts import AttemptFacts
from attendant.policy import Action, Verdict, judge
from attendant.telling import Message, tell_once
from aws import breaker, states
from aws.clients import IN_PASSING
from aws.ec2 import Ec2
from aws.errors import Raced
from aws.facts import Heard, Instance
from aws.heard import heard, strange
from aws.state import State, Token
from contract import items, money
from contract.errors import NodeLost
from contract.intents import LaunchAnswer
from contract.jobs import Job
from contract.orders import Order
from contract.sessions import AttemptSessions

logger = Logger(service="attendant")
TOLD = 20
"""Lines of a log entry, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looker:
    """What every look of an invocation shares."""

    state: State
    node_role: str
    """The id of the nodes' role."""
    job_role: str
    """ARN of the role whose sessions the nodes get for their job."""
    training_roles: Mapping[str, str] = field(default_factory=dict)
    """Name to ARN of the roles that requests may name for their training."""
    topic: str = ""
    """ARN of the topic through which people hear of a stall, and of a new attempt that trains."""
    gaps_s: tuple[float, ...]
    """Seconds between the attendant's passes over all jobs, from now backwards."""
    urgent: bool = False
    """A report woke it. EC2 is then asked only about nodes that failed, which a lost one may explain; whatever else EC2 knows, the
    clock's look learns. So jobs in a region that does not answer keep nobody waiting whose nodes have ended."""

    def look(self, token: Token, *, now: float) -> Verdict:
        """Judges the attempt that `token` waits for, and acts. May run twice, late, or at the same time: a dead token is not an error."""
        job, facts, region = self._facts(token)
        verdict = self._verdict(facts, region, now) if isinstance(facts, AttemptFacts) else facts
        logger.info(
            "judged",
            job=token.job,
            attempt=token.attempt,
            action=verdict.action,
            error=verdict.error,
            reason=verdict.reason,
        )
        try:
            if job is not None and isinstance(facts, AttemptFacts):
                self._order(job, facts, verdict.order)
                self._note_unhealthy(job, facts, verdict)
        finally:  # the code of a job can keep a node's copy of the order from being written, and must not keep Train waiting by that
            awaited = _send(token, verdict)
            if not awaited:
                self.state.delete(token.key)
        if isinstance(facts, AttemptFacts) and (awaited or verdict.ends):
            self._tell(facts, verdict, region, now)
        if awaited and not verdict.ends and not self.urgent and job is not None and isinstance(facts, AttemptFacts):
            sessions.renew(
                self.state, job, facts.attempt, facts.sessions, instances=facts.ids,
                node_role=self.node_role, job_role=self.job_role, training_roles=self.training_roles, now=now,
            )  # fmt: skip
        return verdict

    def _tell(self, facts: AttemptFacts, verdict: Verdict, region: str, now: float) -> None:
        """Tells people what they have to know of the attempt. What could not be sent is sent by the next look, if there is one."""
        job, attempt, stall = facts.job, facts.attempt, verdict.stall
        if reason := notices.stall_reason(facts, verdict):
            tell_once(
                self.state, self.topic, items.stall_notice(job.id, attempt), now=now,
                word=lambda: notices.stalled(job, attempt, reason, goes_on=stall is not None, cost=self._cost(job, now)),
                **({} if stall is None else {"is_news": stall.is_news}),
            )  # fmt: skip
        if notices.trains_again(facts, verdict):
            key = items.recovery_notice(job.id, attempt)
            tell_once(self.state, self.topic, key, lambda: self._recovered(facts, region, now), now=now)

    def _recovered(self, facts: AttemptFacts, region: str, now: float) -> Message:
        ends = self.state.endings(facts.job.id)
        return notices.recovered(facts, region, ends, self._cost(facts.job, now))

    def _cost(self, job: Job, now: float) -> str:
        return notices.cost_so_far(job, self.state.walks(job.id), self.state.ends(job.id), now=now)

    def _order(self, job: Job, facts: AttemptFacts, order: Order | None) -> None:
        """Makes the attempt's order if the verdict has one, and gives it to every node that does not have it yet."""
        untold = facts.untold
        if order is not None:
            try:
                self.state.create_order(job, facts.attempt, order)
            except Raced:
                logger.info("ordered before", job=job.id, attempt=facts.attempt)
            given, untold = self.state.order(job.id, facts.attempt, now=time.time()), list(range(len(facts.ids)))
        else:
            given = facts.order
        if given is None:
            return
        # A node that asked for the order obeys once it has its copy, and its peers' trainers fail when its own stops: so it comes last.
        asking = [rank for rank in untold if given.order.author == f"rank {rank}"]
        for ranks in ([rank for rank in untold if rank not in asking], asking):
            self.state.give_order(job, self.node_role, [facts.ids[rank] for rank in ranks], given.order)

    def _note_unhealthy(self, job: Job, facts: AttemptFacts, verdict: Verdict) -> None:
        """Keeps the machines because of which the attempt ends, before Train knows. Without it the attempt ends all the same."""
        try:
            self.state.note_unhealthy(job, unhealthy.noted(facts, verdict.unhealthy))
        except (ClientError, BotoCoreError):
            logger.exception("unhealthy machines are not noted", job=job.id, attempt=facts.attempt)

    def _verdict(self, facts: AttemptFacts, region: str, now: float) -> Verdict:
        verdict = judge(facts, now=now)
        if verdict.unheard:
            verdict = judge(replace(facts, console=_consoles(facts, verdict.unheard, region)), now=now)
        return verdict if verdict.ends else replace(verdict, cost=facts.cost)

    def _facts(self, token: Token) -> tuple[Job | None, AttemptFacts | Verdict, str]:
        """The job, the attempt's facts and its region; a verdict where there is nothing to judge."""
        job = self.state.job(token.job)
        if job is None:
            return None, _lost(f"job {token.job} is not in the table any more"), ""
        walk = self.state.launched(job.id, token.attempt)
        step = walk.launched if walk else None
        if walk is None or step is None or step.answer is None:
            return job, _lost(f"attempt {token.attempt} has no launch on record"), ""
        job = money.launched_as(job, walk, step.rung)
        answer, timing, region = step.answer, job.timing, step.rung.region
        job = replace(job, timing=replace(timing, boot_allowance_s=timing.boot_allowance_of(step.rung.instance_type)))
        instances, (reports, now) = (
            None,
            self.state.reports(self.node_role, answer.instances) if self.urgent else ([], 0.0),
        )
        if not self.urgent or _any_failed(heard(reports, job=job.id, attempt=token.attempt, ids=answer.instances)):
            # Instances before reports: a node that is gone has sent its last report by then.
            instances = _instances(job, region, answer)
            reports, now = self.state.reports(self.node_role, answer.instances)
        if lines := strange(reports, job=job.id, attempt=token.attempt, ids=answer.instances):
            logger.warning("reports that count for nothing", job=job.id, attempt=token.attempt, reports=lines[:TOLD])
        nodes = heard(reports, job=job.id, attempt=token.attempt, ids=answer.instances)
        facts = AttemptFacts(
            job=job,
            attempt=token.attempt,
            launched_at=answer.at,
            ids=answer.instances,
            instances=instances,
            nodes=nodes,
            rung=step.rung,
            order=self.state.order(job.id, token.attempt, now=now),
            training_role=self.training_roles.get(job.job_role, ""),
            # Whoever has reported has had keys, and an urgent look gives none.
            sessions=AttemptSessions()
            if self.urgent and len(nodes) == job.nodes
            else self.state.sessions(job.id, token.attempt),
            cost=running_cost(job, token.attempt, walk, step.rung, now=now),
            gaps_s=self.gaps_s,
        )
        return job, facts, region


def _any_failed(nodes: Mapping[int, Heard]) -> bool:
    return any(node.end is not None and (node.end.code or node.end.error) for node in nodes.values())


def _lost(reason: str) -> Verdict:
    return Verdict(action=Action.FAIL, error=NodeLost.__name__, reason=reason)


def _send(token: Token, verdict: Verdict) -> bool:
    """Sends the verdict to Train. False where the token is used up, by this verdict or an earlier one."""
    if verdict.action is Action.SUCCEED:
        states.success(token.token, {"reason": verdict.reason, "progress": verdict.progress})
        return False
    if verdict.action is Action.FAIL:
        states.failure(token.token, verdict.error, verdict.reason)
        return False
    return states.heartbeat(token.token)


def _consoles(facts: AttemptFacts, ranks: Sequence[int], region: str) -> dict[int, str]:
    """The consoles of ranks that are lost. A console that cannot be read does not change the verdict."""
    found = {}
    for rank in ranks:
        instance, output = facts.ids[rank], ""
        try:
            output = breaker.ask_region(region, lambda one=instance: Ec2(region).console(one))  # type: ignore[misc]
        except (ClientError, BotoCoreError, breaker.Silent) as problem:
            logger.warning("no console", job=facts.job.id, instance=instance, problem=str(problem))
        found[rank] = console.told(instance, region, output)
    return found


def _instances(job: Job, region: str, answer: LaunchAnswer) -> dict[str, Instance] | None:
    """What EC2 shows of the nodes; None where it does not answer, which proves nothing."""
    try:
        found = breaker.ask_region(region, lambda: Ec2(region, IN_PASSING).by_id(answer.instances))
    except (ClientError, BotoCoreError, breaker.Silent) as problem:
        logger.warning("EC2 could not be asked; nothing is concluded", job=job.id, problem=str(problem))
        return None
    return {one.id: one for one in found}
