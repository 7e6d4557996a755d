"""Takes a security group for an attempt: reads, decides, and writes it down before anything is launched."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aws_lambda_powertools import Logger

from aws.errors import Raced
from aws.facts import Instance
from aws.state import State
from contract.errors import CapacityPending
from contract.groups import Taken
from contract.jobs import Job
from ending.policy import explain_pending
from launcher.groups import Choice, Facts, choose, find_running, runs

logger = Logger(service="launcher")
AFTERWARDS_S = 86400.0
"""So long after a job's deadline the execution is over, whatever its states met: no launch can begin any more."""
AGAIN_S = 0.5
"""The longest pause before another try, after another launch took a group in the same moment; chosen by chance, so that many get apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRegion:
    """What EC2 showed of the deployment in a region."""

    name: str
    at: float
    """From before EC2 was asked: what was launched later it may not show."""
    instances: tuple[Instance, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taker:
    """One invocation. `reserved` is true once its time is nearly over."""

    state: State
    now: Callable[[], float]
    sleep: Callable[[float], None]
    reserved: Callable[[], bool]

    def take(self, job: Job, attempt: int, region: ShownRegion) -> Choice:
        """Takes a group for the attempt's nodes. Whoever takes one in the same moment fails the conditional write, and decides again.

        Raises CapacityPending where the time does not suffice, and InvalidRequest where the region has no group.
        """
        while True:
            taken, item = self.state.taken_groups(region.name)
            facts = Facts(
                region=region.name,
                pool=job.places[region.name].security_groups,
                taken=taken,
                over=self._over(job, attempt, taken, region),
                instances=region.instances,
            )
            choice = choose(job.id, attempt, facts, until=job.deadline + AFTERWARDS_S, now=self.now())
            try:
                if choice.taken != taken:
                    self.state.take_groups(region.name, choice.taken, item)
            except Raced:
                if self.reserved():
                    raise CapacityPending("many launches take their security groups in the same moment") from None
                self.sleep(random.uniform(0.0, AGAIN_S))
            else:
                self._log_choice(job, attempt, choice)
                return choice

    def give_back(self, job: Job, attempt: int, region: str) -> None:
        """Gives back what the attempt took in the region. It does nothing where the time does not suffice: the next try gives it back."""
        while True:
            taken, item = self.state.taken_groups(region)
            kept = tuple(one for one in taken if (one.job, one.attempt) != (job.id, attempt))
            if kept == taken or self.reserved():
                return
            try:
                self.state.take_groups(region, kept, item)
            except Raced:
                self.sleep(random.uniform(0.0, AGAIN_S))
            else:
                return

    def _over(self, job: Job, attempt: int, taken: Sequence[Taken], region: ShownRegion) -> frozenset[tuple[str, int]]:
        """Attempts among those that took a group that are closed, and of which nothing can appear that EC2 did not show."""
        shown = {one.id for one in region.instances}
        # Those that run keep what they have, so that nothing has to be read for any of them.
        alive = find_running(region.instances)
        doubted = {(one.job, one.attempt) for one in taken if not runs(one, alive)} - {(job.id, attempt)}
        return frozenset(
            (other, number)
            for other, number in doubted
            if self.state.closed(other, number)  # before its intents: from then on no launch of it begins
            and not explain_pending(
                [held.intent for held in self.state.intents(other, number)],
                shown,
                now=region.at,
                visibility_s=job.timing.visibility_s,
            )
        )

    @staticmethod
    def _log_choice(job: Job, attempt: int, choice: Choice) -> None:
        log = logger.warning if choice.shared_with else logger.info
        log("took a security group", job=job.id, attempt=attempt, reason=choice.reason, shared_with=choice.shared_with)
