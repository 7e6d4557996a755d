"""SageMaker and Batch of the local AWS by themselves: roles, buckets, images of folders, and what a test does with them."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from localaws.containers.images import keep
from localaws.faults import plan_faults
from localaws.server import LocalAws
from localaws.services import sagemaker
from localaws.services.sagemaker_model import CREATE
from localaws.testing.calm import CALM, meanwhile
from localaws.testing.waiting import until

HOME, AWAY = "eu-central-1", "us-east-1"
TRAIN = """
import json, os, pathlib, signal, sys, time
base = pathlib.Path(os.environ["SAGEMAKER_BASE_DIR"])
config = json.loads((base / "input/config/hyperparameters.json").read_text())
def read(text):
    try:
        return json.loads(text)
    except ValueError:
        return text
given = {name: read(value) for name, value in config.items() if not name.startswith("sagemaker_")}
checkpoint = base / "checkpoints/step"
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
step = int(checkpoint.read_text()) if checkpoint.exists() else 0
print("begins at", step, "with", sorted(os.listdir(base / "input/data/training")), sys.argv[1:], flush=True)
while step < given.get("steps", 3) and not asked:
    step += 1
    checkpoint.parent.mkdir(exist_ok=True)
    checkpoint.write_text(str(step))
    print(f"loss={1 / step:.3f}", flush=True)
    time.sleep(given.get("pause", 0.01))
if asked and given.get("stubborn"):
    time.sleep(600)
if "fails" in given:
    (base / "output/failure").write_text(given["fails"])
    sys.exit(3)
if given.get("dies"):
    sys.exit("the last words")
host = json.loads((base / "input/config/resourceconfig.json").read_text())["current_host"]
(base / "model" / host).write_text(str(step))
(base / "output/data/config.json").write_text((base / "input/config/resourceconfig.json").read_text())
"""
CHILD = """
import os, signal, sys, time
for name in sorted(os.environ):
    if name.startswith(("AWS_BATCH", "WISH")):
        print(name, os.environ[name], flush=True)
wishes = os.environ["WISH"].split(",")
wish = wishes[min(int(os.environ["AWS_BATCH_JOB_ATTEMPT"]), len(wishes)) - 1]
if wish == "wait":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))
    time.sleep(600)
