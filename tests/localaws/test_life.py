"""The local AWS from start to stop: what is dropped, what ends with it, and that the next one is empty."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from moto.awslambda_simple.models import LambdaSimpleBackend
from moto.core.config import default_user_config
from moto.stepfunctions import models

from localaws.server import DEPLOYER, LocalAws
from rehearsal.faults import to_faults
from tests.localaws.app import CALM, App, machine
from tests.localaws.services import allows
from tests.waiting import until

pytestmark = [pytest.mark.rehearsal, pytest.mark.first_half]
CDK = Path(__file__).parents[2] / "node_modules" / ".bin" / "cdk"


@pytest.fixture
def deaf() -> Iterator[App]:
    with LocalAws(replace(CALM, faults=to_faults({"events-dropped": {}}))) as aws:
        yield App(aws)


def test_dropped_events_never_arrive_and_the_clock_goes_on(deaf: App) -> None:
    deaf.aws.emit("test", "Thing", {"kind": "apple"}, [], "us-east-1")
    deaf.s3.put_object(Bucket=deaf.bucket, Key="jobs/j/nodes/0001.urgent.json", Body=b"{}")
    until(lambda: deaf.seen("aws.events"))
    time.sleep(0.5)
    assert deaf.seen("test") == []
    assert deaf.seen("aws.s3") == []


def test_lost_events_never_arrive_and_doubled_ones_arrive_twice() -> None:
    fates: list[int] = []
    for conditions in (replace(CALM, events_lost=1.0), replace(CALM, events_doubled=1.0)):
        with LocalAws(conditions) as aws:
            arn = "arn:aws:sqs:us-east-1:123456789012:q"
            policy = json.dumps(allows("events.amazonaws.com", "sqs:SendMessage", arn))
            queue = aws.client("sqs").create_queue(QueueName="q", Attributes={"Policy": policy})["QueueUrl"]
            events = aws.client("events")
            events.put_rule(Name="r", EventPattern='{"source": ["test"]}')
            events.put_targets(Rule="r", Targets=[{"Id": "q", "Arn": arn}])
            aws.emit("test", "Thing", {}, [], "us-east-1")
            time.sleep(0.3)
            fates.append(
                len(aws.client("sqs").receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", []))
            )
    assert fates == [0, 2]


def test_a_stopped_aws_leaves_no_process_and_no_patch_and_the_next_is_empty() -> None:
    before: list[Any] = [
        LambdaSimpleBackend.invoke,
        models.stepfunctions_backends,
        dict(default_user_config),
        os.environ.get("MOTO_PORT"),
    ]
    with LocalAws(CALM) as aws:
        app = App(aws)
        app.start(machine(app.function, {"do": "sleep", "seconds": 1.5}))
        workers = until(lambda: [worker for pool in aws.workers._pools.values() for worker in pool.workers])
        work = aws.work
    after = [
        LambdaSimpleBackend.invoke,
        models.stepfunctions_backends,
        dict(default_user_config),
        os.environ.get("MOTO_PORT"),
    ]
    assert after == before
    assert not any(worker.alive for worker in workers)
    assert not work.exists()
    with LocalAws(CALM) as aws:
        assert aws.client("s3").list_buckets()["Buckets"] == []
        assert aws.client("stepfunctions").list_state_machines()["stateMachines"] == []


def test_a_second_local_aws_in_one_process_is_refused() -> None:
    with LocalAws(CALM), pytest.raises(RuntimeError, match="runs already"):
        LocalAws(CALM).start()


def test_the_cdk_command_line_bootstraps_it(tmp_path: Path) -> None:
    with LocalAws(CALM) as aws:
        variables = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        variables |= {
            **aws.environment(),
            **aws.credentials_for(DEPLOYER).variables(),
            "AWS_REGION": "eu-west-1",
            "CI": "true",
        }
        command = [str(CDK), "bootstrap", f"aws://{aws.account}/eu-west-1", "--no-notices", "--no-version-reporting"]
        done = subprocess.run(command, env=variables, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout.decode()
        stacks = aws.client("cloudformation", "eu-west-1").describe_stacks()["Stacks"]
        assert [stack["StackStatus"] for stack in stacks] == ["CREATE_COMPLETE"]
        assert aws.recorder.of(role=DEPLOYER, name="cloudformation:ExecuteChangeSet")
