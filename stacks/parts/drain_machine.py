"""The Drain machine: waits until nothing of a deployment runs, then answers CloudFormation, which waits for it.

A destroy needs longer than a function lives: p5 nodes take many minutes until they are terminated.
"""

from __future__ import annotations

import math

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

from contract import errors
from contract.timing import Timing
from stacks.parts import jsonata
from stacks.parts.machine import ask_again, invocation, machine_role, outlive_lambda, standard_machine, whole
from stacks.parts.rights import Right

REQUEST = "{% $states.context.Execution.Input.request %}"
"""What CloudFormation wants to have back, and where."""
LONGEST = cdk.Duration.hours(2)
"""Never what ends it: CloudFormation waits an hour, and the function's own patience is shorter still."""
MORE_LOOKS = 5
"""The function, not the Retry, decides when patience is over, and says what runs; these are for looks that end early."""
ANSWERS = 10
"""How often an answer is tried, 5 s apart: without one CloudFormation waits for its whole hour."""


class DrainMachine(Construct):
    """`machine` is the state machine; `function` starts it by its name, and is what it invokes."""

    def __init__(
        self, scope: Construct, name: str, *, physical_name: str, function: lambda_.Function, timing: Timing
    ) -> None:
        super().__init__(scope, name)
        drain, answer = self._drain(function, timing), self._answer(function)
        drain.add_catch(answer, errors=["States.ALL"], assign={"problem": jsonata.REFUSED})
        decide = sfn.Choice.jsonata(self, "Decide", comment="What was answered, so that the console shows it too.")
        decide.when(sfn.Condition.jsonata(jsonata.NO_PROBLEM), self._done(), comment="Nothing runs")
        decide.otherwise(self._failed())

        self.machine = standard_machine(
            self,
            physical_name=physical_name,
            begins_with=drain.next(answer).next(decide),
            comment="Ends what runs before a destroy takes anything away. Started by CloudFormation's request to delete.",
            timeout=LONGEST,
            role=machine_role(
                self,
                "The Drain machine: invokes its function",
                Right("InvokeTheDrain", ["lambda:InvokeFunction"], [function.function_arn]),
            ),
        )

    def _drain(self, function: lambda_.Function, timing: Timing) -> tasks.LambdaInvoke:
        again = whole(timing.drain_again_s)
        drain = invocation(
            self,
            "Drain",
            function,
            "Stops every execution and ends every instance of the deployment, and asks until all are terminated.",
            payload={
                "door": "drain",
                "request": REQUEST,
                "since": "{% $states.context.Execution.Input.since %}",
            },
            assign={"problem": "{% null %}"},
        )
        attempts = math.ceil(timing.drain_patience_s / again) + MORE_LOOKS
        ask_again(drain, errors.StillRunning.__name__, interval_s=again, attempts=attempts)
        outlive_lambda(drain, jitter=None)
        return drain

    def _answer(self, function: lambda_.Function) -> tasks.LambdaInvoke:
        answer = invocation(
            self,
            "Answer",
            function,
            "Tells CloudFormation that nothing runs, or what does and what to do about it.",
            payload={"door": "answer", "request": REQUEST, "problem": "{% $problem %}"},
        )
        ask_again(answer, "States.ALL", interval_s=5, attempts=ANSWERS)
        return answer

    def _done(self) -> sfn.Succeed:
        return sfn.Succeed.jsonata(self, "Done", comment="Nothing of the deployment runs; CloudFormation goes on.")

    def _failed(self) -> sfn.Fail:
        return sfn.Fail.jsonata(
            self,
            "Failed",
            comment="Something runs, or may; CloudFormation takes nothing away.",
            error="{% $problem.error %}",
            cause="{% $problem.cause %}",
        )
