"""The clock that has the launcher try for jobs that wait for capacity."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from stacks.parts import interfaces
from stacks.parts.function import Function

TICK = cdk.Duration.minutes(1)
"""The finest period that EventBridge allows. A tick without a job that waits is one query."""


class CapacityClock(Construct):
    """Invokes the launcher every minute. The next tick makes up for one that is lost or fails, so it is not tried again; no alarm rests
    on it, because jobs that wait run nothing."""

    def __init__(self, scope: Construct, name: str, *, launcher: Function) -> None:
        super().__init__(scope, name)
        target = targets.LambdaFunction(interfaces.function(launcher), retry_attempts=0, max_event_age=TICK)
        launcher.configure_async_invoke(retry_attempts=0, max_event_age=TICK)
        events.Rule(
            self,
            "Clock",
            description="The launcher tries for every job that waits for capacity",
            schedule=events.Schedule.rate(TICK),
            targets=[interfaces.target(target)],
        )
