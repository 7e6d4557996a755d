"""Queues: messages that wait for a function, and the letters of those that nobody could read."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.parts.acknowledged import acknowledge

RETENTION = cdk.Duration.days(14)
"""The longest that SQS keeps a message: a letter outlives a holiday."""
TIMES_THE_FUNCTION = 6
"""AWS's advice for the visibility time-out of a queue that a function reads, in time-outs of the function."""
FEWEST_RECEIVES = 5
"""AWS's advice: Lambda's own throttles count as well."""
KEYS = "SQS encrypts with a key of its own; what waits in here names executions and passes, and no secrets."


class DeadLetters(sqs.Queue):
    """A queue of messages that could not be delivered, or failed for good. The first letter raises an alarm; a person removes it."""

    def __init__(self, scope: Construct, name: str) -> None:
        super().__init__(
            scope, name, encryption=sqs.QueueEncryption.SQS_MANAGED, enforce_ssl=True, retention_period=RETENTION
        )
        acknowledge(self, "Holds dead letters itself: what cannot be put in here is lost.", "AwsSolutions-SQS3")
        acknowledge(self, KEYS, "CKV_AWS_27")


class Queue(sqs.Queue):
    """Messages for one function with that time-out; a message that fails `receives` times, or a few at least, becomes one of
    `letters`."""

    def __init__(
        self, scope: Construct, name: str, *, function_timeout: cdk.Duration, receives: float, letters: DeadLetters
    ) -> None:
        super().__init__(
            scope,
            name,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=RETENTION,
            # After this time a message of a killed function is delivered again; a function that fails returns its message sooner.
            visibility_timeout=cdk.Duration.seconds(TIMES_THE_FUNCTION * function_timeout.to_seconds()),
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=letters, max_receive_count=max(FEWEST_RECEIVES, round(receives))
            ),
        )
        acknowledge(self, KEYS, "CKV_AWS_27")
