"""The stream of the fake DynamoDB: what changed, in Lambda's form, late, twice, and again after a failure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.builders import NOW
from tests.fakes.asking_table import TABLE, get, key, put, table, with_table
from tests.fakes.aws import Aws
from tests.fakes.faked import refused


@pytest.fixture
def aws() -> Iterator[Aws]:
    with with_table() as fake:
        yield fake


@pytest.fixture
def received(aws: Aws) -> list[dict[str, Any]]:
    """What a function that never fails receives, in calm weather."""
    records: list[dict[str, Any]] = []
    aws.table.weather = lambda _: (0.3,)
    aws.table.feed(TABLE, lambda event: records.extend(event["Records"]))
    return records


def test_a_change_reaches_the_function_in_lambdas_form(aws: Aws, received: list[dict[str, Any]]) -> None:
    aws.clock.run(0.7)
    put(doc={"B": b"\x00"})
    aws.clock.run(1.0)
    (record,) = received
    assert record["eventSource"] == "aws:dynamodb"
    assert record["eventName"] == "INSERT"
    assert record["eventSourceARN"] == aws.table.tables[TABLE].stream
    assert record["dynamodb"]["Keys"] == key()
    assert record["dynamodb"]["NewImage"] == {**key(), "version": {"N": "1"}, "doc": {"B": "AA=="}}
    assert "OldImage" not in record["dynamodb"]
    assert record["dynamodb"]["ApproximateCreationDateTime"] == int(NOW)


def test_every_change_has_a_record_and_a_write_without_a_change_has_none(
    aws: Aws, received: list[dict[str, Any]]
) -> None:
    put()
    put()
    put(version=2)
    refused(put, ConditionExpression="attribute_not_exists(pk)")
    table().delete_item(TableName=TABLE, Key=key())
    table().delete_item(TableName=TABLE, Key=key())
    aws.clock.run(2.0)
    assert [one["eventName"] for one in received] == ["INSERT", "MODIFY", "REMOVE"]
    numbers = [one["dynamodb"]["SequenceNumber"] for one in received]
    assert numbers == sorted(set(numbers))
    assert "NewImage" not in received[-1]["dynamodb"]


def test_an_item_that_expired_is_shown_until_it_is_deleted_late_and_the_stream_names_who_did_it(
    aws: Aws, received: list[dict[str, Any]]
) -> None:
    put(expires={"N": str(int(NOW) + 10)})
    put("kept", expires={"N": str(int(NOW) + 10)})
    put("text", expires={"S": "soon"})
    put("old", expires={"N": "1"})
    aws.clock.run(60.0)
    put("kept", version=2)
    assert get() is not None
    aws.clock.run(49 * 3600.0)
    assert {one["sk"]["S"] for one in aws.table.items(TABLE)} == {"kept", "text", "old"}
    assert received[-1]["eventName"] == "REMOVE"
    assert received[-1]["userIdentity"] == {"principalId": "dynamodb.amazonaws.com", "type": "Service"}
    assert [one for one in received[:-1] if "userIdentity" in one] == []


def test_only_records_that_fit_wake_the_function(aws: Aws) -> None:
    woken: list[Any] = []
    aws.table.feed(TABLE, woken.append, fits=lambda record: "urgent" in record["dynamodb"]["NewImage"])
    put()
    aws.clock.run(60.0)
    assert woken == []


def test_records_come_late_and_twice_and_those_of_one_key_first_come_in_their_order(aws: Aws) -> None:
    records: list[dict[str, Any]] = []
    aws.table.feed(TABLE, lambda event: records.extend(event["Records"]))
    for version in range(1, 11):
        for node in range(8):
            put("s", pk=f"node#{node}", version=version)
    aws.clock.run(60.0)
    assert len(records) > 80
    seen = [(one["dynamodb"]["Keys"]["pk"]["S"], int(one["dynamodb"]["NewImage"]["version"]["N"])) for one in records]
    firsts = list(dict.fromkeys(seen))
    assert len(firsts) == 80
    for node in range(8):
        assert [version for pk, version in firsts if pk == f"node#{node}"] == list(range(1, 11))
    numbers = [one["dynamodb"]["SequenceNumber"] for one in records]
    assert numbers != sorted(numbers)


def test_a_function_that_fails_holds_its_shard_up_until_it_works(aws: Aws) -> None:
    aws.table.weather = lambda _: (0.3,)
    seen: list[list[str]] = []

    def target(event: dict[str, Any]) -> None:
        seen.append([one["dynamodb"]["Keys"]["sk"]["S"] for one in event["Records"]])
        if aws.clock.now < NOW + 10:
            raise RuntimeError("not yet")

    aws.table.feed(TABLE, target, batch=2)
    for number in range(3):
        put(str(number))
    aws.clock.run(5.0)
    assert {one[0] for one in seen} == {"0"}
    aws.clock.run(20.0)
    assert seen[-1] == ["2"]
    assert aws.table.letters == []


def test_a_batch_waits_for_its_window(aws: Aws) -> None:
    sizes: list[int] = []
    aws.table.weather = lambda _: (0.3,)
    aws.table.feed(TABLE, lambda event: sizes.append(len(event["Records"])), window_s=5.0)
    for number in range(20):
        put(str(number))
    aws.clock.run(30.0)
    assert sizes == [20]
