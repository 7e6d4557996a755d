"""Machines with a bad GPU or a slow network, met by jobs that ran beside all others: replaced, elsewhere, and told."""

from __future__ import annotations

import json

import pytest

from contract import names
from contract.keys import JobPrefix
from rehearsal.yard import StartedJob
from tests.rehearsal.jobs import AGAIN, ended, instances, left, path, stored

pytestmark = [pytest.mark.rehearsal, pytest.mark.at_length, pytest.mark.turn("looks back")]
BAD = ["missing-gpu", "fallen-gpu"]


def log(job: StartedJob, attempt: int) -> str:
    return "\n".join(job.log(names.log_stream(job.name, attempt, 0)))


@pytest.mark.parametrize("name", BAD)
def test_an_unhealthy_machine_is_replaced_in_another_zone(beside: dict[str, StartedJob], name: str) -> None:
    job, execution = beside[name], ended(beside[name])
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    assert (path(job), len(instances(job)), left(job)) == (AGAIN, 2, [])
    first, second = (one["Placement"]["AvailabilityZone"] for one in sorted(instances(job), key=launched))
    assert first != second


def launched(instance: dict[str, object]) -> str:
    return str(instance["LaunchTime"])


@pytest.mark.parametrize(("name", "why"), [(BAD[0], "it has 0 of the 1 GPUs"), (BAD[1], "Xid 79 of GPU")])
def test_the_report_of_the_job_names_the_instance_and_what_was_wrong(
    beside: dict[str, StartedJob], name: str, why: str
) -> None:
    job = beside[name]
    ended(job)
    report = json.loads(stored(job.yard, JobPrefix(job.name).result))
    ((recovered,), (bad,)) = report["recovered"], report["unhealthy"]
    assert recovered["error"] == "NodeUnhealthy"
    assert bad["instance"] in recovered["cause"]
    assert (bad["attempt"], bad["rank"], bad["instance_type"]) == (1, 0, "g5.xlarge")
    assert bad["instance"] in {one["InstanceId"] for one in instances(job)}
    assert why in bad["why"]


def test_a_machine_that_its_check_refuses_never_starts_the_command(beside: dict[str, StartedJob]) -> None:
    ended(beside["missing-gpu"])
    assert "started:" not in log(beside["missing-gpu"], 1)
    assert "health: nothing is wrong with the machine with 1 GPUs" in log(beside["missing-gpu"], 2)


def test_a_training_that_died_beside_an_xid_goes_on_from_its_checkpoint(beside: dict[str, StartedJob]) -> None:
    ended(beside["fallen-gpu"])
    assert beside["fallen-gpu"].reports(2)[0].restored_step > 0


# A real all-reduce between two nodes, one of which is slow


def test_a_slow_network_is_found_before_the_training_and_other_machines_train(measured: StartedJob) -> None:
    job, execution = measured, ended(measured)
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    assert (path(job), len(instances(job)), left(job)) == (AGAIN, 4, []), log(job, 1)
    zones = [one["Placement"]["AvailabilityZone"] for one in sorted(instances(job), key=launched)]
    assert zones[0] == zones[1] != zones[2] == zones[3]
    assert "started:" not in log(job, 1)


def test_of_two_nodes_with_a_slow_network_the_report_has_both_instances(measured: StartedJob) -> None:
    job = measured
    ended(job)
    report = json.loads(stored(job.yard, JobPrefix(job.name).result))
    assert [one["error"] for one in report["recovered"]] == ["NodeUnhealthy"]
    first = {one["InstanceId"] for one in sorted(instances(job), key=launched)[:2]}
    for bad in report["unhealthy"]:
        assert bad["attempt"] == 1
        assert all(instance in bad["why"] for instance in first)
        assert "cannot tell which" in bad["why"]
    assert {one["instance"] for one in report["unhealthy"]} <= first


def test_healthy_nodes_say_what_their_network_reaches(measured: StartedJob) -> None:
    job = measured
    ended(job)
    assert "health: an all-reduce between 2 nodes reached" in log(job, 2)
