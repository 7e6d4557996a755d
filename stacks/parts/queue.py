"""Queues: messages that wait for a function, and letters, the messages that failed for good."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.parts.acknowledged import acknowledge

RETENTION = cdk.Duration.days(14)
"""SQS's maximum, so that a letter outlives a holiday."""
TIMES_THE_FUNCTION = 6
"""Visibility time-out of a queue that a function reads, in time-outs of the function, as AWS advises."""
FEWEST_RECEIVES = 5
"""AWS's advice, because Lambda's own throttles count as receives as well."""
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
    """Messages for one function with this time-out. A message that fails `receives` times (at least FEWEST_RECEIVES) becomes one
    of `letters`."""

    def __init__(
        self, scope: Construct, name: str, *, function_timeout: cdk.Duration, receives: float, letters: DeadLetters
    ) -> None:
        super().__init__(
            scope,
            name,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=RETENTION,
            # A killed function's message is delivered again after this time; a function that fails returns its message sooner.
            visibility_timeout=cdk.Duration.seconds(TIMES_THE_FUNCTION * function_timeout.to_seconds()),
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=letters, max_receive_count=max(FEWEST_RECEIVES, round(receives))
            ),
        )
        acknowledge(self, KEYS, "CKV_AWS_27")
