"""A state machine that waits for a custom resource longer than a function may run, and then answers CloudFormation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

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

INPUT = "$states.context.Execution.Input"
REQUEST = f"{{% {INPUT}.request %}}"
"""The fields of CloudFormation's request that an answer needs, and the answer's address."""
LONGEST = cdk.Duration.hours(2)
"""Time-out of the machine, which it never reaches: CloudFormation waits an hour, and the function's own patience is shorter."""
ANSWERS = 10
"""How often an answer is tried, 5 s apart: without an answer CloudFormation waits for its whole hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What the machine waits for, in the words of the console."""

    comment: str
    """Comment of the machine."""
    step: str
    """The name of the state that waits; its lower case is the function's action."""
    does: str
    unfinished: type[Exception]
    """The error that the function raises while it must be asked again."""
    again_s: float
    patience_s: float
    passes_on: Mapping[str, str]
    """Parts of the execution's input, beside `request`: the function's argument to its JSONata."""
    answers: str
    right: str
    """Name of the right to invoke the function."""
    description: str
    """Description of the machine's role."""
    done: tuple[str, str]
    """Comments of the arrow to Done, and of Done."""
    failed: str


class AnsweringMachine(Construct):
    """`machine` is the state machine, which invokes `function`; the function starts the machine by its name."""

    def __init__(
        self, scope: Construct, name: str, *, physical_name: str, function: lambda_.Function, waiting: Waiting
    ) -> None:
        super().__init__(scope, name)
        wait, answer = self._wait(function, waiting), self._answer(function, waiting)
        wait.add_catch(answer, errors=["States.ALL"], assign={"problem": jsonata.REFUSED})
        decide = sfn.Choice.jsonata(self, "Decide", comment="What was answered, so that the console shows it too.")
        arrow, done = waiting.done
        decide.when(
            sfn.Condition.jsonata(jsonata.NO_PROBLEM), sfn.Succeed.jsonata(self, "Done", comment=done), comment=arrow
        )
        decide.otherwise(failed(self, waiting.failed))
        self.machine = standard_machine(
            self,
            physical_name=physical_name,
            begins_with=wait.next(answer).next(decide),
            comment=waiting.comment,
            timeout=LONGEST,
            runs_as=machine_role(
                self, waiting.description, Right(waiting.right, ["lambda:InvokeFunction"], [function.function_arn])
            ),
        )

    def _wait(self, function: lambda_.Function, waiting: Waiting) -> tasks.LambdaInvoke:
        again = whole(waiting.again_s)
        step = invocation(
            self,
            waiting.step,
            function,
            waiting.does,
            payload={"action": waiting.step.lower(), "request": REQUEST, **waiting.passes_on},
            assign={"problem": "{% null %}"},
        )
        attempts = math.ceil(waiting.patience_s / again) + MORE_LOOKS
        ask_again(step, waiting.unfinished.__name__, interval_s=again, attempts=attempts)
        retry_for_minutes(step, SERVICE_ERRORS, jitter=None)
        return step

    def _answer(self, function: lambda_.Function, waiting: Waiting) -> tasks.LambdaInvoke:
        payload = {"action": "answer", "request": REQUEST, "problem": "{% $problem %}"}
        answer = invocation(self, "Answer", function, waiting.answers, payload=payload)
        ask_again(answer, "States.ALL", interval_s=5, attempts=ANSWERS)
        return answer
