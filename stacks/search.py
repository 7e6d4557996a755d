"""The Search stack (home region): the Search machine, its function, and the cleanup of searches that end badly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from contract import names
from contract.environments import Environment, GridCleanupEnvironment, GridCollectEnvironment
from stacks.foundation import FoundationExports
from stacks.parts.admission_rights import judge_lines
from stacks.parts.alarms import AlarmEvidence
from stacks.parts.assembled import SEARCH_LAYER
from stacks.parts.bad_ends import clear_up_after
from stacks.parts.common import Common
from stacks.parts.drain import drain_first
from stacks.parts.function import WHOLE_CPU_MB, Function, Layer
from stacks.parts.outputs import started_here
from stacks.parts.queue import DeadLetters, Queue
from stacks.parts.right import Right
from stacks.parts.search_machine import SearchMachine
from stacks.parts.search_rights import SearchRights

FUNCTION_TIMEOUT = cdk.Duration.minutes(15)
"""Lambda's maximum: a thousand rounds are some thousand objects."""
MORE_RECEIVES = 3
"""Factor for receives beyond those of the patience: the cleanup waits for that of the round's grid."""

OF_FILES = ("rules", "jobs")
"""Names of files that the archive of the cleanup does not have."""


class SearchStack(cdk.Stack):
    """Starts grids, and nothing else."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        common: Common,
        foundation: FoundationExports,
        drain: lambda_.IFunction,
        rights: SearchRights,
        environment: GridCollectEnvironment,
    ) -> None:
        """`environment` is that of the grid's functions, whose checks a search makes; `drain` ends what runs before a destroy deletes
        anything."""
        deployment = common.deployment
        super().__init__(
            scope,
            name,
            env=common.env,
            description=f"Trainyard {deployment}: the Search machine and its functions",
        )
        self._foundation, self._rights, self._common = foundation, rights, common
        self._layers = (
            Layer(self, "Libraries"),
            Layer(self, "SearchLibraries", SEARCH_LAYER, "Pinned Optuna and NumPy"),
        )
        topic = foundation.topic
        function = self._function(
            "Search",
            "search",
            "Asks the rounds of a search, tells their results, reports",
            environment,
            [*rights.function(topic.topic_arn, topic.key.key_arn), *judge_lines(common, rights.grid.repositories)],
            common.job_files,
        )
        machine = SearchMachine(
            self,
            "SearchMachine",
            physical_name=names.search_machine(deployment),
            function=function,
            grid_machine=rights.grid.machine_arn,
            timing=common.timing,
            rights=rights.machine(),
        ).machine
        letters = DeadLetters(self, "SearchLetters")
        self._clean_up_after(machine, environment, letters)
        drain_first(self, drain)
        cdk.CfnOutput(
            self, "SearchMachineArn", value=machine.state_machine_arn, description="The state machine of searches"
        )
        cdk.CfnOutput(
            self, "SearchDeadLetters", value=letters.queue_url, description="Searches whose end could not be cleared up"
        )
        started_here(
            self, "SearchConsole", machine.state_machine_arn, "Open this, press Start execution, paste what to search"
        )

    def _clean_up_after(
        self, machine: sfn.StateMachine, environment: GridCollectEnvironment, letters: DeadLetters
    ) -> None:
        """Sends searches whose execution ends without Done to a queue; a message that its function cannot finish becomes a letter."""
        timing, topic = self._common.timing, self._foundation.topic
        looks = MORE_RECEIVES * timing.grid_stop_patience_s / timing.grid_collect_again_s
        queue = Queue(self, "SearchQueue", function_timeout=FUNCTION_TIMEOUT, receives=looks, letters=letters)
        whole = {
            field.name: getattr(environment, field.name) for field in fields(environment) if field.name not in OF_FILES
        }
        function = self._function(
            "SearchCleanup",
            "search_cleanup",
            "Stops the grid of a round whose search has ended",
            GridCleanupEnvironment(**whole, messages=queue.queue_url),
            [
                *self._rights.cleanup(topic.topic_arn, topic.key.key_arn),
                self._common.rights.work_through(queue.queue_arn),
            ],
        )
        clear_up_after(
            self,
            machine,
            function,
            queue=queue,
            letters=letters,
            description="An execution of the Search machine ended without success",
        )
        self._alarms(function, letters)

    def _alarms(self, cleanup: Function, letters: DeadLetters) -> None:
        alarms = self._common.add_alarms(self, self._foundation.topic)
        alarms.on_any(
            "search-letters",
            letters.metric_approximate_number_of_messages_visible(statistic="Maximum"),
            "A search ended, and the cleanup could not prove in time that the grid of its round ended: it may still run. "
            "The letter names the execution; the reaper stops its grid about ten minutes after it ended.",
            evidence=AlarmEvidence(function=cleanup, letters=letters),
        )
        alarms.on_any(
            "search-errors",
            cleanup.metric_errors(statistic="Sum"),
            "The function that cleans up after searches failed or timed out; its message is tried again after an hour and a half. "
            "Its log says why; meanwhile the reaper stops the grid.",
            evidence=AlarmEvidence(function=cleanup),
        )

    def _function(
        self,
        name: str,
        package: str,
        description: str,
        environment: Environment,
        rights: Sequence[Right],
        files: Mapping[str, bytes] | None = None,
    ) -> Function:
        libraries, optuna = self._layers
        return Function(
            self,
            name,
            package=package,
            description=description,
            environment=environment,
            layer=libraries,
            more_layers=[optuna],
            timeout=FUNCTION_TIMEOUT,
            memory_mb=WHOLE_CPU_MB,
            log_retention_days=self._common.log_retention_days,
            rights=rights,
            files=files,
        )
