"""Which jobs get EFA, on which network cards, and what a request for it is told that cannot be met."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from moto.ec2.models.instance_types import INSTANCE_TYPES

from aws.facts import Card, InstanceType
from aws.types import instance_type
from contract.codec import compact, decode
from contract.fabric import Interface, InterfaceType
from contract.jobs import Job
from job_checks import efa
from job_requests.values import Mode
from localaws.services import ec2_interfaces
from localaws.services.ec2_catalogue import Card as Slot
from localaws.services.ec2_catalogue import Kind
from tests.builders import JOB, rung

EVERY: Mapping[str, InstanceType] = {name: instance_type(entry) for name, entry in INSTANCE_TYPES.items()}
"""As moto knows them: recorded answers of DescribeInstanceTypes."""
P4D, P5, B300, PLAIN = (EVERY[name] for name in ("p4d.24xlarge", "p5.48xlarge", "p6-b300.48xlarge", "g5.xlarge"))


def shape(kind: InstanceType) -> list[tuple[int, int, str]]:
    return [(one.card, one.device, one.type.value) for one in efa.interfaces(kind)]


def names(asked: Mode, nodes: int, *kinds: InstanceType) -> list[str]:
    return list(efa.choose_interfaces(asked, nodes, kinds))


# Who gets it


def test_auto_gives_several_nodes_efa_where_their_type_has_it() -> None:
    assert names(Mode.AUTO, 2, PLAIN, P4D, P5) == ["p4d.24xlarge", "p5.48xlarge"]


def test_auto_gives_a_single_node_none_because_it_has_nobody_to_talk_to() -> None:
    assert names(Mode.AUTO, 1, P5) == []


def test_false_gives_none_to_any_number_of_nodes() -> None:
    assert names(Mode.FALSE, 16, P5) == []


def test_true_gives_it_to_a_single_node_as_well() -> None:
    assert names(Mode.TRUE, 1, P5) == ["p5.48xlarge"]


# What its network gives, for a deep health check


def rate(kind: InstanceType, asked: Mode = Mode.AUTO, nodes: int = 2) -> float | None:
    return efa.list_rates(efa.choose_interfaces(asked, nodes, [kind]), [kind]).get(kind.name)


def test_with_efa_every_card_counts_and_without_it_the_first_alone() -> None:
    assert (rate(P4D), rate(P5)) == (400.0, 3200.0)
    assert (rate(P4D, Mode.FALSE), rate(P5, nodes=1), rate(PLAIN)) == (100.0, 100.0, 2.5)


def test_a_burst_is_nothing_that_a_type_always_gives() -> None:
    (card,) = PLAIN.cards
    assert (card.gbps, INSTANCE_TYPES["g5.xlarge"]["NetworkInfo"]["NetworkPerformance"]) == (2.5, "Up to 10 Gigabit")


def test_a_type_of_which_ec2_does_not_tell_every_cards_rate_has_none() -> None:
    silent = replace(P4D, cards=(*P4D.cards[:3], replace(P4D.cards[3], gbps=0.0)))
    assert rate(silent) is None
    assert rate(replace(P4D, cards=())) is None


# On which cards


def test_the_first_card_has_the_address_and_the_others_have_efa_alone() -> None:
    assert shape(P4D) == [(0, 0, "efa"), (1, 1, "efa-only"), (2, 1, "efa-only"), (3, 1, "efa-only")]
    assert shape(P5) == [(0, 0, "efa"), *((card, 1, "efa-only") for card in range(1, 32))]


def test_a_first_card_without_efa_has_a_plain_interface() -> None:
    assert shape(B300) == [(0, 0, "interface"), *((card, 1, "efa-only") for card in range(1, 17))]


def test_a_card_that_takes_one_interface_has_it_at_its_first_device() -> None:
    assert shape(EVERY["hpc6id.32xlarge"]) == [(0, 0, "efa"), (1, 0, "efa-only")]


def test_a_type_has_no_more_efas_than_it_takes_however_many_cards_it_has() -> None:
    assert shape(EVERY["i8ge.48xlarge"]) == [(0, 0, "efa")]


def test_a_card_that_takes_no_efa_only_interface_has_one_with_an_address() -> None:
    old = replace(P4D, cards=tuple(replace(card, types=("interface", "efa")) for card in P4D.cards))
    assert {sort for _, _, sort in shape(old)} == {"efa"}


def test_cards_of_which_ec2_says_nothing_get_the_older_type_of_interface() -> None:
    silent = replace(P4D, cards=tuple(replace(card, types=()) for card in P4D.cards))
    assert {sort for _, _, sort in shape(silent)} == {"efa"}


def test_a_further_card_without_efa_is_left_alone() -> None:
    mixed = replace(P4D, cards=(*P4D.cards[:2], Card(index=2, most=15, types=("interface",)), P4D.cards[3]))
    assert [card for card, _, _ in shape(mixed)] == [0, 1, 3]


@pytest.mark.parametrize("kind", [kind for kind in EVERY.values() if kind.efas], ids=lambda kind: kind.name)
def test_the_model_of_ec2_takes_the_interfaces_of_every_type_that_has_efa(kind: InstanceType) -> None:
    slots = tuple(Slot(card.index, card.most, card.types) for card in kind.cards)
    asked = [
        {"NetworkCardIndex": one.card, "DeviceIndex": one.device, "InterfaceType": one.type.value}
        for one in efa.interfaces(kind)
    ]
    ec2_interfaces.check(Kind(kind.name, cards=slots, efas=kind.efas), asked)
    assert sum(one["InterfaceType"] != "interface" for one in asked) == kind.efas


# What a request is told


def test_true_is_refused_for_each_type_without_efa_and_names_those_that_have_it() -> None:
    (line,) = efa.check_efa(Mode.TRUE, ["g5.xlarge", "p5.48xlarge"], {"g5.xlarge": PLAIN, "p5.48xlarge": P5})
    assert line == (
        "efa: g5.xlarge has no EFA; allowed: auto, false, or types that have it (of this request p5.48xlarge)"
    )


@pytest.mark.parametrize("asked", [Mode.AUTO, Mode.FALSE])
def test_only_true_is_ever_refused(asked: Mode) -> None:
    assert efa.check_efa(asked, ["g5.xlarge"], {"g5.xlarge": PLAIN}) == []


def test_a_type_that_the_region_lacks_is_not_refused_for_its_network() -> None:
    assert efa.check_efa(Mode.TRUE, ["g9.huge"], {}) == []


# What the job says


def test_each_type_of_the_ladder_is_told_once() -> None:
    ladder = (rung("a", "p5.48xlarge"), rung("b", "p5.48xlarge"), rung("a", "g5.xlarge"), rung("a", "p6-b300.48xlarge"))
    job = replace(JOB, ladder=ladder, interfaces=efa.choose_interfaces(Mode.AUTO, 2, [P5, B300]))
    assert efa.describe_network(job) == [
        "p5.48xlarge: EFA, 32 devices a node on 32 network interfaces",
        "g5.xlarge: one network interface without EFA; nodes talk over TCP",
        "p6-b300.48xlarge: EFA, 16 devices a node on 17 network interfaces",
    ]


def test_a_single_node_is_not_told_about_nodes_that_talk() -> None:
    assert efa.describe_network(replace(JOB, nodes=1, ladder=(rung(),))) == [
        "g5.xlarge: one network interface without EFA"
    ]


def test_a_job_of_a_version_before_has_one_plain_interface() -> None:
    job = decode(Job, compact(JOB))
    assert b"interfaces" not in compact(JOB)
    assert job.interfaces_of("p5.48xlarge") == (Interface(type=InterfaceType.PLAIN),)
    assert job.efas_of("p5.48xlarge") == 0


def test_a_jobs_interfaces_are_read_as_they_were_written() -> None:
    job = replace(JOB, interfaces=efa.choose_interfaces(Mode.AUTO, 2, [P4D]))
    assert decode(Job, compact(job)) == job
