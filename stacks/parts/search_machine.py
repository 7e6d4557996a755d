"""The Search machine: Ask, Train, Tell, again, Report. Whatever happens to a round's grid, Tell decides by its execution and its records.

Two ends run no Catch: an execution that a person aborts, and the machine's own time-out. For these there are the queue of bad ends and
the reaper.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

from contract.errors import InvalidRequest, SearchFailed, StillTraining
from contract.timing import Timing
from stacks.parts import jsonata
from stacks.parts.machine import (
    SERVICE_ERRORS,
    failed,
    invocation,
    machine_role,
    retry_for_minutes,
    standard_machine,
    whole,
)
from stacks.parts.right import Right

TRAIN, ASK = "train", "ask"
"""What Ask and Tell say in `next`; everything else is Report."""
LONGEST = cdk.Duration.days(360)
"""An execution may live for a year (Step Functions' quotas)."""
GRID_LOST = 3000
"""The most looks at a grid whose end the machine did not see: with the longest pause, as long as a grid may run."""
SLOWEST = cdk.Duration.hours(1)
ANYTHING = ["States.ALL"]
"""Retried where a moment without an answer of S3, SageMaker or Lambda must not end a search."""


class SearchMachine(Construct):
    """`machine` is the state machine; the id of a search is the name of its execution."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        physical_name: str,
        function: lambda_.Function,
        grid_machine: str,
        timing: Timing,
        rights: list[Right],
    ) -> None:
        """`grid_machine` is the ARN of the machine of grids; `rights` are rights of the machine's role beside its function."""
        super().__init__(scope, name)
        self._function, self._timing = function, timing
        ask, train, tell, report = self._ask(), self._train(grid_machine), self._tell(), self._report()
        decide = sfn.Choice.jsonata(self, "Decide", comment="Another round, or the end.")
        ended = sfn.Choice.jsonata(self, "How did it end?", comment="A search whose last round failed has failed.")
        done = sfn.Succeed.jsonata(self, "Done", comment="The output names the best trial, and says where all are.")
        end = failed(self, "What was wrong with the input, or why the search could not go on.")

        ask.add_catch(end, errors=[InvalidRequest.__name__], assign={"problem": jsonata.REFUSED})
        for step in (ask, tell):
            step.add_catch(report, errors=["States.ALL"], assign={"problem": jsonata.REFUSED, "why": "{% null %}"})
        report.add_catch(end, errors=["States.ALL"], assign={"problem": jsonata.NOT_REPORTED})

        ask.next(decide)
        decide.when(sfn.Condition.jsonata(f"{{% $told.next = '{TRAIN}' %}}"), train, comment="A round was asked")
        decide.when(sfn.Condition.jsonata(f"{{% $told.next = '{ASK}' %}}"), ask, comment="A round was told")
        decide.otherwise(report)
        train.next(tell)
        tell.next(decide)
        report.next(ended)
        ended.when(sfn.Condition.jsonata("{% $exists($problem.error) %}"), end, comment="The report is written")
        ended.otherwise(done)

        self.machine = standard_machine(
            self,
            physical_name=physical_name,
            begins_with=self._begin(ask),
            comment="Searches for the best hyperparameters: asks a round of trials, has a grid train them, tells their results, "
            "again. The name of the execution is the name of the search.",
            timeout=LONGEST,
            runs_as=machine_role(
                self,
                "The Search machine: invokes its function, starts the grids of its rounds",
                Right("InvokeStepFunctions", ["lambda:InvokeFunction"], [function.function_arn]),
                *rights,
            ),
        )

    def _begin(self, ask: sfn.IChainable) -> sfn.IChainable:
        begin = sfn.Pass.jsonata(
            self,
            "Begin",
            comment="Keeps the input: every round needs it.",
            assign={"request": "{% $states.input %}", "round": 1, "problem": "{% null %}", "why": "{% null %}"},
        )
        return begin.next(ask)

    def _ask(self) -> tasks.LambdaInvoke:
        step = self._door(
            "Ask",
            "Checks the input once, then rebuilds the study from the records and writes the questions of the round. Nothing runs yet.",
            payload={"request": "{% $request %}", "round": "{% $round %}"},
            assign=_keep_answer(),
        )
        step.add_retry(errors=[InvalidRequest.__name__, SearchFailed.__name__], max_attempts=0)
        retry_for_minutes(step, ANYTHING)
        return step

    def _train(self, grid_machine: str) -> sfn.CustomState:
        """Starts the round's grid under its own name, which makes it once, and waits for its end. However that goes, Tell decides."""
        step = sfn.CustomState(
            self,
            "Train",
            state_json={
                "Type": "Task",
                "Comment": "Has a grid train the trials of the round, and waits until it has ended.",
                "Resource": f"arn:{cdk.Aws.PARTITION}:states:::states:startExecution.sync:2",
                "Arguments": {
                    "StateMachineArn": grid_machine,
                    "Name": "{% $told.grid %}",
                    "Input": "{% $told.input %}",
                },
                "Assign": {"problem": "{% null %}"},
                "Output": {},  # of the grid's own output nothing is needed: its records say more
                "TimeoutSeconds": LONGEST.to_seconds(),
                "Catch": [
                    {
                        "ErrorEquals": ["States.ALL"],
                        "Assign": {"problem": jsonata.REFUSED},
                        "Output": {},
                        "Next": "Tell",
                    }
                ],
            },
        )
        # Not after States.TaskFailed: the grid has ended, and its name is taken.
        retry_for_minutes(step, BUSY)
        return step

    def _tell(self) -> tasks.LambdaInvoke:
        again = whole(self._timing.grid_collect_again_s)
        step = self._door(
            "Tell",
            "Reads what the grid's records say of each trial, and decides whether the search goes on.",
            payload={"round": "{% $round %}", "problem": "{% $problem %}"},
            assign=_keep_answer(),
        )
        step.add_retry(
            errors=[StillTraining.__name__],
            interval=cdk.Duration.seconds(again),
            max_attempts=GRID_LOST,
            backoff_rate=1.5,
            max_delay=SLOWEST,
        )
        step.add_retry(errors=[SearchFailed.__name__], max_attempts=0)
        retry_for_minutes(step, ANYTHING)
        return step

    def _report(self) -> tasks.LambdaInvoke:
        step = self._door(
            "Report",
            "Writes trials.csv, best.json and the report, and tells the topic.",
            payload={"why": "{% $why %}", "problem": "{% $problem %}"},
            outputs="{% $states.result.Payload %}",
        )
        step.add_retry(errors=[SearchFailed.__name__], max_attempts=0)
        retry_for_minutes(step, ANYTHING)
        return step

    def _door(self, name: str, comment: str, *, payload: Mapping[str, Any], **options: Any) -> tasks.LambdaInvoke:
        execution = jsonata.BEGUN["execution"]
        whole_payload = {"action": name.lower(), "execution": execution, **payload}
        return invocation(self, name, self._function, comment, payload=whole_payload, **options)


BUSY = [
    "StepFunctions.ThrottlingException",
    "StepFunctions.ExecutionLimitExceededException",
    "StepFunctions.SdkClientException",
    "StepFunctions.SfnException",
    *SERVICE_ERRORS,
]
"""Errors of a busy account, after which the same grid is started again under the same name."""


def _keep_answer() -> dict[str, str]:
    """Keeps what Ask and Tell answer."""
    payload = "$states.result.Payload"
    return {
        "told": f"{{% {payload} %}}",
        "round": f"{{% {payload}.round %}}",
        "why": f"{{% {payload}.why %}}",
        "problem": f"{{% {payload}.problem %}}",
    }
