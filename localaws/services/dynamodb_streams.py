"""Lambda's event source mappings on DynamoDB's streams: moto keeps the mapping, dynamodb_mapping delivers, with the function's rights."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from moto.awslambda.models import LambdaBackend
from moto.awslambda_simple.models import lambda_simple_backends
from moto.events.models import EventPattern
from moto.utilities.arns import parse_arn

from localaws.model import Clock
from localaws.services import dynamodb
from localaws.services.dynamodb_mapping import KEPT_S, RETRY_S, Failed, Mapping, Record, Settings
from localaws.services.dynamodb_table import Schema
from localaws.services.queues import REPORTS_ITEMS

if TYPE_CHECKING:
    from localaws.server import LocalAws

KEPT_RECORDS = 10_000
"""Records of a stream that a new mapping with TRIM_HORIZON can still read."""


def install(aws: LocalAws) -> None:
    streams = Streams(aws)
    dynamodb.items().hearers.append(streams.hear)
    create, update = LambdaBackend.create_event_source_mapping, LambdaBackend.update_event_source_mapping

    def create_event_source_mapping(self: Any, spec: dict[str, Any]) -> Any:
        made = create(self, spec)
        if _is_ours(made):
            streams.open(made)
        return made

    def update_event_source_mapping(self: Any, uuid: str, spec: dict[str, Any]) -> Any:
        changed = update(self, uuid, spec)
        if changed and _is_ours(changed):
            streams.change(changed)
        return changed

    aws.patch(LambdaBackend, "create_event_source_mapping", create_event_source_mapping)
    aws.patch(LambdaBackend, "update_event_source_mapping", update_event_source_mapping)


def _is_ours(mapping: Any) -> bool:
    return ":dynamodb:" in str(mapping.event_source_arn)


class Streams:
    """All mappings on streams, and what streams keep for mappings to come."""

    def __init__(self, aws: LocalAws) -> None:
        self._aws = aws
        self._lock = threading.Lock()
        self._mappings: dict[str, tuple[Any, Mapping]] = {}
        self._kept: dict[str, deque[Record]] = {}

    def hear(self, schema: Schema, record: Record) -> None:
        with self._lock:
            self._kept.setdefault(schema.stream, deque(maxlen=KEPT_RECORDS)).append(record)
            for made, mapping in list(self._mappings.values()):
                if made.event_source_arn == schema.stream and self._alive(made):
                    mapping.take(record)

    def open(self, made: Any) -> None:
        """LATEST begins with the next record, TRIM_HORIZON with the oldest that the stream has."""
        with self._lock:
            mapping = Mapping(_settings(made, self._aws.conditions.speed), _Around(self._aws, made))
            self._mappings[made.uuid] = made, mapping
            if made.starting_position == "TRIM_HORIZON":
                for record in self._kept.get(made.event_source_arn, ()):
                    mapping.take(record)
        self._aws.later(0, lambda: _read_once(self._aws, made))

    def change(self, made: Any) -> None:
        with self._lock:
            if made.uuid in self._mappings:
                self._mappings[made.uuid][1].settings = _settings(made, self._aws.conditions.speed)

    def _alive(self, made: Any) -> bool:
        """Whether the mapping is on; the records that pass meanwhile are gone for one that is off."""
        region = parse_arn(made.event_source_arn).region
        known = lambda_simple_backends[self._aws.account][region]._event_source_mappings
        if made.uuid not in known:
            del self._mappings[made.uuid]
            return False
        return bool(made.enabled)


class _Around:
    """What a mapping needs of the local AWS."""

    def __init__(self, aws: LocalAws, made: Any) -> None:
        self._aws, self._made = aws, made
        self._chance = random.Random(aws.conditions.seed)
        self._region = parse_arn(made.event_source_arn).region

    @property
    def clock(self) -> Clock:
        return time

    def at(self, when: float, action: Callable[[], None]) -> None:
        self._aws.later(when - time.time(), action)

    def delays(self, record: Record) -> Iterable[float]:  # noqa: ARG002
        conditions = self._aws.conditions
        times = 2 if self._chance.random() < conditions.stream_doubled else 1
        return [conditions.scaled(conditions.stream_delay_s, self._chance) for _ in range(times)]

    def invoke(self, event: dict[str, Any]) -> Any:
        function = _function(self._aws, self._made)
        if function is None:
            raise Failed(f"no function {self._made.function_arn}")
        outcome = self._aws.workers.invoke(function, json.dumps(event).encode())
        if outcome.failed:
            raise Failed(outcome.payload.decode())
        return json.loads(outcome.payload or b"null")

    def bury(self, letter: dict[str, Any]) -> None:
        place = ((self._made.destination_config or {}).get("OnFailure") or {}).get("Destination")
        function = _function(self._aws, self._made)
        if place and function is not None:
            where = parse_arn(place)
            client = self._aws.client("sqs", where.region, role=function.role, throttled=False)
            url = f"{self._aws.endpoint}/{where.account}/{where.resource_id}"
            client.send_message(QueueUrl=url, MessageBody=json.dumps(letter))


def _function(aws: LocalAws, made: Any) -> Any:
    region = parse_arn(made.event_source_arn).region
    return lambda_simple_backends[aws.account][region].get_function_by_arn(made.function_arn)


def _read_once(aws: LocalAws, made: Any) -> None:
    """Makes each call once that Lambda's poller makes, with the rights of the function's role; the answers are not used."""
    function = _function(aws, made)
    if function is None:
        return
    region = parse_arn(made.event_source_arn).region
    streams = aws.client("dynamodbstreams", region, role=function.role, throttled=False)
    streams.list_streams()
    shard = streams.describe_stream(StreamArn=made.event_source_arn)["StreamDescription"]["Shards"][0]["ShardId"]
    found = streams.get_shard_iterator(
        StreamArn=made.event_source_arn, ShardId=shard, ShardIteratorType=made.starting_position
    )
    streams.get_records(ShardIterator=found["ShardIterator"])


def _settings(made: Any, speed: float) -> Settings:
    """Returns a mapping's properties at the rehearsal's speed, with Lambda's defaults."""
    age, retries = made.max_record_age, made.max_retry_attempts
    return Settings(
        function=made.function_arn,
        stream=made.event_source_arn,
        fits=_filter(made.filter_criteria),
        batch=made.batch_size,
        window_s=int(made.max_batch_window or 0) / speed,
        at_once=int(made.parallelization_factor or 1),
        retries=-1 if retries is None else int(retries),
        age_s=KEPT_S / speed if age is None or int(age) < 0 else int(age) / speed,
        retry_s=RETRY_S / speed,
        bisect=str(made.bisect_on_error).lower() == "true",
        by_item=REPORTS_ITEMS in (made.function_response_types or []),
    )


def _filter(criteria: Any) -> Callable[[Record], bool]:
    """A record has to match one of the patterns; without patterns every record fits."""
    texts = [one["Pattern"] for one in (criteria or {}).get("Filters") or []]
    patterns = [EventPattern(text, json.loads(text)) for text in texts]
    return lambda record: not patterns or any(bool(one.matches_event(record)) for one in patterns)
