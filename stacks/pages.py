"""The Pages stack (home region): the function that writes a page for each job, grid and search."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from contract.page_environments import PageEnvironment
from stacks.foundation import FoundationExports
from stacks.parts.alarms import AlarmEvidence, Alarms
from stacks.parts.bad_ends import AT_ONCE, EVERY_STATUS, send_ends
from stacks.parts.common import Common
from stacks.parts.function import WHOLE_CPU_MB, Function, Layer
from stacks.parts.outputs import shown
from stacks.parts.page_rights import write_pages
from stacks.parts.queue import DeadLetters, Queue
from stacks.parts.schedules import Schedules
from stacks.parts.search_rights import SearchRights

TIMEOUT = cdk.Duration.minutes(5)
"""A grid of 10,000 lines is some 10,000 objects while it runs, sixteen at once."""
BATCH = 10
"""Messages of an invocation, the most for which Lambda does not wait: they are written side by side."""
RECEIVES = 30
"""A page that could not be written is tried again every two minutes, for an hour."""
EVERY_TICK = "rate(5 minutes)"
STEPS = 6
"""Half an hour of ticks in a row: a service may be away for minutes."""


class PagesStack(cdk.Stack):
    """Starts and ends nothing, and nothing waits for it: without it jobs, grids and searches go on as before."""

    def __init__(
        self, scope: Construct, name: str, *, common: Common, foundation: FoundationExports, rights: SearchRights
    ) -> None:
        deployment = common.deployment
        super().__init__(
            scope, name, env=common.env, description=f"Trainyard {deployment}: pages of jobs, grids and searches"
        )
        letters = DeadLetters(self, "PageLetters")
        queue = Queue(self, "PageQueue", function_timeout=TIMEOUT, receives=RECEIVES, letters=letters)
        train, grid, search = rights.grid.rights.train_machine, rights.grid.machine_arn, rights.machine_arn
        writer = Function(
            self,
            "PageWriter",
            package="page_writer",
            description="Writes the pages of jobs, grids and searches",
            environment=PageEnvironment(
                deployment=deployment,
                table=foundation.table.table_name,
                bucket=foundation.home.bucket_name,
                node_role=foundation.node_role_id,
                machine=train,
                grid_machine=grid,
                search_machine=search,
                messages=queue.queue_url,
                again_s=common.timing.cleanup_again_s,  # with each of its looks the cleanup may have the report
            ),
            layer=Layer(self, "Libraries"),
            timeout=TIMEOUT,
            memory_mb=WHOLE_CPU_MB,
            log_retention_days=common.log_retention_days,
            rights=write_pages(rights, foundation.node_role_id, queue.queue_arn),
        )
        writer.add_event_source_mapping(
            "Messages",
            event_source_arn=queue.queue_arn,
            batch_size=BATCH,
            report_batch_item_failures=True,
            max_concurrency=AT_ONCE,
        )
        send_ends(
            self,
            [train, grid, search],
            statuses=EVERY_STATUS,
            queue=queue,
            letters=letters,
            description="An execution of the Train, the Grid or the Search machine began or ended",
        )
        # A tick that fails is made up by the next one. Scheduler waits for no answer, so Lambda would otherwise try it twice more.
        writer.configure_async_invoke(retry_attempts=0)
        schedules = Schedules(
            self, "PageClock", function=writer, letters=letters, description="The schedule of pages of what runs"
        )
        schedules.add("Tick", EVERY_TICK, description="Pages of what runs, and of ends without an event", given={})
        self._watch(common.add_alarms(self, foundation.topic), letters, writer)
        shown(self, "PageLettersUrl", letters.queue_url, "Pages that could not be written")

    @staticmethod
    def _watch(alarms: Alarms, letters: DeadLetters, writer: Function) -> None:
        alarms.on_any(
            "page-letters",
            letters.metric_approximate_number_of_messages_visible(statistic="Maximum"),
            "For an hour the page of a job, a grid or a search could not be written, or a tick of the clock was not delivered: a "
            "report.html is missing or old. What runs goes on as before, and report.json has the end. The log of the function "
            "PageWriter says why; the letter names the execution.",
            evidence=AlarmEvidence(function=writer, letters=letters),
        )
        alarms.on_any(
            "page-errors",
            writer.metric_errors(statistic="Sum"),
            "For half an hour the function PageWriter failed or timed out: pages of what runs may be old. Jobs, grids and searches go on "
            "as before. Its log says why; the next tick tries again.",
            steps=STEPS,
            evidence=AlarmEvidence(function=writer),
        )
