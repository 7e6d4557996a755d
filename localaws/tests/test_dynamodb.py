"""DynamoDB on the local AWS: items from the model, tables from moto and CloudFormation, streams that invoke functions."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from localaws.runtime_api import Outcome
from localaws.server import LocalAws
from localaws.services import dynamodb
from localaws.testing.calm import CALM
from localaws.testing.waiting import until

pytestmark = pytest.mark.rehearsal
REGION = "eu-central-1"
ROLE = "arn:aws:iam::123456789012:role/function"
CONDITIONS = replace(
    CALM,
    table_lag_s=0.0,
    table_short_pages=0.0,
    table_unprocessed=0.0,
    table_conflicts=0.0,
    stream_delay_s=(0.1, 0.5),
    stream_doubled=0.0,
    expiry_delay_s=(1.0, 2.0),
)


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with LocalAws(CONDITIONS, gaps=("cloudformation",)) as running:
        yield running


@pytest.fixture(scope="module")
def client(aws: LocalAws) -> Any:
    return aws.client("dynamodb", REGION)


def table(**more: Any) -> dict[str, Any]:
    """A table as the CDK would write it."""
    return {
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
        "BillingMode": "PAY_PER_REQUEST",
        "StreamSpecification": {"StreamViewType": "NEW_IMAGE"},
        "TimeToLiveSpecification": {"AttributeName": "expires", "Enabled": True},
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
        "SSESpecification": {"SSEEnabled": True},
        "DeletionProtectionEnabled": True,
        "Tags": [{"Key": "owner", "Value": "us"}],
        **more,
    }


def stack(name: str, properties: dict[str, Any]) -> str:
    outputs = {"Name": {"Value": {"Ref": "Table"}}, "Stream": {"Value": {"Fn::GetAtt": ["Table", "StreamArn"]}}}
    resources = {"Table": {"Type": "AWS::DynamoDB::Table", "Properties": {"TableName": name, **properties}}}
    return json.dumps({"Resources": resources, "Outputs": outputs})


@pytest.fixture(scope="module")
def stacks(aws: LocalAws) -> Any:
    return aws.client("cloudformation", REGION)


def over(stacks: Any, name: str) -> str:
    """The state of a stack once nothing of it is in progress."""

    def state() -> str:
        (found,) = stacks.describe_stacks(StackName=name)["Stacks"]
        return "" if found["StackStatus"].endswith("IN_PROGRESS") else str(found["StackStatus"])

    return str(until(state))


@pytest.fixture(scope="module")
def yard(stacks: Any) -> str:
    stacks.create_stack(StackName="yard", TemplateBody=stack("yard", table()))
    assert over(stacks, "yard") == "CREATE_COMPLETE"
    return "yard"


def item(sk: str, pk: str = "job#a", **more: Any) -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": sk}, **more}


# tables


def test_a_table_has_all_that_its_template_says(client: Any, yard: str) -> None:
    told = client.describe_table(TableName=yard)["Table"]
    assert told["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert told["DeletionProtectionEnabled"] is True
    assert told["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    assert told["SSEDescription"]["Status"] == "ENABLED"
    recovery = client.describe_continuous_backups(TableName=yard)["ContinuousBackupsDescription"]
    assert recovery["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
    expiry = client.describe_time_to_live(TableName=yard)["TimeToLiveDescription"]
    assert expiry == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"}
    assert client.list_tags_of_resource(ResourceArn=told["TableArn"])["Tags"] == [{"Key": "owner", "Value": "us"}]


def test_a_protected_table_is_not_deleted_until_its_template_says_otherwise(client: Any, stacks: Any) -> None:
    stacks.create_stack(StackName="kept", TemplateBody=stack("kept", table()))
    assert over(stacks, "kept") == "CREATE_COMPLETE"
    client.put_item(TableName="kept", Item=item("s"))
    with pytest.raises(ClientError, match="ValidationException"):
        client.delete_table(TableName="kept")
    stacks.delete_stack(StackName="kept")
    assert over(stacks, "kept") == "DELETE_FAILED"
    assert client.get_item(TableName="kept", Key=item("s"))["Item"] == item("s")


def test_an_update_of_the_stack_changes_the_table_and_keeps_its_items(client: Any, stacks: Any) -> None:
    stacks.create_stack(StackName="changed", TemplateBody=stack("changed", table()))
    assert over(stacks, "changed") == "CREATE_COMPLETE"
    client.put_item(TableName="changed", Item=item("s"))
    less = table(
        DeletionProtectionEnabled=False, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": False}
    )
    stacks.update_stack(StackName="changed", TemplateBody=stack("changed", less))
    assert over(stacks, "changed") == "UPDATE_COMPLETE"
    assert client.get_item(TableName="changed", Key=item("s"))["Item"] == item("s")
    recovery = client.describe_continuous_backups(TableName="changed")["ContinuousBackupsDescription"]
    assert recovery["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "DISABLED"
    stacks.delete_stack(StackName="changed")
    assert until(lambda: "changed" not in client.list_tables()["TableNames"])
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.get_item(TableName="changed", Key=item("s"))


def test_a_new_table_has_none_of_the_items_of_an_earlier_one_of_its_name(client: Any) -> None:
    for _ in range(2):
        given = {name: table()[name] for name in ("KeySchema", "AttributeDefinitions", "BillingMode")}
        client.create_table(TableName="again", **given)
        assert "Item" not in client.get_item(TableName="again", Key=item("s"), ConsistentRead=True)
        client.put_item(TableName="again", Item=item("s"))
        client.delete_table(TableName="again")


# items


def test_only_the_first_of_two_creations_wins_and_the_second_is_shown_what_is_there(client: Any, yard: str) -> None:
    create = {"ConditionExpression": "attribute_not_exists(pk)", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    first = item("first", doc={"B": b"\x00\xff"}, version={"N": "1"})
    client.put_item(TableName=yard, Item=first, **create)
    with pytest.raises(client.exceptions.ConditionalCheckFailedException) as problem:
        client.put_item(TableName=yard, Item=item("first"), **create)
    assert problem.value.response["Item"] == first
    assert first in dynamodb.items().of(REGION).items(yard)


@pytest.mark.parametrize(
    ("operation", "more"),
    [
        ("update_item", {"Key": item("s"), "UpdateExpression": "SET a = :a"}),
        ("scan", {}),
        ("query", {"KeyConditionExpression": "sk = :s", "ExpressionAttributeValues": {":s": {"S": "s"}}}),
        ("get_item", {"Key": {"pk": {"S": "a"}}}),
        ("put_item", {"Item": {"pk": {"S": ""}, "sk": {"S": "s"}}}),
    ],
)
def test_what_the_model_refuses_moto_does_not_answer_either(
    client: Any, yard: str, operation: str, more: dict[str, Any]
) -> None:
    with pytest.raises(ClientError, match=r"ValidationException|UnknownOperationException"):
        getattr(client, operation)(TableName=yard, **more)


def test_writes_of_functions_sometimes_meet_a_transaction_and_those_of_the_deployer_never(
    aws: LocalAws, client: Any, yard: str
) -> None:
    before = aws.conditions
    aws.conditions = replace(before, table_conflicts=1.0)
    try:
        with pytest.raises(ClientError, match="TransactionConflictException"):
            aws.client("dynamodb", REGION, role=ROLE).put_item(TableName=yard, Item=item("conflict"))
        client.put_item(TableName=yard, Item=item("none"))
    finally:
        aws.conditions = before
    assert "Item" not in client.get_item(TableName=yard, Key=item("conflict"), ConsistentRead=True)


# streams


class Functions:
    """Functions without processes: each is invoked here."""

    def __init__(self, aws: LocalAws) -> None:
        self.aws = aws
        self.answers: dict[str, Callable[[dict[str, Any]], Any]] = {}
        aws.workers.invoke = self._invoke  # type: ignore[method-assign]

    def _invoke(self, deployed: Any, payload: bytes) -> Outcome:
        try:
            return Outcome(payload=json.dumps(self.answers[deployed.function_name](json.loads(payload))).encode())
        except Exception as problem:
            return Outcome(payload=json.dumps({"errorMessage": str(problem)}).encode(), failed=True)

    def map(self, name: str, answer: Callable[[dict[str, Any]], Any], **properties: Any) -> str:
        """Makes a function and a mapping on its own table's stream; returns the mapping."""
        self.answers[name] = answer
        code = io.BytesIO()
        with zipfile.ZipFile(code, "w") as archive:
            archive.writestr("index.py", "")
        stacks, functions = self.aws.client("cloudformation", REGION), self.aws.client("lambda", REGION)
        functions.create_function(
            FunctionName=name,
            Role=ROLE,
            Handler="index.handler",
            Runtime="python3.13",
            Code={"ZipFile": code.getvalue()},
        )
        body = json.loads(stack(name, table()))
        given = {"StartingPosition": "TRIM_HORIZON", **properties}
        mapping = {"EventSourceArn": {"Fn::GetAtt": ["Table", "StreamArn"]}, "FunctionName": name, **given}
        body["Resources"]["Mapping"] = {"Type": "AWS::Lambda::EventSourceMapping", "Properties": mapping}
        stacks.create_stack(StackName=name, TemplateBody=json.dumps(body))
        assert over(stacks, name) == "CREATE_COMPLETE"
        return str(functions.list_event_source_mappings(FunctionName=name)["EventSourceMappings"][0]["UUID"])


