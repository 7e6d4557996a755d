"""A job that saves nothing rings the alarm about checkpoints that are too old: from its node's report to CloudWatch's alarm."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract import metrics
from localaws.testing.waiting import until
from rehearsal.yard import Yard
from tests.rehearsal.jobs import ONE

pytestmark = pytest.mark.rehearsal
EVERY_S = 3.0
IDLE = "import time\ntime.sleep(3600)\n"


def state(yard: Yard) -> str:
    (found,) = yard.client("cloudwatch").describe_alarms(AlarmNames=["trainyard-checkpoints-old"])["MetricAlarms"]
    return str(found["StateValue"])


def test_a_job_that_trains_for_long_without_a_checkpoint_rings_the_alarm(yard: Yard, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(IDLE)
    code = yard.upload(tmp_path, "idle")
    request = {**ONE, "code": code, "command": ["python", "train.py"], "checkpoint_minutes": EVERY_S / 60}
    job = yard.start(request, "saves-nothing")
    try:
        until(lambda: state(yard) == "ALARM")
    finally:
        yard.client("stepfunctions").stop_execution(executionArn=job.arn)
    written = yard.client("cloudwatch").list_metrics(Namespace="Trainyard", MetricName=metrics.CHECKPOINT_AGE)
    assert [one["Dimensions"] for one in written["Metrics"]] == [[{"Name": metrics.DEPLOYMENT, "Value": "trainyard"}]]
