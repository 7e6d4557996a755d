"""A stack of queues, schedules, alarms and a custom resource on the local AWS, with one function that does what it is told."""

from __future__ import annotations

import json
from typing import Any

from localaws.server import LocalAws
from localaws.testing.waiting import until
from localaws.tests.app import resource
from localaws.tests.archives import zip_with

REGION = "eu-central-1"
CODE = """
import json, os, time, urllib.request
import boto3

class Refused(Exception):
    pass

def note(kind, event):
    key = f"{kind}/{time.time_ns()}"
    boto3.client("s3").put_object(Bucket=os.environ["BUCKET"], Key=key, Body=json.dumps(event).encode())

def answer(event, status):
    document = {"Status": status, "Reason": "as asked", "PhysicalResourceId": "thing", "StackId": event["StackId"],
                "RequestId": event["RequestId"], "LogicalResourceId": event["LogicalResourceId"], "Data": {"Word": "found"}}
    request = urllib.request.Request(event["ResponseURL"], json.dumps(document).encode(), {"Content-Type": ""}, method="PUT")
    urllib.request.urlopen(request)

def handler(event, context):
    if "ResponseURL" in event:
        note("asked", event)
        wish = event["ResourceProperties"].get(event["RequestType"], "SUCCESS")
        return None if wish == "silence" else answer(event, wish)
    if "Records" in event:
        note("records", event)
        bad = [one["messageId"] for one in event["Records"] if json.loads(one["body"]).get("bad")]
        if any(json.loads(one["body"]).get("dies") for one in event["Records"]):
            raise Refused("the whole batch")
        return {"batchItemFailures": [{"itemIdentifier": one} for one in bad]}
    note("seen", event)
    if "metric" in event:
        print(json.dumps({"_aws": {"Timestamp": 0, "CloudWatchMetrics": [{"Namespace": "Yard", "Dimensions": [["place"]],
              "Metrics": [{"Name": "Beat", "Unit": "Count"}]}]}, "place": "home", "Beat": event["metric"]}))
    if event.get("fails"):
        raise Refused("as asked")
"""


def get(name: str, attribute: str = "Arn") -> dict[str, Any]:
    return {"Fn::GetAtt": [name, attribute]}


def allows(service: str, action: str, resource: Any) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": action, "Resource": resource}
    return {"Version": "2012-10-17", "Statement": [statement]}


def alarm(**properties: Any) -> dict[str, Any]:
    actions = {"AlarmActions": [{"Ref": "Topic"}], "OKActions": [{"Ref": "Topic"}]}
    return resource("CloudWatch::Alarm", **{"EvaluationPeriods": 1, **actions, **properties})


def above_nothing(namespace: str, metric: str, dimension: dict[str, Any], **properties: Any) -> dict[str, Any]:
    """An alarm of a single event in a minute."""
    ((name, value),) = dimension.items()
    return alarm(
        ComparisonOperator="GreaterThanThreshold",
        Threshold=0,
        Namespace=namespace,
        MetricName=metric,
        Dimensions=[{"Name": name, "Value": value}],
        Period=60,
        **properties,
    )


def beat(period: int) -> dict[str, Any]:
    metric = {"Namespace": "Yard", "MetricName": "Beat", "Dimensions": [{"Name": "place", "Value": "home"}]}
    return {"Metric": metric, "Period": period, "Stat": "Sum"}


def custom(function: Any, **wishes: Any) -> dict[str, Any]:
    """The custom resource, told how to answer (`Delete="FAILED"`), and a parameter that it needs."""
    thing = {
        "Type": "Custom::Thing",
        "DependsOn": ["Kept"],
        "Properties": {"ServiceToken": function, "Number": 3, "ServiceTimeout": 3000, **wishes},
    }
    name = {"Fn::Sub": "/kept/${AWS::StackName}"}
    return {"Thing": thing, "Kept": resource("SSM::Parameter", Name=name, Type="String", Value="needed")}


