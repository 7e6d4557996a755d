"""The Train machine: Admit, Launch, Train, Sync, Terminate, Decide, and every way out leads through Terminate.

Two ends run no Catch: an execution that a person aborts, and the machine's own time-out. The cleanup queue and the reaper are
for them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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

MARGIN = cdk.Duration.seconds(30)
"""From a function's own time-out to its state's: Lambda speaks first, and says more."""
MACHINE_MARGIN_S = 3600
"""From the longest job to the machine's own time-out, for the last Terminate and its patience."""
LOOKS = 20
"""How often a lost heartbeat leads to a new look. At 300 s each an attendant may be dead for well over an hour."""
CALLS = 5
"""How often in the time of a heartbeat an attendant is called that cannot be: as long as for a heartbeat, in all."""
VERDICTS = sorted(errors.BY_NAME)
"""What the attendant answers about an attempt. Any other error of Train is the attendant's own, and says nothing of the nodes."""
SERVICE_ERRORS = [
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.TooManyRequestsException",
    "Lambda.Unknown",
    "Runtime.ExitError",
    "Sandbox.Timedout",
]
"""Lambda's own troubles, a killed function among them: every step may be done twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The functions behind the states."""

    admission: lambda_.Function
    launcher: lambda_.Function
    attendant: lambda_.Function
    artifact_check: lambda_.Function
    terminator: lambda_.Function

    def all(self) -> list[lambda_.Function]:
        return [self.admission, self.launcher, self.attendant, self.artifact_check, self.terminator]


