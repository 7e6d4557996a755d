"""A small deployment on the local AWS: one function with a layer, a bucket with events, rules, and machines to vary."""

from __future__ import annotations

import importlib.metadata
import io
import json
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from localaws.server import LocalAws
from localaws.testing.calm import over
from localaws.testing.waiting import until
from localaws.tests.archives import zip_with

LAYERED = (
    "boto3",
    "botocore",
    "s3transfer",
    "jmespath",
    "python-dateutil",
    "six",
    "urllib3",
    "pydantic-core",
    "typing-extensions",
)
"""Packages of the function's layer."""
CODE = """
import json, os, time
import boto3

class CapacityPending(Exception):
    pass

def handler(event, context):
    s3, states = boto3.client("s3"), boto3.client("stepfunctions")
    do = event.get("do", "see")
    print("doing", do, flush=True)
    if do == "answer":
        return event
    if do == "fail":
        raise CapacityPending('no "capacity"\\nanywhere')
    if do == "sleep":
        time.sleep(event["seconds"])
        return {"slept": True}
    if do == "compute":
        until = time.process_time() + event["seconds"]
        while time.process_time() < until:
            pass
        return {"computed": True}
    if do == "exit":
        os._exit(3)
    if do == "environment":
        return dict(os.environ)
    if do == "keep":
        key = f"tokens/{int(time.time() * 1000)}-{event['token'][:8]}"
        s3.put_object(Bucket=os.environ["BUCKET"], Key=key, Body=event["token"].encode())
        return None
    if do == "answer-at-once":
        states.send_task_success(taskToken=event["token"], output=json.dumps({"early": True}))
        return None
    s3.put_object(Bucket=os.environ["BUCKET"], Key=f"seen/{event['source']}/{time.time_ns()}", Body=json.dumps(event).encode())
    if event.get("detail", {}).get("fails"):
        raise RuntimeError("as asked")
"""


