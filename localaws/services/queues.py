"""SQS, and Lambda's polling of it: time-outs at the rehearsal's speed, batches, failures per item, dead letters.

A queue's durations in a template (its visibility time-out) are the service's, and run at the rehearsal's speed like the
rates of schedules. Durations in a call (DelaySeconds of a message) are the caller's, whose own timing runs at that speed
already: they are used as they are, in SQS's whole seconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from moto.awslambda.models import LambdaBackend
from moto.awslambda_simple.models import lambda_simple_backends
from moto.sqs.models import Message, Queue, SQSBackend, sqs_backends
from moto.sqs.responses import SQSResponse
from moto.utilities.arns import parse_arn

from localaws.runtime_api import Outcome

if TYPE_CHECKING:
    from localaws.server import LocalAws

LOOK_S = 0.1
"""How often Lambda checks a queue for messages; its long polls answer as soon as one comes."""
REPORTS_ITEMS = "ReportBatchItemFailures"


def install(aws: LocalAws) -> None:
    _time_outs(aws)
    _whole_queues(aws)
    aws.wrap(LambdaBackend, "create_event_source_mapping", _map_only_polled)
    aws.later(0, Poller(aws).run)


def _time_outs(aws: LocalAws) -> None:
    def mark_received(original: Any, message: Any, visibility_timeout: float | None = None) -> None:
        """Keeps the fraction of a second, which moto cuts off: a short time-out might become zero."""
        original(message, None)
        message.visible_at = (time.time() + (visibility_timeout or 0.0)) * 1000

    def time_out(original: Any, call: Any, timeout: str | None = None) -> float:
        if timeout is None and call._get_param("VisibilityTimeout") is None:
            own = call.sqs_backend.get_queue(call._get_queue_name()).visibility_timeout
            return float(own) / aws.conditions.speed
        return float(original(call, timeout))

    aws.wrap(Message, "mark_received", mark_received)
    aws.wrap(SQSResponse, "_get_validated_visibility_timeout", time_out)


def _whole_queues(aws: LocalAws) -> None:
    """Keeps messages that arrive during a deletion, which moto loses because it replaces the list of messages; and policies."""

    def delete_message(original: Any, queue: Any, receipt_handle: str) -> None:
        with queue._messages_lock:
            original(queue, receipt_handle)

    def receive_message(original: Any, backend: Any, queue_name: str, *given: Any, **named: Any) -> Any:
        with backend.get_queue(queue_name)._messages_lock:
            return original(backend, queue_name, *given, **named)

    def set_attributes(original: Any, backend: Any, queue_name: str, attributes: dict[str, Any]) -> Any:
        """Keeps the policy that is not named, which moto takes away."""
        policy = backend.get_queue(queue_name).policy
        return original(backend, queue_name, {"Policy": policy, **attributes} if policy else attributes)

    aws.wrap(SQSBackend, "set_queue_attributes", set_attributes)
    aws.wrap(Queue, "delete_message", delete_message)
    aws.wrap(SQSBackend, "receive_message", receive_message)


def _map_only_polled(original: Any, backend: Any, spec: dict[str, Any]) -> Any:
    """Stops moto from passing the message to the function while the sender waits."""
    mapping = original(backend, spec)
    for queue in sqs_backends[backend.account_id][backend.region_name].queues.values():
        queue.lambda_event_source_mappings.pop(mapping.function_arn, None)
    return mapping


class Poller:
    """Lambda's poller: for each mapping it receives, invokes, and deletes finished messages, with the rights of the function's role."""

    def __init__(self, aws: LocalAws) -> None:
        self._aws = aws
        self._known: set[str] = set()

    def run(self) -> None:
        while not self._aws.stopping.wait(LOOK_S):
            for mapping in list(_mappings(self._aws.account)):
                self._poll(mapping)

    def _poll(self, mapping: Any) -> None:
        where = parse_arn(mapping.event_source_arn)
        queue = sqs_backends[where.account][where.region].queues.get(where.resource_id)
        function = lambda_simple_backends[where.account][where.region].get_function_by_arn(mapping.function_arn)
        if queue is None or function is None:
            return
        sqs = self._aws.client("sqs", where.region, role=function.role, throttled=False)
        url = f"{self._aws.endpoint}/{where.account}/{where.resource_id}"
        if mapping.uuid not in self._known:  # Lambda reads the queue's time-out before it accepts the mapping
            self._known.add(mapping.uuid)
            sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        if queue.messages:
            received = sqs.receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=min(mapping.batch_size, 10),
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
            if messages := received.get("Messages", []):
                self._aws.later(0, lambda: self._work(mapping, function, messages, sqs, url))

    def _work(self, mapping: Any, function: Any, messages: Sequence[Any], sqs: Any, url: str) -> None:
        records = [_record(one, mapping.event_source_arn, mapping.region) for one in messages]
        outcome = self._aws.workers.invoke(function, json.dumps({"Records": records}).encode())
        failed = _failed(outcome, by_item=REPORTS_ITEMS in (mapping.function_response_types or []))
        for one in messages:
            if failed is not None and one["MessageId"] not in failed:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])


def _failed(outcome: Outcome, *, by_item: bool) -> set[str] | None:
    """Returns the ids of the messages that come back when their time-out is over; None for all of them."""
    if outcome.failed:
        return None
    if not by_item:
        return set()
    answer = json.loads(outcome.payload or b"null") or {}
    failures = [one.get("itemIdentifier") for one in answer.get("batchItemFailures") or []]
    return None if any(not one for one in failures) else set(failures)


def _record(message: Any, queue: str, region: str) -> dict[str, Any]:
    """Returns a message in the form that functions receive."""
    attributes = {
        name: {"stringValue": one.get("StringValue"), "dataType": one["DataType"]}
        for name, one in message.get("MessageAttributes", {}).items()
    }
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": attributes,
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": queue,
        "awsRegion": region,
    }


def _mappings(account: str) -> Iterator[Any]:
    for backend in list(lambda_simple_backends[account].values()):
        every = list(backend._event_source_mappings.values())
        yield from [one for one in every if one.enabled and ":sqs:" in one.event_source_arn]
