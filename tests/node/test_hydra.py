"""The mpirun of MPICH, Intel MPI and MVAPICH over three nodes: Hydra has its daemons started as by ssh, and waits for their ends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from contract.errors import NodeLost, TrainingFailed
from contract.jobs import Launcher
from contract.orders import OrderKind
from localaws.testing.waiting import HANG_S, until
from tests.node.clusters import SUM, TRAINS, Cluster, once_all_train, runs
from tests.node.world import FAST

pytestmark = pytest.mark.at_length
HYDRA = Path(__file__).parents[2] / "build/hydra/bin"
FAILS = """
import os, sys, time
from mpi4py import MPI
world = MPI.COMM_WORLD
world.allreduce(1)
if world.rank == 1:
    print("no more data", flush=True)
    os._exit(3)
time.sleep(300)
"""
LEAVES = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(10_000)"])
print(child.pid, flush=True)
"""


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
    until(
        lambda: not [pid for pids in shown.values() for pid in pids if runs(pid)]
    )  # the kernel ends a killed process a moment later


def test_a_process_that_fails_is_its_nodes_end_and_an_order_ends_the_others(cluster: Cluster) -> None:
    offer(cluster, FAILS)
    threads = cluster.start()
    threads[1].join(HANG_S)
    assert (cluster.ends[1].code, cluster.ends[1].error) == (3, TrainingFailed.__name__)
    cluster.end_by_order(threads, OrderKind.STOP, TrainingFailed.__name__, "rank 1 failed")
    assert sorted(cluster.ends) == [0, 1, 2]


def test_a_training_ends_although_its_processes_left_others_behind(cluster: Cluster) -> None:
    offer(cluster, LEAVES)
    assert [(one.code, one.error) for one in cluster.run()] == [(0, "")] * 3
    until(lambda: not [rank for rank in range(3) for pid in cluster.lines(rank) if runs(int(pid))])