sys.exit(int(wish))
"""
IMAGES: dict[str, dict[str, str]] = {
    "toolkit": {"Dockerfile": "FROM base\nCOPY t.py /opt/ml/code/\nENV SAGEMAKER_PROGRAM=t.py\n", "t.py": TRAIN},
    "own": {"Dockerfile": 'FROM base\nWORKDIR /w\nCOPY . .\nENTRYPOINT ["python", "/w/t.py"]\n', "t.py": TRAIN},
    "empty": {"Dockerfile": "FROM base\n"},
    "child": {"Dockerfile": 'FROM base\nCOPY --chown=1 c.py /c.py\nENTRYPOINT ["python", "/c.py"]\n', "c.py": CHILD},
}
REPOSITORY = "yard/images"
ROLES = {"training": "sagemaker", "job": "ecs-tasks", "start": "ecs-tasks", "m": "states"}
"""Role to the service that takes it."""
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


class Grid:
    """Two regions with a bucket and a repository each, home with a queue for four children at once."""

    def __init__(self, aws: LocalAws, work: Path) -> None:
        self.aws = aws
        iam = aws.client("iam")
        self.roles = {
            name: iam.create_role(RoleName=name, AssumeRolePolicyDocument=_trust(service))["Role"]["Arn"]
            for name, service in ROLES.items()
        }
        for region in (HOME, AWAY):
            aws.client("ecr", region).create_repository(repositoryName=REPOSITORY)
            where = {} if region == AWAY else {"CreateBucketConfiguration": {"LocationConstraint": region}}
            aws.client("s3", region).create_bucket(Bucket=f"bytes-{region}", **where)
            aws.client("s3", region).put_object(Bucket=f"bytes-{region}", Key="data/digits/a.csv", Body=b"1,2\n")
        for tag, files in IMAGES.items():
            self.push(tag, files, work)
        aws.client("logs", HOME).create_log_group(logGroupName="children")
        self.queue = self._queue()

    def push(self, tag: str, files: Mapping[str, str], work: Path) -> None:
        context = work / tag
        context.mkdir(parents=True)
        for name, text in files.items():
            (context / name).write_text(text)
            (context / name).chmod(0o755 if text.startswith("#!") else 0o644)
        text = json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "files": files})
        keep(self.aws.work / "images", hashlib.sha256(text.encode()).hexdigest(), context, {})
        for region in (HOME, AWAY):
            self.aws.client("ecr", region).put_image(repositoryName=REPOSITORY, imageManifest=text, imageTag=tag)

    def image(self, tag: str, region: str = HOME) -> str:
        return f"{self.aws.account}.dkr.ecr.{region}.amazonaws.com/{REPOSITORY}:{tag}"

    def _queue(self) -> str:
        batch = self.aws.client("batch", HOME)
        resources = {"type": "FARGATE", "maxvCpus": 1, "subnets": ["subnet-1"], "securityGroupIds": ["sg-1"]}
        made = batch.create_compute_environment(
            computeEnvironmentName="yard", type="MANAGED", computeResources=resources
        )["computeEnvironmentArn"]
        order = [{"order": 1, "computeEnvironment": made}]
        return str(
            batch.create_job_queue(jobQueueName="yard", priority=1, computeEnvironmentOrder=order)["jobQueueArn"]
        )

    # SageMaker

    def request(self, name: str, region: str = HOME, *, image: str = "toolkit", **more: Any) -> dict[str, Any]:
        """A training of the test's program; `hyper` are its hyperparameters, `count` its instances."""
        hyper, count = more.pop("hyper", {}), more.pop("count", 1)
        source = {"S3DataType": "S3Prefix", "S3Uri": f"s3://bytes-{region}/data/digits/"}
        return {
            "TrainingJobName": name,
            "RoleArn": self.roles["training"],
            "AlgorithmSpecification": {
                "TrainingImage": self.image(image, region),
                "TrainingInputMode": "File",
                "MetricDefinitions": [{"Name": "loss", "Regex": "loss=([0-9.]+)"}],
            },
            "HyperParameters": {key: json.dumps(value) for key, value in hyper.items()},
            "InputDataConfig": [{"ChannelName": "training", "DataSource": {"S3DataSource": source}}],
            "OutputDataConfig": {"S3OutputPath": f"s3://bytes-{region}/out"},
            "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": count, "VolumeSizeInGB": 1},
            "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
            "Tags": [{"Key": "kind", "Value": "test"}],
            **more,
        }

    def create(self, name: str, region: str = HOME, **more: Any) -> str:
        request = self.request(name, region, **more)
        return str(self.aws.client("sagemaker", region).create_training_job(**request)["TrainingJobArn"])

    def training(self, name: str, region: str = HOME) -> dict[str, Any]:
        found: dict[str, Any] = self.aws.client("sagemaker", region).describe_training_job(TrainingJobName=name)
        return found

    def reaches(self, name: str, secondary: str, region: str = HOME) -> dict[str, Any]:
        """Once it has been in that secondary status."""
        until(lambda: secondary in self.path(self.training(name, region)))
        return self.training(name, region)

    def ended(self, name: str, region: str = HOME) -> dict[str, Any]:
        until(lambda: self.training(name, region)["TrainingJobStatus"] in ("Completed", "Failed", "Stopped"))
        return self.training(name, region)

    @staticmethod
    def path(described: Mapping[str, Any]) -> list[str]:
        return [one["Status"] for one in described["SecondaryStatusTransitions"]]

    # Batch

    def define(self, name: str, **more: Any) -> str:
        properties = {
            "image": self.image("child"),
            "jobRoleArn": self.roles["job"],
            "executionRoleArn": self.roles["start"],
            "resourceRequirements": [{"type": "VCPU", "value": "0.25"}, {"type": "MEMORY", "value": "512"}],
            "environment": [{"name": "WISH", "value": "0"}],
            "logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "children"}},
            **more.pop("properties", {}),
        }
        registered = self.aws.client("batch", HOME).register_job_definition(
            jobDefinitionName=name,
            type="container",
            platformCapabilities=["FARGATE"],
            containerProperties=properties,
            **more,
        )
        return str(registered["jobDefinitionArn"])

    def submit(self, definition: str, wish: str, size: int = 0, **more: Any) -> str:
        array = {"arrayProperties": {"size": size}} if size else {}
        overrides = {"environment": [{"name": "WISH", "value": wish}, *more.pop("environment", [])]}
        return str(
            self.aws.client("batch", HOME).submit_job(
                jobName="job", jobQueue="yard", jobDefinition=definition, containerOverrides=overrides, **array, **more
            )["jobId"]
        )

    def job(self, identity: str) -> dict[str, Any]:
        (found,) = self.aws.client("batch", HOME).describe_jobs(jobs=[identity])["jobs"]
        return dict(found)

    def job_in(self, identity: str, *statuses: str) -> dict[str, Any]:
        return dict(until(lambda: (found := self.job(identity))["status"] in statuses and found))

    def log(self, group: str, prefix: str, region: str = HOME) -> list[str]:
        logs = self.aws.client("logs", region)
        streams = logs.describe_log_streams(logGroupName=group, logStreamNamePrefix=prefix)["logStreams"]
        lines = []
        for one in streams:
            events = logs.get_log_events(logGroupName=group, logStreamName=one["logStreamName"], startFromHead=True)
            lines += [event["message"] for event in events["events"]]
        return lines


def _trust(service: str) -> str:
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": f"{service}.amazonaws.com"}}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


@contextmanager
def trained_here(images: Path) -> Iterator[Grid]:
    """A local AWS with the four services that grids need, at a speed of 400."""
    with LocalAws(replace(CALM, speed=400.0), gaps=("cloudformation", "ecr", "sagemaker", "batch")) as aws:
        yield Grid(aws, images)


@contextmanager
def faults(grid: Grid, *given: str) -> Iterator[None]:
    with meanwhile(grid.aws, faults=plan_faults(*given), faults_since=time.monotonic()):
        yield


def refused(grid: Grid, region: str = HOME, **request: Any) -> str:
    """`code: message` of the refusal of a creation."""
    at_rest(region)
    with pytest.raises(ClientError) as problem:
        grid.aws.client("sagemaker", region).create_training_job(**request)
    error = problem.value.response["Error"]
    return f"{error['Code']}: {error['Message']}"


def at_rest(region: str) -> None:
    """The pace lets five creations through, as after a while without any: what is tested is something else."""
    limits = sagemaker.here(region).limits
    limits[CREATE] = replace(limits[CREATE], _left=-1.0)


def create(grid: Grid, name: str, region: str = HOME, **more: Any) -> str:
    at_rest(region)
    return grid.create(name, region, **more)
