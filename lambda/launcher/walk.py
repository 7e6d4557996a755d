"""Walks the ladder: writes the intent first, then makes one call at a time and writes each answer before the next call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws.ec2 import Ec2
from aws.errors import Raced
from aws.facts import ENDING
from aws.state import Held, State
from contract import tags
from contract.aws_errors import code_of
from contract.errors import CapacityPending, NodeLost
from contract.intents import Intent, LaunchAnswer, LaunchOutcome, Step
from contract.jobs import Job
from launcher import policy, requests
from launcher.answers import meaning
from launcher.requests import token
from launcher.taking import Look, Taker

logger = Logger(service="launcher")
UNKNOWN_PAUSE_S = (0.5, 8.0)
"""First and longest pause before the same rung is asked again after an unknown outcome."""
MOST_MESSAGE = 500
RESERVE_S = 20.0
"""Time that is kept to write the last answer down before the function's time-out."""

NOT_YET = frozenset({"InvalidInstanceID.NotFound", "UnauthorizedOperation"})
"""Errors of CreateTags that pass within seconds after a launch; later they are real."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walker:
    """One invocation. `left` is what remains of its time in seconds."""

    state: State
    ec2: Callable[[str], Ec2]
    """EC2 of a region."""
    holder: str
    profile: str
    user_data: str
    left: Callable[[], float]
    now: Callable[[], float]
    sleep: Callable[[float], None]

    def launch(self, job: Job, attempt: int) -> tuple[Intent, Step]:
        """Launches all nodes of the attempt, or finds what an earlier invocation launched.

        Raises CapacityPending (walk again), CapacityUnavailable, QuotaExceeded, InvalidRequest, or NodeLost where the attempt
        was ended before its launch was over.
        """
        try:
            return self._walk(job, attempt)
        except Raced:
            raise CapacityPending("another invocation walks the ladder since a moment ago") from None

    def _walk(self, job: Job, attempt: int) -> tuple[Intent, Step]:
        held = self._claim(job, attempt)
        if self.state.closed(job.id, attempt):  # after the claim: Terminate waits for a claim that it sees
            self._release(job, held)
            raise NodeLost(f"attempt {attempt} was terminated; nothing is launched for it any more")
        noted = set[str]()
        while (place := policy.next_step(held.intent)) is not None:
            step = held.intent.steps[place]
            region = step.rung.region
            if not step.request:
                held = self._prepare(job, held, region)
                continue
            if region not in noted:  # before the first call there: the reaper looks where anything was ever launched
                self.state.note_region(region)
                noted.add(region)
            held = self._ask(job, held, place)
        step = held.intent.launched
        held = self._release(job, held)
        if step is None:
            raise policy.ending(held.intent, self.now())
        self._name_master(job, step)
        self._name_nodes(job, attempt, step)
        return held.intent, step

    def _claim(self, job: Job, attempt: int) -> Held:
        """Claims the walk to go on with, or a new one, for this invocation alone."""
        walks = self.state.intents(job.id, attempt)
        last = walks[-1] if walks else None
        if last is None or (policy.next_step(last.intent) is None and not last.intent.launched):
            return self.state.create_intent(job, self._new(job, attempt, last.intent if last else None))
        if last.intent.held_by != self.holder and last.intent.held_until > self.now():
            raise CapacityPending(
                f"another invocation walks the ladder for {last.intent.held_until - self.now():.0f} s at most"
            )
        claimed = replace(last.intent, held_by=self.holder, held_until=self.now() + self.left())
        return self.state.replace_intent(job, claimed, last)

    def _release(self, job: Job, held: Held) -> Held:
        return self.state.replace_intent(job, replace(held.intent, held_until=0.0), held)

    def _new(self, job: Job, attempt: int, before: Intent | None) -> Intent:
        now = self.now()
        if before is not None and not isinstance(error := policy.ending(before, now), CapacityPending):
            raise error
        walk = policy.Walk(
            number=before.walk + 1 if before else 1,
            started_at=now,
            patience_until=before.patience_until if before else now + job.timing.launch_patience_s,
            holder=self.holder,
            held_until=now + self.left(),
            profile=self.profile,
            user_data=self.user_data,
        )
        return policy.plan(job, attempt, walk)

    def _prepare(self, job: Job, held: Held, region: str) -> Held:
        """Writes down what will be sent in a region. One that cannot be asked does not keep the walk from the others."""
        if self.left() < RESERVE_S:
            raise self._out_of_time(job, held)
        intent = held.intent
        try:
            groups = self._groups(job, intent.attempt, region)
        except (ClientError, BotoCoreError) as problem:
            code = code_of(problem) if isinstance(problem, ClientError) else type(problem).__name__
            logger.warning("a region could not be asked", job=job.id, region=region, problem=str(problem))
            answer = LaunchAnswer(
                outcome=LaunchOutcome.NO_CAPACITY,
                at=self.now(),
                code=f"NotAsked: {code}",
                message=str(problem)[:MOST_MESSAGE],
            )
            return self.state.replace_intent(job, policy.unreachable(intent, region, answer), held)
        planned = policy.prepared(job, intent, region, groups, profile=self.profile)
        return self.state.replace_intent(job, planned, held)

    def _groups(self, job: Job, attempt: int, region: str) -> policy.Groups:
        """Takes a security group of the region, before the intent names it."""
        at = self.now()
        look = Look(region=region, at=at, instances=tuple(self.ec2(region).every(job.deployment)))
        taker = Taker(state=self.state, now=self.now, sleep=self.sleep, reserved=lambda: self.left() < RESERVE_S)
        choice = taker.take(job, attempt, look)
        return policy.Groups(
            busy=policy.busy(look.instances), security_group=choice.group, shared_with=choice.shared_with
        )

    def _ask(self, job: Job, held: Held, place: int) -> Held:
        """Asks one rung until its answer is final; after an unknown outcome it sends the same bytes again."""
        pause, longest = UNKNOWN_PAUSE_S
        while True:
            if self.left() < RESERVE_S:
                raise self._out_of_time(job, held)
            answer = self._run(held.intent, held.intent.steps[place])
            if answer.outcome is LaunchOutcome.RENEW:
                self._check_all_gone(job, held, place)
            intent = held.intent
            recovering = intent.attempt > 1 and self.now() < intent.started_at + job.timing.quota_patience_s
            held = self.state.replace_intent(job, policy.answered(intent, place, answer, recovering=recovering), held)
            logger.info(
                "asked",
                job=job.id,
                attempt=intent.attempt,
                walk=intent.walk,
                rung=place,
                outcome=answer.outcome,
                code=answer.code,
            )
            if answer.outcome is not LaunchOutcome.UNKNOWN:
                return held
            if self.now() >= intent.patience_until:
                closed = replace(answer, outcome=LaunchOutcome.NO_CAPACITY)
                return self.state.replace_intent(
                    job, policy.answered(held.intent, place, closed, recovering=False), held
                )
            self.sleep(pause)
            pause = min(2 * pause, longest)

    def _out_of_time(self, job: Job, held: Held) -> CapacityPending:
        self._release(job, held)
        return CapacityPending("the function's time is nearly over; the next invocation goes on where this one stops")

    def _check_all_gone(self, job: Job, held: Held, place: int) -> None:
        """Raises NodeLost where an instance of the token still runs: launching anew beside it would make a second cluster."""
        self.sleep(job.timing.visibility_s)
        intent, region = held.intent, held.intent.steps[place].rung.region
        every = self.ec2(region).of_job(job.deployment, job.id)
        left = [one.id for one in every if one.attempt == intent.attempt and one.state not in ENDING]
        if left:
            self._release(job, held)
            raise NodeLost(f"nodes ended before their launch was known, and {', '.join(left)} run without them")

    def _run(self, intent: Intent, step: Step) -> LaunchAnswer:
        mark = token(step.request, intent.user_data, step.generation)
        try:
            instances = self.ec2(step.rung.region).run(step.request, user_data=intent.user_data, token=mark)
        except ClientError as problem:
            error = problem.response["Error"]
            return LaunchAnswer(
                outcome=meaning(error["Code"]),
                at=self.now(),
                code=error["Code"],
                message=error.get("Message", "")[:MOST_MESSAGE],
            )
        except BotoCoreError as problem:  # time-outs and broken connections: the call may have launched instances
            return LaunchAnswer(
                outcome=LaunchOutcome.UNKNOWN,
                at=self.now(),
                code=type(problem).__name__,
                message=str(problem)[:MOST_MESSAGE],
            )
        return LaunchAnswer(
            outcome=LaunchOutcome.LAUNCHED,
            at=self.now(),
            instances=tuple(one.id for one in instances),
            master_address=instances[0].address,
        )

    def _name_master(self, job: Job, step: Step) -> None:
        """Tags the master's address on every node; the nodes wait for it.

        For some seconds a new instance may be unknown to CreateTags, and IAM may not see the tags by which it is ours.
        """
        assert step.answer is not None
        ec2, pause, until = self.ec2(step.rung.region), job.timing.visibility_s / 2, self.now() + self._settling_s(job)
        while True:
            try:
                return ec2.tag(step.answer.instances, tags.MASTER_ADDRESS, step.answer.master_address)
            except ClientError as problem:
                if code_of(problem) not in NOT_YET or self.now() >= until:
                    raise
            if self.left() < RESERVE_S:
                raise CapacityPending("the nodes are launched; the next invocation names their master")
            self.sleep(pause)

    def _name_nodes(self, job: Job, attempt: int, step: Step) -> None:
        """Puts each node's rank into the name that the console shows. Nothing depends on it, so that the first trouble ends it."""
        assert step.answer is not None
        instances = step.answer.instances if job.nodes > 1 else ()
        for rank, instance in enumerate(instances):
            if self.left() < RESERVE_S:
                return
            try:
                self.ec2(step.rung.region).tag([instance], tags.NAME, requests.name(job, attempt, rank))
            except (ClientError, BotoCoreError) as problem:
                logger.warning(
                    "nodes keep a name without their rank", job=job.id, left=instances[rank:], problem=str(problem)
                )
                return

    @staticmethod
    def _settling_s(job: Job) -> float:
        """How long EC2 and IAM may take to know a new instance: six times the usual time."""
        return 6 * job.timing.visibility_s
