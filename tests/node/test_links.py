"""What an all-reduce between nodes tells of their machines: a rule by a rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.links.check import ports
from agent.links.facts import Measured, Reached, bus_gbps
from agent.links.judging import FLOW_GBPS, Expected, Pair, Said, floor_gbps, judged, judged_alone, judged_links, rounds
from contract.health import NETWORK_SHARE

TYPE = Expected(10.0, NETWORK_SHARE)
"""Gbit/s that EC2 promises of the type; a healthy TCP connection reaches half of it."""
LARGE = Expected(3200.0, NETWORK_SHARE)
FAST = Measured(outcome=Reached.DONE, gbps=4.0)
SLOW = Measured(outcome=Reached.DONE, gbps=0.5)
STUCK = Measured(outcome=Reached.STUCK, words="it has not ended in time")
FAILED = Measured(outcome=Reached.FAILED, words="NCCL error: unhandled system error")
UNREADY = Measured(outcome=Reached.UNREADY, words="No module named 'torch'")
EFA = replace(FAST, gpus=8, network="AWS Libfabric, efa", gbps=1500.0)


def ring(nodes: int, **said: Said) -> dict[Pair, Said]:
    """The links of so many nodes, all fast but those that are named: `l01` is of ranks 0 and 1."""
    named = {(int(name[1]), int(name[2])): one for name, one in said.items()}
    return {pair: named.get(pair, (FAST, FAST)) for part in rounds(nodes) for pair in part}


# The floor


def test_the_floor_is_never_above_what_one_healthy_tcp_connection_reaches() -> None:
    assert floor_gbps(LARGE, [FAST, FAST]) == NETWORK_SHARE * FLOW_GBPS
    assert NETWORK_SHARE * FLOW_GBPS < FLOW_GBPS / 2


def test_a_small_type_has_a_lower_floor() -> None:
    assert floor_gbps(replace(TYPE, gbps=0.5), [FAST, FAST]) == pytest.approx(0.1)


def test_over_efa_the_floor_is_a_part_of_all_cards() -> None:
    assert floor_gbps(LARGE, [EFA, EFA]) == NETWORK_SHARE * 3200.0


@pytest.mark.parametrize(
    "other", [FAST, *(replace(EFA, network=one) for one in ("Socket", "Libfabric, tcp", "AWS Libfabric", ""))]
)
def test_one_node_without_efa_lowers_the_floor_of_all(other: Measured) -> None:
    assert floor_gbps(LARGE, [EFA, other]) == NETWORK_SHARE * FLOW_GBPS


def test_a_type_whose_rate_is_not_known_has_no_floor() -> None:
    slow = replace(SLOW, gbps=0.0001)
    assert judged([slow, slow], replace(TYPE, gbps=0.0), attempt=1).wrong == {}


def test_with_a_share_of_none_an_all_reduce_only_has_to_end() -> None:
    crawling = replace(SLOW, gbps=0.0001)
    assert judged([crawling, crawling], replace(TYPE, share=0.0), attempt=1).wrong == {}
    assert sorted(judged([STUCK, STUCK], replace(TYPE, share=0.0), attempt=1).wrong) == [0, 1]


def test_bus_bandwidth_does_not_depend_on_how_many_measure() -> None:
    assert bus_gbps(10**9, 8.0, 2) == 1.0
    assert bus_gbps(10**9, 16.0, 10_000_000) == pytest.approx(1.0, rel=1e-6)


# All nodes at once


@pytest.mark.parametrize("nodes", [2, 3, 9])
def test_a_fast_network_has_nothing_wrong_and_needs_no_second_look(nodes: int) -> None:
    found = judged([FAST] * nodes, TYPE, attempt=1)
    assert (dict(found.wrong), found.unsure) == ({}, False)
    assert (
        found.note == f"an all-reduce between {nodes} nodes reached 4 Gbit/s (CPU), and 1 Gbit/s are expected at least"
    )


def test_exactly_the_floor_is_enough() -> None:
    assert judged([replace(FAST, gbps=1.0)] * 2, TYPE, attempt=1).wrong == {}


def test_of_two_nodes_with_a_slow_link_both_are_named_because_nobody_can_tell() -> None:
    found = judged([SLOW, SLOW], TYPE, attempt=1)
    assert sorted(found.wrong) == [0, 1]
    assert "the check cannot tell which of the two machines is the cause" in found.wrong[0]


def test_of_two_nodes_that_never_end_both_are_named() -> None:
    assert sorted(judged([STUCK, STUCK], TYPE, attempt=1).wrong) == [0, 1]


@pytest.mark.parametrize("said", [[SLOW, SLOW], [STUCK, STUCK]])
def test_two_other_machines_that_are_as_slow_train_since_it_may_be_the_job(said: list[Measured]) -> None:
    found = judged(said, TYPE, attempt=2)
    assert found.wrong == {}
    assert "an earlier attempt has had other machines" in found.note


@pytest.mark.parametrize("said", [[FAILED, FAILED], [FAILED, STUCK], [STUCK, FAILED]])
def test_an_error_between_two_nodes_may_be_the_codes_and_names_nobody(said: list[Measured]) -> None:
    found = judged(said, TYPE, attempt=1)
    assert (dict(found.wrong), found.unsure) == ({}, False)
    assert "unhandled system error" in found.note


@pytest.mark.parametrize("nodes", [2, 3])
@pytest.mark.parametrize("other", [UNREADY, None])
@pytest.mark.parametrize("rest", [STUCK, FAILED])
def test_a_node_that_never_came_to_the_all_reduce_leaves_nobody_to_blame(
    nodes: int, other: Measured | None, rest: Measured
) -> None:
    found = judged([rest] * (nodes - 1) + [other], TYPE, attempt=1)
    assert (dict(found.wrong), found.unsure) == ({}, False)
    assert f"rank {nodes - 1}" in found.note


def test_a_node_that_died_after_the_end_of_the_all_reduce_changes_nothing() -> None:
    assert judged([FAST, None], TYPE, attempt=1).note.startswith("an all-reduce between 2 nodes reached")


@pytest.mark.parametrize("said", [[SLOW] * 3, [STUCK] * 3, [STUCK, FAILED, STUCK]])
def test_of_three_nodes_the_links_have_to_say_which(said: list[Measured]) -> None:
    found = judged(said, TYPE, attempt=2)
    assert (dict(found.wrong), found.unsure) == ({}, True)


# Link by link


@pytest.mark.parametrize("nodes", [3, 4, 5, 8, 9, 64])
def test_every_link_of_the_ring_is_measured_once_and_no_node_twice_at_a_time(nodes: int) -> None:
    made = rounds(nodes)
    links = [pair for part in made for pair in part]
    assert sorted(links) == sorted({tuple(sorted((rank, (rank + 1) % nodes))) for rank in range(nodes)})
    assert len(made) == 2 + nodes % 2
    for part in made:
        ranks = [rank for pair in part for rank in pair]
        assert len(ranks) == len(set(ranks))


@pytest.mark.parametrize("bad", [SLOW, STUCK, FAILED])
def test_a_node_whose_links_are_all_slow_is_named_alone(bad: Measured) -> None:
    found = judged_links(ring(4, l01=(bad, bad), l12=(bad, bad)), TYPE)
    assert list(found.wrong) == [1]
    assert "to rank 0" in found.wrong[1]
    assert "to rank 2" in found.wrong[1]
    assert "another link of the attempt reaches 4 Gbit/s" in found.wrong[1]


def test_of_three_nodes_the_one_without_a_fast_link_is_named() -> None:
    assert list(judged_links(ring(3, l01=(SLOW, SLOW), l12=(STUCK, STUCK)), TYPE).wrong) == [1]


def test_of_a_single_slow_link_both_ends_are_named() -> None:
    assert sorted(judged_links(ring(5, l23=(SLOW, SLOW)), TYPE).wrong) == [2, 3]


def test_two_bad_machines_side_by_side_are_both_named() -> None:
    found = judged_links(ring(5, l01=(SLOW, SLOW), l12=(SLOW, SLOW), l23=(SLOW, SLOW)), TYPE)
    assert sorted(found.wrong) == [1, 2]


@pytest.mark.parametrize("said", [(SLOW, SLOW), (STUCK, STUCK), (FAILED, FAILED)])
def test_where_every_link_is_slow_no_machine_is_at_fault(said: Said) -> None:
    links = ring(4, l01=said, l12=said, l23=said, l03=said)
    assert judged_links(links, TYPE).wrong == {}


def test_where_each_link_alone_is_fast_no_machine_is_at_fault() -> None:
    assert judged_links(ring(4), TYPE).wrong == {}


@pytest.mark.parametrize("gone", [None, UNREADY])
def test_a_node_that_is_gone_is_not_unhealthy_and_its_neighbours_are_not_either(gone: Measured | None) -> None:
    links = ring(4, l01=(STUCK, gone), l12=(gone, STUCK))
    assert judged_links(links, TYPE).wrong == {}


def test_a_link_that_one_end_has_seen_fast_is_fast() -> None:
    assert judged_links(ring(3, l01=(FAST, FAILED)), TYPE).wrong == {}


def test_without_a_known_rate_a_link_that_carries_nothing_still_counts() -> None:
    assert list(judged_links(ring(4, l01=(STUCK, STUCK), l12=(STUCK, STUCK)), replace(TYPE, gbps=0.0)).wrong) == [1]


# One node


def test_gpus_of_one_node_have_to_come_to_an_end_and_to_no_rate() -> None:
    assert judged_alone(replace(SLOW, gpus=8)).wrong == {}
    assert judged_alone(replace(STUCK, gpus=8)).wrong == {0: "an all-reduce between its 8 GPUs did not complete"}


@pytest.mark.parametrize("said", [UNREADY, FAILED])
def test_an_error_on_one_node_is_told_and_names_no_machine(said: Measured) -> None:
    found = judged_alone(said)
    assert (dict(found.wrong), said.words in found.note) == ({}, True)


# Ports


@pytest.mark.parametrize("master", [1024, 29500, 30500, 62535, 62536, 65535])
def test_the_checks_ports_are_ports_and_far_from_the_trainings(master: int) -> None:
    table, store = ports(master)
    assert len({master, table, store}) == 3
    assert all(1024 <= one <= 65535 and abs(one - master) >= 1000 for one in (table, store))
