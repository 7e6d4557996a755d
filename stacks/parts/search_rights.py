"""Rights of searches: they read what grids read and write, start grids, and stop the grid of a round."""

from __future__ import annotations

from dataclasses import dataclass

import aws_cdk as cdk

from contract import grid, names, search
from stacks.parts.grid_rights import GridRights
from stacks.parts.right import Right
from stacks.parts.rights import arn_of

FOLLOWING = "StepFunctionsGetEventsForStepFunctionsExecutionRule"
"""Name of the rule by which Step Functions learns that an execution has ended; it creates the rule once per account and region."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRights:
    """Statements for one deployment's searches."""

    grid: GridRights

    def function(self, topic: str, key: str) -> list[Right]:
        """Checks what a search names, asks and reports; starts nothing, and ends nothing."""
        rights = self.grid.rights
        return [
            *self.grid.check(),
            *self._read_and_write(),
            self.rounds("DescribeRounds", "states:DescribeExecution"),
            self.executions("DescribeSearches", "states:DescribeExecution"),
            *rights.publish(topic, key),
        ]

    def cleanup(self, topic: str, key: str) -> list[Right]:
        """Stops the grid of a round, and reports."""
        rights = self.grid.rights
        return [
            rights.list_home(),
            *self._read_and_write(),
            self.rounds("EndRounds", "states:DescribeExecution", "states:StopExecution"),
            self.executions("DescribeSearches", "states:DescribeExecution"),
            *rights.publish(topic, key),
        ]

    def machine(self) -> list[Right]:
        """For the Search machine, beside its function: starts the grid of each round, and learns that it has ended."""
        home = self.grid.rights.home_region
        rule = arn_of("events", home, cdk.Aws.ACCOUNT_ID, f"rule/{FOLLOWING}")
        return [
            Right("StartGrids", ["states:StartExecution"], [self.grid.machine_arn]),
            self.rounds("FollowRounds", "states:DescribeExecution", "states:StopExecution"),
            Right("ManageTheSyncRule", ["events:PutTargets", "events:PutRule", "events:DescribeRule"], [rule]),
        ]

    def executions(self, name: str, *actions: str) -> Right:
        """Allows `actions` on executions of the Search machine."""
        every = self._arn(f"execution:{self._machine}:*")
        return Right(name, actions, [every], "Executions come and go; the machine is ours.")

    def rounds(self, name: str, *actions: str) -> Right:
        """Allows `actions` on grids that are called like a round; whose round one is, its input says."""
        return self.grid.grid_executions(name, *actions, called=search.name_round("*", "*"))

    def list_searches(self) -> Right:
        return Right("ListSearches", ["states:ListExecutions"], [self.machine_arn])

    @property
    def machine_arn(self) -> str:
        """ARN of the Search machine, by its name."""
        return self._arn(f"stateMachine:{self._machine}")

    def _read_and_write(self) -> list[Right]:
        rights = self.grid.rights
        return [
            rights.home("ReadGridsAndSearches", ["s3:GetObject"], grid.ANY_GRID, search.ANY_SEARCH),
            rights.home("WriteSearches", ["s3:PutObject"], search.ANY_SEARCH),
        ]

    @property
    def _machine(self) -> str:
        return names.search_machine(self.grid.rights.deployment)

    def _arn(self, resource: str) -> str:
        return arn_of("states", self.grid.rights.home_region, cdk.Aws.ACCOUNT_ID, resource)
