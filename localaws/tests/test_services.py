"""Queues, schedules, alarms, asynchronous invocations and custom resources of the local AWS behave as an account's."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from localaws.server import LocalAws
from localaws.services import custom_resources, ec2
from localaws.testing.calm import CALM, meanwhile
from localaws.testing.waiting import until
from localaws.tests.services import REGION, Services, resource, template

pytestmark = pytest.mark.rehearsal
CONDITIONS = replace(CALM, speed=120.0, event_delay_s=(0.0, 1.0), list_delay_s=(0.0, 0.0))


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    with LocalAws(CONDITIONS, gaps=("ec2", "cloudformation"), work=tmp_path_factory.mktemp("services")) as aws:
        made = Services(aws)
        assert made.created("one", template(made.role)) == "CREATE_COMPLETE"
        yield made
        ec2.machines().stop()


@pytest.fixture(scope="module")
def places(services: Services) -> dict[str, str]:
    return services.outputs("one")


def bodies(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [json.loads(record["body"]) for event in events for record in event["Records"]]


def letters(services: Services, places: dict[str, str]) -> list[dict[str, Any]]:
    """What the letters of rules and schedules say of themselves."""
    return [one.get("MessageAttributes", {}) for one in services.take(places["Lost"])]


# custom resources


def test_a_custom_resource_is_made_by_its_function_and_its_answer_is_what_getatt_finds(
    services: Services, places: dict[str, str]
) -> None:
    (told,) = services.noted(places["Bucket"], "asked")
    shape = (told["RequestType"], told["LogicalResourceId"], told["ResourceType"])
    assert shape == ("Create", "Thing", "Custom::Thing")
    assert told["ResourceProperties"]["Number"] == "3"  # CloudFormation makes text of it
    assert "PhysicalResourceId" not in told
    assert places["Word"] == "found"


def list_requests(services: Services, places: dict[str, str], stack: str) -> list[dict[str, Any]]:
    """What the function was asked for a stack, oldest first."""
    return [one for one in services.noted(places["Bucket"], "asked") if f":stack/{stack}/" in one["StackId"]]


def test_a_custom_resource_that_says_no_at_its_creation_rolls_the_stack_back(
    services: Services, places: dict[str, str]
) -> None:
    assert services.with_custom("refused", places["FunctionArn"], Create="FAILED") == "ROLLBACK_COMPLETE"
    assert [one["RequestType"] for one in list_requests(services, places, "refused")] == ["Create", "Delete"]
    with pytest.raises(ClientError, match="ParameterNotFound"):
        services.aws.client("ssm", REGION).get_parameter(Name="/kept/refused")


def test_a_bucket_kept_except_on_create_goes_when_the_creation_fails_and_stays_when_its_stack_is_deleted(
    services: Services, places: dict[str, str]
) -> None:
    def buckets() -> set[str]:
        return {one["Name"] for one in services.s3.list_buckets()["Buckets"]}

    assert services.with_buckets("retried", places["FunctionArn"], Create="FAILED") == "ROLLBACK_COMPLETE"
    assert {"retried-retain", "retried-retainexceptoncreate"} & buckets() == {"retried-retain"}

    assert services.with_buckets("kept", places["FunctionArn"]) == "CREATE_COMPLETE"
    assert services.deleted("kept") == "DELETE_COMPLETE"
    assert {"kept-retain", "kept-retainexceptoncreate"} <= buckets()


def test_a_deletion_that_the_function_refuses_keeps_what_it_needs_and_can_be_asked_for_again(
    services: Services, places: dict[str, str]
) -> None:
    assert services.with_custom("stays", places["FunctionArn"], Delete="FAILED") == "CREATE_COMPLETE"
    for _ in range(2):
        assert services.deleted("stays") == "DELETE_FAILED"
    (stack,) = services.stacks.describe_stacks(StackName="stays")["Stacks"]
    assert "failed to delete: [Kept, Thing]" in stack["StackStatusReason"]
    events = services.stacks.describe_stack_events(StackName="stays")["StackEvents"]
    reasons = {one["LogicalResourceId"]: one.get("ResourceStatusReason", "") for one in events}
    assert "as asked" in reasons["Thing"]
    assert services.aws.client("ssm", REGION).get_parameter(Name="/kept/stays")["Parameter"]["Value"] == "needed"
    told = list_requests(services, places, "stays")
    assert [one["RequestType"] for one in told] == ["Create", "Delete", "Delete"]
    assert {one["PhysicalResourceId"] for one in told[1:]} == {"thing"}


def test_a_deletion_that_nobody_answers_fails_when_its_time_is_over(
    services: Services, places: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status = services.with_custom("mute", places["FunctionArn"], Delete="silence", ServiceTimeout=1200)
    assert status == "CREATE_COMPLETE"
    hasty = SimpleNamespace(monotonic=lambda: time.monotonic() * 1000)
    monkeypatch.setattr(custom_resources, "time", hasty)
    assert services.deleted("mute") == "DELETE_FAILED"


def test_a_stack_whose_custom_resource_lets_it_goes_whole(services: Services, places: dict[str, str]) -> None:
    assert services.with_custom("goes", places["FunctionArn"]) == "CREATE_COMPLETE"
    assert services.deleted("goes") == "DELETE_COMPLETE"
    with pytest.raises(ClientError, match="ParameterNotFound"):
        services.aws.client("ssm", REGION).get_parameter(Name="/kept/goes")


def test_a_stack_whose_export_another_imports_keeps_all_that_it_has(services: Services) -> None:
    def parameter(name: str, value: object) -> dict[str, Any]:
        return {"Resources": {"It": resource("SSM::Parameter", Type="String", Name=name, Value=value)}}

    lent = {"It": {"Value": "lent", "Export": {"Name": "yard-lent"}}}
    assert services.created("lends", parameter("/lends", "x") | {"Outputs": lent}) == "CREATE_COMPLETE"
    assert services.created("takes", parameter("/takes", {"Fn::ImportValue": "yard-lent"})) == "CREATE_COMPLETE"
    assert services.deleted("lends") == "DELETE_FAILED"
    (stack,) = services.stacks.describe_stacks(StackName="lends")["Stacks"]
    assert stack["StackStatusReason"] == "Export yard-lent cannot be deleted as it is in use by takes"
    assert services.aws.client("ssm", REGION).get_parameter(Name="/lends")["Parameter"]["Value"] == "x"
    for name in ("takes", "lends"):
        assert services.deleted(name) == "DELETE_COMPLETE"


# queues


def test_a_queue_keeps_the_policy_that_a_change_of_its_other_attributes_does_not_name(
    services: Services, places: dict[str, str]
) -> None:
    document = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage"}],
    }

    def policy() -> str:
        found = services.sqs.get_queue_attributes(QueueUrl=places["Dead"], AttributeNames=["Policy"])
        return str(found.get("Attributes", {}).get("Policy", ""))

    services.sqs.set_queue_attributes(QueueUrl=places["Dead"], Attributes={"Policy": json.dumps(document)})
    services.sqs.set_queue_attributes(QueueUrl=places["Dead"], Attributes={"VisibilityTimeout": "30"})
    assert json.loads(policy()) == document
    services.sqs.set_queue_attributes(QueueUrl=places["Dead"], Attributes={"Policy": ""})
    assert policy() == ""


def test_a_message_reaches_the_function_and_is_gone(services: Services, places: dict[str, str]) -> None:
    services.sqs.send_message(QueueUrl=places["Queue"], MessageBody=json.dumps({"number": 1}))
    until(lambda: {"number": 1} in bodies(services.noted(places["Bucket"], "records")))
    time.sleep(0.7)  # its visibility time-out
    assert bodies(services.noted(places["Bucket"], "records")).count({"number": 1}) == 1


def test_of_a_batch_only_what_failed_comes_back_and_is_a_dead_letter_at_last(
    services: Services, places: dict[str, str]
) -> None:
    services.take(places["Dead"])
    entries = [{"Id": str(n), "MessageBody": json.dumps({"batch": n, "bad": n == 1})} for n in range(2)]
    services.sqs.send_message_batch(QueueUrl=places["Queue"], Entries=entries)
    (letter,) = until(lambda: services.take(places["Dead"]))
    assert json.loads(letter["Body"]) == {"batch": 1, "bad": True}
    seen = bodies(services.noted(places["Bucket"], "records"))
    assert (seen.count({"batch": 0, "bad": False}), seen.count({"batch": 1, "bad": True})) == (1, 2)


def test_a_function_that_fails_has_done_nothing_of_its_batch(services: Services, places: dict[str, str]) -> None:
    services.take(places["Dead"])
    services.sqs.send_message(QueueUrl=places["Queue"], MessageBody=json.dumps({"dies": True}))
    (letter,) = until(lambda: services.take(places["Dead"]))
    assert json.loads(letter["Body"]) == {"dies": True}


def test_a_delayed_message_is_not_seen_before_its_time(services: Services, places: dict[str, str]) -> None:
    services.sqs.send_message(QueueUrl=places["Queue"], MessageBody=json.dumps({"later": 1}), DelaySeconds=1)
    sent = time.monotonic()
    until(lambda: {"later": 1} in bodies(services.noted(places["Bucket"], "records")))
    assert time.monotonic() - sent > 0.9


def test_a_rule_reaches_the_queue_that_lets_it_and_the_dead_letters_of_one_that_does_not(
    services: Services, places: dict[str, str]
) -> None:
    services.aws.emit("test", "Thing", {"kind": "rule"}, [], REGION)
    until(lambda: any(one.get("source") == "test" for one in bodies(services.noted(places["Bucket"], "records"))))
    told = until(lambda: [one["ERROR_CODE"] for one in letters(services, places) if "RULE_ARN" in one])
    assert [one["StringValue"] for one in told] == ["NO_PERMISSIONS"]
    assert services.take(places["Closed"]) == []


# schedules and asynchronous invocations


def test_a_schedule_fires_at_its_rate_with_its_input_by_its_role(services: Services, places: dict[str, str]) -> None:
    body = json.dumps({"from": "schedule"})

    def fired() -> int:
        """The calls themselves: the function may be busy, and do what waits for it all at once."""
        calls = services.aws.recorder.of(role=services.role, name="lambda:Invoke")
        return sum(call.size == len(body) and "Function" in call.parameters["FunctionName"] for call in calls)

    before, began = fired(), time.monotonic()
    until(lambda: fired() >= before + 12)
    # Every half second. A few may have been on their way already, or come late with the next one close behind.
    assert fired() - before <= (time.monotonic() - began) / 0.5 + 4
    until(lambda: {"from": "schedule"} in services.noted(places["Bucket"], "seen"))


def test_a_schedule_without_its_function_leaves_a_dead_letter(services: Services, places: dict[str, str]) -> None:
    told = until(lambda: [one["ERROR_CODE"] for one in letters(services, places) if "SCHEDULE_ARN" in one])
    assert {one["StringValue"] for one in told} == {"ResourceNotFoundException"}


def test_a_switched_off_schedule_does_not_fire(services: Services, places: dict[str, str]) -> None:
    clock = services.aws.client("scheduler", REGION)
    found = clock.get_schedule(Name=places["Often"])
    off = {key: found[key] for key in ("Name", "ScheduleExpression", "FlexibleTimeWindow", "Target")}
    clock.update_schedule(**off, State="DISABLED")
    time.sleep(0.5)  # one may be on its way
    before = len(services.noted(places["Bucket"], "seen"))
    time.sleep(1.0)
    assert len(services.noted(places["Bucket"], "seen")) == before
    clock.update_schedule(**off, State="ENABLED")


def test_an_asynchronous_invocation_that_may_not_be_repeated_fails_once_into_its_destination(
    services: Services, places: dict[str, str]
) -> None:
    services.take(places["Dead"])
    services.aws.client("lambda", REGION).invoke(
        FunctionName=places["Function"], InvocationType="Event", Payload=b'{"fails": 1}'
    )
    letters = until(lambda: [one for one in services.take(places["Dead"]) if "requestPayload" in one["Body"]])
    letter = json.loads(letters[0]["Body"])
    assert letter["requestPayload"] == {"fails": 1}
    assert letter["requestContext"]["approximateInvokeCount"] == 1
    assert letter["responsePayload"]["errorMessage"] == "as asked"
    time.sleep(1.0)
    assert services.noted(places["Bucket"], "seen").count({"fails": 1}) == 1


# metrics and alarms


@pytest.fixture(scope="module")
def mailbox(services: Services, places: dict[str, str]) -> str:
    """A queue that hears both topics."""
    queue = services.sqs.create_queue(QueueName="mailbox")["QueueUrl"]
    for topic in ("Topic", "Mute"):
        arn = f"arn:aws:sqs:{REGION}:{services.aws.account}:mailbox"
        services.aws.client("sns", REGION).subscribe(TopicArn=places[topic], Protocol="sqs", Endpoint=arn)
    return str(queue)


def state(services: Services, name: str) -> str:
    (found,) = services.aws.client("cloudwatch", REGION).describe_alarms(AlarmNames=[name])["MetricAlarms"]
    return str(found["StateValue"])


def beat(services: Services, places: dict[str, str]) -> None:
    services.aws.client("lambda", REGION).invoke(FunctionName=places["Function"], Payload=b'{"metric": 1}')


def test_silence_is_an_alarm_and_its_end_is_told_too(services: Services, places: dict[str, str], mailbox: str) -> None:
    beat(services, places)
    until(lambda: state(services, places["Silence"]) == "OK")
    until(lambda: state(services, places["Silence"]) == "ALARM")
    beat(services, places)
    until(lambda: state(services, places["Silence"]) == "OK")
    mails = [json.loads(json.loads(one["Body"])["Message"]) for one in services.take(mailbox)]
    told = [(one["OldStateValue"], one["NewStateValue"]) for one in mails if one["AlarmName"] == places["Silence"]]
    assert told[-2:] == [("OK", "ALARM"), ("ALARM", "OK")]


def test_a_failing_function_is_an_alarm_of_its_errors(services: Services, places: dict[str, str], mailbox: str) -> None:
    with_error = {"FunctionName": places["Function"], "Payload": b'{"fails": 1}'}
    services.aws.client("lambda", REGION).invoke(**with_error)
    until(lambda: state(services, places["Errors"]) == "ALARM")
    until(lambda: state(services, places["Errors"]) == "OK")
    assert any(places["Errors"] in one["Body"] for one in services.take(mailbox))


def counted(services: Services, function: str, resource: str = "") -> int:
    """How many invocations of the function, or of those by one of its aliases, CloudWatch has counted."""
    dimensions = {"FunctionName": function} | ({"Resource": resource} if resource else {})
    now = datetime.now(tz=timezone.utc)
    points = services.aws.client("cloudwatch", REGION).get_metric_statistics(
        Namespace="AWS/Lambda",
        MetricName="Invocations",
        Dimensions=[{"Name": name, "Value": value} for name, value in dimensions.items()],
        StartTime=now - timedelta(hours=1),
        EndTime=now + timedelta(minutes=1),
        Period=3600,
        Statistics=["Sum"],
    )["Datapoints"]
    return int(sum(one["Sum"] for one in points))


def test_an_invocation_by_an_alias_counts_for_the_alias_too(services: Services, places: dict[str, str]) -> None:
    function, alias = places["Function"], places["ByClock"]
    assert alias.endswith(f":function:{function}:clock")
    lambdas = services.aws.client("lambda", REGION)
    before = counted(services, function), counted(services, function, f"{function}:clock")
    lambdas.invoke(FunctionName=function, Payload=b'{"by": "name"}')
    assert counted(services, function, f"{function}:clock") == before[1]
    lambdas.invoke(FunctionName=alias, Payload=b'{"by": "arn"}')
    lambdas.invoke(FunctionName=f"{function}:clock", Payload=b'{"by": "name and alias"}')
    assert counted(services, function, f"{function}:clock") == before[1] + 2
    assert counted(services, function) >= before[0] + 3  # its schedule invokes it as well


def test_a_rule_invokes_by_an_alias_and_reaches_no_function_by_one_that_does_not_exist(
    services: Services, places: dict[str, str]
) -> None:
    function, alias = places["Function"], places["ByClock"]
    events = services.aws.client("events", REGION)
    events.put_rule(Name="by-alias", EventPattern='{"source": ["alias"]}')
    lost = {
        "DeadLetterConfig": {"Arn": f"arn:aws:sqs:{REGION}:{services.aws.account}:{places['Lost'].rpartition('/')[2]}"}
    }
    events.put_targets(
        Rule="by-alias",
        Targets=[{"Id": "right", "Arn": alias}, {"Id": "wrong", "Arn": f"{alias}-of-nobody", **lost}],
    )
    before = counted(services, function, f"{function}:clock")
    services.aws.emit("alias", "Thing", {}, [], REGION)
    until(lambda: counted(services, function, f"{function}:clock") == before + 1)
    told = until(lambda: [one["TARGET_ARN"]["StringValue"] for one in letters(services, places) if "RULE_ARN" in one])
    assert told == [f"{alias}-of-nobody"]


def test_a_stack_with_a_configuration_for_an_alias_too_is_deleted_whole(
    services: Services, places: dict[str, str]
) -> None:
    function = {"FunctionName": places["Function"]}
    alias = resource("Lambda::Alias", **function, FunctionVersion="$LATEST", Name="later")
    configs = {
        name: resource("Lambda::EventInvokeConfig", **function, Qualifier=qualifier, MaximumRetryAttempts=0)
        | {"DependsOn": ["Alias"]}
        for name, qualifier in (("Latest", "$LATEST"), ("ByAlias", "later"))
    }
    assert services.created("aliased", {"Resources": {"Alias": alias, **configs}}) == "CREATE_COMPLETE"
    assert services.deleted("aliased") == "DELETE_COMPLETE"
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        services.aws.client("lambda", REGION).invoke(FunctionName=f"{places['Function']}:later")


def test_dead_letters_are_an_alarm_and_a_topic_under_awss_own_key_stays_silent(
    services: Services, places: dict[str, str], mailbox: str
) -> None:
    services.take(places["Dead"])
    until(lambda: state(services, places["Letters"]) == "OK")
    services.take(mailbox)
    services.sqs.send_message(QueueUrl=places["Dead"], MessageBody="{}")
    until(lambda: state(services, places["Letters"]) == "ALARM")
    mails = until(
        lambda: [json.loads(one["Body"]) for one in services.take(mailbox) if places["Letters"] in one["Body"]]
    )
    assert {one["TopicArn"] for one in mails} == {places["Topic"]}


def test_metrics_can_be_asked_for(services: Services, places: dict[str, str]) -> None:
    beat(services, places)
    now = time.time()
    metric = {"Namespace": "Yard", "MetricName": "Beat", "Dimensions": [{"Name": "place", "Value": "home"}]}
    query = {"Id": "beats", "MetricStat": {"Metric": metric, "Period": 604_800, "Stat": "Sum"}}
    answer = services.aws.client("cloudwatch", REGION).get_metric_data(
        MetricDataQueries=[query], StartTime=now - 604_800, EndTime=now + 60
    )
    assert sum(answer["MetricDataResults"][0]["Values"]) >= 1


# executions, prices


def test_executions_are_listed_in_pages_and_a_little_behind(services: Services) -> None:
    states = services.aws.client("stepfunctions", REGION)
    definition = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 3, "End": True}}}
    machine = states.create_state_machine(name="waits", definition=json.dumps(definition), roleArn=services.role)
    arn = machine["stateMachineArn"]
    started = [states.start_execution(stateMachineArn=arn, name=f"e{n}")["executionArn"] for n in range(5)]
    with meanwhile(services.aws, page_size=2):
        pages = list(states.get_paginator("list_executions").paginate(stateMachineArn=arn, statusFilter="RUNNING"))
    assert [len(page["executions"]) for page in pages] == [2, 2, 1]
    assert {one["executionArn"] for page in pages for one in page["executions"]} == set(started)
    with meanwhile(services.aws, list_delay_s=(600.0, 600.0)):
        assert states.list_executions(stateMachineArn=arn)["executions"] == []
        token = pages[0]["nextToken"]  # a later page may be of an earlier moment
        assert states.list_executions(stateMachineArn=arn, nextToken=token)["executions"] == []
    states.stop_execution(executionArn=started[0])
    listed = states.list_executions(stateMachineArn=arn, statusFilter="ABORTED")["executions"]
    assert [one["executionArn"] for one in listed] == [started[0]]
    with pytest.raises(ClientError, match="StateMachineDoesNotExist"):
        states.list_executions(stateMachineArn=arn + "x")


def test_the_price_list_knows_a_few_types_and_no_price_of_the_others(services: Services) -> None:
    prices = services.aws.client("pricing")

    def price(kind: str) -> list[Any]:
        given = [{"Type": "TERM_MATCH", "Field": "instanceType", "Value": kind}]
        return list(prices.get_products(ServiceCode="AmazonEC2", Filters=given)["PriceList"])

    assert "1.258" in price("g5.xlarge")[0]
    assert price("x99.huge") == []
