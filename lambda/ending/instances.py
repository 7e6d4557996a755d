"""Ends the instances of a job: close its attempts, end by tag and by remembered ids, look again, prove that nothing can appear.

Terminate, the cleanup after an execution's end, and a destroy all end instances by this code.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws.clients import IN_PASSING
from aws.ec2 import Ec2
from aws.facts import Instance
from aws.s3 import HomeBucket
from aws.state import State
from contract.codec import Garbled
from contract.errors import StillRunning
from contract.intents import Intent, of_every_attempt
from ending.policy import (
    describe_left,
    explain_pending,
    find_kept,
    find_to_end,
    find_unclear,
    prepared_regions,
    recorded_ids,
)

logger = Logger(service="terminator")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The result of an ending that is proven."""

    instances: list[str]
    """Ids of those that this call terminated."""
    kept: list[Instance]
    """Those that run on because a person protects them, or because they lack our instance profile."""
    intents: list[Intent]
    at: float
    """When all had begun to end, UTC epoch seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Ends jobs of one deployment."""

    state: State
    home: HomeBucket
    deployment: str
    profile: str
    """ARN of the nodes' instance profile."""
    regions: tuple[str, ...]
    """Read for a job of which it is unknown where it was to run."""
    visibility_s: float
    again_s: tuple[float, ...] = ()
    """Pauses before further looks at what it has ended: EC2 may show it as running for about a second more."""

    def end(self, job: str, attempt: int) -> Ended:
        """Ends the job's instances: when it returns, nothing of the job runs in `attempt` or an earlier one, nor ever will, but for what is
        `kept`.

        Raises StillRunning as long as that is not proven; what AWS does not answer now it may answer when asked again.
        """
        try:
            return self._end(job, attempt)
        except (ClientError, BotoCoreError) as problem:
            raise StillRunning(f"AWS does not say whether instances of job {job} run: {problem}") from problem

    def _end(self, job: str, attempt: int) -> Ended:
        numbers = range(1, attempt + 1)
        for number in numbers:  # before intents are read: a launch that missed the closing has written its own by then
            self.state.close(job, number)
        intents = [held.intent for number in numbers for held in self.state.intents(job, number)]
        looked_at = time.time()  # before a region is asked: a slow one must not make an unseen launch seem old enough
        ended, shown, left = list[str](), dict[str, Instance](), list[str]()
        for region, certain in self._regions(job, attempt, intents).items():
            ec2 = Ec2(region) if certain else Ec2(region, IN_PASSING)
            try:
                found, after, refused = self._end_in(ec2, job, attempt, intents)
            except (ClientError, BotoCoreError) as problem:  # the other regions' instances end all the same
                if certain:
                    left.append(f"- a call to {region} failed: {problem}")
                else:
                    logger.warning(
                        "a region did not answer; nothing was launched there",
                        job=job,
                        region=region,
                        problem=str(problem),
                    )
                continue
            ended += [one.id for one in found]
            shown |= {one.id: one for one in after}
            left += describe_left(find_to_end(after, attempt, self.profile), refused)
        left += explain_pending(intents, shown, now=looked_at, visibility_s=self.visibility_s)
        left += find_unclear(shown.values(), now=looked_at, visibility_s=self.visibility_s)
        staying = find_kept(shown.values(), self.profile)
        logger.info(
            "terminated", job=job, attempt=attempt, instances=ended, left=left, kept=[one.id for one in staying]
        )
        if left:
            raise StillRunning("\n".join([f"instances of job {job}, attempt {attempt}, run or may appear:", *left]))
        return Ended(instances=ended, kept=staying, intents=intents, at=time.time())

    def _regions(self, job: str, attempt: int, intents: list[Intent]) -> dict[str, bool]:
        """Returns the regions of the job, and whether each has to answer before it is proven that nothing runs there.

        A region has to answer if a walk prepared a launch there: intents are written before the first call. The other regions of the
        ladder are looked at last, and one that is away does not hold up a recovery. If the job's document is unreadable, or an attempt
        has no walk in the table, every region has to answer.
        """
        try:
            admitted = self.state.job(job)
        except Garbled:  # the document has been changed
            admitted = None
        launched = prepared_regions(intents)
        if admitted is None or not of_every_attempt(intents, attempt):
            return dict.fromkeys(sorted({*(admitted.places if admitted else self.regions), *launched}), True)
        return dict.fromkeys(sorted(launched), True) | dict.fromkeys(sorted(admitted.places.keys() - launched), False)

    def _end_in(
        self, ec2: Ec2, job: str, attempt: int, intents: list[Intent]
    ) -> tuple[list[Instance], list[Instance], dict[str, str]]:
        """Ends what runs in a region. Returns what ran, what EC2 shows of the job afterwards, and the refusals by id."""
        shown = self._read_instances(ec2, job, intents)
        found = find_to_end(shown, attempt, self.profile)
        if not found:
            return [], shown, {}
        refused = ec2.terminate([one.id for one in found])
        after = self._read_instances(ec2, job, intents)
        for pause_s in self.again_s:
            if refused or not find_to_end(after, attempt, self.profile):
                break
            time.sleep(pause_s)
            after = self._read_instances(ec2, job, intents)
        return found, after, refused

    def _read_instances(self, ec2: Ec2, job: str, intents: list[Intent]) -> list[Instance]:
        ids = sorted(recorded_ids(i for i in intents if any(step.rung.region == ec2.region for step in i.steps)))
        return list({one.id: one for one in [*ec2.of_job(self.deployment, job), *ec2.by_id(ids)]}.values())
