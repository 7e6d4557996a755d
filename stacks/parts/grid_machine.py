"""The Grid machine: Plan, Submit, Collect, Report. After Plan, every way out except Done leads through Stop.

Two ends run no Catch: an execution that a person aborts, and the machine's own time-out. For these there are the queue of bad
ends and the reaper.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

from contract import tags
from contract.environments import VARIABLE_PREFIX, GridLimits
from contract.errors import DatabaseAway, GridFailed, StillTraining
from contract.grid import ROUNDS
from contract.timing import Timing
from stacks.parts import jsonata
from stacks.parts.machine import (
    MORE_LOOKS,
    SERVICE_ERRORS,
    ask_again,
    failed,
    invocation,
    machine_role,
    retry_for_minutes,
    standard_machine,
    whole,
)
from stacks.parts.right import Right

GRID = "{% $plan.grid %}"
OF_AN_ARRAY = {
    f"{VARIABLE_PREFIX}GRID": GRID,
    f"{VARIABLE_PREFIX}FIRST": "{% $string($states.input.first) %}",
    f"{VARIABLE_PREFIX}ROUND": "{% $string($round) %}",
}
"""The variables of contract.environments.ChildEnvironment that a submission sets; the job definition sets the others."""
OVER = "Over"
ANYTHING = ["States.ALL"]
"""Retried where a moment without an answer of S3, SageMaker or Lambda must not end a grid whose trainings run, or are done."""
DAY_S = 86_400
LONGEST_ROUND_S = 110 * DAY_S
"""With three rounds and a month the machine stays below a year, the longest that an execution may live."""
MACHINE_MARGIN_S = 30 * DAY_S
BUSY = ["Batch.TooManyRequestsException", "Batch.ServerException", "Batch.SdkClientException", "Batch.BatchException"]
"""Retrying may submit an array twice, if an answer was lost. This does no harm: no line is ever trained twice."""
SLOWEST = 40
"""The pause between two collections grows to at most so many times the first pause ..."""
MOST_LOOKS = 1200
"""... or to more: a look is five events of the history, and all rounds must fit into the 25,000 of an execution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSubmission:
    """What children are submitted with."""

    queue: str
    """ARN."""
    definition: str
    """Name, which means the newest revision. A numbered revision is gone after the next deploy, and a grid may outlive it."""
    deployment: str
    tags: Mapping[str, str]
    """The settings' own, beside ours."""


