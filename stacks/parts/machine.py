"""What all of our state machines have in common: a role of their own, functions as steps, and time for Lambda's own troubles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, count, islice
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

from stacks.parts import interfaces
from stacks.parts.acknowledged import acknowledge
from stacks.parts.right import Right, grant

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

THROTTLED = "Lambda.TooManyRequestsException"
UNANSWERED = ["States.Timeout", *(error for error in SERVICE_ERRORS if error != THROTTLED)]
"""Errors that no function raises, and before which it may have run for its whole time. A throttle comes at once."""


@dataclass(frozen=True, slots=True)
class Pauses:
    """From try to try: the first, how much longer each next one is, the longest. With jitter any of them may be as short as
    nothing, and is half as long on the average."""

    first_s: int
    rate: int
    longest_s: int
    jitter: bool

    def until(self, patience_s: float) -> int:
        """How many of them are the patience, on the average."""
        share = 0.5 if self.jitter else 1.0
        return next(number for number, waited in enumerate(accumulate(self._each()), 1) if share * waited >= patience_s)

    def at_most_s(self, number: int) -> int:
        """How long the first `number` of them are at most."""
        return sum(islice(self._each(), number))

    def retry(self, step: tasks.LambdaInvoke, names: Sequence[str], patience_s: float) -> None:
        """Tries the step again after these errors until the pauses alone are the patience."""
        step.add_retry(
            errors=list(names),
            max_attempts=self.until(patience_s),
            interval=cdk.Duration.seconds(self.first_s),
            backoff_rate=self.rate,
            max_delay=cdk.Duration.seconds(self.longest_s),
            jitter_strategy=sfn.JitterType.FULL if self.jitter else None,
        )

    def _each(self) -> Iterator[int]:
        return (min(self.first_s * self.rate**number, self.longest_s) for number in count())


QUICK = Pauses(first_s=2, rate=2, longest_s=60, jitter=True)


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
    options.setdefault("task_timeout", sfn.Timeout.duration(_timeout(function).plus(MARGIN)))
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
    """Tries the step again after any error but its verdicts, until the patience is over. Every step may be done twice.

    The function itself makes a verdict of what it raises later (`aws.patience`): the numbers of tries are for what no
    function can end, and for those that are old.
    """
    step.add_retry(errors=list(verdicts), max_attempts=0)
    _slow(function).retry(step, UNANSWERED, patience_s)
    QUICK.retry(step, ["States.ALL"], patience_s)


def outlived_s(function: lambda_.Function, *, patience_s: float, told_s: float, again_s: int = 0) -> int:
    """How long a step that `outlive`s may take at most, whatever errors it meets in whatever order.

    `told_s` is the patience that its function is told, `again_s` the pause after an answer that is not a verdict. A last try begins
    when that is over. From then on the function only has what it raises no more: tries that end without an answer, each after
    the function's whole time, and throttles, which come at once.
    """
    slow = _slow(function)
    unanswered = slow.until(patience_s)
    throttles = QUICK.at_most_s(QUICK.until(patience_s))
    return math.ceil(told_s) + again_s + (1 + unanswered) * try_s(function) + slow.at_most_s(unanswered) + throttles


def try_s(function: lambda_.Function) -> int:
    """How long one try of a step may take."""
    return int(_timeout(function).plus(MARGIN).to_seconds())


def _slow(function: lambda_.Function) -> Pauses:
    """Few and long, because each try may have taken as long as the function may run."""
    return Pauses(first_s=2, rate=4, longest_s=int(_timeout(function).to_seconds()), jitter=False)


def _timeout(function: lambda_.Function) -> cdk.Duration:
    timeout = function.timeout
    assert timeout is not None
    return timeout


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
