"""One pass of the drain over the deployment: stops executions, ends instances, empties buckets, and says what is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws import executions
from aws.belongings import Belongings, tagged
from aws.clients import client
from aws.ec2 import Ec2
from aws.facts import Instance, Status
from aws.network_facts import PlacedInterface
from aws.networks import Networks
from aws.s3 import Bucket, HomeBucket
from aws.state import State
from contract import items, names
from contract.environments import DrainEnvironment
from contract.errors import StillRunning
from drain.emptying import empty_bucket
from drain.grids import Grids
from drain.policy import (
    IN_FLIGHT_S,
    STOP_REASON,
    build_error,
    explain_settling,
    list_open_requests,
    list_standing,
    list_tasks,
    refuse_foreign,
    refuse_kept,
)
from ending.aftermath import Aftermath, clean_up
from ending.instances import Ending
from ending.policy import find_alive

logger = Logger(service="drain")
AT_ONCE = 8
"""Executions handled side by side."""
RESERVE_S = 60.0
"""Part of the function's time that is kept for the instances when there are more executions than it can handle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainPass:
    """`left` is what remains of the function's time in seconds; `since` is when admission was closed, UTC epoch seconds."""

    env: DrainEnvironment
    since: float
    left: Callable[[], float]

    def drain(self) -> None:
        """Returns once nothing runs, nothing can appear, and the buckets are empty where the settings do not keep their data.

        Raises StillRunning while waiting may help, and NotDrained once it does not: a person protects something, or the patience
        is over.
        """
        try:
            left = self._end_all()
        except (ClientError, BotoCoreError) as problem:
            left = [f"- a call to AWS failed: {problem}"]
        logger.info("drained as far as it goes", left=left)
        if left:
            patience = self.env.timing.drain_patience_s
            raise build_error(left, now=time.time(), since=self.since, patience_s=patience)

    def _end_all(self) -> list[str]:
        state = State(self.env.table)
        there = state.exists()  # where the table is missing no job was ever admitted
        regions = sorted({*self.env.regions, *(state.launched_regions() if there else ())})
        instances, dark = self._read_instances(regions)
        refuse_kept(instances, self.env.deployment, self.env.instance_profile)
        interfaces, hidden = self._read_interfaces(regions)
        refuse_foreign(interfaces, self.env.deployment)
        bucket = Bucket(self.env.bucket).exists()  # of grids the same is true of the bucket
        grids = Grids(env=self.env, since=self.since, there=bucket, regions=regions)
        left = dark + hidden + self._end_executions(state if there else None) + self._end_instances(instances, regions)
        left += self._cancel_requests(regions) + grids.end() + list_tasks(interfaces)
        return left or ([] if self.env.keep_data or self._data_is_used() else self._empty_buckets())

    def _read_instances(self, regions: list[str]) -> tuple[list[Instance], list[str]]:
        """All instances of the deployment, and a line for each region that did not answer."""
        found, dark = list[Instance](), list[str]()
        for region in regions:
            try:
                found += Ec2(region).every(self.env.deployment)
            except (ClientError, BotoCoreError) as problem:
                note = (
                    ""
                    if region in self.env.regions
                    else f" (it is read because something was launched there: {_name_item(region)})"
                )
                dark.append(f"- a call to {region} failed{note}: {problem}")
        return found, dark

    def _read_interfaces(self, regions: list[str]) -> tuple[list[PlacedInterface], list[str]]:
        """All network interfaces in the deployment's networks, and a line for each region that did not answer."""
        found, dark = list[PlacedInterface](), list[str]()
        for region in regions:
            try:
                found += Networks(region).placed(self.env.deployment)
            except (ClientError, BotoCoreError) as problem:
                dark.append(f"- network interfaces in {region} could not be listed: {problem}")
        return found, dark

    def _end_executions(self, state: State | None) -> list[str]:
        """Stops the executions that run, and ends what they and those that ended lately left behind."""
        listed = executions.lately(self.env.machine, self.since - IN_FLIGHT_S)
        if listed is None:
            return []
        with ThreadPoolExecutor(AT_ONCE) as pool:
            lines = pool.map(lambda one: self._clean_up(state, *one), listed.items())
            left = [line for line in lines if line]
        settle = self.env.timing.cleanup_again_s
        return left + explain_settling(now=time.time(), since=self.since, settle_s=settle)

    def _clean_up(self, state: State | None, arn: str, status: str) -> str:
        """Why the execution is not cleaned up yet; empty when it is. A failure here does not keep the others from ending."""
        if self.left() < RESERVE_S:
            return f"- {arn} was not looked at yet"
        try:
            if status in Status.RUNS:
                logger.info("stopped an execution", execution=arn)
                executions.stop(arn, *STOP_REASON)
            if state is not None and clean_up(self._ending(state), arn) is Aftermath.RUNS:
                return f"- {arn} still runs"
        except StillRunning as problem:
            return f"- {problem}"
        except Exception as problem:
            logger.exception("could not clean up an execution", execution=arn)
            return f"- {arn} could not be cleaned up: {problem}"
        return ""

    def _ending(self, state: State) -> Ending:
        env = self.env
        return Ending(
            state=state,
            home=HomeBucket(env.bucket),
            deployment=env.deployment,
            profile=env.instance_profile,
            regions=env.regions,
            visibility_s=env.timing.visibility_s,
        )

    def _end_instances(self, before: list[Instance], regions: list[str]) -> list[str]:
        """Ends every instance of the deployment, whatever its job. Returns a line for each that is not terminated yet."""
        if all(one.state == "terminated" for one in before):
            return []
        instances, dark = self._read_instances(regions)
        ours = [one for one in find_alive(instances) if one.profile == self.env.instance_profile]
        refused: Mapping[str, str] = {}
        for region in regions:
            refused = {**refused, **Ec2(region).terminate([one.id for one in ours if one.region == region])}
        return dark + list_standing(instances, refused)

    def _cancel_requests(self, regions: list[str]) -> list[str]:
        """Cancels open spot requests of the deployment: each could still become an instance. Returns a line for each."""
        left = list[str]()
        for region in regions:
            here = Belongings(region, client("ec2", region))
            try:
                found = [one for page in here.spot_requests(tagged(self.env.deployment)) for one in page.things]
                left += list_open_requests(found, here.cancel_spot_requests([one.id for one in found]))
            except (ClientError, BotoCoreError) as problem:
                left.append(f"- spot requests in {region} could not be listed: {problem}")
        return left

    def _data_is_used(self) -> bool:
        """Whether a state machine of the deployment exists: its stack still uses the data, or its own drain is this one."""
        return any(map(executions.exists, (self.env.machine, self.env.grid_machine, self.env.search_machine)))

    def _empty_buckets(self) -> list[str]:
        """Empties every bucket; the table goes with its stack."""
        env = self.env
        home = Bucket(env.bucket)
        account = env.machine.split(":")[4]
        others = [Bucket(names.bytes_bucket(env.deployment, account, one), one) for one in sorted(env.regions)]
        return [line for one in (*others, home) for line in empty_bucket(one, left=self.left)]


def _name_item(region: str) -> str:
    """Names the item that says so, for a person who knows better."""
    key = items.region(region)
    return f"item {key.partition}/{key.sort}"
