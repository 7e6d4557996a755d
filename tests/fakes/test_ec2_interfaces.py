"""The model of EC2 refuses network interfaces that a machine of the type cannot have, as EC2 does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.fakes.aws import Aws
from tests.fakes.faked import connected, ids, launch, refused
from tests.fakes.yard import home

EFA, EFA_ONLY, PLAIN = "efa", "efa-only", "interface"
COMBINATION, VALUE, LIMIT = "InvalidParameterCombination", "InvalidParameterValue", "AttachmentLimitExceeded"


@pytest.fixture
def aws() -> Iterator[Aws]:
    with connected() as fake:
        yield fake


def interface(card: int, device: int, sort: str = EFA, **more: Any) -> dict[str, Any]:
    return {
        "NetworkCardIndex": card, "DeviceIndex": device, "InterfaceType": sort, "SubnetId": "subnet-a", "Groups": ["sg-1"], **more
    }  # fmt: skip


def of_p5(*further: dict[str, Any]) -> dict[str, Any]:
    return {"InstanceType": "p5.48xlarge", "NetworkInterfaces": [interface(0, 0), *further]}


def test_an_interface_on_every_card_is_launched_and_each_has_an_id(aws: Aws) -> None:
    (made,) = ids(launch(nodes=1, **of_p5(*(interface(card, 1, EFA_ONLY) for card in range(1, 32)))))
    parts = [home(aws).parts.things[one] for one in home(aws).machines[made].parts]
    shown = [one.more["InterfaceType"] for one in parts if one.id.startswith("eni")]
    assert shown == [EFA, *[EFA_ONLY] * 31]


@pytest.mark.parametrize("device", [0, 1])
def test_further_cards_take_either_of_their_devices(aws: Aws, device: int) -> None:  # noqa: ARG001
    assert len(launch(nodes=1, **of_p5(interface(1, device, EFA_ONLY)))) == 1


@pytest.mark.parametrize(
    ("further", "code"),
    [
        ([interface(32, 1)], VALUE),
        ([interface(1, 2)], VALUE),
        ([interface(1, -1)], VALUE),
        ([interface(1, 1, "efa-ena")], VALUE),
        ([interface(1, 1), interface(1, 1)], COMBINATION),
        ([interface(0, 0, PLAIN)], COMBINATION),
        ([interface(1, 0), interface(1, 1)], COMBINATION),
        ([interface(0, 1)], COMBINATION),
        ([interface(1, 1, EFA_ONLY, PrivateIpAddress="10.0.0.9")], COMBINATION),
        ([interface(1, 1, AssociatePublicIpAddress=True)], COMBINATION),
        ([interface(1, 1, AssociatePublicIpAddress=False)], COMBINATION),
    ],
    ids=[
        "a card that the type lacks",
        "a device that the card lacks",
        "a device below zero",
        "no type of interface",
        "two on the same card and device",
        "two first ones",
        "two EFAs on a card",
        "two EFAs on the first card",
        "an address without ENA",
        "a public address beside several interfaces",
        "no public address, said beside several interfaces",
    ],
)  # fmt: skip
def test_interfaces_that_the_cards_cannot_have_are_refused(aws: Aws, further: list[dict[str, Any]], code: str) -> None:
    assert refused(launch, nodes=1, **of_p5(*further)) == code
    assert home(aws).machines == {}


@pytest.mark.parametrize(
    ("instance_type", "interfaces", "code"),
    [
        ("g5.xlarge", [interface(0, 0)], COMBINATION),
        ("g5.xlarge", [interface(0, 0, PLAIN), interface(1, 1, PLAIN)], VALUE),
        ("p5.48xlarge", [interface(0, 0, EFA_ONLY)], COMBINATION),
        ("p5.48xlarge", [interface(0, 1)], COMBINATION),
        ("p5.48xlarge", [interface(1, 0)], COMBINATION),
        ("p6-b300.48xlarge", [interface(0, 0)], COMBINATION),
    ],
    ids=[
        "EFA on a type without it",
        "a second card on a type with one",
        "a first interface without an address",
        "no first device",
        "no first card",
        "EFA on a card for addresses alone",
    ],
)
def test_interfaces_that_the_type_cannot_have_are_refused(
    aws: Aws, instance_type: str, interfaces: list[dict[str, Any]], code: str
) -> None:
    assert refused(launch, nodes=1, InstanceType=instance_type, NetworkInterfaces=interfaces) == code
    assert home(aws).machines == {}


def test_more_efas_than_the_type_takes_are_refused(aws: Aws) -> None:
    """Some types have more cards than they take EFAs, and every card would take one."""
    kinds = home(aws).catalogue.kinds
    kinds["p4d.24xlarge"] = replace(kinds["p4d.24xlarge"], efas=3)
    four = [interface(card, min(card, 1)) for card in range(4)]
    assert refused(launch, nodes=1, InstanceType="p4d.24xlarge", NetworkInterfaces=four) == LIMIT
