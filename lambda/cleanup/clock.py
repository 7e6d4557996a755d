"""The cleanup's clock: finds executions that ended badly without a report, and sends the messages that the events of their ends would have
been. An event is a hint, which may get lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws import executions
from aws.clients import BRISK
from aws.executions import BAD_ENDS, BadEnd
from aws.queue import Queue
from aws.s3 import HomeBucket
from aws.state import State
from cleanup.policy import ReportFacts, ReportStanding, ReportVerdict, judge_report
from contract import names
from contract.codec import Garbled
from contract.environments import CleanupEnvironment
from contract.execution_facts import read_report
from contract.keys import JobPrefix
from messages.policy import write_unheard

logger = Logger(service="cleanup")
MOST_LISTED = 10_000
"""Executions of each bad end, the newest ones, among which the clock looks. Step Functions lists by the begin, and a job may run for
weeks."""
MOST_SENT = 200
"""Messages of a tick, so many as the queue's function works through until the next one. The others follow then."""
AT_ONCE = 8
"""Executions that are looked at side by side."""
LAST_S = 20.0
"""Seconds before the function's time-out from which on no further execution is looked at."""


class EndsUnknown(Exception):
    """The clock could not tell of each end whether its report is missing. It is raised so that Lambda's error metric shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndClock:
    """One tick of the clock. It asks for what is missing, and changes nothing itself."""

    env: CleanupEnvironment
    queue: Queue
    home: HomeBucket
    state: State
    now: float
    """UTC epoch seconds."""
    left: Callable[[], float]
    """Seconds until the function's time-out."""
    failures: list[str] = field(default_factory=list)

    def run(self) -> dict[str, int]:
        """Returns how many executions ended badly, how many of them lack their report, and for how many the cleanup was asked. What AWS
        does not answer keeps no other execution from its report; at the end it raises EndsUnknown."""
        ends = sorted(set(self._list()), key=lambda one: one.ended_at, reverse=True)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            verdicts = list(pool.map(self._judge, ends))
        missing = [
            one for one, verdict in zip(ends, verdicts, strict=True) if verdict.standing is ReportStanding.MISSING
        ]
        sent = sum(map(self._send, missing[:MOST_SENT]))
        found = {"ended": len(ends), "missing": len(missing), "sent": sent}
        logger.info("looked for missing reports", **found, failures=len(self.failures))
        if self.failures:
            raise EndsUnknown(f"{len(self.failures)} questions failed: {'; '.join(self.failures[:5])}")
        return found

    def _list(self) -> Iterator[BadEnd]:
        since, until = (
            self.now - self.env.timing.missing_report_until_s,
            self.now - self.env.timing.missing_report_after_s,
        )
        for how in BAD_ENDS:
            try:
                for one in executions.ended_badly(self.env.machine, how, since, until, most=MOST_LISTED):
                    if names.JOB_PATTERN.fullmatch(one.name):
                        yield one
            except (ClientError, BotoCoreError) as problem:
                self._note(f"executions that are {how}", problem)

    def _judge(self, end: BadEnd) -> ReportVerdict:
        if self.left() < LAST_S:
            return self._refuse(end, "the time of this tick was over; the next one looks at it")
        try:
            facts = ReportFacts(
                execution=end.arn,
                status=executions.status(end.arn, BRISK),
                job=self.state.job(end.name),
                attempts=self.state.last_attempt(end.name),
                report=read_report(self.home.get(JobPrefix(end.name).result)),
            )
        except (ClientError, BotoCoreError, Garbled) as problem:
            return self._refuse(end, str(problem))
        verdict = judge_report(facts, self.env.timing, now=self.now)
        return self._refuse(end, verdict.reason) if verdict.standing is ReportStanding.UNKNOWN else verdict

    def _send(self, end: BadEnd) -> bool:
        try:
            self.queue.send(write_unheard(self.env.machine, end.arn), in_s=0)
        except (ClientError, BotoCoreError) as problem:
            self._note(end.arn, problem)
            return False
        logger.warning("the report of an end is missing, and the cleanup was asked for it", execution=end.arn)
        return True

    def _refuse(self, end: BadEnd, why: str) -> ReportVerdict:
        self._note(end.arn, why)
        return ReportVerdict(ReportStanding.UNKNOWN, why)

    def _note(self, what: str, why: object) -> None:
        logger.warning("not known whether a report is missing", what=what, reason=str(why))
        self.failures.append(f"{what}: {why}")
