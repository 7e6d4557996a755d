"""Sends a message to a queue for every execution that ends without success; the cleanup function reads that queue."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from stacks.parts import interfaces
from stacks.parts.alarms import AlarmEvidence, Alarms
from stacks.parts.function import Function
from stacks.parts.queue import DeadLetters, Queue

EVERY_END = ["SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"]
EVERY_STATUS = ["RUNNING", *EVERY_END]
BAD_ENDS = ["FAILED", "TIMED_OUT", "ABORTED"]
"""Statuses of every end without success: an abort and a time-out run no Catch, and the last step may have failed."""
AT_ONCE = 2
"""Cleanups that run at once, Lambda's minimum: a new account may run only ten functions at once, over all of its functions."""

CLOCK = cdk.Duration.minutes(5)
"""288 ticks a day. Each is a ListExecutions for each bad end, and one more for each further thousand that ended so in 90 days: 864 calls a
day and more, at most 8,640. Each bad end costs up to five reads a tick, for eight ticks."""


def clear_up_after(
    scope: Construct,
    machine: sfn.StateMachine,
    function: lambda_.Function,
    *,
    queue: Queue,
    letters: DeadLetters,
    description: str,
) -> None:
    """Uses an EventBridge rule; an event that it cannot deliver in a day becomes a letter. The function gets one message at a time,
    and an unfinished message comes back."""
    function.add_event_source_mapping(
        "Messages",
        event_source_arn=queue.queue_arn,
        batch_size=1,
        report_batch_item_failures=True,
        max_concurrency=AT_ONCE,
    )
    send_ends(
        scope,
        [machine.state_machine_arn],
        statuses=BAD_ENDS,
        queue=queue,
        letters=letters,
        description=description,
    )


def invoke_by_clock(scope: Construct, function: Function) -> None:
    """Invokes the function by a clock: events of ends are a best effort. The next tick makes up for one that is lost or fails, so it is
    not tried again."""
    target = targets.LambdaFunction(interfaces.function(function), retry_attempts=0, max_event_age=CLOCK)
    function.configure_async_invoke(retry_attempts=0, max_event_age=CLOCK)
    events.Rule(
        scope,
        "CleanupClock",
        description="The cleanup looks for ends of executions without a report",
        schedule=events.Schedule.rate(CLOCK),
        targets=[interfaces.target(target)],
    )


def send_ends(
    scope: Construct,
    machines: Sequence[str],
    *,
    statuses: Sequence[str],
    queue: Queue,
    letters: DeadLetters,
    description: str,
) -> None:
    """Sends a message for every execution of these machines (ARNs) that gets one of the statuses."""
    events.Rule(
        scope,
        "ExecutionEnded",
        description=description,
        event_pattern=events.EventPattern(
            source=["aws.states"],
            detail_type=["Step Functions Execution Status Change"],
            detail={"stateMachineArn": list(machines), "status": list(statuses)},
        ),
        targets=[
            interfaces.target(
                targets.SqsQueue(
                    queue, dead_letter_queue=letters, retry_attempts=185, max_event_age=cdk.Duration.hours(24)
                )
            )
        ],
    )


def watch_cleanup(alarms: Alarms, letters: DeadLetters, function: Function) -> None:
    """Raises an alarm where the cleanup gave up, or broke."""
    alarms.on_any(
        "cleanup-letters",
        letters.metric_approximate_number_of_messages_visible(statistic="Maximum"),
        "An execution ended, and the cleanup could not prove in time that its machines ended: they may still run. "
        "The letter names the execution; the reaper ends its machines about ten minutes after it ended.",
        evidence=AlarmEvidence(function=function, letters=letters),
    )
    alarms.on_any(
        "cleanup-errors",
        function.metric_errors(statistic="Sum"),
        "The function that cleans up after executions failed or timed out. A message is tried again after twelve minutes; a tick of the "
        "clock that looks for ends without a report is made up by the next one, in five. Its log says why; meanwhile the reaper ends the "
        "machines.",
        evidence=AlarmEvidence(function=function),
    )
