"""A person's subscription to the notification topic, as a queue."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass

from rehearsal.yard import Yard

NAME = "mailbox"


@dataclass(frozen=True, slots=True)
class Mail:
    """A message as SNS delivers it."""

    subject: str
    text: str

    @property
    def whole(self) -> str:
        return f"{self.subject}\n{self.text}"


class Mailbox:
    """Keeps everything that comes from its making on."""

    def __init__(self, yard: Yard) -> None:
        self._sqs = yard.client("sqs")
        self._queue = self._sqs.create_queue(QueueName=NAME)["QueueUrl"]
        arn = f"arn:aws:sqs:{yard.region}:{yard.aws.account}:{NAME}"
        yard.client("sns").subscribe(TopicArn=yard.places.topic, Protocol="sqs", Endpoint=arn)
        self._kept: list[Mail] = []
        self._turn = threading.Lock()

    def all(self) -> list[Mail]:
        """Every message so far, oldest first."""
        with self._turn:
            while found := self._sqs.receive_message(QueueUrl=self._queue, MaxNumberOfMessages=10).get("Messages"):
                for one in found:
                    envelope = json.loads(one["Body"])
                    self._kept.append(Mail(envelope.get("Subject") or "", envelope["Message"]))
                    self._sqs.delete_message(QueueUrl=self._queue, ReceiptHandle=one["ReceiptHandle"])
            return list(self._kept)

    def about(self, *words: str) -> list[Mail]:
        """Those with all of the words in them."""
        return [one for one in self.all() if all(word in one.whole for word in words)]
