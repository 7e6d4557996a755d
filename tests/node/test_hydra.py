"""The mpirun of MPICH, Intel MPI and MVAPICH over three nodes: Hydra has its daemons started as by ssh, and waits for their ends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from contract.errors import NodeLost
from contract.jobs import Launcher
from contract.orders import OrderKind
from tests.node.clusters import SUM, TRAINS, Cluster, once_all_train, runs
from tests.node.world import FAST

pytestmark = [pytest.mark.at_length, pytest.mark.timeout(200)]
HYDRA = Path(__file__).parents[2] / "build/hydra/bin"


def offer(cluster: Cluster, script: str) -> None:
    path = {"PATH": f"{HYDRA}:/usr/bin:/bin"}
    cluster.offer(
        script,
        launcher=Launcher.MPI,
        environment=path,
        command=(str(HYDRA / "python"), "train.py"),
        # A node whose processes have left before its order came waits so long for Hydra, and then ends it.
        timing=replace(FAST, stop_grace_s=15.0),
    )


def test_three_nodes_compute_together_and_each_logs_its_own_processes(cluster: Cluster) -> None:
    offer(cluster, SUM)
    assert [(one.code, one.error) for one in cluster.run()] == [(0, "")] * 3
    for rank in range(3):
        assert cluster.lines(rank) == [f"process {rank} of 3 on node {rank} sums to 6"]


def test_an_order_reaches_every_process_and_lets_it_save(cluster: Cluster) -> None:
    offer(cluster, TRAINS)
    threads = cluster.start()
    shown = once_all_train(cluster)
    cluster.end_by_order(threads, OrderKind.CHECKPOINT_AND_STOP, NodeLost.__name__, "it is time")
    assert [one.ordered for one in cluster.ends.values()] == [True] * 3
    for rank, site in enumerate(cluster.sites):
        assert (site.root / f"var/lib/trainyard/checkpoints/saved-{rank}").read_text() == "whole"
    assert not [pid for pids in shown.values() for pid in pids if runs(pid)]