def resource(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": f"AWS::{kind}", "Properties": properties}


def template(role: str, machine_role: str) -> dict[str, Any]:
    """CloudFormation as the CDK would write it."""

    def rule(**properties: Any) -> dict[str, Any]:
        target = {"Id": "Function", "Arn": {"Fn::GetAtt": ["Function", "Arn"]}}
        return resource("Events::Rule", **properties, State="ENABLED", Targets=[target])

    urgent = {"bucket": {"name": [{"Ref": "Bucket"}]}, "object": {"key": [{"wildcard": "jobs/*/nodes/*.urgent.json"}]}}
    notify = {"NotificationConfiguration": {"EventBridgeConfiguration": {"EventBridgeEnabled": True}}}
    function = {
        "Code": {"S3Bucket": "assets", "S3Key": "function.zip"},
        "Handler": "index.handler",
        "Runtime": "python3.13",
        "Role": role,
        "Timeout": 2,
        "MemorySize": 1024,
        "Layers": [{"Ref": "Layer"}],
        "Environment": {"Variables": {"BUCKET": {"Ref": "Bucket"}}},
    }
    machine = {
        "DefinitionString": {"Fn::Join": ["", [json.dumps(echo("FUNCTION")).replace("FUNCTION", "${Function}")]]},
        "DefinitionSubstitutions": {"Function": {"Fn::GetAtt": ["Function", "Arn"]}},
        "RoleArn": machine_role,
    }
    return {
        "Resources": {
            "Bucket": resource("S3::Bucket", **notify),
            "Layer": resource("Lambda::LayerVersion", Content={"S3Bucket": "assets", "S3Key": "layer.zip"}),
            "Function": resource("Lambda::Function", **function),
            "Machine": resource("StepFunctions::StateMachine", **machine),
            "Urgent": rule(EventPattern={"source": ["aws.s3"], "detail-type": ["Object Created"], "detail": urgent}),
            "Custom": rule(EventPattern={"source": ["test"], "detail": {"kind": [{"prefix": "a"}, {"suffix": "z"}]}}),
            "Ended": rule(EventPattern={"source": ["aws.states"], "detail": {"status": BADLY}}),
            "Minute": rule(ScheduleExpression="rate(1 minute)"),
        },
        "Outputs": {name: {"Value": {"Ref": name}} for name in ("Bucket", "Function", "Machine")},
    }


def echo(function: str) -> dict[str, Any]:
    """A machine of one task that answers its input."""
    payload = {"do": "answer", "value": "{% $states.input %}"}
    return machine(function, payload, Output="{% $states.result.Payload.value %}")


def machine(function: str, payload: Mapping[str, Any], *, wait: bool = False, **fields: Any) -> dict[str, Any]:
    """`fields` are the task's; a `Catch` of theirs may go to `Caught`, which answers the variable `problem`."""
    task = {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke" + (".waitForTaskToken" if wait else ""),
        "Arguments": {"FunctionName": function, "Payload": payload},
        "End": True,
        **fields,
    }
    caught = {"Type": "Pass", "Output": "{% $problem %}", "End": True}
    return {"QueryLanguage": "JSONata", "StartAt": "Work", "States": {"Work": task, "Caught": caught}}


BADLY = ["FAILED", "ABORTED", "TIMED_OUT"]
CATCH = [{"ErrorEquals": ["States.ALL"], "Assign": {"problem": "{% $states.errorOutput %}"}, "Next": "Caught"}]


class App:
    """The deployment, and what a test does with it."""

    def __init__(self, aws: LocalAws) -> None:
        self.aws = aws
        self.s3, self.states, self.functions = aws.client("s3"), aws.client("stepfunctions"), aws.client("lambda")
        self.role, self.machine_role = (
            aws.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument="{}")["Role"]["Arn"]
            for name in ("function", "machine")
        )
        self.s3.create_bucket(Bucket="assets")
        self.s3.put_object(Bucket="assets", Key="function.zip", Body=zip_with(("index.py", CODE)))
        self.s3.put_object(Bucket="assets", Key="layer.zip", Body=zipped_layer())
        formation = aws.client("cloudformation")
        formation.create_stack(StackName="app", TemplateBody=json.dumps(template(self.role, self.machine_role)))
        outputs = formation.describe_stacks(StackName="app")["Stacks"][0]["Outputs"]
        found = {one["OutputKey"]: one["OutputValue"] for one in outputs}
        self.bucket, self.deployed_machine = found["Bucket"], found["Machine"]
        self.function: str = self.functions.get_function(FunctionName=found["Function"])["Configuration"]["FunctionArn"]
        self._machines = 0

    def invoke(self, **payload: Any) -> tuple[str | None, Any]:
        """(FunctionError or None, the payload)."""
        answer = self.functions.invoke(FunctionName=self.function, Payload=json.dumps(payload).encode())
        return answer.get("FunctionError"), json.loads(answer["Payload"].read())

    def start(self, definition: Mapping[str, Any], given: Any = None, name: str | None = None) -> str:
        """ARN of a new execution of a new machine."""
        self._machines += 1
        arn = self.states.create_state_machine(
            name=f"machine-{self._machines}", definition=json.dumps(definition), roleArn=self.machine_role
        )["stateMachineArn"]
        more = {"name": name} if name else {}
        started = self.states.start_execution(stateMachineArn=arn, input=json.dumps(given or {}), **more)
        return str(started["executionArn"])

    def end(self, execution: str) -> dict[str, Any]:
        return over(self.states, execution)

    def run(self, definition: Mapping[str, Any], given: Any = None) -> dict[str, Any]:
        return self.end(self.start(definition, given))

    def history(self, execution: str) -> list[str]:
        return [event["type"] for event in self.states.get_execution_history(executionArn=execution)["events"]]

    def keys(self, prefix: str) -> list[str]:
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", [])]

    def read(self, key: str) -> bytes:
        body: bytes = self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        return body

    def tokens(self, count: int) -> list[str]:
        """The kept tokens, oldest first, once there are `count`."""
        found = until(lambda: len(keys := self.keys("tokens/")) >= count and sorted(keys))
        return [self.read(key).decode() for key in found]

    def seen(self, source: str) -> list[dict[str, Any]]:
        """Events of a source that the function was given."""
        return [json.loads(self.read(key)) for key in self.keys(f"seen/{source}/")]


@cache
def zipped_layer() -> bytes:
    """AWS's SDK and a package with machine code, without the models of services that nobody calls here."""
    packed, kept = io.BytesIO(), ("s3", "stepfunctions", "ssm", "sts")
    with zipfile.ZipFile(packed, "w") as archive:
        for file in (file for one in LAYERED for file in importlib.metadata.files(one) or []):
            model = "data" in file.parts and len(file.parts) > 3 and file.parts[2] not in kept
            if file.parts[0] != ".." and not model and "__pycache__" not in file.parts:
                archive.write(Path(str(file.locate())), f"python/{file}")
    return packed.getvalue()
