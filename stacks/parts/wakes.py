"""What wakes the attendant: the clock, urgent reports from the table's stream, and instances that end."""

from __future__ import annotations

import json

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from contract import items
from stacks.parts import interfaces
from stacks.parts.alarms import AlarmEvidence, Alarms
from stacks.parts.function import Function
from stacks.parts.queue import DeadLetters, Queue

CLOCK = cdk.Duration.minutes(1)
"""The finest period that EventBridge allows."""
ENDING_STATES = ["stopping", "stopped", "shutting-down", "terminated"]
URGENT_REPORTS = {"dynamodb": {"NewImage": {items.URGENT: {"N": ["1"]}}}}
"""Streams have numbers as text."""
BY_CLOCK = "clock"
"""The alias by which the clock invokes the attendant. It has no version of its own: it leads to the code of the last deploy."""
AT_MOST = 100
"""Records of an invocation: while it looks, further records gather for the next one, so many nodes that end at once cause few looks."""
SIDE_BY_SIDE = 1
"""Invocations a shard. A table on demand begins with four shards, and a new account may run only ten functions at once, over all of its
functions: what nodes write must leave room for those that end machines. Two a shard make no verdict sooner (docs/benchmarks/state.md)."""
ENDINGS, ENDINGS_AT_ONCE = 10, 2
"""Instances of an invocation, the most for which Lambda does not wait; and invocations at once, Lambda's minimum."""
AT_ONCE = 20
"""The attendant's invocations: ten of a pass over 1,000 jobs, four of the stream, two of endings, three of explanations, one of Admit."""
SECOND_TRIES = 2
SILENT_MINUTES = 3
"""The alarm begins within five minutes of the clock's last pass, which is a heartbeat's time. Fewer would ring for numbers that reach
CloudWatch two minutes late: until then a minute counts as empty."""
OLDEST = cdk.Duration.minutes(5)
"""By then the clock has woken the attendant several times."""


class Wakes(Construct):
    """The clock wakes it every minute, and what it has to do is done by that alone; the others only make it look sooner.
    `endings` keeps the instances that end; `letters` get the batches of the stream at which the attendant failed again and again.
    `alarms` tell where it fails or looks late."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        attendant: Function,
        stream_arn: str,
        endings: Queue,
        letters: DeadLetters,
        alarms: Alarms,
    ) -> None:
        super().__init__(scope, name)
        # Only the clock invokes by the alias, so Lambda counts its passes apart from what nodes and instances cause.
        clock = lambda_.Alias(self, "ByClock", alias_name=BY_CLOCK, version=attendant.latest_version)
        # A missed minute is made up by the next one, so neither EventBridge nor Lambda tries a tick again.
        target = targets.LambdaFunction(interfaces.function(clock), retry_attempts=0, max_event_age=CLOCK)
        for invoked in (attendant, clock):
            invoked.configure_async_invoke(retry_attempts=0, max_event_age=CLOCK)
        events.Rule(
            self,
            "Clock",
            description="The attendant looks at every running job",
            schedule=events.Schedule.rate(CLOCK),
            targets=[interfaces.target(target)],
        )
        events.Rule(
            self,
            "InstanceEnding",
            description="An instance of the account ends, perhaps one of ours",
            event_pattern=events.EventPattern(
                source=["aws.ec2"],
                detail_type=["EC2 Instance State-change Notification"],
                detail={"state": ENDING_STATES},
            ),
            # A thousand instances of the account may end at once: the queue keeps them from becoming a thousand invocations.
            targets=[interfaces.target(targets.SqsQueue(endings, retry_attempts=SECOND_TRIES, max_event_age=OLDEST))],
        )
        attendant.add_event_source_mapping(
            "Endings",
            event_source_arn=endings.queue_arn,
            batch_size=ENDINGS,
            max_concurrency=ENDINGS_AT_ONCE,
        )
        lambda_.CfnEventSourceMapping(
            self,
            "UrgentReports",
            function_name=attendant.function_name,
            event_source_arn=stream_arn,
            # Whatever was written before the mapping existed, the clock finds.
            starting_position="LATEST",
            filter_criteria=lambda_.CfnEventSourceMapping.FilterCriteriaProperty(
                filters=[lambda_.CfnEventSourceMapping.FilterProperty(pattern=json.dumps(URGENT_REPORTS))]
            ),
            batch_size=AT_MOST,
            # A window would delay the first report of many; later ones gather during the first one's look in any case.
            maximum_batching_window_in_seconds=0,
            parallelization_factor=SIDE_BY_SIDE,
            bisect_batch_on_function_error=True,
            maximum_retry_attempts=SECOND_TRIES,
            maximum_record_age_in_seconds=int(OLDEST.to_seconds()),
            destination_config=lambda_.CfnEventSourceMapping.DestinationConfigProperty(
                on_failure=lambda_.CfnEventSourceMapping.OnFailureProperty(destination=letters.queue_arn)
            ),
        )
        self._watch(alarms, attendant, clock, letters)

    @staticmethod
    def _watch(alarms: Alarms, attendant: Function, clock: lambda_.Alias, letters: DeadLetters) -> None:
        log = AlarmEvidence(function=attendant)
        alarms.on_silence(
            "attendant-silent",
            interfaces.function(clock),
            "For three minutes no pass of the attendant's clock has ended without an error, so running jobs may not be looked at. Nodes "
            "train on; a job that is not looked at gets no order, no verdict on a lost node and, after half an hour, no new credentials. "
            "See whether its clock is on, whether its function is throttled, and what its log says.",
            minutes=SILENT_MINUTES,
            evidence=log,
        )
        alarms.on_any(
            "attendant-letters",
            letters.metric_approximate_number_of_messages_visible(statistic="Maximum"),
            "The attendant failed again and again when urgent reports of nodes woke it. The clock wakes it every minute all the same, "
            "so jobs learn later what their nodes reported. Its log says why; purge the queue once it works again.",
            evidence=AlarmEvidence(function=attendant, letters=letters),
        )
        alarms.on_any(
            "attendant-errors",
            attendant.metric_errors(statistic="Sum"),
            "For ten minutes the attendant did not look at every running job in time, or its looks failed. A job at which it does not "
            "look for five minutes loses a heartbeat. Its log says which jobs and why.",
            steps=2,
            evidence=log,
            of=3,  # an error of AWS that passes is no alarm: the next minute's look does what this one did not
        )