@pytest.fixture(scope="module")
def functions(aws: LocalAws) -> Functions:
    aws.client("iam").create_role(RoleName="function", AssumeRolePolicyDocument="{}")
    return Functions(aws)


def sorts(event: dict[str, Any]) -> list[str]:
    return [one["dynamodb"]["Keys"]["sk"]["S"] for one in event["Records"]]


def test_a_write_invokes_the_function_with_what_fits_its_filter_alone(functions: Functions, client: Any) -> None:
    seen: list[Any] = []
    pattern = json.dumps({"eventName": ["INSERT"], "dynamodb": {"NewImage": {"urgent": {"BOOL": [True]}}}})
    functions.map(
        "filtered", lambda event: seen.extend(event["Records"]), FilterCriteria={"Filters": [{"Pattern": pattern}]}
    )
    client.put_item(TableName="filtered", Item=item("calm"))
    client.put_item(TableName="filtered", Item=item("no", urgent={"BOOL": False}))
    client.put_item(TableName="filtered", Item=item("urgent", urgent={"BOOL": True}))
    client.put_item(TableName="filtered", Item=item("urgent", urgent={"BOOL": True}, version={"N": "2"}))
    client.put_item(TableName="filtered", Item=item("last", urgent={"BOOL": True}))
    assert until(lambda: len(seen) == 2)
    assert sorts({"Records": seen}) == ["urgent", "last"]
    assert seen[0]["eventSource"] == "aws:dynamodb"
    assert seen[0]["eventSourceARN"] == client.describe_table(TableName="filtered")["Table"]["LatestStreamArn"]


