"""SQS: messages at least once, in any order, invisible while somebody works on them; and the mapping that feeds a function."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from localaws.model import Refused
from tests.fakes.clock import Clock
from tests.fakes.events import Event
from tests.fakes.wire import Call

URL = "https://sqs.eu-central-1.amazonaws.com/123456789012/yard-cleanup"
LETTERS = "https://sqs.eu-central-1.amazonaws.com/123456789012/yard-letters"
LONGEST_DELAY_S = 900
LONGEST_VISIBILITY_S = 43_200


@dataclass
class Message:
    """`receipt` names the newest receipt alone: an older one may be refused."""

    id: str
    body: str
    visible_at: float
    received: int = 0
    receipt: str = ""

    def record(self) -> dict[str, Any]:
        """As the mapping hands it to a function."""
        return {
            "messageId": self.id,
            "receiptHandle": self.receipt,
            "body": self.body,
            "attributes": {"ApproximateReceiveCount": str(self.received)},
            "eventSource": "aws:sqs",
        }


@dataclass
class Queue:
    """One queue with its dead letters."""

    clock: Clock
    visibility_s: float = 720.0
    receives: int = 60
    """maxReceiveCount of the redrive policy."""
    url: str = URL
    messages: dict[str, Message] = field(default_factory=dict)
    dead: list[Message] = field(default_factory=list)
    _number: itertools.count[int] = field(default_factory=itertools.count)
    _function: Callable[[dict[str, Any]], Any] | None = None

    def feed(self, function: Callable[[dict[str, Any]], Any]) -> None:
        """An event source mapping with a batch size of 1 and ReportBatchItemFailures: what `function` answers for a failure, or
        None where it raised, decides which message is deleted."""
        self._function = function

    def take(self, event: Event) -> None:
        """As the target of a rule: the event whole."""
        self.put(json.dumps(event))

    def put(self, body: str, delay_s: float = 0.0) -> Message:
        message = Message(f"message-{next(self._number)}", body, self.clock.now + delay_s)
        self.messages[message.id] = message
        self._soon(message)
        return message

    def answer(self, call: Call) -> dict[str, Any]:
        params = call.params
        if params["QueueUrl"] != self.url:
            raise Refused("AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist.")
        match call.operation:
            case "SendMessage":
                delay = params.get("DelaySeconds", 0)
                if not 0 <= delay <= LONGEST_DELAY_S:
                    raise Refused("InvalidParameterValue", f"Value {delay} for parameter DelaySeconds is invalid.")
                sent = self.put(params["MessageBody"], delay)
                digest = hashlib.md5(sent.body.encode(), usedforsecurity=False).hexdigest()
                return {"MessageId": sent.id, "MD5OfMessageBody": digest}
            case "ChangeMessageVisibility":
                self._change(params)
                return {}
        raise Refused("InvalidAction", f"The fake has no {call.name}")

    def _change(self, params: dict[str, Any]) -> None:
        """From now on, whatever the time-out was before."""
        seconds = params["VisibilityTimeout"]
        if not 0 <= seconds <= LONGEST_VISIBILITY_S:
            raise Refused("InvalidParameterValue", f"Value {seconds} for parameter VisibilityTimeout is invalid.")
        found = next((one for one in self.messages.values() if one.receipt == params["ReceiptHandle"]), None)
        if found is None or found.visible_at <= self.clock.now:
            raise Refused("MessageNotInflight", "The message referred to isn't in flight.")
        found.visible_at = self.clock.now + seconds
        self._soon(found)

    def _soon(self, message: Message) -> None:
        self.clock.at(message.visible_at, lambda: self._deliver(message))

    def _deliver(self, message: Message) -> None:
        if self._function is None or message.id not in self.messages or message.visible_at > self.clock.now:
            return
        if message.received >= self.receives:
            self.dead.append(self.messages.pop(message.id))
            return
        message.received += 1
        message.receipt = f"{message.id}-receipt-{message.received}"
        message.visible_at = self.clock.now + self.visibility_s
        self._soon(message)
        answer = self._function({"Records": [message.record()]})
        if answer is not None and {"itemIdentifier": message.id} not in answer["batchItemFailures"]:
            self.messages.pop(message.id, None)
