"""One turn of the clock: tries for the jobs that wait for capacity, one after the other, and answers their tokens.

A single invocation tries at a time, at a fixed pace, so a thousand jobs that wait make no more launch calls than ten. Every step may
happen twice, late or never: a token shows whether its execution waits, the intent which invocation walks, and a closed attempt launches
nothing.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws import states
from aws.errors import Raced
from aws.s3 import HomeBucket, as_json
from aws.state import State
from aws.waits import CapacityWaits, HeldWait
from contract import keys
from contract.errors import CapacityPending, CapacityUnavailable, InvalidRequest, JobError, PatienceOver
from contract.intents import Intent, Step
from contract.jobs import Job
from contract.waits import CapacityWait
from launcher import waits
from launcher.prices import Kind, Priced
from launcher.waiter import Waiter
from launcher.walk import Walker

logger = Logger(service="launcher")
CLOCK_S = 60.0
"""How often the clock ticks."""
A_TRY_S = 60.0
"""A try that begins has at least so long."""
ELSEWHERE = "another invocation has changed the wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tries:
    """One invocation that the clock woke. `left` is what remains of its time in seconds."""

    state: State
    waits: CapacityWaits
    home: HomeBucket
    holder: str
    heartbeat_s: float
    walker: Callable[[Job, Waiter], Walker]
    before_call: Callable[[str, int], None]
    """Keeps the pace of launch calls, by region and the instances that are asked for."""
    output: Callable[[Job, Intent, Step], dict[str, Any]]
    """What the state's output is, as Launch's."""
    left: Callable[[], float]
    now: Callable[[], float]
    silent: set[str] = field(default_factory=set)
    """Regions in which a call of this turn got no answer."""
    prices: dict[Kind, Priced] = field(default_factory=dict)
    """Spot prices that were asked for in this turn."""
    unpriced: set[str] = field(default_factory=set)
    """Regions that gave no spot prices in this turn."""

    def take_turn(self) -> dict[str, int]:
        """Beats the tokens whose time it is, then tries for those that are due, unless another invocation does. Returns what came of it, by
        the number of jobs. Raises RuntimeError at its end for tries that failed otherwise than by an answer."""
        alive = [one for one in self.waits.all() if self._beat(one)]
        by_wait = {one.wait: one for one in alive}
        ready = waits.list_due(by_wait, now=self.now())
        mine = self.waits.take_turn(self.holder, self.now() + self.left()) if ready else None
        if mine is None:
            return {}
        done, failures = Counter[str](), list[str]()
        try:
            for wait in ready:
                if self.left() < A_TRY_S:
                    break
                try:
                    done[self._try(by_wait[wait])] += 1
                except Exception as problem:
                    logger.exception("a try failed", job=wait.job, attempt=wait.attempt)
                    failures.append(f"{wait.job}/{wait.attempt}: {problem}")
        finally:
            self.waits.end_turn(mine)
        if failures:
            raise RuntimeError(f"{len(failures)} of {len(ready)} tries failed: {'; '.join(failures)}")
        return dict(done)

    def _beat(self, one: HeldWait) -> bool:
        """Returns whether the execution may wait for the token, as far as this tick asks; forgets the wait where it does not."""
        wait, now = one.wait, self.now()
        if not waits.beats_now(wait.job, now=now, heartbeat_s=self.heartbeat_s, every_s=CLOCK_S):
            return True
        try:
            return self._is_awaited(one)
        except (ClientError, BotoCoreError):
            logger.exception("could not send a heartbeat", job=wait.job, attempt=wait.attempt)
            return True

    def _is_awaited(self, one: HeldWait) -> bool:
        """Sends a heartbeat. Where the token is dead it forgets the wait: the execution was stopped, or has gone on."""
        if states.heartbeat(one.wait.token):
            return True
        logger.info("the token is dead; the wait is forgotten", job=one.wait.job, attempt=one.wait.attempt)
        self.waits.forget(one)
        return False

    def _try(self, one: HeldWait) -> str:
        """Makes one walk for one job. Returns what came of it in a word."""
        wait, job = one.wait, self.state.job(one.wait.job)
        if job is None:
            return self._fail(one, InvalidRequest(f"the table no longer has job {wait.job}"))
        if self.now() >= wait.until and (end := self._explain_end(wait, job)) is not None:
            return self._fail(one, end)
        if not self._is_awaited(one):  # right before the walk: nothing is launched for an execution that is over
            return "no longer awaited"
        try:  # a try that is killed is made again once its walk can be taken over
            one = self.waits.change(one, replace(wait, next_try_at=self.now() + self.left()))
        except Raced:
            return ELSEWHERE
        walker = self.walker(
            job,
            Waiter(
                until=wait.until,
                before_call=self.before_call,
                silent=self.silent,
                prices=self.prices,
                unpriced=self.unpriced,
            ),
        )
        try:
            intent, step = walker.launch(job, wait.attempt)
        except CapacityPending as problem:
            return self._wait_on(one, job, problem)
        except CapacityUnavailable as problem:  # the time was over during the try, or no reservation is left
            over = self._explain_end(wait, job) if self.now() >= wait.until else None
            return self._fail(one, over or problem)
        except JobError as problem:
            return self._fail(one, problem)
        except (ClientError, BotoCoreError) as problem:
            logger.exception("could not walk the ladder", job=job.id, attempt=wait.attempt)
            if (end := self._explain_idle(wait, job, problem)) is not None:
                return self._fail(one, end)
            return self._wait_on(one, job, problem)
        return self._succeed(one, job, intent, step)

    def _explain_idle(self, wait: CapacityWait, job: Job, problem: Exception) -> JobError | None:
        """Returns the error of a wait whose nodes run and cannot begin, for longer than Launch would try; None for any other."""
        walks = self._walks(wait)
        step = walks[-1].launched if walks else None
        if step is None or step.answer is None or self.now() < step.answer.at + job.timing.trouble_patience_s:
            return None
        idle = self.now() - step.answer.at
        return PatienceOver(
            f"Nodes were launched {idle:.0f} s ago, and cannot begin: {type(problem).__name__}: {problem}"
        )

    def _explain_end(self, wait: CapacityWait, job: Job) -> JobError | None:
        return waits.explain_end(wait, job, self._walks(wait), now=self.now())

    def _wait_on(self, one: HeldWait, job: Job, problem: Exception) -> str:
        walks = self._walks(one.wait)
        trouble, soon = (waits.describe_doubt(walks[-1]), waits.has_unasked(walks[-1])) if walks else ("", False)
        if not isinstance(problem, CapacityPending) or self.silent & job.places.keys():
            trouble = f"{type(problem).__name__}: {problem}"
        wait = waits.count_try(one.wait, job.timing, now=self.now(), chance=random.random(), trouble=trouble, soon=soon)
        try:
            self.waits.change(one, wait)
        except Raced:  # the state's own call came a second time, and began the wait anew
            return ELSEWHERE
        self.write_document(wait, walks, waits.WAITS)
        logger.info("waits on", job=job.id, attempt=wait.attempt, tries=wait.tries, trouble=trouble)
        return "waits on"

    def _fail(self, one: HeldWait, problem: JobError) -> str:
        error = type(problem).__name__
        states.failure(one.wait.token, error, str(problem))
        self._end(one, self._walks(one.wait), error)
        return error

    def _succeed(self, one: HeldWait, job: Job, intent: Intent, step: Step) -> str:
        if not states.success(one.wait.token, self.output(job, intent, step)):
            # Stopped during the walk: the cleanup after its end, or the reaper, ends what was launched.
            logger.warning("launched for an execution that is over", job=job.id, attempt=intent.attempt)
        self._end(one, [intent], waits.LAUNCHED)
        return waits.LAUNCHED

    def _end(self, one: HeldWait, walks: Sequence[Intent], how: str) -> None:
        self.waits.forget(one)
        self.write_document(one.wait, walks, how)
        logger.info("waits no longer", job=one.wait.job, attempt=one.wait.attempt, end=how)

    def write_document(self, wait: CapacityWait, walks: Sequence[Intent], how: str) -> None:
        """Writes the document that people read. Without it the job waits, and goes on, all the same."""
        document = waits.build_document(wait, walks, how, now=self.now())
        try:
            self.home.put(keys.JobPrefix(wait.job).wait, as_json(document))
        except (ClientError, BotoCoreError):
            logger.exception("could not write the document of a wait", job=wait.job)

    def _walks(self, wait: CapacityWait) -> list[Intent]:
        return [held.intent for held in self.state.intents(wait.job, wait.attempt)]
