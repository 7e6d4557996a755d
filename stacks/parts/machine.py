"""What all of our state machines have in common: a role of their own, functions as steps, and time for Lambda's own troubles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, count
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

from stacks.parts import interfaces
from stacks.parts.acknowledged import acknowledge
from stacks.parts.rights import Right, grant

MARGIN = cdk.Duration.seconds(30)
"""From a function's own time-out to its state's: Lambda speaks first, and says more."""
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

SLOW_ERRORS = ["States.Timeout", "Sandbox.Timedout"]
"""A function that did not answer in its time."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 2, 60


def machine_role(scope: Construct, description: str, *rights: Right) -> iam.Role:
    """A role for state machines of this account alone."""
    role = iam.Role(
        scope,
        "Role",
        assumed_by=interfaces.principal(
            iam.ServicePrincipal(
                "states.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}}
            )
        ),
        description=description,
    )
    grant(role, *rights)
    return role


def standard_machine(
    scope: Construct,
    *,
    physical_name: str,
    begins_with: sfn.IChainable,
    comment: str,
    timeout: cdk.Duration,
    role: iam.Role,
) -> sfn.StateMachine:
    """A Standard machine in JSONata, with no rights but those of `role`."""
    machine = sfn.StateMachine(
        scope,
        "Machine",
        state_machine_name=physical_name,
        state_machine_type=sfn.StateMachineType.STANDARD,
        query_language=sfn.QueryLanguage.JSONATA,
        definition_body=sfn.DefinitionBody.from_chainable(begins_with),
        comment=comment,
        timeout=timeout,
        # On its own account the CDK would add the right to invoke every version of every function.
        role=role.without_policy_updates(),
    )
    machine.node.add_dependency(role)
    acknowledge(
        machine,
        "Logs and traces need rights on everything; the history of the execution has it all, for 90 days.",
        "AwsSolutions-SF1",
        "AwsSolutions-SF2",
    )
    acknowledge(machine, "CDK writes a dependency that a reference makes already.", "W3005")
    return machine


def invocation(
    scope: Construct,
    name: str,
    function: lambda_.Function,
    comment: str,
    *,
    payload: Mapping[str, Any],
    **options: Any,
) -> tasks.LambdaInvoke:
    """A state that invokes a function. It times out a little after the function, unless `task_timeout` says otherwise; what is
    tried again is the caller's to say."""
    timeout = function.timeout
    assert timeout is not None
    options.setdefault("task_timeout", sfn.Timeout.duration(timeout.plus(MARGIN)))
    return tasks.LambdaInvoke.jsonata(
        scope,
        name,
        comment=comment,
        lambda_function=interfaces.function(function),
        payload=sfn.TaskInput.from_object(dict(payload)),
        # CDK's own list lacks the throttle, which is what a new account with ten concurrent functions meets.
        retry_on_service_exceptions=False,
        **options,
    )


def outlive_lambda(step: tasks.LambdaInvoke, jitter: sfn.JitterType | None = sfn.JitterType.FULL) -> None:
    """Tries the step again after Lambda's own troubles."""
    step.add_retry(
        errors=SERVICE_ERRORS,
        # 2, 4, 8, 16, 32, then 60 s at most: a storm of throttles may last eight minutes.
        interval=cdk.Duration.seconds(2),
        max_attempts=12,
        backoff_rate=2,
        max_delay=cdk.Duration.minutes(1),
        jitter_strategy=jitter,
    )


def outlive(
    step: tasks.LambdaInvoke, function: lambda_.Function, *, verdicts: Sequence[str], patience_s: float
) -> None:
    """Tries the step again after any error but its verdicts, until the patience is over. Every step may be done twice."""
    timeout = function.timeout
    assert timeout is not None
    pauses = {
        "interval": cdk.Duration.seconds(FIRST_PAUSE_S),
        "backoff_rate": 2,
        "jitter_strategy": sfn.JitterType.FULL,
    }
    longest = cdk.Duration.seconds(LONGEST_PAUSE_S)
    step.add_retry(errors=list(verdicts), max_attempts=0)
    # Each of these has taken the whole time of the function.
    slow = math.ceil(patience_s / timeout.to_seconds()) + 1
    step.add_retry(errors=SLOW_ERRORS, max_attempts=slow, max_delay=longest, **pauses)
    step.add_retry(errors=["States.ALL"], max_attempts=tries(patience_s), max_delay=longest, **pauses)


def tries(patience_s: float) -> int:
    """How many pauses of 2, 4, 8, 16, 32, 60, 60 ... s are the patience, each being half as long on the average (full jitter)."""
    pauses = (min(FIRST_PAUSE_S * 2**number, LONGEST_PAUSE_S) / 2 for number in count())
    return next(number for number, waited in enumerate(accumulate(pauses), 1) if waited >= patience_s)


def ask_again(step: tasks.LambdaInvoke, error: str, *, interval_s: int, attempts: int) -> None:
    """Tries the step again after this error, always after the same pause."""
    step.add_retry(
        errors=[error],
        interval=cdk.Duration.seconds(interval_s),
        max_attempts=attempts,
        backoff_rate=1,
    )


def whole(seconds: float) -> int:
    """Step Functions counts in whole seconds, from one."""
    return max(1, round(seconds))
