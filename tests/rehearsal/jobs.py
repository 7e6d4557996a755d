"""Requests for rehearsed jobs, and what the account shows of a job."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from contract import keys, tags
from localaws.services import ec2
from localaws.testing.waiting import HANG_S
from rehearsal.yard import StartedJob, Yard

SCRIPT = Path(__file__).parents[2] / "node" / "user_data.sh"
ADDED_LINES = 5
"""The assignments that the launcher puts behind the script's first line."""
ARMED = SCRIPT.read_text().splitlines().index("# From here on everything may fail.") + 1 + ADDED_LINES
"""Number of the first line of user data behind which the power-off timer is armed."""
BEGIN = ["Admit", "Plan only?"]
HAPPY = [*BEGIN, "Launch", "Train", "Sync", "Terminate", "Decide", "Done"]
AGAIN = [*BEGIN, "Launch", "Train", "Terminate", "Decide", "Pause", *HAPPY[2:]]
"""States of a job with two attempts."""
ENDLESS = {"environment": {"ENDLESS_ATTEMPTS": "1"}}
"""Of what is to be ended in its first attempt: it trains until then, and the next attempt ends."""
ONE = {"instance_types": ["t3.large"], "nodes": 1, "max_hours": 1}
DENIALS = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"}
"""What a caller hears whom IAM denies a call."""
TWO = {"instance_types": ["g5.xlarge", "g4dn.xlarge"], "nodes": 2, "max_hours": 1}


def train(steps: int, pause: float, code: int = 0) -> list[str]:
    """The command of the trainer in `trainer/`: steps, seconds a step, the exit code."""
    return ["python", "train.py", str(steps), str(pause), str(code)]


def ended(job: StartedJob) -> dict[str, Any]:
    """Its execution, once it is over and its nodes are."""
    execution = job.wait(HANG_S)
    job.settle(HANG_S)
    return execution


def succeeded(job: StartedJob) -> dict[str, Any]:
    """Its execution, once it is over."""
    execution = job.wait(HANG_S)
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    return execution


def failed(job: StartedJob, error: str) -> str:
    """The cause, once it has failed with that error."""
    execution = job.wait(HANG_S)
    assert (execution["status"], execution.get("error")) == ("FAILED", error), execution
    return str(execution["cause"])


def stopped(job: StartedJob) -> float:
    """When somebody stopped it, UTC epoch seconds."""
    execution = job.wait(HANG_S)
    assert (execution["status"], execution["error"]) == ("ABORTED", "Stopped")
    return float(execution["stopDate"].timestamp())


def path(job: StartedJob) -> list[str]:
    """The states entered, without the new looks that lost heartbeats led to."""
    states = job.states()
    return [
        state for state, before in zip(states, ["", *states], strict=False) if "Lost heartbeat" not in (state, before)
    ]


def stored(yard: Yard, key: str, bucket: str = "") -> bytes:
    """An object of the home bucket, or of another."""
    body: bytes = yard.client("s3").get_object(Bucket=bucket or yard.places.home, Key=key)["Body"].read()
    return body


def instances(job: StartedJob, region: str = "") -> list[dict[str, Any]]:
    """Every instance that the job ever had (in the region, where one is named), as EC2 describes it until it forgets it."""
    found = [one for one in ec2.machines().all() if one.tags.get(tags.JOB) == job.name]
    return [one.shown(time.time()) for one in found if region in ("", one.region)]


def left(job: StartedJob) -> list[str]:
    """Those that have not begun to end."""
    return [one["InstanceId"] for one in instances(job) if one["State"]["Name"] not in {"shutting-down", "terminated"}]


def ended_at(instance: Mapping[str, Any]) -> float:
    """When it began to end, UTC epoch seconds, as EC2 says it."""
    told = re.search(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) GMT\)", instance.get("StateTransitionReason", ""))
    assert told, instance
    return datetime.strptime(f"{told[1]} +0000", "%Y-%m-%d %H:%M:%S %z").timestamp()


def enders(yard: Yard, instance: str) -> set[str]:
    """Functions whose TerminateInstances EC2 took for the instance: `Cleanup`, `Terminator`."""
    calls = yard.aws.recorder.of(name="ec2:TerminateInstances")
    taken = [call for call in calls if call.status == 200 and instance in call.parameters.values()]
    return {re.sub(r"Role[0-9A-F]{8}$", "", call.role.split("-")[2]) for call in taken}


def shutdowns(job: StartedJob) -> set[str]:
    """Why its instances ended, as EC2 says it: `Client.InstanceInitiatedShutdown` is the node's own power-off."""
    return {one.get("StateReason", {}).get("Code", "") for one in instances(job)}


def changes(job: StartedJob) -> list[dict[str, Any]]:
    """Calls that would have made something for the job: objects under its prefix but its page, instances with its name in a tag."""
    prefix = keys.JobPrefix(job.name).root
    return [
        {"call": call.name, **call.parameters}
        for call in job.yard.aws.recorder.of()
        if (
            call.name in ("s3:PutObject", "s3:CopyObject")
            and (key := str(call.parameters.get("Key", ""))).startswith(prefix)
            and key != keys.JobPrefix(job.name).page
        )
        or (call.name == "ec2:RunInstances" and job.name in map(str, call.parameters.values()))
    ]