class TrainMachine(Construct):
    """`machine` is the state machine; the id of a job is the name of its execution."""

    def __init__(
        self, scope: Construct, name: str, *, physical_name: str, steps: Steps, max_hours: float, timing: Timing
    ):
        super().__init__(scope, name)
        self._timing = timing

        admit = self._admit(steps.admission)
        launch = self._launch(steps.launcher)
        train = self._train(steps.attendant)
        sync = self._sync(steps.artifact_check)
        terminate = self._terminate(steps.terminator)
        decide, done, failed = self._decide(), self._done(), self._failed()

        for step in (launch, train, sync):
            step.add_catch(terminate, errors=["States.ALL"], assign={"problem": jsonata.PROBLEM})
        admit.add_catch(failed, errors=["States.ALL"], assign={"problem": jsonata.REFUSED})
        terminate.add_catch(failed, errors=["States.ALL"], assign={"problem": jsonata.LEFT_RUNNING})

        admit.next(launch).next(train).next(sync).next(terminate).next(decide)
        decide.when(sfn.Condition.jsonata(jsonata.NO_PROBLEM), done, comment="Everything went well")
        decide.when(
            sfn.Condition.jsonata(jsonata.again(errors.NEW_ATTEMPT)),
            launch,
            comment="A new attempt, from the newest checkpoint",
            assign={"attempt": "{% $attempt + 1 %}", "problem": "{% null %}"},
        )
        decide.otherwise(failed)

        role = self._role(steps)
        self.machine = sfn.StateMachine(
            self,
            "Machine",
            state_machine_name=physical_name,
            state_machine_type=sfn.StateMachineType.STANDARD,
            query_language=sfn.QueryLanguage.JSONATA,
            definition_body=sfn.DefinitionBody.from_chainable(admit),
            comment="Trains one job: launch, train, sync, terminate. The name of the execution is the name of the job.",
            timeout=cdk.Duration.seconds(math.ceil(max_hours * 3600) + MACHINE_MARGIN_S),
            # On its own account the CDK would add the right to invoke every version of every function.
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

    def _role(self, steps: Steps) -> iam.Role:
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                "states.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}}
            ),
            description="The Train machine: invokes its functions",
        )
        functions = [function.function_arn for function in steps.all()]
        grant(role, Right("InvokeTheSteps", ["lambda:InvokeFunction"], functions))
        return role

    def _admit(self, function: lambda_.Function) -> tasks.LambdaInvoke:
        return self._task(
            "Admit",
            function,
            "Checks the request and everything it names, pins what may change, and writes job.json. Nothing exists yet.",
            payload={
                "request": "{% $states.input %}",
                "execution": {
                    "arn": "{% $states.context.Execution.Id %}",
                    "name": "{% $states.context.Execution.Name %}",
                    "started_at": "{% $states.context.Execution.StartTime %}",
                },
            },
            assign={
                "job": "{% $states.result.Payload.job %}",
                "deadline": "{% $states.result.Payload.deadline %}",
                "recoveries": "{% $states.result.Payload.recoveries %}",
                "attempt": 1,
                "rungs": [],
                "problem": "{% null %}",
            },
        )

    def _launch(self, function: lambda_.Function) -> tasks.LambdaInvoke:
        again = _whole(self._timing.launch_again_s)
        launch = self._task(
            "Launch",
            function,
            "Starts all nodes of the attempt or none: walks down the ladder of zones and types, again and again until the "
            "launch patience is over.",
            payload={"job": "{% $job %}", "attempt": "{% $attempt %}"},
            assign={
                "region": "{% $states.result.Payload.region %}",
                "instances": "{% $states.result.Payload.instances %}",
                "rungs": "{% $append($rungs, $states.result.Payload.rungs) %}",
            },
        )
        # The launcher itself ends the patience; the five more are for walks that end early.
        attempts = math.ceil(self._timing.launch_patience_s / again) + 5
        return _again(launch, errors.CapacityPending.__name__, interval_s=again, attempts=attempts)

    def _train(self, function: lambda_.Function) -> tasks.LambdaInvoke:
        heartbeat = _whole(self._timing.heartbeat_s)
        train = self._task(
            "Train",
            function,
            "Waits while the nodes train. The attendant looks at them every minute and answers this step's token; a heartbeat "
            "that stays out means that the attendant is dead, and leads to a new look.",
            payload={
                "door": "token",
                "job": "{% $job %}",
                "attempt": "{% $attempt %}",
                "token": "{% $states.context.Task.Token %}",
            },
            assign={"progress": "{% $exists($states.result.progress) ? $states.result.progress : null %}"},
            integration_pattern=sfn.IntegrationPattern.WAIT_FOR_TASK_TOKEN,
            heartbeat_timeout=sfn.Timeout.duration(cdk.Duration.seconds(heartbeat)),
            task_timeout=_computed(jsonata.seconds_left(self._timing.power_off_after_deadline_s, least=heartbeat + 1)),
            retry_service_errors=False,
        )
        train.add_retry(errors=VERDICTS, max_attempts=0)
        train.add_retry(
            errors=["States.HeartbeatTimeout"], interval=cdk.Duration.seconds(1), max_attempts=LOOKS, backoff_rate=1
        )
        # Nodes that train are not given up because nobody looks at them for a while.
        train.add_retry(
            errors=[*SERVICE_ERRORS, "States.TaskFailed"],
            interval=cdk.Duration.seconds(_whole(heartbeat / CALLS)),
            max_attempts=LOOKS * CALLS,
            backoff_rate=1,
        )
        return train

    def _sync(self, function: lambda_.Function) -> tasks.LambdaInvoke:
        return self._task(
            "Sync",
            function,
            "Checks that everything the nodes committed is in S3, whole, and writes the list of artifacts.",
            payload={"job": "{% $job %}", "attempt": "{% $attempt %}"},
            assign={"artifacts": "{% $states.result.Payload %}"},
        )

    def _terminate(self, function: lambda_.Function) -> tasks.LambdaInvoke:
        again = _whole(self._timing.terminate_again_s)
        terminate = self._task(
            "Terminate",
            function,
            "Ends every instance of the job, by tag and by remembered ids, and asks until all have begun to shut down.",
            payload={"job": "{% $job %}", "attempt": "{% $attempt %}", "problem": "{% $problem %}"},
            retry_service_errors=False,
        )
        # Whatever the error is, what ends instances is asked again: StillRunning, a killed function, a throttle of Lambda.
        attempts = math.ceil(self._timing.terminate_patience_s / again)
        return _again(terminate, "States.ALL", interval_s=again, attempts=attempts)

    def _decide(self) -> sfn.Choice:
        return sfn.Choice.jsonata(
            self,
            "Decide",
            comment="Done, a new attempt, or failed: what interrupted nodes can be mended while recoveries and time are left.",
        )

    def _done(self) -> sfn.Succeed:
        return sfn.Succeed.jsonata(
            self,
            "Done",
            comment="The artifacts are in S3; the output says where.",
            outputs={
                "job": "{% $job %}",
                "attempts": "{% $attempt %}",
                "region": "{% $region %}",
                "instances": "{% $instances %}",
                "rungs": "{% $rungs %}",
                "progress": "{% $progress %}",
                "artifacts": "{% $artifacts %}",
            },
        )

    def _failed(self) -> sfn.Fail:
        return sfn.Fail.jsonata(
            self,
            "Failed",
            comment="The first error of the attempt that could not be mended, and its reason.",
            error="{% $problem.error %}",
            cause="{% $problem.cause %}",
        )

    def _task(
        self,
        name: str,
        function: lambda_.Function,
        comment: str,
        *,
        payload: Mapping[str, Any],
        retry_service_errors: bool = True,
        **options: Any,
    ) -> tasks.LambdaInvoke:
        """A state that invokes a function, with a time-out, and a second chance when Lambda itself has a trouble."""
        timeout = function.timeout
        assert timeout is not None
        if "task_timeout" not in options:
            options["task_timeout"] = sfn.Timeout.duration(timeout.plus(MARGIN))
        step = tasks.LambdaInvoke.jsonata(
            self,
            name,
            comment=comment,
            lambda_function=function,
            payload=sfn.TaskInput.from_object(dict(payload)),
            # CDK's own list lacks the throttle, which is what a new account with ten concurrent functions meets.
            retry_on_service_exceptions=False,
            **options,
        )
        if retry_service_errors:
            step.add_retry(
                errors=SERVICE_ERRORS,
                # 2, 4, 8, 16, 32, then 60 s at most: a storm of throttles may last eight minutes.
                interval=cdk.Duration.seconds(2),
                max_attempts=12,
                backoff_rate=2,
                max_delay=cdk.Duration.minutes(1),
                jitter_strategy=sfn.JitterType.FULL,
            )
        return step


def _again(step: tasks.LambdaInvoke, error: str, *, interval_s: int, attempts: int) -> tasks.LambdaInvoke:
    step.add_retry(
        errors=[error],
        interval=cdk.Duration.seconds(interval_s),
        max_attempts=attempts,
        backoff_rate=1,
    )
    return step


def _whole(seconds: float) -> int:
    """Step Functions counts in whole seconds, from one."""
    return max(1, round(seconds))


def _computed(expression: str) -> sfn.Timeout:
    """TimeoutSeconds as an expression; `Timeout.at` would render the path of the other query language."""
    return sfn.Timeout.duration(cdk.Duration.seconds(cdk.Token.as_number(expression)))
