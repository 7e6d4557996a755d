"""A stack of queues, schedules, alarms and a custom resource on the local AWS, with one function that does what it is told."""

from __future__ import annotations

import json
from typing import Any

from localaws.server import LocalAws
from tests.localaws.app import zipped
from tests.waiting import until

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
    return {"Type": "AWS::CloudWatch::Alarm", "Properties": {"EvaluationPeriods": 1, **actions, **properties}}


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
    kept = {"Type": "AWS::SSM::Parameter", "Properties": {"Name": name, "Type": "String", "Value": "needed"}}
    return {"Thing": thing, "Kept": kept}


def template(role: str) -> dict[str, Any]:
    """CloudFormation as the CDK would write it."""
    dead = {"deadLetterTargetArn": get("Dead"), "maxReceiveCount": 2}
    target = {
        "Arn": get("Function"),
        "RoleArn": role,
        "Input": '{"from": "schedule"}',
        "DeadLetterConfig": {"Arn": get("Lost")},
    }
    astray = {**target, "Arn": "arn:aws:lambda:eu-central-1:123456789012:function:nobody"}
    window = {"Mode": "OFF"}
    resources: dict[str, Any] = {
        "Bucket": {"Type": "AWS::S3::Bucket"},
        "Function": {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "Code": {"S3Bucket": "assets", "S3Key": "function.zip"},
                "Handler": "index.handler",
                "Runtime": "python3.13",
                "Role": role,
                "Timeout": 10,
                "Environment": {"Variables": {"BUCKET": {"Ref": "Bucket"}}},
            },
        },
        "Dead": {"Type": "AWS::SQS::Queue"},
        "Lost": {"Type": "AWS::SQS::Queue"},
        "LostPolicy": {
            "Type": "AWS::SQS::QueuePolicy",
            "Properties": {
                "Queues": [{"Ref": "Lost"}],
                "PolicyDocument": allows("events.amazonaws.com", "sqs:SendMessage", get("Lost")),
            },
        },
        "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"RedrivePolicy": dead, "VisibilityTimeout": 60}},
        "Closed": {"Type": "AWS::SQS::Queue"},
        "QueuePolicy": {
            "Type": "AWS::SQS::QueuePolicy",
            "Properties": {
                "Queues": [{"Ref": "Queue"}],
                "PolicyDocument": allows("events.amazonaws.com", "sqs:SendMessage", get("Queue")),
            },
        },
        "Mapping": {
            "Type": "AWS::Lambda::EventSourceMapping",
            "Properties": {
                "EventSourceArn": get("Queue"),
                "FunctionName": {"Ref": "Function"},
                "BatchSize": 2,
                "FunctionResponseTypes": ["ReportBatchItemFailures"],
            },
        },
        "Config": {
            "Type": "AWS::Lambda::EventInvokeConfig",
            "Properties": {
                "FunctionName": {"Ref": "Function"},
                "Qualifier": "$LATEST",
                "MaximumRetryAttempts": 0,
                "DestinationConfig": {"OnFailure": {"Destination": get("Dead")}},
            },
        },
        "Rule": {
            "Type": "AWS::Events::Rule",
            "Properties": {
                "EventPattern": {"source": ["test"]},
                "State": "ENABLED",
                "Targets": [
                    {"Id": "open", "Arn": get("Queue")},
                    {"Id": "closed", "Arn": get("Closed"), "DeadLetterConfig": {"Arn": get("Lost")}},
                ],
            },
        },
        "Often": {
            "Type": "AWS::Scheduler::Schedule",
            "Properties": {"ScheduleExpression": "rate(1 minute)", "FlexibleTimeWindow": window, "Target": target},
        },
        "Astray": {
            "Type": "AWS::Scheduler::Schedule",
            "Properties": {"ScheduleExpression": "rate(1 minute)", "FlexibleTimeWindow": window, "Target": astray},
        },
        "Key": {
            "Type": "AWS::KMS::Key",
            "Properties": {"KeyPolicy": allows("cloudwatch.amazonaws.com", "kms:*", "*"), "EnableKeyRotation": True},
        },
        "Topic": {"Type": "AWS::SNS::Topic", "Properties": {"KmsMasterKeyId": get("Key")}},
        "Mute": {"Type": "AWS::SNS::Topic", "Properties": {"KmsMasterKeyId": "alias/aws/sns"}},
        "Silence": alarm(
            ComparisonOperator="LessThanThreshold",
            Threshold=1,
            TreatMissingData="breaching",
            Metrics=[
                {"Id": "beat", "MetricStat": beat(180), "ReturnData": False},
                {"Id": "filled", "Expression": "FILL(beat, 0)", "ReturnData": True},
            ],
        ),
        "Errors": alarm(
            ComparisonOperator="GreaterThanThreshold",
            Threshold=0,
            Namespace="AWS/Lambda",
            MetricName="Errors",
            Dimensions=[{"Name": "FunctionName", "Value": {"Ref": "Function"}}],
            Period=60,
            Statistic="Sum",
            TreatMissingData="notBreaching",
        ),
        "Letters": alarm(
            ComparisonOperator="GreaterThanThreshold",
            Threshold=0,
            Namespace="AWS/SQS",
            MetricName="ApproximateNumberOfMessagesVisible",
            Dimensions=[{"Name": "QueueName", "Value": get("Dead", "QueueName")}],
            Period=60,
            Statistic="Maximum",
            AlarmActions=[{"Ref": "Topic"}, {"Ref": "Mute"}],
        ),
        **custom(get("Function")),
    }
    names = (
        "Bucket",
        "Function",
        "Queue",
        "Dead",
        "Lost",
        "Closed",
        "Topic",
        "Mute",
        "Silence",
        "Errors",
        "Letters",
        "Often",
    )
    outputs = {name: {"Value": {"Ref": name}} for name in names} | {
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
        self.role: str = aws.client("iam").create_role(RoleName="function", AssumeRolePolicyDocument="{}")["Role"][
            "Arn"
        ]
        aws.client("s3").create_bucket(Bucket="assets")
        aws.client("s3").put_object(Bucket="assets", Key="function.zip", Body=zipped({"index.py": CODE}))

    def create(self, name: str) -> None:
        self.stacks.create_stack(StackName=name, TemplateBody=json.dumps(template(self.role)))

    def create_custom(self, name: str, function: str, **wishes: Any) -> None:
        """A stack of the custom resource alone, of a function (ARN) of another stack."""
        whole = {"Resources": custom(function, **wishes)}
        self.stacks.create_stack(StackName=name, TemplateBody=json.dumps(whole))

    def create_buckets(self, name: str, function: str, **wishes: Any) -> None:
        """A stack of buckets that are kept, and of a custom resource that is made after them."""
        buckets = {
            policy: {
                "Type": "AWS::S3::Bucket",
                "DeletionPolicy": policy,
                "Properties": {"BucketName": f"{name}-{policy.lower()}"},
            }
            for policy in ("Retain", "RetainExceptOnCreate")
        }
        whole: dict[str, Any] = {"Resources": buckets | custom(function, **wishes)}
        whole["Resources"]["Thing"]["DependsOn"] = ["Kept", *buckets]
        self.stacks.create_stack(StackName=name, TemplateBody=json.dumps(whole))

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
