"""Shared by all of our state machines: a role of their own, functions as steps, and retries after Lambda's own errors."""

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
from stacks.parts.right import Right, role

MARGIN = cdk.Duration.seconds(30)
"""From a function's time-out to its state's: Lambda's error comes first, and says more."""
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
"""Lambda's own errors, including a killed function. After each of them a step may run a second time."""

THROTTLED = "Lambda.TooManyRequestsException"
UNANSWERED = ["States.Timeout", *(error for error in SERVICE_ERRORS if error != THROTTLED)]
"""Errors that no function raises, and before which it may have run for its whole time. A throttle comes at once."""


@dataclass(frozen=True, slots=True)
class Pauses:
    """Pauses between tries: the first, the growth rate, the longest. With jitter each may be as short as zero, and
    is half as long on average."""

    first_s: int
    rate: int
    longest_s: int
    jitter: bool

    def until(self, patience_s: float) -> int:
        """Returns the number of pauses that add up to the patience, on average."""
        share = 0.5 if self.jitter else 1.0
        return next(number for number, waited in enumerate(accumulate(self._each()), 1) if share * waited >= patience_s)

    def at_most_s(self, number: int) -> int:
        """Returns the maximum length of the first `number` pauses."""
        return sum(islice(self._each(), number))

    def retry(self, step: tasks.LambdaInvoke, names: Sequence[str], patience_s: float) -> None:
        """Retries the step after these errors until the pauses alone add up to the patience."""
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
MORE_LOOKS = 5
"""Retries beyond those of the patience, for looks that end early: the function, not Retry, ends the patience and says what is missing."""


def machine_role(scope: Construct, description: str, *rights: Right) -> iam.Role:
    """Returns a role that only state machines of this account can assume."""
    return role(scope, "Role", "states.amazonaws.com", description, *rights)


def standard_machine(
    scope: Construct,
    *,
    physical_name: str,
    begins_with: sfn.IChainable,
    comment: str,
    timeout: cdk.Duration,
    runs_as: iam.Role,
) -> sfn.StateMachine:
    """Returns a Standard machine in JSONata that has only the rights of `runs_as`."""
    machine = sfn.StateMachine(
        scope,
        "Machine",
        state_machine_name=physical_name,
        state_machine_type=sfn.StateMachineType.STANDARD,
        query_language=sfn.QueryLanguage.JSONATA,
        definition_body=sfn.DefinitionBody.from_chainable(begins_with),
        comment=comment,
        timeout=timeout,
        # Otherwise the CDK would add the right to invoke every version of every function.
        role=runs_as.without_policy_updates(),
    )
    machine.node.add_dependency(runs_as)
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
    """Returns a state that invokes a function. It times out shortly after the function, unless `task_timeout` says otherwise;
    the caller adds the retries."""
    options.setdefault("task_timeout", sfn.Timeout.duration(_timeout(function).plus(MARGIN)))
    return tasks.LambdaInvoke.jsonata(
        scope,
        name,
        comment=comment,
        lambda_function=interfaces.function(function),
        payload=sfn.TaskInput.from_object(dict(payload)),
        # CDK's own list lacks the throttle, which a new account with ten concurrent functions meets.
        retry_on_service_exceptions=False,
        **options,
    )


def retry_for_minutes(
    step: tasks.LambdaInvoke | sfn.CustomState,
    errors: Sequence[str],
    jitter: sfn.JitterType | None = sfn.JitterType.FULL,
) -> None:
    """Retries the step after these errors, such as Lambda's own."""
    step.add_retry(
        errors=list(errors),
        # The pauses are 2, 4, 8, 16, 32, then 60 s at most: throttling may last eight minutes.
        interval=cdk.Duration.seconds(2),
        max_attempts=12,
        backoff_rate=2,
        max_delay=cdk.Duration.minutes(1),
        jitter_strategy=jitter,
    )


def failed(scope: Construct, comment: str, cause: str = "{% $problem.cause %}") -> sfn.Fail:
    """Returns the state that ends an execution with the error in its variable `problem`."""
    return sfn.Fail.jsonata(scope, "Failed", comment=comment, error="{% $problem.error %}", cause=cause)


def outlive(
    step: tasks.LambdaInvoke, function: lambda_.Function, *, verdicts: Sequence[str], patience_s: float
) -> None:
    """Retries the step after any error except its verdicts, until the patience is over. A step may run a second time.

    Once its patience is over, the function raises a verdict (`aws.patience`). The limits on retries are for errors that
    no function can end, and for functions of an older version.
    """
    step.add_retry(errors=list(verdicts), max_attempts=0)
    _slow(function).retry(step, UNANSWERED, patience_s)
    QUICK.retry(step, ["States.ALL"], patience_s)


def outlived_s(function: lambda_.Function, *, patience_s: float, told_s: float, again_s: int = 0) -> int:
    """Returns the longest time that a step with `outlive` may take, whatever errors it meets in whatever order.

    `told_s` is the patience that its function is told, `again_s` the pause after an answer that is not a verdict. A last try begins
    when that patience is over. After it only two kinds of errors remain: tries without an answer, each after the function's
    whole time, and throttles, which come at once.
    """
    slow = _slow(function)
    unanswered = slow.until(patience_s)
    throttles = QUICK.at_most_s(QUICK.until(patience_s))
    return math.ceil(told_s) + again_s + (1 + unanswered) * try_s(function) + slow.at_most_s(unanswered) + throttles


def try_s(function: lambda_.Function) -> int:
    """Returns the longest time of one try of a step."""
    return int(_timeout(function).plus(MARGIN).to_seconds())


def _slow(function: lambda_.Function) -> Pauses:
    """Returns few and long pauses, because each try may have taken the function's whole time."""
    return Pauses(first_s=2, rate=4, longest_s=int(_timeout(function).to_seconds()), jitter=False)


def _timeout(function: lambda_.Function) -> cdk.Duration:
    timeout = function.timeout
    assert timeout is not None
    return timeout


def ask_again(step: tasks.LambdaInvoke, error: str, *, interval_s: int, attempts: int) -> None:
    """Retries the step after this error, always after the same pause."""
    step.add_retry(
        errors=[error],
        interval=cdk.Duration.seconds(interval_s),
        max_attempts=attempts,
        backoff_rate=1,
    )


def whole(seconds: float) -> int:
    """Rounds up to whole seconds, at least one, as Step Functions requires."""
    return max(1, round(seconds))