def template(role: str) -> dict[str, Any]:
    """CloudFormation as the CDK would write it."""
    dead = {"deadLetterTargetArn": get("Dead"), "maxReceiveCount": 2}
    letters = {"DeadLetterConfig": {"Arn": get("Lost")}}
    target = {"Arn": get("Function"), "RoleArn": role, "Input": '{"from": "schedule"}', **letters}
    astray = {**target, "Arn": "arn:aws:lambda:eu-central-1:123456789012:function:nobody"}
    every_minute = {"ScheduleExpression": "rate(1 minute)", "FlexibleTimeWindow": {"Mode": "OFF"}}
    key_policy = allows("cloudwatch.amazonaws.com", "kms:*", "*")

    def open_to_events(queue: str) -> dict[str, Any]:
        policy = allows("events.amazonaws.com", "sqs:SendMessage", get(queue))
        return resource("SQS::QueuePolicy", Queues=[{"Ref": queue}], PolicyDocument=policy)

    resources: dict[str, Any] = {
        "Bucket": {"Type": "AWS::S3::Bucket"},
        "Function": resource(
            "Lambda::Function",
            Code={"S3Bucket": "assets", "S3Key": "function.zip"},
            Handler="index.handler",
            Runtime="python3.13",
            Role=role,
            Timeout=10,
            Environment={"Variables": {"BUCKET": {"Ref": "Bucket"}}},
        ),
        "Dead": {"Type": "AWS::SQS::Queue"},
        "Lost": {"Type": "AWS::SQS::Queue"},
        "LostPolicy": open_to_events("Lost"),
        "Queue": resource("SQS::Queue", RedrivePolicy=dead, VisibilityTimeout=60),
        "Closed": {"Type": "AWS::SQS::Queue"},
        "QueuePolicy": open_to_events("Queue"),
        "Mapping": resource(
            "Lambda::EventSourceMapping",
            EventSourceArn=get("Queue"),
            FunctionName={"Ref": "Function"},
            BatchSize=2,
            FunctionResponseTypes=["ReportBatchItemFailures"],
        ),
        "ByClock": resource("Lambda::Alias", FunctionName={"Ref": "Function"}, FunctionVersion="$LATEST", Name="clock"),
        "Config": resource(
            "Lambda::EventInvokeConfig",
            FunctionName={"Ref": "Function"},
            Qualifier="$LATEST",
            MaximumRetryAttempts=0,
            DestinationConfig={"OnFailure": {"Destination": get("Dead")}},
        ),
        "Rule": resource(
            "Events::Rule",
            EventPattern={"source": ["test"]},
            State="ENABLED",
            Targets=[{"Id": "open", "Arn": get("Queue")}, {"Id": "closed", "Arn": get("Closed"), **letters}],
        ),
        "Often": resource("Scheduler::Schedule", **every_minute, Target=target),
        "Astray": resource("Scheduler::Schedule", **every_minute, Target=astray),
        "Key": resource("KMS::Key", KeyPolicy=key_policy, EnableKeyRotation=True),
        "Topic": resource("SNS::Topic", KmsMasterKeyId=get("Key")),
        "Mute": resource("SNS::Topic", KmsMasterKeyId="alias/aws/sns"),
        "Silence": alarm(
            ComparisonOperator="LessThanThreshold",
            Threshold=1,
            TreatMissingData="breaching",
            Metrics=[
                {"Id": "beat", "MetricStat": beat(180), "ReturnData": False},
                {"Id": "filled", "Expression": "FILL(beat, 0)", "ReturnData": True},
            ],
        ),
        "Errors": above_nothing(
            "AWS/Lambda",
            "Errors",
            {"FunctionName": {"Ref": "Function"}},
            Statistic="Sum",
            TreatMissingData="notBreaching",
        ),
        "Letters": above_nothing(
            "AWS/SQS",
            "ApproximateNumberOfMessagesVisible",
            {"QueueName": get("Dead", "QueueName")},
            Statistic="Maximum",
            AlarmActions=[{"Ref": "Topic"}, {"Ref": "Mute"}],
        ),
        **custom(get("Function")),
    }
    unnamed = {"LostPolicy", "QueuePolicy", "Mapping", "Config", "Rule", "Astray", "Key", "Thing", "Kept"}
    outputs = {name: {"Value": {"Ref": name}} for name in resources if name not in unnamed} | {
        "Word": {"Value": get("Thing", "Word")},
        "FunctionArn": {"Value": get("Function")},
    }
    return {"Resources": resources, "Outputs": outputs}


