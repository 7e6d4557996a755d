"""The deep check over several nodes, each a thread here, with a stand-in for PyTorch; and within the work of an agent."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.failures import CannotStart
from agent.links import check, measuring, meeting
from agent.links.check import DeepCheck, Node, ports
from agent.links.facts import Arrived
from contract import tags
from contract.health import HealthCheck
from contract.jobs import Job
from contract.orders import Order, OrderKind
from contract.reports import Phase
from contract.timing import Timing
from localaws.testing.waiting import HANG_S, until
from tests.builders import JOB
from tests.node.hangs import Hangs
from tests.node.world import FAST, Site

STAND_IN = Path(__file__).with_name("torch_stand_in")
TYPE = "t3.large"
PATIENT = replace(Timing(), links_patience_s=60.0, gate_allowance_s=400.0, silence_s=0.2)
SLOW = {"TORCH_DELAY": "0.6"}
"""Seconds for an all-reduce of the CPU's size: about half a Gbit/s; the floor is one."""


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "LOOK_S", 0.02)
    monkeypatch.setattr(meeting, "AGAIN_S", 0.05)
    monkeypatch.setattr(meeting, "LOOK_S", 0.02)


@pytest.fixture
def job() -> Iterator[Job]:
    """With a port whose table and store nobody else has here."""
    with closing(socket.create_server(("127.0.0.1", 0))) as held:
        master = 20_000 + held.getsockname()[1] % 8_000
        yield replace(
            JOB, health=HealthCheck.DEEP, master_port=master, network={TYPE: 5.0}, timing=PATIENT, environment={}
        )


def address(rank: int) -> str:
    return f"127.0.77.{rank + 1}"


class Cluster:
    """Nodes that check their network together."""

    def __init__(self, job: Job, folder: Path) -> None:
        self.job, self.folder, self.notes = job, folder, dict[int, list[str]]()

    def check(self, rank: int, **torch: str) -> DeepCheck:
        environment = {**os.environ, "PYTHONPATH": str(STAND_IN), **torch}
        me = Arrived(address=address(rank), instance=f"i-{rank}", instance_type=TYPE)
        node = Node(self.job, 1, rank, me, address(0), Path(sys.executable), environment, self.folder)
        return DeepCheck(node, pause=time.sleep, note=self.notes.setdefault(rank, []).append)

    def run(self, *nodes: dict[str, str] | None) -> list[Any]:
        """What each node says is wrong with it, or raises; None stands for one that never comes."""
        self.job = replace(self.job, nodes=len(nodes))
        given: list[Any] = [None] * len(nodes)

        def one(rank: int, torch: dict[str, str]) -> None:
            try:
                given[rank] = self.check(rank, **torch).run()
            except Exception as problem:
                given[rank] = problem

        threads = [
            threading.Thread(target=one, args=(rank, torch)) for rank, torch in enumerate(nodes) if torch is not None
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG_S)
            assert not thread.is_alive()
        return given

    def join_notes(self, rank: int = 0) -> str:
        return "\n".join(self.notes[rank])


@pytest.fixture
def cluster(job: Job, tmp_path: Path) -> Cluster:
    return Cluster(job, tmp_path)


@pytest.mark.parametrize("nodes", [2, 3])
def test_healthy_nodes_train_and_say_what_their_network_reaches(cluster: Cluster, nodes: int) -> None:
    assert cluster.run(*[{"TORCH_DELAY": "0.02"}] * nodes) == [""] * nodes
    assert f"an all-reduce between {nodes} nodes reached" in cluster.join_notes()
    assert "and 1 Gbit/s are expected at least" in cluster.join_notes(nodes - 1)


def test_of_two_nodes_both_say_that_one_of_them_is_slow_and_which_instances_they_are(cluster: Cluster) -> None:
    wrong = cluster.run({}, SLOW)
    assert wrong[0] == wrong[1]
    assert wrong[0].endswith("(rank 0: i-0, rank 1: i-1)")


@pytest.mark.at_length
def test_of_three_nodes_the_slow_one_names_itself_and_the_others_hold_and_blame_nobody_else(cluster: Cluster) -> None:
    wrong = cluster.run({}, SLOW, {})
    assert (wrong[0], wrong[2]) == ("", "")
    assert wrong[1].startswith("its link to rank 0 reaches 0.")
    assert "rank 1 has an unhealthy machine" in cluster.join_notes(0)


def test_an_image_whose_every_link_is_slow_trains(cluster: Cluster) -> None:
    assert cluster.run(SLOW, SLOW, SLOW) == ["", "", ""]
    assert "no single machine explains" in cluster.join_notes()


@pytest.mark.parametrize("mode", ["missing", "without distributed", "fails"])
def test_what_another_machine_would_have_as_well_keeps_nobody_from_training(cluster: Cluster, mode: str) -> None:
    cluster.job = replace(cluster.job, timing=replace(PATIENT, links_patience_s=1.5))
    assert cluster.run(*[{"TORCH_MODE": mode}] * 2) == ["", ""]


@pytest.mark.parametrize("mode", ["missing", "dies", "fails"])
@pytest.mark.parametrize("bad", [0, 1])
def test_a_peer_that_drops_out_of_the_all_reduce_blames_nobody(cluster: Cluster, mode: str, bad: int) -> None:
    nodes: list[dict[str, str]] = [{}, {}]
    nodes[bad] = {"TORCH_MODE": mode}
    cluster.job = replace(cluster.job, timing=replace(PATIENT, links_patience_s=1.5))
    assert cluster.run(*nodes) == ["", ""]


