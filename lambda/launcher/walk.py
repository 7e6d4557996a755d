"""Walks the ladder: writes the intent first, then makes one call at a time and writes each answer before the next call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws.ec2 import Ec2
from aws.empty_places import EmptyPlaces
from aws.errors import Raced
from aws.facts import ENDING, Instance
from aws.state import Held, State
from contract import money, tags
from contract.aws_errors import code_of
from contract.empty_places import EmptyPlace
from contract.errors import CapacityPending, CapacityUnavailable, NodeLost
from contract.intents import Intent, LaunchAnswer, LaunchOutcome, Step
from contract.jobs import Job
from contract.shapes import list_shapes
from launcher import arguments, empty_places, halves, policy, prices
from launcher.arguments import LaunchMarks
from launcher.pace import LONGEST_S
from launcher.sending import MOST_MESSAGE, StepSender
from launcher.taking import ShownRegion, Taker
from launcher.waiter import Waiter

logger = Logger(service="launcher")
UNKNOWN_PAUSE_S = (0.5, 8.0)
"""First and longest pause before the same rung is asked again after an unknown outcome."""
RESERVE_S = 20.0
"""Time that is kept to write the last answer down before the function's time-out."""
A_WALK_S = RESERVE_S + LONGEST_S
"""Time that is kept for a launch call of a job that waits."""
SETTLING = 6
"""Times the usual time may EC2 and IAM take to know a new instance."""
NOT_YET = frozenset({"InvalidInstanceID.NotFound", "UnauthorizedOperation"})
"""Errors of CreateTags that pass within seconds after a launch; later they are real."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walker:
    """One invocation. `left` is what remains of its time in seconds."""

    state: State
    empty_places: EmptyPlaces
    ec2: Callable[[str], Ec2]
    """EC2 of a region."""
    holder: str
    marks: LaunchMarks
    user_data: str
    left: Callable[[], float]
    now: Callable[[], float]
    sleep: Callable[[float], None]
    waiter: Waiter | None = None
    """None in the state Launch."""

    def launch(self, job: Job, attempt: int) -> tuple[Intent, Step]:
        """Launches all nodes of the attempt, or finds what an earlier invocation launched.

        Raises CapacityPending (walk again), CapacityUnavailable, QuotaExceeded, InvalidRequest, or NodeLost where the attempt
        was ended before its launch was over.
        """
        try:
            return self._walk(job, attempt)
        except Raced:
            raise CapacityPending("another invocation has just begun to walk the ladder") from None

    def _walk(self, job: Job, attempt: int) -> tuple[Intent, Step]:
        held = self._claim(job, attempt)
        if self.state.closed(job.id, attempt):  # after the claim: Terminate waits for a claim that it sees
            self._release(job, held)
            raise NodeLost(f"attempt {attempt} was terminated; nothing more is launched for it")
        noted = set[str]()
        while (place := held.intent.next_place) is not None:
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
            if self.waiter is not None and held.intent.half is None:  # what runs keeps its security group
                self.give_back(job, attempt)
            raise policy.find_error(held.intent, self.now())
        self._name_master(job, step)
        self._name_nodes(job, attempt, step)
        return held.intent, step

    def _claim(self, job: Job, attempt: int) -> Held:
        """Claims the walk to go on with, or a new one, for this invocation alone."""
        walks = self.state.intents(job.id, attempt)
        last = walks[-1] if walks else None
        if last is not None and last.intent.waiting and not last.intent.launched and self.waiter is None:
            raise CapacityUnavailable("the attempt already waits for capacity, and takes its turn with other jobs")
        if last is None or (last.intent.next_place is None and not last.intent.launched):
            for region in policy.list_doubted(walks[-1].intent) if walks and self.waiter is not None else ():
                self._check_all_gone(job, walks[-1], region, "EC2 never answered their launch")
            return self._write_plan(job, attempt, walks)
        if last.intent.held_by != self.holder and last.intent.held_until > self.now():
            raise CapacityPending(
                f"another invocation may walk the ladder for {last.intent.held_until - self.now():.0f} s more"
            )
        if self.waiter is not None and self._is_abandoned(job, last.intent):
            return self._write_plan(job, attempt, walks, going_on=True)
        claimed = replace(last.intent, held_by=self.holder, held_until=self.now() + self.left())
        return self.state.replace_intent(job, claimed, last)

    def _release(self, job: Job, held: Held) -> Held:
        return self.state.replace_intent(job, replace(held.intent, held_until=0.0), held)

    def give_back(self, job: Job, attempt: int) -> None:
        """Gives back the security groups that the attempt took: of a thousand jobs that wait, none may hold one."""
        for region in sorted({rung.region for rung in job.ladder}):
            self._taker().give_back(job, attempt, region)

    def _write_plan(self, job: Job, attempt: int, walks: Sequence[Held], *, going_on: bool = False) -> Held:
        """Returns a new walk, behind those before it. Once the job waits it takes the place of the one before, so that there is only one.
        `going_on`: it begins where the one before stopped."""
        before = [held.intent for held in walks]
        if going_on:
            intent = policy.carry_answers(self._plan(policy.order_like(job, before[-1]), attempt, before), before[-1])
        else:
            known = self.state.unhealthy(job.id) if attempt > 1 else []
            intent = self._plan(policy.avoid_unhealthy(self._order_by_prices(job), attempt, known), attempt, before)
        if walks and walks[-1].intent.waiting:
            return self.state.replace_intent(job, intent, walks[-1])
        return self.state.create_intent(job, intent)

    def _order_by_prices(self, job: Job) -> Job:
        """Returns the job with its ladder in the order of new spot prices, where it waits and those of its admission are old."""
        if self.waiter is None:
            return job
        known, now = self.waiter.prices, self.now()
        for region, types in prices.list_wanted(job, known, now=now).items():
            kept = region in self.waiter.silent | self.waiter.unpriced or self.left() < A_WALK_S
            if (usd := None if kept else self.ec2(region).spot_prices(types)) is None:
                self.waiter.unpriced.add(region)
            if not usd:
                logger.warning(
                    "EC2 gave no spot prices; the ladder keeps its order", job=job.id, region=region, types=types
                )
            known.update(prices.sort_prices(region, types, usd or {}, now=now))
        return replace(job, ladder=prices.order_ladder(job, known))

    def _is_abandoned(self, job: Job, intent: Intent) -> bool:
        """Whether an unfinished walk is old, and EC2 shows nothing that it launched. What it would launch now had a deadline of then."""
        if (place := intent.next_place) is None:
            return False
        step, timing = intent.steps[place], job.timing
        region, silent = step.rung.region, self.waiter.silent if self.waiter else set[str]()
        asked_at = max(intent.held_until, step.answer.at if step.answer else 0.0)
        old_at = max(intent.started_at + timing.trouble_patience_s, asked_at + timing.visibility_s)
        if region in silent or self.now() < old_at:
            return False
        shown = self._read_ec2(region, lambda ec2: ec2.of_job(job.deployment, job.id))
        return all(one.attempt != intent.attempt for one in shown)

    def _plan(self, job: Job, attempt: int, walks: Sequence[Intent]) -> Intent:
        now, before = self.now(), walks[-1] if walks else None
        if before is not None and not isinstance(
            error := policy.find_error(self._patient(before), now), CapacityPending
        ):
            raise error
        found = self._list_halves(job, attempt) if before is None else []
        walk = policy.Walk(
            number=before.walk + 1 if before else 1,
            started_at=now,
            patience_until=self._patient(before).patience_until
            if before
            else halves.begin_patience(job, found[0] if found else None, now),
            holder=self.holder,
            held_until=now + self.left(),
            marks=self.marks,
            user_data=self.user_data,
            waiting=self.waiter is not None,
            waited_s=self._waited_s(job, attempt, walks, now),
            spent_usd=self._spent_usd(job, attempt, walks, now),
            doubted_usd=before.doubted_usd if before else 0.0,
        )
        if (end := policy.explain_no_money(job, walk)) is not None:
            raise end
        passed_over = empty_places.pass_over(
            job, self._read_empty_places(), walks[-1] if walks else None, waiting=self.waiter is not None, now=now
        )
        for half in reversed(found):  # the newest answers count
            passed_over |= halves.pass_over_half(job, half)
        return policy.keep_doubts(policy.plan(job, attempt, walk, passed_over=passed_over), before)

    def _list_halves(self, job: Job, attempt: int) -> list[Intent]:
        return halves.list_halves(job, attempt, lambda one: [held.intent for held in self.state.intents(job.id, one)])

    def _read_empty_places(self) -> list[EmptyPlace]:
        """Returns the places that other jobs found empty; none where the table does not answer: every place is asked then."""
        try:
            return self.empty_places.all()
        except (ClientError, BotoCoreError):
            logger.exception("could not read the empty places; every place is asked")
            return []

    def _note(self, job: Job, step: Step) -> None:
        """Notes a place without capacity for other jobs. Without the note they ask it themselves."""
        if (place := empty_places.describe_empty(job, step)) is None:
            return
        try:
            self.empty_places.note(place)
        except (ClientError, BotoCoreError):
            logger.exception("could not note an empty place", job=job.id)

    def _prepare(self, job: Job, held: Held, region: str) -> Held:
        """Writes down what will be sent in a region. One that cannot be asked does not keep the walk from the others."""
        if self.left() < RESERVE_S:
            raise self._out_of_time(job, held)
        intent = held.intent
        if self.waiter is not None and region in self.waiter.silent:
            return self._record_unasked(job, held, region, "NoAnswer", "it did not answer another job a moment ago")
        try:
            groups = self._take_group(job, intent.attempt, region)
        except (ClientError, BotoCoreError) as problem:
            code = code_of(problem) if isinstance(problem, ClientError) else type(problem).__name__
            return self._record_unasked(job, held, region, code, str(problem))
        planned = policy.prepare_region(job, intent, region, groups, marks=self.marks)
        return self.state.replace_intent(job, planned, held)

    def _record_unasked(self, job: Job, held: Held, region: str, code: str, message: str) -> Held:
        logger.warning("a region did not answer", job=job.id, region=region, problem=message)
        answer = LaunchAnswer(
            outcome=LaunchOutcome.NO_CAPACITY,
            at=self.now(),
            code=f"NotAsked: {code}",
            message=message[:MOST_MESSAGE],
        )
        return self.state.replace_intent(job, policy.skip_region(held.intent, region, answer), held)

    def _patient(self, intent: Intent) -> Intent:
        """Returns the intent with the patience of this walk."""
        return intent if self.waiter is None else replace(intent, patience_until=self.waiter.until)

    def _waited_s(self, job: Job, attempt: int, walks: Sequence[Intent], now: float) -> float:
        """How long the job has waited. Launch's patience counts too, once the job waits, and so does the end of what was half of a launch;
        both do not count otherwise."""
        if walks and self.waiter is not None:
            return walks[0].waited_s + now - walks[0].started_at
        if walks:
            return walks[-1].waited_s
        for number in range(attempt - 1, 0, -1):
            if earlier := self.state.intents(job.id, number):
                return halves.count_waited_s(earlier[-1].intent, now)
        return 0.0

    def _spent_usd(self, job: Job, attempt: int, before: Sequence[Intent], now: float) -> float:
        """Returns what the attempts before have cost at most, and in this one what may run since Launch gave up to learn whether it
        launched. It matters only to a job with a cap, whose prices are all known."""
        doubted = [walk for walk in before if walk.doubted_usd and not walk.waiting]
        if job.max_cost_usd is None or (attempt == 1 and not doubted):
            return 0.0
        earlier = [walk for walk in self.state.walks(job.id) if walk.attempt < attempt]
        spent = money.spent_usd(job, [*earlier, *doubted], self.state.ends(job.id), now=now)
        return job.max_cost_usd if spent is None else spent

    def _take_group(self, job: Job, attempt: int, region: str) -> policy.Groups:
        """Takes a security group of the region, before the intent names it."""
        at = self.now()
        every = self._read_ec2(region, lambda ec2: ec2.every(job.deployment))
        shown = ShownRegion(name=region, at=at, instances=tuple(every))
        choice = self._taker().take(job, attempt, shown)
        return policy.Groups(
            busy=policy.find_busy(shown.instances), security_group=choice.group, shared_with=choice.shared_with
        )

    def _read_ec2(self, region: str, read: Callable[[Ec2], list[Instance]]) -> list[Instance]:
        """Returns what EC2 shows in a region. The jobs behind this one do not ask a region that has not answered."""
        try:
            return read(self.ec2(region))
        except BotoCoreError:
            if self.waiter is not None:
                self.waiter.silent.add(region)
            raise

    def _taker(self) -> Taker:
        return Taker(state=self.state, now=self.now, sleep=self.sleep, reserved=lambda: self.left() < RESERVE_S)

    def _ask(self, job: Job, held: Held, place: int) -> Held:
        """Asks one rung until its answer is final; after an unknown outcome it sends the same bytes again."""
        pause, longest = UNKNOWN_PAUSE_S
        while True:
            if self.left() < (RESERVE_S if self.waiter is None else A_WALK_S):
                raise self._out_of_time(job, held)
            if self.waiter is not None and (region := held.intent.steps[place].rung.region) in self.waiter.silent:
                self._release(job, held)
                raise CapacityPending(f"EC2 of {region} does not answer")
            answer = self._run(job, held.intent, held.intent.steps[place])
            if answer.outcome is LaunchOutcome.RENEW:
                self.sleep(job.timing.visibility_s)
                asked = held.intent.steps[place].rung.region
                self._check_all_gone(job, held, asked, "nodes ended before EC2 answered their launch")
            intent = held.intent
            young = self.now() < intent.started_at + job.timing.quota_patience_s
            recovering = intent.attempt > 1 and young and not intent.waiting
            held = self.state.replace_intent(
                job, policy.record_answer(intent, place, answer, recovering=recovering), held
            )
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
                self._note(job, held.intent.steps[place])
                return held
            if self.waiter is not None:
                self._release(job, held)
                raise CapacityPending(
                    "EC2 has not said whether a rung launched; the next try sends the same call again"
                )
            if self.now() >= intent.patience_until:
                return self.state.replace_intent(job, policy.give_up(job, held.intent, place, answer), held)
            self.sleep(pause)
            pause = min(2 * pause, longest)

    def _out_of_time(self, job: Job, held: Held) -> CapacityPending:
        self._release(job, held)
        return CapacityPending("the function's time is nearly over; the next invocation goes on where this one stops")

    def _check_all_gone(self, job: Job, held: Held, region: str, what: str) -> None:
        """Raises NodeLost where an instance of the attempt still runs there: launching anew beside it would make a second cluster."""
        every = self._read_ec2(region, lambda ec2: ec2.of_job(job.deployment, job.id))
        left = [one.id for one in every if one.attempt == held.intent.attempt and one.state not in ENDING]
        if left:
            self._release(job, held)
            raise NodeLost(f"{what}, and {', '.join(left)} run without them")

    def _run(self, job: Job, intent: Intent, step: Step) -> LaunchAnswer:
        region, waiter = step.rung.region, self.waiter
        sender = StepSender(
            ec2=self.ec2(region),
            intent=intent,
            step=step,
            now=self.now,
            has_time=lambda: self.left() >= (RESERVE_S if waiter is None else A_WALK_S),
            before_call=lambda nodes: waiter.before_call(region, nodes) if waiter else None,
            on_silence=lambda: waiter.silent.add(region) if waiter else None,
        )
        return sender.send(list_shapes(job, step.rung))

    def _name_master(self, job: Job, step: Step) -> None:
        """Tags the master's address on every node; the nodes wait for it.

        For some seconds a new instance may be unknown to CreateTags, and IAM may not see the tags by which it is ours.
        """
        assert step.answer is not None
        ec2, pause = self.ec2(step.rung.region), job.timing.visibility_s / 2
        until = self.now() + SETTLING * job.timing.visibility_s
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
                self.ec2(step.rung.region).tag([instance], tags.NAME, arguments.name_node(job, attempt, rank))
            except (ClientError, BotoCoreError) as problem:
                logger.warning(
                    "nodes keep a name without their rank", job=job.id, left=instances[rank:], problem=str(problem)
                )
                return