class Services:
    """The stack, and what a test does with it."""

    def __init__(self, aws: LocalAws) -> None:
        self.aws = aws
        self.stacks, self.sqs = aws.client("cloudformation", REGION), aws.client("sqs", REGION)
        self.s3 = aws.client("s3", REGION)
        role = aws.client("iam").create_role(RoleName="function", AssumeRolePolicyDocument="{}")["Role"]
        self.role: str = role["Arn"]
        aws.client("s3").create_bucket(Bucket="assets")
        aws.client("s3").put_object(Bucket="assets", Key="function.zip", Body=zip_with(("index.py", CODE)))

    def created(self, name: str, template: dict[str, Any]) -> str:
        """The status once nothing is in progress."""
        self.stacks.create_stack(StackName=name, TemplateBody=json.dumps(template))
        return self.over(name)

    def deleted(self, name: str) -> str:
        self.stacks.delete_stack(StackName=name)
        return self.over(name)

    def with_custom(self, name: str, function: str, **wishes: Any) -> str:
        """A stack of the custom resource alone, of a function (ARN) of another stack."""
        return self.created(name, {"Resources": custom(function, **wishes)})

    def with_buckets(self, name: str, function: str, **wishes: Any) -> str:
        """A stack of buckets that are kept, and of a custom resource that is made after them."""
        buckets = {
            policy: resource("S3::Bucket", BucketName=f"{name}-{policy.lower()}") | {"DeletionPolicy": policy}
            for policy in ("Retain", "RetainExceptOnCreate")
        }
        whole: dict[str, Any] = {"Resources": buckets | custom(function, **wishes)}
        whole["Resources"]["Thing"]["DependsOn"] = ["Kept", *buckets]
        return self.created(name, whole)

    def status(self, name: str) -> str:
        """DELETE_COMPLETE for a stack that is not there."""
        found = [one for one in self.stacks.describe_stacks()["Stacks"] if one["StackName"] == name]
        return str(found[0]["StackStatus"]) if found else "DELETE_COMPLETE"

    def over(self, name: str) -> str:
        """The status once nothing is in progress."""
        until(lambda: not self.status(name).endswith("IN_PROGRESS"))
        return self.status(name)

    def outputs(self, name: str) -> dict[str, str]:
        (stack,) = self.stacks.describe_stacks(StackName=name)["Stacks"]
        return {one["OutputKey"]: one["OutputValue"] for one in stack.get("Outputs", [])}

    def noted(self, bucket: str, kind: str) -> list[dict[str, Any]]:
        """What the function was given, oldest first."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{kind}/")
        found = sorted(entry["Key"] for page in pages for entry in page.get("Contents", []))
        return [json.loads(self.s3.get_object(Bucket=bucket, Key=key)["Body"].read()) for key in found]

    def take(self, queue: str) -> list[dict[str, Any]]:
        """Messages that can be received, for good."""
        found: list[dict[str, Any]] = []
        while some := self.sqs.receive_message(
            QueueUrl=queue, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        ).get("Messages"):
            for one in some:
                self.sqs.delete_message(QueueUrl=queue, ReceiptHandle=one["ReceiptHandle"])
            found += some
        return found
