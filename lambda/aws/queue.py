"""Every SQS call of the functions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from aws.clients import client

if TYPE_CHECKING:
    from types_boto3_sqs.client import SQSClient

LONGEST_DELAY_S = 900


class Queue:
    """One queue, by its URL. SQS counts in whole seconds: every delay is rounded up."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client: SQSClient = client("sqs")

    def send(self, body: str, *, in_s: float) -> None:
        """A message that arrives `in_s` later, at most 15 minutes."""
        delay = min(math.ceil(in_s), LONGEST_DELAY_S)
        self._client.send_message(QueueUrl=self.url, MessageBody=body, DelaySeconds=delay)

    def again(self, receipt: str, *, in_s: float) -> None:
        """A message that is being worked on, and fails, comes back `in_s` from now, and not after the queue's own time-out."""
        self._client.change_message_visibility(
            QueueUrl=self.url, ReceiptHandle=receipt, VisibilityTimeout=math.ceil(in_s)
        )