class GridMachine(Construct):
    """`machine` is the state machine; the id of a grid is the name of its execution."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        physical_name: str,
        plan: lambda_.Function,
        collect: lambda_.Function,
        jobs: ChildSubmission,
        limits: GridLimits,
        timing: Timing,
        rights: list[Right],
        with_catalogue: bool = False,
    ) -> None:
        """`rights` are rights of the machine's role, beside the right to invoke its two functions; `with_catalogue`: Plan may ask the
        catalogue's database."""
        super().__init__(scope, name)
        self._function, self._jobs, self._timing = collect, jobs, timing
        self._longest = longest_round_s(limits, timing)

        planning, submit, collecting = self._plan(plan, with_catalogue), self._submit(), self._collect()
        report, stop, tell = self._report(), self._stop(), self._tell()
        decide, end = self._decide(), failed(self, "What was wrong with the manifest, or the first error of the grid.")

        planning.add_catch(end, errors=["States.ALL"], assign={"problem": jsonata.REFUSED})
        for step in (submit, collecting, report):
            step.add_catch(stop, errors=["States.ALL"], assign={"problem": jsonata.REFUSED})
        stop.add_catch(end, errors=["States.ALL"], assign={"problem": jsonata.LEFT_TRAINING})
        tell.add_catch(end, errors=["States.ALL"])

        planning.next(submit).next(collecting).next(decide)
        decide.when(
            sfn.Condition.jsonata("{% $collected.missing > 0 %}"),
            submit,
            comment="Lines that have neither a record nor a training, once more",
            assign={"round": "{% $round + 1 %}", "arrays": "{% $collected.arrays %}"},
        )
        decide.otherwise(report)
        report.next(self._done())
        stop.next(tell).next(end)

        functions = [plan.function_arn, collect.function_arn]
        self.machine = standard_machine(
            self,
            physical_name=physical_name,
            begins_with=planning,
            comment="Trains every line of a manifest on SageMaker: plan, submit, collect, report. The name of the execution "
            "is the name of the grid.",
            timeout=cdk.Duration.seconds(ROUNDS * self._longest + MACHINE_MARGIN_S),
            runs_as=machine_role(
                self,
                "The Grid machine: invokes its functions, submits its children",
                Right("InvokeStepFunctions", ["lambda:InvokeFunction"], functions),
                *rights,
            ),
        )

    def _plan(self, function: lambda_.Function, with_catalogue: bool) -> tasks.LambdaInvoke:
        step = invocation(
            self,
            "Plan",
            function,
            "Reads the manifest, checks every line and everything it names, pins versions and regions. Nothing runs yet.",
            payload=jsonata.BEGUN,
            assign={
                "plan": "{% $states.result.Payload %}",
                "arrays": "{% $states.result.Payload.arrays %}",
                "round": 1,
                "problem": "{% null %}",
            },
        )
        retry_for_minutes(step, [*SERVICE_ERRORS, DatabaseAway.__name__] if with_catalogue else SERVICE_ERRORS)
        return step

    def _submit(self) -> sfn.Map:
        """Submits a job for each array. The job's end decides nothing; Collect decides by the records."""
        submit = sfn.Map.jsonata(
            self,
            "Submit",
            comment="Gives the lines to Batch, 10,000 at most to an array, and waits until every child is done.",
            items=sfn.ProvideItems.jsonata("{% $arrays %}"),
            assign={"ended": "{% $states.result %}"},
        )
        over = sfn.Pass.jsonata(self, OVER, comment="All children of the job have ended, with or without success.")
        size = sfn.Choice.jsonata(self, "Size", comment="Batch takes no array of one: a single line is a plain job.")
        single = self._job("Single", "One child, which trains one line.", {})
        array = self._job(
            "Array", "A child for each line of the array.", {"ArrayProperties": {"Size": "{% $states.input.size %}"}}
        )
        for job in (single, array):
            job.next(over)
        size.when(sfn.Condition.jsonata("{% $states.input.size = 1 %}"), single, comment="One line")
        size.otherwise(array)
        return submit.item_processor(size)

    def _job(self, name: str, comment: str, arguments: Mapping[str, Any]) -> sfn.CustomState:
        """Submits with tags, by which Stop and the reaper find the job; CDK's own task cannot set them."""
        job = sfn.CustomState(
            self,
            name,
            state_json={
                "Type": "Task",
                "Comment": comment,
                "Resource": f"arn:{cdk.Aws.PARTITION}:states:::batch:submitJob.sync",
                "Arguments": {
                    "JobName": "{% 'grid-' & $plan.grid & '-r' & $string($round) & '-' & $string($states.input.first) %}",
                    "JobQueue": self._jobs.queue,
                    "JobDefinition": self._jobs.definition,
                    **arguments,
                    "ContainerOverrides": {
                        "Environment": [{"Name": name, "Value": value} for name, value in OF_AN_ARRAY.items()]
                    },
                    "Tags": {
                        **self._jobs.tags,
                        tags.DEPLOYMENT: self._jobs.deployment,
                        tags.GRID: GRID,
                        tags.EXECUTION: "{% $states.context.Execution.Id %}",
                    },
                },
                # Keeps nothing else of Batch's answer: none of it is needed, and its size has no documented limit.
                "Output": {"first": "{% $states.input.first %}", "problem": "{% null %}"},
                "TimeoutSeconds": self._longest,
                # Added here, because CDK's own way to add a Catch to such a state drops the Catch's output.
                "Catch": [{"ErrorEquals": ["States.ALL"], "Output": jsonata.SUBMITTED_BADLY, "Next": OVER}],
            },
        )
        retry_for_minutes(job, BUSY)
        return job

    def _collect(self) -> tasks.LambdaInvoke:
        again = whole(self._timing.grid_collect_again_s)
        slowest = max(again * SLOWEST, math.ceil(self._longest / MOST_LOOKS))
        step = self._door(
            "Collect",
            "collect",
            "Reads the records into the results. Lines without one are looked up by their trainings' names: ended, running, "
            "or never begun.",
            payload={"round": "{% $round %}", "ended": "{% $ended %}"},
            assign={"collected": "{% $states.result.Payload %}"},
        )
        step.add_retry(
            errors=[StillTraining.__name__],
            interval=cdk.Duration.seconds(again),
            max_attempts=math.ceil(self._longest / slowest) + MORE_LOOKS,
            backoff_rate=1.5,
            max_delay=cdk.Duration.seconds(slowest),
        )
        step.add_retry(errors=[GridFailed.__name__], max_attempts=0)
        retry_for_minutes(step, ANYTHING)
        return step

    def _report(self) -> tasks.LambdaInvoke:
        step = self._door(
            "Report",
            "report",
            "Writes the report, and tells the topic.",
            payload={"totals": "{% $collected.totals %}", "problem": "{% null %}"},
            outputs="{% $states.result.Payload %}",
        )
        retry_for_minutes(step, ANYTHING)
        return step

    def _stop(self) -> tasks.LambdaInvoke:
        again = whole(self._timing.grid_stop_patience_s / self._looks)
        step = self._door(
            "Stop",
            "stop",
            "Keeps children from creating trainings, terminates the jobs, stops the trainings, waits until they have ended, and "
            "collects what there is.",
            payload={"problem": "{% $problem %}"},
            assign={"stopped": "{% $states.result.Payload %}", "problem": "{% $states.result.Payload.problem %}"},
        )
        # Retries ending trainings after any error: StillTraining, a killed function, a throttle of Lambda.
        ask_again(step, "States.ALL", interval_s=again, attempts=self._looks + MORE_LOOKS)
        return step

    def _tell(self) -> tasks.LambdaInvoke:
        step = self._door(
            "Tell",
            "report",
            "Writes the report of a grid that was stopped, and tells the topic.",
            payload={"totals": "{% $stopped.totals %}", "problem": "{% $problem %}"},
        )
        retry_for_minutes(step, ANYTHING)
        return step

    def _decide(self) -> sfn.Choice:
        return sfn.Choice.jsonata(
            self, "Decide", comment="Every line has its record, or those that have none are given to Batch again."
        )

    def _done(self) -> sfn.Succeed:
        return sfn.Succeed.jsonata(
            self, "Done", comment="Every line has its record, whatever it says; the output counts them and says where."
        )

    @property
    def _looks(self) -> int:
        return math.ceil(self._timing.grid_stop_patience_s / self._timing.grid_collect_again_s)

    def _door(
        self, name: str, action: str, comment: str, *, payload: Mapping[str, Any], **options: Any
    ) -> tasks.LambdaInvoke:
        return invocation(
            self, name, self._function, comment, payload={"action": action, "grid": GRID, **payload}, **options
        )


def longest_round_s(limits: GridLimits, timing: Timing) -> int:
    """Returns the whole seconds until the largest grid's children have ended: lines wait for their turn, then for machines, then train."""
    turns = math.ceil(limits.max_lines / limits.max_concurrent)
    needed = turns * (limits.longest_h * 3600 + timing.training_patience_s) + DAY_S
    return min(math.ceil(needed), LONGEST_ROUND_S)
