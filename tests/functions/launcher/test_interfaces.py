"""The network interfaces of a launch: with EFA on every card, and without it exactly as before there was EFA."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from aws.ec2 import Ec2
from aws.facts import Card, InstanceType
from contract.fabric import Interface, InterfaceType
from contract.intents import Step
from job_checks import efa
from job_requests.values import Mode
from launcher.arguments import LaunchMarks, build_arguments, security_group
from launcher.interfaces import list_interfaces
from tests.builders import JOB, rung
from tests.fakes.faked import connected
from tests.fakes.functions import PROFILE
from tests.fakes.yard import home

P4D = InstanceType(
    name="p4d.24xlarge",
    architectures=("x86_64",),
    cluster=True,
    cards=tuple(Card(index=index, most=15, types=("interface", "efa", "efa-only")) for index in range(4)),
    efas=4,
)
LARGE = replace(JOB, interfaces={P4D.name: efa.interfaces(P4D)})


def sent(instance_type: str) -> dict[str, Any]:
    return build_arguments(
        LARGE,
        1,
        rung(instance_type=instance_type),
        group="group-a-0",
        security_group="sg-1",
        marks=LaunchMarks(profile="arn:p"),
    )


def test_a_node_with_efa_has_an_interface_on_each_of_its_cards() -> None:
    whole = {"SubnetId": "subnet-a", "Groups": ["sg-1"], "DeleteOnTermination": True}
    assert sent(P4D.name)["NetworkInterfaces"] == [
        {"NetworkCardIndex": 0, "DeviceIndex": 0, "InterfaceType": "efa", **whole},
        *(
            {"NetworkCardIndex": card, "DeviceIndex": 1, "InterfaceType": "efa-only", **whole}
            for card in (1, 2, 3)
        ),
    ]  # fmt: skip


def test_several_interfaces_never_speak_of_a_public_address() -> None:
    assert not any("AssociatePublicIpAddress" in one for one in sent(P4D.name)["NetworkInterfaces"])


@pytest.mark.parametrize("sort", list(InterfaceType))
def test_a_single_interface_always_forbids_a_public_address(sort: InterfaceType) -> None:
    (one,) = list_interfaces([Interface(type=sort)], subnet="subnet-a", security_groups=["sg-1"])
    assert one["AssociatePublicIpAddress"] is False


def test_another_type_of_the_same_job_is_launched_without_efa() -> None:
    (one,) = sent("g5.xlarge")["NetworkInterfaces"]
    assert not one.keys() & {"InterfaceType", "NetworkCardIndex"}


def test_a_plain_launch_has_the_bytes_that_it_had_before_there_was_efa() -> None:
    """An invocation of a new version may repeat a launch of the one before: other bytes under its token are a mismatch."""
    before = {
        "DeviceIndex": 0,
        "SubnetId": "subnet-a",
        "Groups": ["sg-1"],
        "AssociatePublicIpAddress": False,
        "DeleteOnTermination": True,
    }
    assert sent("g5.xlarge")["NetworkInterfaces"] == [before]


def test_the_launch_of_nodes_with_efa_stays_in_one_placement_group_and_one_security_group() -> None:
    launch = sent(P4D.name)
    assert launch["Placement"] == {"AvailabilityZone": "eu-central-1a", "GroupName": "group-a-0"}
    assert {group for one in launch["NetworkInterfaces"] for group in one["Groups"]} == {"sg-1"}
    assert security_group(Step(rung=rung(instance_type=P4D.name), request=launch)) == "sg-1"


def test_every_interface_ends_with_its_instance() -> None:
    assert all(one["DeleteOnTermination"] for one in sent(P4D.name)["NetworkInterfaces"])


@pytest.mark.parametrize("name", ["p4d.24xlarge", "p5.48xlarge", "p6-b300.48xlarge", "trn1.32xlarge", "g6.8xlarge"])
def test_ec2_takes_the_interfaces_that_were_chosen_by_its_own_description_of_the_type(name: str) -> None:
    with connected() as aws:
        types = Ec2("eu-central-1").types([name])
        job = replace(JOB, interfaces=efa.choose_interfaces(Mode.AUTO, JOB.nodes, types.values()))
        wanted = build_arguments(
            job,
            1,
            rung(instance_type=name),
            group="group-a-0",
            security_group="sg-1",
            marks=LaunchMarks(profile=PROFILE),
        )
        assert len(Ec2("eu-central-1").run(wanted, user_data="", token="one")) == JOB.nodes
        machines = home(aws).machines.values()
        parts = [home(aws).parts.things[part] for one in machines for part in one.parts]
    having = [part for part in parts if part.more.get("InterfaceType", "interface") != "interface"]
    assert len(having) == JOB.nodes * types[name].efas > 0
