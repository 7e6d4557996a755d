"""A node with nobody to end it, by its real user data: its own trap or its own timer powers it off."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from contract.timing import Timing
from launcher.arguments import build_user_data
from localaws.conditions import Conditions
from localaws.testing.ec2 import local_aws
from localaws.testing.waiting import until
from rehearsal.faults import Fault, parse_faults
from rehearsal.node_faults import NodeFaults
from rehearsal.yard import Yard
from tests.rehearsal.jobs import ARMED, ONE, SCRIPT, failed, instances, left, shutdowns, train

pytestmark = [pytest.mark.rehearsal]
TIMER_S = 6
FAULTS = {
    "line-2": "user-data-fails:line=2",
    "line-2-and-full": "disk-full:at=boot",
    "killed": f"user-data-fails:line={ARMED},how=killed",
    "no-network": "no-network:at=boot",
}


def for_each(faults: dict[str, str]) -> tuple[Fault, ...]:
    return parse_faults([f"{fault},job={job}" for job, fault in faults.items()])


def marks(job: str) -> list[dict[str, Any]]:
    tags = {"trainyard:job": job, "trainyard:attempt": "1"}
    return [{"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}]


def test_whatever_fails_in_user_data_the_node_is_off_by_its_timer(tmp_path: Path) -> None:
    values = {
        "TRAINYARD_AGENT": "s3://assets/agent.zip",
        "TRAINYARD_AGENT_SHA256": "0" * 64,
        "TRAINYARD_HOME_REGION": "us-east-1",
        "TRAINYARD_HOME_BUCKET": "home",
        "TRAINYARD_POWER_OFF_S": str(TIMER_S),
    }
    script = build_user_data(SCRIPT.read_text(), values)
    with local_aws(tmp_path, for_each(FAULTS), mischief=NodeFaults(), root_variables=("TRAINYARD_ROOT",)) as yard:
        jobs = {job: yard.run(1, TagSpecifications=marks(job), UserData=script)[0] for job in FAULTS}
        until(lambda: yard.states(list(jobs.values())) == {"terminated"})
        for job, instance in jobs.items():
            machine = yard.instance(instance)
            assert machine.why[0] == "Client.InstanceInitiatedShutdown", job
            # A script that hangs hears the timer's shutdown, and says as much; one that was killed says nothing any more.
            says_so = "powering off" in yard.console(instance)
            assert says_so == (job != "killed"), yard.console(instance)


@pytest.mark.faults
def test_a_node_that_nobody_looks_at_ends_itself_and_the_job_is_told_later(tmp_path: Path) -> None:
    timing = asdict(Timing().divided(10.0)) | {"boot_allowance_s": 20.0, "power_off_unknown_s": 20.0}
    own = {"cut": FAULTS["no-network"], "mute": FAULTS["killed"]}
    settings = {"limits": {"recoveries": 0}, "timing": timing}
    with Yard(tmp_path / "work", Conditions(speed=10.0), settings=settings) as made, made.faults(for_each(own)):
        code = made.upload(Path(__file__).with_name("trainer"), "trainer")
        jobs = [made.start({**ONE, "code": code, "command": train(20, 0.2)}, name) for name in own]
        until(lambda: all(instances(job) for job in jobs))  # Admit asks the attendant whether STS begins their sessions
        with made.faults(parse_faults(["attendant-dead:seconds=600"])):
            shown = lambda: {one["State"]["Name"] for job in jobs for one in instances(job)}  # noqa: E731
            until(lambda: shown() == {"terminated"})
        for job in jobs:
            assert "is terminated before its work was done" in failed(job, "NodeLost")
            assert (shutdowns(job), left(job)) == ({"Client.InstanceInitiatedShutdown"}, [])
