"""The catalogue's keeper: a function that a queue of ends and a clock call, and the alarms about it."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from contract.catalogue import CatalogueAccess
from contract.catalogue_environments import KeeperEnvironment
from stacks.parts.alarms import AlarmEvidence, Alarms
from stacks.parts.bad_ends import AT_ONCE, EVERY_END, send_ends
from stacks.parts.catalogue_keeper_rights import keep_catalogue
from stacks.parts.common import Common
from stacks.parts.function import WHOLE_CPU_MB, Function, Layer
from stacks.parts.grid_rights import GridRights
from stacks.parts.queue import DeadLetters, Queue
from stacks.parts.schedules import Schedules

EVERY_HOUR = "rate(1 hour)"
TIMEOUT = cdk.Duration.minutes(15)
"""Lambda's maximum: a grid of 10,000 lines is some 10,000 objects and 20 statements, after two minutes for a database that wakes."""
RECEIVES = 12
"""A message comes back every five minutes until the report of an end is there, for half an hour at most; and as often for a database that
is away."""


class CatalogueKeeper(Construct):
    """`function` and `letters`. It starts and ends nothing: a failure of it is a letter and an alarm."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        common: Common,
        bucket: str,
        access: CatalogueAccess,
        cluster_id: str,
        grid: GridRights,
        layer: Layer,
        alarms: Alarms,
    ) -> None:
        """`bucket` is the home bucket; `access` is the database, as the keeper, and `cluster_id` what AWS
        gives to no other cluster."""
        super().__init__(scope, name)
        rights = common.rights
        self.letters = DeadLetters(self, "Letters")
        queue = Queue(self, "Ends", function_timeout=TIMEOUT, receives=RECEIVES, letters=self.letters)
        self.function = Function(
            self,
            "Keeper",
            package="keeper",
            description="Writes what ended, prices and capacity into the catalogue",
            environment=KeeperEnvironment(
                deployment=common.deployment,
                bucket=bucket,
                regions=common.regions,
                training=rights.regions,
                machine=rights.train_machine,
                grid_machine=grid.machine_arn,
                messages=queue.queue_url,
                access=access,
                cluster_id=cluster_id,
            ),
            layer=layer,
            timeout=TIMEOUT,
            memory_mb=WHOLE_CPU_MB,
            log_retention_days=common.log_retention_days,
            rights=keep_catalogue(access, grid, queue.queue_arn),
        )
        self.function.add_event_source_mapping(
            "Messages",
            event_source_arn=queue.queue_arn,
            batch_size=1,
            report_batch_item_failures=True,
            max_concurrency=AT_ONCE,
        )
        send_ends(
            self,
            [rights.train_machine, grid.machine_arn],
            statuses=EVERY_END,
            queue=queue,
            letters=self.letters,
            description="An execution of the Train or the Grid machine ended",
        )
        # A pass that fails is made up by the next one. Scheduler waits for no answer, so Lambda would otherwise try it twice more.
        self.function.configure_async_invoke(retry_attempts=0)
        schedules = Schedules(
            self, "Schedule", function=self.function, letters=self.letters, description="The schedule of the keeper"
        )
        schedules.add("Hour", EVERY_HOUR, description="Prices, capacity, and ends without an event", given={})
        self._watch(alarms)

    def _watch(self, alarms: Alarms) -> None:
        alarms.on_any(
            "catalogue-letters",
            self.letters.metric_approximate_number_of_messages_visible(statistic="Maximum"),
            "For an hour the keeper could not write how an execution ended, or a pass was not delivered: the catalogue lacks rows. "
            "Jobs and grids go on as before. Its log says why; the letter names the execution.",
            evidence=AlarmEvidence(function=self.function, letters=self.letters),
        )
        alarms.on_any(
            "catalogue-errors",
            self.function.metric_errors(statistic="Sum"),
            "The function that fills the catalogue failed or timed out: prices and capacity in it may be old. Jobs and grids go on as "
            "before. Its log says why; it tries again after an hour.",
            evidence=AlarmEvidence(function=self.function),
        )
