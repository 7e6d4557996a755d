"""The Reaper stack (home region): the reaper, which ends machines that nothing else has ended, its alarms, and the drain.

It is deployed before every stack that can start something, and knows the state machines by their names: if a later stack fails,
the reaper works already. Each stack that starts something has the drain end what runs before the stack is deleted. If the settings
do not keep data, this stack is deleted last of them, and its drain empties the buckets once no state machine uses them.
"""

from __future__ import annotations

from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from contract import items, keys, names
from contract.environments import DrainEnvironment, ReaperEnvironment
from contract.grid import ANY_STOPPED
from contract.timings import DrainTiming, ReaperTiming
from stacks.foundation import FoundationExports
from stacks.parts import drain_machine, ec2_rights, interfaces, item_rights
from stacks.parts.alarms import AlarmEvidence
from stacks.parts.answering_machine import AnsweringMachine
from stacks.parts.common import Common
from stacks.parts.drain import drain_first
from stacks.parts.function import WHOLE_CPU_MB, Function, Layer
from stacks.parts.grid_rights import GridRights
from stacks.parts.queue import DeadLetters
from stacks.parts.schedules import Schedules
from stacks.parts.search_rights import SearchRights
from stacks.settings import ReaperSettings

SILENT_MINUTES = 15
"""With a pass every five minutes, one may be missed and two may not: 17 minutes, of the 20 promised."""
EVERY_PASS, EVERY_WEEK = "rate(5 minutes)", "cron(0 8 ? * MON *)"
PASS_TIMEOUT = cdk.Duration.minutes(5)
"""Equal to the schedule's period: passes do not pile up, and two passes at once do no harm."""
DRAIN_TIMEOUT = cdk.Duration.minutes(5)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaperExports:
    """What stacks that start something use of the reaper's stack."""

    drain: lambda_.IFunction


