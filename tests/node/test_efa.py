"""What a node says about the EFA devices with which it was launched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent import efa
from contract.jobs import Job
from tests.builders import JOB
from tests.node.devices import LARGE, devices
from tests.node.fakes import FakeImds, imds
from tests.node.world import Site


class Machine:
    def __init__(self, root: Path, service: FakeImds) -> None:
        self.root, self.imds, self.notes, self.waited_s = root, service, list[str](), 0.0
        self.lacks = ""
        """What the last look found wrong with the machine."""
        self.later = 0
        """So many devices appear in the first pause."""

    def check_devices(self, job: Job = LARGE) -> list[str]:
        self.lacks = efa.check_devices(self.root, job, self.imds.metadata, self.notes.append, self._pause)
        return self.notes

    def _pause(self, seconds: float) -> None:
        self.waited_s += seconds
        devices(self.root, self.later)
        self.later = 0


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with imds({"instance-type": "p4d.24xlarge"}) as service:
        yield Machine(tmp_path, service)


def test_a_job_without_efa_asks_nothing_and_says_nothing(machine: Machine) -> None:
    devices(machine.root, 1)
    assert machine.check_devices(JOB) == []
    assert machine.imds.asked == []


def test_a_type_of_the_job_that_has_no_efa_says_nothing(machine: Machine) -> None:
    machine.imds.values["instance-type"] = "g5.xlarge"
    assert machine.check_devices() == []
    assert machine.waited_s == 0


def test_a_machine_with_its_devices_says_how_many_and_waits_for_nothing(machine: Machine) -> None:
    devices(machine.root, 2)
    assert machine.check_devices() == ["EFA: the machine has 2 devices"]
    assert (machine.lacks, machine.waited_s) == ("", 0)


def test_devices_that_appear_late_are_waited_for(machine: Machine) -> None:
    machine.later = 2
    assert machine.check_devices() == ["EFA: the machine has 2 devices"]
    assert machine.waited_s == efa.LOOK_S


def test_a_machine_without_any_device_says_so_and_nothing_is_wrong_with_it_but_its_image(machine: Machine) -> None:
    (line,) = machine.check_devices()
    assert line == "EFA: the machine was launched with 2 devices and shows 0: does its image have the EFA driver?"
    assert (machine.lacks, machine.waited_s) == ("", efa.LOADS_S)


def test_a_machine_with_some_of_its_devices_lacks_the_others_whatever_its_image_is(machine: Machine) -> None:
    devices(machine.root, 1)
    (line,) = machine.check_devices()
    assert machine.lacks == "it shows 1 of the 2 EFA devices with which it was launched"
    assert line == f"EFA: {machine.lacks}"


def test_a_metadata_service_without_an_answer_ends_no_attempt(machine: Machine) -> None:
    machine.imds.unanswered = 10
    (line,) = machine.check_devices()
    assert line.startswith("EFA: the metadata service does not tell the instance type")


def test_the_node_of_a_job_with_efa_tells_it_before_it_trains(site: Site) -> None:
    site.imds.values["instance-type"] = "p4d.24xlarge"
    devices(site.root, 2)
    site.offer("print('trains')", interfaces=LARGE.interfaces)
    assert site.run().code == 0
    (told,) = [line for line in site.lines if "EFA: the machine has 2 devices" in line]
    assert site.lines.index(told) < site.lines.index("trains")
