"""The Drain machine: waits until nothing of a deployment runs, then answers CloudFormation, which waits for it.

A destroy needs longer than a function lives: p5 nodes take many minutes until they are terminated.
"""

from __future__ import annotations

import math

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

from contract import errors
from contract.timing import Timing
from stacks.parts import jsonata
from stacks.parts.acknowledged import acknowledge
from stacks.parts.rights import Right, grant
from stacks.parts.train_machine import MARGIN, SERVICE_ERRORS

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

        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                "states.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}}
            ),
            description="The Drain machine: invokes its function",
        )
        grant(role, Right("InvokeTheDrain", ["lambda:InvokeFunction"], [function.function_arn]))
        self.machine = sfn.StateMachine(
            self,
            "Machine",
            state_machine_name=physical_name,
            state_machine_type=sfn.StateMachineType.STANDARD,
            query_language=sfn.QueryLanguage.JSONATA,
            definition_body=sfn.DefinitionBody.from_chainable(drain.next(answer).next(decide)),
            comment="Ends what runs before a destroy takes anything away. Started by CloudFormation's request to delete.",
            timeout=LONGEST,
            # On its own account the CDK would add the right to invoke every version of the function.
            role=role.without_policy_updates(),
        )
        self.machine.node.add_dependency(role)
        acknowledge(
            self.machine,
            "Logs and traces need rights on everything; the history of the execution has it all, for 90 days.",
            "AwsSolutions-SF1",
            "AwsSolutions-SF2",
        )
        acknowledge(self.machine, "CDK writes a dependency that a reference makes already.", "W3005")

    def _drain(self, function: lambda_.Function, timing: Timing) -> tasks.LambdaInvoke:
        again = max(1, round(timing.drain_again_s))  # Step Functions counts in whole seconds, from one
        drain = self._task(
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
        drain.add_retry(
            errors=[errors.StillRunning.__name__],
            interval=cdk.Duration.seconds(again),
            max_attempts=math.ceil(timing.drain_patience_s / again) + MORE_LOOKS,
            backoff_rate=1,
        )
        drain.add_retry(
            errors=SERVICE_ERRORS,
            interval=cdk.Duration.seconds(2),
            max_attempts=12,
            max_delay=cdk.Duration.minutes(1),
            backoff_rate=2,
        )
        return drain

    def _answer(self, function: lambda_.Function) -> tasks.LambdaInvoke:
        answer = self._task(
            "Answer",
            function,
            "Tells CloudFormation that nothing runs, or what does and what to do about it.",
            payload={"door": "answer", "request": REQUEST, "problem": "{% $problem %}"},
        )
        answer.add_retry(errors=["States.ALL"], interval=cdk.Duration.seconds(5), max_attempts=ANSWERS, backoff_rate=1)
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

    def _task(
        self,
        name: str,
        function: lambda_.Function,
        comment: str,
        *,
        payload: dict[str, str],
        assign: dict[str, str] | None = None,
    ) -> tasks.LambdaInvoke:
        timeout = function.timeout
        assert timeout is not None
        return tasks.LambdaInvoke.jsonata(
            self,
            name,
            comment=comment,
            lambda_function=function,
            payload=sfn.TaskInput.from_object(payload),
            assign=assign,
            task_timeout=sfn.Timeout.duration(timeout.plus(MARGIN)),
            retry_on_service_exceptions=False,
        )