class ReaperStack(cdk.Stack):
    """Refers only to the foundation. Is deployed after the regions and deleted before them, so their buckets are empty by then."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        common: Common,
        foundation: FoundationExports,
        grid: GridRights,
        max_hours: float,
        settings: ReaperSettings,
        keep_data: bool,
    ) -> None:
        """The reaper reads every region of the settings, whatever is trained there."""
        rights, timing, deployment = common.rights, common.timing, common.deployment
        super().__init__(
            scope,
            name,
            env=common.env,
            description=f"Trainyard {deployment}: the reaper, its alarms, and the drain of a destroy",
        )
        self._foundation, self._rights, self._regions = foundation, rights, common.regions
        self._reserved, self._common = common.reserved_concurrency, common
        self._search = SearchRights(grid=grid)
        self._grid, self._timing, self._log_retention_days = grid, timing, common.log_retention_days
        # Has a layer of its own: while this stack imported another stack's layer, that layer could never be replaced.
        self._layer, letters = Layer(self, "Libraries"), DeadLetters(self, "Letters")

        reaper = self._reaper(letters, max_hours, settings)
        self._wake(reaper, letters)
        self._alarms(reaper, letters)
        drain = self._drain(keep_data)
        AnsweringMachine(
            self,
            "DrainMachine",
            physical_name=names.drain_machine(deployment),
            function=drain,
            waiting=drain_machine.drain(timing),
        )
        drain_first(self, interfaces.function(drain))
        self.exports = ReaperExports(drain=interfaces.function(drain))

        for output, value, what in (
            ("ReaperFunction", reaper.function_name, "Invoke it with report_only to see what it would end"),
            ("ReaperDeadLetters", letters.queue_url, "Passes and weekly summaries that failed or were not delivered"),
            ("DrainLogGroup", drain.log_group.log_group_name, "What a destroy waits for"),
        ):
            cdk.CfnOutput(self, output, value=value, description=what)

    def _reaper(self, letters: DeadLetters, max_hours: float, settings: ReaperSettings) -> Function:
        rights, foundation = self._rights, self._foundation
        profile = foundation.instance_profile.instance_profile_arn
        return Function(
            self,
            "Reaper",
            package="reaper",
            description="Ends what runs after its time, and tells people",
            environment=ReaperEnvironment(
                deployment=rights.deployment,
                table=foundation.table.table_name,
                home_region=rights.home_region,
                regions=self._regions,
                instance_profile=profile,
                machine=rights.train_machine,
                grid_machine=self._grid.machine_arn,
                search_machine=self._search.machine_arn,
                topic=foundation.topic.topic_arn,
                report_only=settings.report_only,
                max_hours=max_hours,
                max_share=settings.max_share,
                max_least=settings.max_least,
                timing=self._timing.of(ReaperTiming),
                runbook=self._common.runbook_url,
                cluster_function=self._grid.kubernetes.function_name if self._grid.kubernetes else "",
            ),
            layer=self._layer,
            timeout=PASS_TIMEOUT,
            reserved=self._reserved,
            memory_mb=WHOLE_CPU_MB,  # a pass over 100,000 instances needs it
            log_retention_days=self._log_retention_days,
            rights=[
                rights.look_everywhere(
                    "ec2:DescribeInstances",
                    "ec2:DescribeVolumes",
                    "ec2:DescribeNetworkInterfaces",
                    "ec2:DescribeSpotInstanceRequests",
                ),
                ec2_rights.terminate_everywhere(rights, profile),
                ec2_rights.terminate_under(profile),
                *ec2_rights.remove_leftovers(rights),
                rights.list_executions(),
                rights.executions("DescribeExecutions", "states:DescribeExecution"),
                self._grid.list_grids(),
                self._grid.grid_executions("DescribeGrids", "states:DescribeExecution"),
                self._grid.jobs_of_lines("StopJobsOfLines", "states:StopExecution"),
                self._search.list_searches(),
                self._search.executions("DescribeSearches", "states:DescribeExecution"),
                self._search.rounds("StopRounds", "states:StopExecution"),
                *self._grid.end_everywhere(),
                item_rights.query_regions(rights),
                item_rights.item_right(rights, "KeepMarks", ["GetItem", "Query", "PutItem", "DeleteItem"], items.MARKS),
                *rights.publish(foundation.topic.topic_arn, foundation.topic.key.key_arn),
                *rights.figures(),
                rights.leave_letters(letters.queue_arn),
            ],
        )

    def _wake(self, reaper: Function, letters: DeadLetters) -> None:
        """Has no retries: the next pass repeats what a failed one left undone, and the weekly summary counts the failures."""
        lambda_.CfnEventInvokeConfig(
            self,
            "NoSecondTry",
            function_name=reaper.function_name,
            qualifier="$LATEST",
            maximum_retry_attempts=0,
            maximum_event_age_in_seconds=int(PASS_TIMEOUT.to_seconds()),
            destination_config=lambda_.CfnEventInvokeConfig.DestinationConfigProperty(
                on_failure=lambda_.CfnEventInvokeConfig.OnFailureProperty(destination=letters.queue_arn)
            ),
        )
        schedules = Schedules(
            self, "Schedule", function=reaper, letters=letters, description="The schedules of the reaper"
        )
        schedules.add("Pass", EVERY_PASS, description="A pass over everything that runs", given={})
        schedules.add("Week", EVERY_WEEK, description="The week's figures, for people", given={"action": "weekly"})

    def _alarms(self, reaper: Function, letters: DeadLetters) -> None:
        alarms = self._common.add_alarms(self, self._foundation.topic)
        log = AlarmEvidence(function=reaper)
        alarms.on_silence(
            "reaper-silent",
            interfaces.function(reaper),
            "For 15 minutes no pass of the reaper has done all of its work: machines may run that should have ended. "
            "Find the last pass and its error in the reaper's log, and look for running machines by hand until it works again.",
            minutes=SILENT_MINUTES,
            evidence=log,
        )
        alarms.on_any(
            "reaper-errors",
            reaper.metric_errors(statistic="Sum"),
            "A pass of the reaper ended with an error: a region could not be read, AWS refused to end something, there was more to end "
            "than one pass may end, or the pass failed. Its log and its message say which; the next pass comes five minutes later.",
            evidence=log,
        )
        alarms.on_any(
            "reaper-letters",
            letters.metric_approximate_number_of_messages_visible(statistic="Maximum"),
            "A pass or the weekly summary of the reaper failed or was not delivered; a letter in the dead-letter queue says why. "
            "Read the letters, correct what they name, and purge the queue.",
            evidence=AlarmEvidence(function=reaper, letters=letters),
        )

    def _drain(self, keep_data: bool) -> Function:
        rights, foundation = self._rights, self._foundation
        profile = foundation.instance_profile.instance_profile_arn
        return Function(
            self,
            "Drain",
            package="drain",
            description="Ends everything that runs, before a destroy takes anything away",
            environment=DrainEnvironment(
                deployment=rights.deployment,
                bucket=foundation.home.bucket_name,
                table=foundation.table.table_name,
                instance_profile=profile,
                regions=self._regions,
                machine=rights.train_machine,
                grid_machine=self._grid.machine_arn,
                search_machine=self._search.machine_arn,
                keep_data=keep_data,
                timing=self._timing.of(DrainTiming),
                cluster_function=self._grid.kubernetes.function_name if self._grid.kubernetes else "",
            ),
            layer=self._layer,
            timeout=DRAIN_TIMEOUT,
            log_retention_days=self._log_retention_days,
            rights=[
                item_rights.item_right(
                    rights, "OpenAndCloseAdmission", ["GetItem", "PutItem", "DeleteItem"], items.ADMISSION
                ),
                item_rights.query_regions(rights),
                *item_rights.end_attempts(rights),
                rights.home("WriteResults", ["s3:GetObject", "s3:PutObject"], keys.ANY_RESULT),
                rights.list_home(),
                rights.look_everywhere(
                    "ec2:DescribeInstances",
                    "ec2:DescribeSpotInstanceRequests",
                    "ec2:DescribeVpcs",
                    "ec2:DescribeSecurityGroups",
                    "ec2:DescribeNetworkInterfaces",
                    "ec2:DescribeNatGateways",
                    "ec2:DescribeVpcEndpoints",
                ),
                ec2_rights.terminate_everywhere(rights, profile),
                ec2_rights.cancel_spot_requests(rights),
                rights.list_executions(),
                rights.executions("StopExecutions", "states:DescribeExecution", "states:StopExecution"),
                rights.start_drain(),
                self._grid.list_grids(),
                self._grid.grid_executions("StopGrids", "states:DescribeExecution", "states:StopExecution"),
                self._search.list_searches(),
                self._search.executions("StopSearches", "states:DescribeExecution", "states:StopExecution"),
                rights.home("CloseGrids", ["s3:GetObject", "s3:PutObject"], ANY_STOPPED),
                *self._grid.end_everywhere(),
                *([] if keep_data else rights.empty()),
            ],
        )
