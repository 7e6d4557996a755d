"""The fake DynamoDB says what DynamoDB says: conditional writes, reads that lag, pages, batches, streams, expiry, units."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from localaws.model import Refused
from localaws.services.dynamodb_state import Knobs
from tests.fakes.asking_table import TABLE, ask, every, get, key, put, table, with_table
from tests.fakes.aws import Aws
from tests.fakes.faked import ONCE, refused
from tests.fakes.faults import Kind

V1 = {":v": {"N": "1"}}


@pytest.fixture
def aws() -> Iterator[Aws]:
    with with_table() as fake:
        yield fake


# conditional writes


def test_only_the_first_of_two_creations_wins_and_the_second_is_shown_what_is_there(aws: Aws) -> None:
    create = {
        "ConditionExpression": "attribute_not_exists(pk)",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    put(version=1, doc={"B": b"\x00one"}, **create)
    with pytest.raises(table().exceptions.ConditionalCheckFailedException) as problem:
        put(version=2, **create)
    assert problem.value.response["Item"] == {**key(), "version": {"N": "1"}, "doc": {"B": b"\x00one"}}
    assert aws.table.items(TABLE) == [problem.value.response["Item"]]


def test_a_failed_condition_shows_nothing_to_who_does_not_ask(aws: Aws) -> None:  # noqa: ARG001
    put()
    with pytest.raises(table().exceptions.ConditionalCheckFailedException) as problem:
        put(ConditionExpression="attribute_not_exists(pk)")
    assert "Item" not in problem.value.response


def test_a_replacement_names_the_version_that_it_replaces(aws: Aws) -> None:
    condition = {"ConditionExpression": "version = :v", "ExpressionAttributeValues": V1}
    assert refused(put, version=2, **condition) == "ConditionalCheckFailedException"  # nothing is there
    put(version=1)
    put(version=2, **condition)
    assert refused(put, version=3, **condition) == "ConditionalCheckFailedException"
    assert aws.table.items(TABLE)[0]["version"] == {"N": "2"}


def test_a_deletion_with_a_condition_deletes_nothing_else(aws: Aws) -> None:
    condition = {"ConditionExpression": "version = :v", "ExpressionAttributeValues": V1}
    put(version=2)
    gone = refused(table().delete_item, TableName=TABLE, Key=key(), **condition)
    assert gone == "ConditionalCheckFailedException"
    table().delete_item(TableName=TABLE, Key=key())
    table().delete_item(TableName=TABLE, Key=key("never there"))
    assert aws.table.items(TABLE) == []


def test_a_conditional_write_whose_answer_was_lost_meets_itself(aws: Aws) -> None:
    aws.faults.add(Kind.LOST, "dynamodb:PutItem")
    client = boto3.client("dynamodb")
    lost = refused(client.put_item, TableName=TABLE, Item=key(), ConditionExpression="attribute_not_exists(pk)")
    assert lost == "ConditionalCheckFailedException"
    assert aws.table.items(TABLE) == [key()]


def test_a_condition_is_evaluated_with_each_calls_own_values(aws: Aws) -> None:  # noqa: ARG001
    for version in range(1, 5):
        put(
            version=version,
            ConditionExpression="attribute_not_exists(pk) OR #v = :v",
            ExpressionAttributeNames={"#v": "version"},
            ExpressionAttributeValues={":v": {"N": str(version - 1)}},
        )
    assert get()["version"] == {"N": "4"}


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ({"ConditionExpression": "version = :w", "ExpressionAttributeValues": V1}, "not defined"),
        ({"ConditionExpression": "version = = :v", "ExpressionAttributeValues": V1}, "Invalid ConditionExpression"),
        ({"ConditionExpression": "attribute_not_exists(pk)", "ExpressionAttributeValues": V1}, "unused"),
        ({"ConditionExpression": "#p = :v", "ExpressionAttributeValues": V1}, "not defined"),
        ({"ConditionExpression": "status = :v", "ExpressionAttributeValues": V1}, "reserved keyword"),
        ({"ExpressionAttributeValues": V1}, "can only be specified when using expressions"),
    ],
)
def test_a_condition_that_is_none_is_refused(aws: Aws, condition: dict[str, Any], told: str) -> None:
    with pytest.raises(table().exceptions.ClientError, match=told) as problem:
        put(**condition)
    assert problem.value.response["Error"]["Code"] == "ValidationException"
    assert aws.table.items(TABLE) == []


def test_a_write_that_meets_a_transaction_writes_nothing(aws: Aws) -> None:
    aws.table.knobs.conflicts = 1
    assert refused(put) == "TransactionConflictException"
    assert aws.table.items(TABLE) == []
    put()


# what an item may be


@pytest.mark.parametrize(
    ("item", "told"),
    [
        ({"pk": {"S": "a"}}, "Missing the key sk"),
        ({"pk": {"S": "a"}, "sk": {"S": ""}}, "empty string value. Key: sk"),
        ({"pk": {"S": "a"}, "sk": {"N": "1"}}, "Type mismatch for key sk expected: S actual: N"),
        ({"pk": {"S": "a" * 2049}, "sk": {"S": "s"}}, "hashkey has exceeded"),
        ({"pk": {"S": "a"}, "sk": {"S": "ü" * 513}}, "rangekey has exceeded"),
        ({**key(), "doc": {"S": "x" * 400 * 1024}}, "Item size has exceeded"),
        ({**key(), "version": {"N": "one"}}, "cannot be converted to a numeric value"),
        ({**key(), "version": {"N": "1e126"}}, "Number overflow"),
        ({**key(), "version": {"N": "-1e-131"}}, "Number underflow"),
        ({**key(), "version": {"N": " 1"}}, "cannot be converted to a numeric value"),
        ({**key(), "version": {"N": "NaN"}}, "cannot be converted to a numeric value"),
        ({**key(), "version": {"N": "1" * 39}}, "more than 38 significant digits"),
        ({**key(), "hosts": {"SS": ["a", "a"]}}, "contains duplicates"),
    ],
)
def test_an_item_that_dynamodb_would_not_take_is_refused(aws: Aws, item: dict[str, Any], told: str) -> None:
    with pytest.raises(table().exceptions.ClientError, match=told) as problem:
        table().put_item(TableName=TABLE, Item=item)
    assert problem.value.response["Error"]["Code"] == "ValidationException"
    assert aws.table.items(TABLE) == []


def test_an_item_has_400_kb_with_the_names_of_its_attributes(aws: Aws) -> None:  # noqa: ARG001
    rest = 400 * 1024 - len("pk" + "job#a" + "sk" + "s" + "doc")
    table().put_item(TableName=TABLE, Item={**key(), "doc": {"S": "x" * rest}})
    with pytest.raises(table().exceptions.ClientError, match="Item size"):
        table().put_item(TableName=TABLE, Item={**key(), "doc": {"S": "x" * (rest + 1)}})


def test_a_number_comes_back_without_the_zeros_that_say_nothing(aws: Aws) -> None:  # noqa: ARG001
    table().put_item(TableName=TABLE, Item={**key(), "version": {"N": "0012.50"}})
    assert get()["version"] == {"N": "12.5"}


@pytest.mark.parametrize(
    "wrong", [{"pk": {"S": "a"}}, {**key(), "doc": {"S": "x"}}, {"pk": {"S": "a"}, "sk": {"N": "1"}}]
)
def test_a_key_that_is_none_of_the_table_is_refused(aws: Aws, wrong: dict[str, Any]) -> None:  # noqa: ARG001
    assert refused(table().get_item, TableName=TABLE, Key=wrong) == "ValidationException"


def test_a_table_that_is_not_there_answers_nothing(aws: Aws) -> None:  # noqa: ARG001
    elsewhere = boto3.client("dynamodb", region_name="eu-west-1", config=ONCE)
    assert refused(table().get_item, TableName="other", Key=key()) == "ResourceNotFoundException"
    assert refused(elsewhere.get_item, TableName=TABLE, Key=key()) == "ResourceNotFoundException"


@pytest.mark.parametrize(
    ("operation", "more"),
    [
        ("scan", {}),
        ("update_item", {"Key": key()}),
        ("query", {"IndexName": "other", "KeyConditionExpression": "pk = :p"}),
    ],
)
def test_what_nobody_modelled_is_refused_and_never_ignored(aws: Aws, operation: str, more: dict[str, Any]) -> None:  # noqa: ARG001
    assert refused(getattr(table(), operation), TableName=TABLE, **more) == "UnknownOperationException"


# reads


def test_a_read_may_show_what_was_a_moment_ago_and_a_consistent_one_never_does(aws: Aws) -> None:
    aws.clock.run(5.0)
    put(version=1)
    aws.clock.run(5.0)
    put(version=2)
    seen = {get(consistent=False)["version"]["N"] for _ in range(20)}
    assert seen == {"1", "2"}
    put(version=3)
    assert get()["version"] == {"N": "3"}
    assert ask()["Items"][0]["version"] == {"N": "3"}


def test_a_new_item_may_be_invisible_and_a_deleted_one_visible_for_at_most_the_lag(aws: Aws) -> None:
    put()
    assert None in [get(consistent=False) for _ in range(20)]
    aws.clock.run(1.0)
    assert get(consistent=False) is not None
    table().delete_item(TableName=TABLE, Key=key())
    assert any(ask(ConsistentRead=False)["Items"] for _ in range(20))
    aws.clock.run(1.0)
    assert get(consistent=False) is None
    assert ask(ConsistentRead=False)["Items"] == []


def test_a_query_finds_a_partitions_items_in_the_order_of_their_keys(aws: Aws) -> None:  # noqa: ARG001
    for sk in ("node#2", "node#10", "node#1", "order#1", "job"):
        put(sk)
    put("node#3", pk="job#ab")
    assert every() == ["job", "node#1", "node#10", "node#2", "order#1"]
    assert every("node#") == ["node#1", "node#10", "node#2"]
    assert every("node#", ScanIndexForward=False) == ["node#2", "node#10", "node#1"]
    assert every("nodes") == every(pk="job") == []


def test_a_page_may_hold_fewer_items_than_asked_and_the_last_may_be_empty(aws: Aws) -> None:
    for number in range(10):
        put(f"{number}")
    aws.table.knobs.short_pages = 1.0
    page = ask(Limit=10)
    assert len(page["Items"]) < 10
    assert "LastEvaluatedKey" in page
    assert [every() for _ in range(20)] == [[str(number) for number in range(10)]] * 20


def test_a_page_that_ends_with_the_last_item_names_another_one_which_is_empty(aws: Aws) -> None:
    aws.table.knobs = Knobs.plain()
    put("1")
    put("2")
    page = ask(Limit=2)
    assert page["LastEvaluatedKey"] == key("2")
    rest = ask(Limit=2, ExclusiveStartKey=page["LastEvaluatedKey"])
    assert rest["Items"] == []
    assert "LastEvaluatedKey" not in rest


def test_a_page_has_at_most_a_megabyte_before_any_filter(aws: Aws) -> None:
    aws.table.knobs = Knobs.plain()
    for number in range(4):
        put(str(number), version=number, doc={"S": "x" * 390 * 1024})
        aws.clock.run(1.0)  # each is 391 units of a thousand
    page = ask(FilterExpression="version = :v", ExpressionAttributeValues={":pk": {"S": "job#a"}, ":v": {"N": "3"}})
    assert (page["Items"], page["ScannedCount"]) == ([], 2)
    assert page["LastEvaluatedKey"] == key("1")


@pytest.mark.parametrize(
    "wrong",
    [
        {"KeyConditionExpression": "sk = :pk"},
        {"KeyConditionExpression": "pk > :pk"},
        {"KeyConditionExpression": "pk = :pk AND version = :pk"},
        {"KeyConditionExpression": "pk = :other"},
        {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": {"S": "a"}, ":s": {"S": "b"}}},
        {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": {"N": "1"}}},
        {"ExclusiveStartKey": key("s", pk="another")},
        {"ExclusiveStartKey": {"pk": {"S": "job#a"}}},
    ],
)
def test_a_query_that_is_none_is_refused(aws: Aws, wrong: dict[str, Any]) -> None:  # noqa: ARG001
    given = {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": {"S": "job#a"}}}
    assert refused(table().query, TableName=TABLE, **(given | wrong)) == "ValidationException"


def test_a_batch_may_leave_keys_for_another_call_and_leaves_out_what_is_not_there(aws: Aws) -> None:
    keys = [key(str(number)) for number in range(50)]
    for number in range(40):
        put(str(number))
    aws.table.knobs.unprocessed = 0.5
    found, asked = set(), {TABLE: {"Keys": keys, "ConsistentRead": True}}
    rounds = 0
    while asked:
        answer = table().batch_get_item(RequestItems=asked)
        found |= {one["sk"]["S"] for one in answer["Responses"].get(TABLE, [])}
        asked, rounds = answer["UnprocessedKeys"], rounds + 1
        assert not asked or asked[TABLE]["ConsistentRead"] is True
    assert found == {str(number) for number in range(40)}
    assert rounds > 1


def test_a_batch_answers_something_whatever_it_leaves(aws: Aws) -> None:
    put()
    aws.table.knobs.unprocessed = 1.0
    answer = table().batch_get_item(RequestItems={TABLE: {"Keys": [key(), key("t")], "ConsistentRead": True}})
    assert len(answer["UnprocessedKeys"][TABLE]["Keys"]) == 1


@pytest.mark.parametrize(
    "keys", [[key(str(number)) for number in range(101)], [key(), key()], [{"pk": {"S": "a"}}]], ids=len
)
def test_a_batch_of_too_many_or_equal_keys_is_refused(aws: Aws, keys: list[Any]) -> None:  # noqa: ARG001
    assert refused(table().batch_get_item, RequestItems={TABLE: {"Keys": keys}}) == "ValidationException"


# throttles and units


def test_a_throttled_call_has_no_effect_and_costs_nothing(aws: Aws) -> None:
    aws.table.knobs.throttled = 1.0
    seen = {refused(put) for _ in range(20)}
    assert seen == {"ThrottlingException", "ProvisionedThroughputExceededException"}
    assert aws.table.items(TABLE) == []
    assert aws.table.total().written == 0


def test_a_partition_takes_a_thousand_writes_a_second_and_others_go_on(aws: Aws) -> None:
    for number in range(1000):
        aws.table.answer("PutItem", {"TableName": TABLE, "Item": key(str(number))})
    with pytest.raises(Refused, match="Throughput"):
        aws.table.answer("PutItem", {"TableName": TABLE, "Item": key("1000")})
    aws.table.answer("PutItem", {"TableName": TABLE, "Item": key(pk="job#b")})
    aws.clock.run(1.0)
    aws.table.answer("PutItem", {"TableName": TABLE, "Item": key("1000")})


def test_units_are_counted_by_operation_and_kind_of_key(aws: Aws) -> None:
    aws.table.knobs = Knobs.plain()
    put(doc={"S": "x" * 4096})
    get()
    get(consistent=False)
    get("not there", pk="node#1")
    refused(put, doc={"S": "x"}, ConditionExpression="attribute_not_exists(pk)")
    ask()
    spent = {name: (one.calls, one.read, one.written) for name, one in aws.table.spent.items()}
    assert spent == {
        ("PutItem", "job"): (2, 0.0, 10.0),
        ("GetItem", "job"): (2, 3.0, 0.0),
        ("GetItem", "node"): (1, 1.0, 0.0),
        ("Query", "job"): (1, 2.0, 0.0),
    }
    assert (aws.table.total().read, aws.table.total().written) == (6.0, 10.0)