@pytest.mark.parametrize("there", [0, 1])
def test_a_peer_that_never_comes_is_waited_for_and_then_trained_without(cluster: Cluster, there: int) -> None:
    cluster.job = replace(cluster.job, timing=replace(PATIENT, links_patience_s=1.0, gate_allowance_s=6.5))
    nodes: list[dict[str, str] | None] = [None, None]
    nodes[there] = {}
    assert cluster.run(*nodes)[there] == ""
    assert "the network was not measured" in cluster.join_notes(there)


def test_a_peer_that_comes_late_is_waited_for(cluster: Cluster) -> None:
    cluster.job = replace(cluster.job, nodes=2)
    late = threading.Timer(0.3, lambda: cluster.check(1).run())
    late.start()
    assert cluster.check(0).run() == ""
    late.join()
    assert "an all-reduce between 2 nodes reached" in cluster.join_notes(0)


def test_a_port_that_is_taken_on_rank_0_is_said_instead_of_letting_all_wait_for_hours(cluster: Cluster) -> None:
    with closing(socket.create_server((address(0), ports(cluster.job.master_port)[0]))):
        (problem, _) = cluster.run({}, None)
    assert isinstance(problem, CannotStart)
    assert "health: quick needs none" in str(problem)


@pytest.mark.parametrize("gpus", [0, 1])
def test_a_single_node_without_several_gpus_has_nothing_to_measure(cluster: Cluster, gpus: int) -> None:
    cluster.job = replace(cluster.job, gpus={TYPE: gpus})
    assert cluster.run({"TORCH_MODE": "missing"}) == [""]
    assert "there is no network to measure" in cluster.join_notes()


def test_gpus_of_a_single_node_that_never_end_are_unhealthy(cluster: Cluster, hangs: Hangs) -> None:
    cluster.job = replace(cluster.job, gpus={TYPE: 2})
    assert cluster.run({"TORCH_GPUS": "2"}) == [""]
    assert cluster.run({"TORCH_GPUS": "2", "TORCH_MODE": "stuck", **hangs.variables}) == [
        "an all-reduce between its 2 GPUs did not complete"
    ]


# In the work of an agent


def offer(
    site: Site,
    script: str,
    *,
    health: HealthCheck = HealthCheck.DEEP,
    mode: str = "",
    hangs: Hangs | None = None,
    **changes: object,
) -> None:
    site.imds.values |= {
        "instance-type": TYPE,
        "local-ipv4": "127.0.0.1",
        f"tags/instance/{tags.MASTER_ADDRESS}": "127.0.0.1",
    }
    timing = replace(FAST, links_patience_s=HANG_S)
    hang = hangs.variables if hangs else {}
    environment = {"PYTHONPATH": str(STAND_IN), "TORCH_GPUS": "2", "TORCH_MODE": mode, **hang}
    facts = {"nodes": 1, "gpus": {TYPE: 2}, "timing": timing, "environment": environment, "master_port": 21_345}
    site.offer(script, health=health, **{**facts, **changes})


def test_a_node_measures_between_its_meeting_and_its_training_and_leaves_nothing(site: Site) -> None:
    offer(site, "import os\nprint(sorted(name for name in os.environ if 'NCCL' in name))")
    assert site.run().error == ""
    phases = list(dict.fromkeys(one.phase for one in site.sent()))
    assert phases.index(Phase.CHECKING) < phases.index(Phase.TRAINING)
    assert any("an all-reduce between its 2 GPUs reached" in line for line in site.lines)
    assert "[]" in site.lines
    assert list((site.root / "var/lib/trainyard" / check.PLACE).iterdir()) == []


def test_a_machine_that_its_deep_check_refuses_does_not_train_and_says_why(site: Site, hangs: Hangs) -> None:
    offer(site, "print('trains')", mode="stuck", hangs=hangs)
    ending = site.run()
    assert (ending.error, "trains" in site.lines) == ("NodeUnhealthy", False)
    assert ending.reason == "rank 0: its machine is unhealthy: an all-reduce between its 2 GPUs did not complete"
    assert "did not complete" in site.report(urgent=True).unhealthy


@pytest.mark.parametrize("health", [HealthCheck.QUICK, HealthCheck.OFF])
def test_other_checks_measure_nothing(site: Site, health: HealthCheck) -> None:
    offer(site, "print('trains')", health=health, mode="stuck")
    assert site.run().error == ""
    assert Phase.CHECKING not in {one.phase for one in site.sent()}


@pytest.mark.parametrize("mode", ["missing", "dies", "hangs on import"])
def test_a_check_that_learns_nothing_lets_the_training_start(site: Site, hangs: Hangs, mode: str) -> None:
    hangs.enough = 1
    offer(site, "print('trains')", mode=mode, hangs=hangs)
    assert site.run().error == ""
    assert "trains" in site.lines
    assert any("its GPUs were not measured together" in line for line in site.lines)


def test_an_order_ends_the_check(site: Site) -> None:
    offer(site, "print('trains')", mode="stuck")
    order = Order(kind=OrderKind.STOP, error="Interrupted", reason="spot", by=0, author="attendant")

    def act() -> None:
        until(lambda: any(one.phase is Phase.CHECKING for one in site.sent()))
        site.order(order)

    thread = threading.Thread(target=act)
    thread.start()
    ending = site.run()
    thread.join()
    assert (ending.error, ending.ordered, "trains" in site.lines) == ("Interrupted", True, False)