def test_a_failure_holds_up_what_is_behind_it_and_halves_find_the_record_that_fails(
    functions: Functions, client: Any, aws: LocalAws
) -> None:
    letters = aws.client("sqs", REGION)
    queue = letters.create_queue(QueueName="letters")["QueueUrl"]
    arn = letters.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    seen: list[list[str]] = []

    def answer(event: dict[str, Any]) -> None:
        seen.append(sorts(event))
        if "bad" in seen[-1]:
            raise RuntimeError("as asked")

    functions.map(
        "halved",
        answer,
        BisectBatchOnFunctionError=True,
        MaximumRetryAttempts=1,
        MaximumBatchingWindowInSeconds=60,
        DestinationConfig={"OnFailure": {"Destination": arn}},
    )
    for sk in ("a", "bad", "c", "d"):
        client.put_item(TableName="halved", Item=item(sk))
    assert until(lambda: any("d" in one and "bad" not in one for one in seen))
    good = [sk for one in seen if "bad" not in one for sk in one]
    assert good == ["a", "c", "d"]
    assert seen.count(["bad"]) == 2
    (letter,) = until(lambda: letters.receive_message(QueueUrl=queue).get("Messages"))
    told = json.loads(letter["Body"])
    assert told["requestContext"]["condition"] == "RetryAttemptsExhausted"
    assert told["DDBStreamBatchInfo"]["batchSize"] == 1
    assert told["DDBStreamBatchInfo"]["startSequenceNumber"] == told["DDBStreamBatchInfo"]["endSequenceNumber"]


def test_what_the_function_names_and_all_behind_it_comes_again(functions: Functions, client: Any) -> None:
    seen: list[list[str]] = []

    def answer(event: dict[str, Any]) -> Any:
        seen.append(sorts(event))
        if len(seen) > 1:
            return {"batchItemFailures": []}
        number = event["Records"][1]["dynamodb"]["SequenceNumber"]
        return {"batchItemFailures": [{"itemIdentifier": number}]}

    functions.map("named", answer, FunctionResponseTypes=["ReportBatchItemFailures"], MaximumBatchingWindowInSeconds=60)
    for sk in ("a", "b", "c"):
        client.put_item(TableName="named", Item=item(sk))
    assert until(lambda: len(seen) > 1)
    assert seen == [["a", "b", "c"], ["b", "c"]]


def test_a_mapping_that_begins_with_the_latest_record_or_is_deleted_sees_nothing_else(
    functions: Functions, client: Any, aws: LocalAws
) -> None:
    seen: list[str] = []
    mapping = functions.map("latest", lambda event: seen.extend(sorts(event)), StartingPosition="LATEST")
    client.put_item(TableName="latest", Item=item("a"))
    assert until(lambda: seen == ["a"])
    again: list[str] = []
    functions.answers["late"] = lambda event: again.extend(sorts(event))
    aws.client("lambda", REGION).delete_event_source_mapping(UUID=mapping)
    client.put_item(TableName="latest", Item=item("b"))
    functions.map("other", lambda event: again.extend(sorts(event)))
    client.put_item(TableName="other", Item=item("c"))
    assert until(lambda: again == ["c"])
    assert seen == ["a"]


def test_the_poller_reads_with_the_rights_of_the_functions_role(functions: Functions, aws: LocalAws) -> None:
    functions.map("rights", lambda _: None)
    wanted = {f"dynamodb:{one}" for one in ("ListStreams", "DescribeStream", "GetShardIterator", "GetRecords")}
    assert until(lambda: wanted <= {call.name for call in aws.recorder.of(role=ROLE)})


def test_an_item_that_expired_is_deleted_late_and_the_stream_tells(functions: Functions, client: Any) -> None:
    seen: list[Any] = []
    functions.map("expiring", lambda event: seen.extend(event["Records"]))
    client.put_item(TableName="expiring", Item=item("s", expires={"N": "1"}))
    client.put_item(TableName="expiring", Item=item("t", expires={"N": str(int(time.time()))}))
    assert until(lambda: len(seen) == 3)
    assert [one["sk"]["S"] for one in dynamodb.items().of(REGION).items("expiring")] == ["s"]
    assert seen[-1]["userIdentity"]["principalId"] == "dynamodb.amazonaws.com"
