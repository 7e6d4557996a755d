"""A real mpirun over the nodes of an attempt, each of which has an agent of its own: no sshd is there, and nothing listens for commands."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from agent.launching import mpi
from contract.errors import NodeLost, Stalled, TrainingFailed
from contract.jobs import Launcher
from contract.orders import Order, OrderKind
from localaws.testing.waiting import HANG_S, until
from tests.node.clusters import SUM, TRAINS, Cluster, once_all_train, runs
from tests.node.world import FAST

DIES = """
import os, sys
from mpi4py import MPI
world = MPI.COMM_WORLD
world.Barrier()
if world.rank == 2:
    print("the data of process 2 are broken", flush=True)
    os._exit(3)
while True:
    world.Barrier()
"""


def offer(cluster: Cluster, script: str, **changes: object) -> None:
    cluster.offer(script, **{"launcher": Launcher.MPI, **changes})


def parent_of(pid: int) -> int:
    """Returns 0 of a process that has gone: other processes of this computer come and go meanwhile."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def test_three_nodes_compute_together_and_each_logs_its_own_processes(cluster: Cluster) -> None:
    offer(cluster, SUM)
    ends = cluster.run()
    assert [(one.code, one.error, one.reason) for one in ends] == [(0, "", "")] * 3
    for rank in range(3):
        said = [line for line in cluster.lines(rank) if line.startswith("process")]
        assert said == [f"process {rank} of 3 on node {rank} sums to 6"]


def test_a_node_has_as_many_processes_as_the_job_asks_for(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nodes of one name would share Open MPI's memory segments; a machine of the rehearsal has a folder of its own for them.
    monkeypatch.setenv("OMPI_MCA_btl", "tcp,self")
    offer(cluster, SUM, processes_per_node=2)
    assert [one.code for one in cluster.run()] == [0, 0, 0], "\n".join(
        line for site in cluster.sites for line in site.lines
    )
    for rank in range(3):
        wanted = {f"process {one} of 6 on node {rank} sums to 21" for one in (2 * rank, 2 * rank + 1)}
        assert {line for line in cluster.lines(rank) if line.startswith("process")} == wanted


def test_a_process_that_dies_ends_all_nodes_and_its_own_has_the_cause(cluster: Cluster) -> None:
    offer(cluster, DIES)
    ends = cluster.run()
    assert [one.error for one in ends] == [TrainingFailed.__name__] * 3
    assert ends[2].code == 3
    assert ends[2].reason == "rank 2: the command exited with code 3; it was process 2 of the training"
    assert "the data of process 2 are broken" in ends[2].tail
    failed = [site.report().timeline["failed"] for site in cluster.sites]
    # Those of its peers that die of the broken connection do so within milliseconds, and a busy computer may write them down first.
    assert failed[2] - min(failed) < 1.0, "it is told at once; ends that it does not explain are told seconds later"


def test_a_process_that_memory_was_too_small_for_is_the_cause(cluster: Cluster) -> None:
    offer(cluster, DIES.replace("os._exit(3)", "os.kill(os.getpid(), 9)"))
    ends = cluster.run()
    assert ends[2].code == 137
    assert "was ended by SIGKILL (code 137; often the machine's memory was full); it was process 2" in ends[2].reason


def test_an_order_reaches_every_process_and_lets_it_save(cluster: Cluster) -> None:
    offer(cluster, TRAINS)
    threads = cluster.start()
    shown = once_all_train(cluster)
    cluster.end_by_order(threads, OrderKind.CHECKPOINT_AND_STOP, NodeLost.__name__, "it is time")
    assert [(one.ordered, one.reason) for _, one in sorted(cluster.ends.items())] == [(True, "it is time")] * 3
    for rank, site in enumerate(cluster.sites):
        assert (site.root / f"var/lib/trainyard/checkpoints/saved-{rank}").read_text() == "whole"
    until(
        lambda: not [pid for pids in shown.values() for pid in pids if runs(pid)]
    )  # the kernel ends a killed process a moment later


def test_an_order_that_comes_once_a_process_ends_lets_the_others_save(cluster: Cluster) -> None:
    """Process 0 waits in MPI_Finalize for process 1, which still saves."""
    offer(cluster, TRAINS, environment={"SAVES_FOR_S": "2"})
    threads = cluster.start()
    once_all_train(cluster)
    first = Order(
        kind=OrderKind.CHECKPOINT_AND_STOP, error=NodeLost.__name__, reason="it is time", by=2**31, author="attendant"
    )
    cluster.sites[1].order(first)
    until(lambda: all("leaves" in cluster.lines(rank) for rank in range(3)))
    cluster.end_by_order(threads, OrderKind.CHECKPOINT_AND_STOP, NodeLost.__name__, "it is time")
    for rank, site in enumerate(cluster.sites):
        assert (site.root / f"var/lib/trainyard/checkpoints/saved-{rank}").read_text() == "whole"


def test_a_stall_has_the_stacks_of_every_process_in_its_own_nodes_log(cluster: Cluster) -> None:
    # A node waits for two looks before it stops its processes, so that the others have read the order as well.
    offer(cluster, TRAINS, timing=replace(FAST, orders_every_s=2.0))
    threads = cluster.start()
    shown = once_all_train(cluster)
    cluster.end_by_order(threads, OrderKind.DUMP, Stalled.__name__, "it stands still")
    assert [one.error for one in cluster.ends.values()] == [Stalled.__name__] * 3
    for rank, site in enumerate(cluster.sites):
        assert any(f"process {shown[rank][0]} (python" in line for line in site.lines)
        assert any("train.py" in line and "File" in line for line in cluster.lines(rank)), site.lines
        assert (site.root / f"var/lib/trainyard/checkpoints/saved-{rank}").read_text() == "whole"


def test_an_order_before_rank_0s_mpirun_asks_ends_a_node_that_waits_for_it(cluster: Cluster) -> None:
    offer(cluster, SUM)
    waits = cluster.sites[1]
    threads = cluster.start(ranks=(1,))
    until(lambda: any("waits for rank 0's mpirun" in one.note for one in waits.sent()))
    waits.order(
        Order(kind=OrderKind.STOP, error=NodeLost.__name__, reason="rank 0 is lost", by=2**31, author="attendant")
    )
    threads[0].join(HANG_S)
    assert (cluster.ends[1].ordered, cluster.ends[1].reason) == (True, "rank 0 is lost")


def test_a_node_whose_daemon_is_killed_says_so_and_no_node_ends_well(cluster: Cluster) -> None:
    """Open MPI 5.0.11 ends with 0 where it loses a daemon."""
    offer(cluster, TRAINS)
    threads = cluster.start()
    shown = once_all_train(cluster)
    os.kill(parent_of(shown[1][1]), signal.SIGKILL)
    for thread in threads:
        thread.join(HANG_S)
    ends = [one for _, one in sorted(cluster.ends.items())]
    assert [one.error for one in ends] == [TrainingFailed.__name__] * 3
    # Processes that hear of it through a broken connection end by themselves, others by mpirun.
    assert all("that is" in one.reason or "it was process" in one.reason for one in ends)
    until(
        lambda: not [pid for pids in shown.values() for pid in pids if runs(pid)]
    )  # the kernel ends a killed process a moment later


def test_nothing_runs_on_when_mpirun_is_killed(cluster: Cluster) -> None:
    offer(cluster, TRAINS)
    threads = cluster.start()
    shown = once_all_train(cluster)
    shell = int((cluster.sites[0].root / "var/lib/trainyard/launcher/shell").read_text())
    (mpirun,) = [
        pid
        for pid in (int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit())
        if runs(pid) and parent_of(pid) == shell
    ]
    os.kill(mpirun, signal.SIGKILL)
    for thread in threads:
        thread.join(HANG_S)
    assert [one.error for one in cluster.ends.values()] == [TrainingFailed.__name__] * 3
    until(
        lambda: not [pid for pids in shown.values() for pid in pids if runs(pid)]
    )  # the kernel ends a killed process a moment later


def test_a_job_without_mpirun_ends_with_what_it_lacks(cluster: Cluster, tmp_path: Path) -> None:
    for name in ("sh", "python"):
        (tmp_path / name).symlink_to(f"/bin/{name}")
    offer(cluster, SUM, environment={"PATH": str(tmp_path)})
    cluster.start(ranks=(0,))[0].join(HANG_S)
    end = cluster.ends[0]
    assert (end.error, end.reason) == (
        TrainingFailed.__name__,
        "rank 0: launcher mpi needs mpirun, which neither the job's image nor its requirements bring",
    )


def test_a_launch_without_addresses_starts_no_launcher(cluster: Cluster) -> None:
    offer(cluster, SUM)
    cluster.sites[0].give_credentials()
    cluster.start(ranks=(0,))[0].join(HANG_S)
    assert "needs the addresses of all 3 nodes, and the launch named 0" in cluster.ends[0].reason


def test_the_end_of_a_node_waits_for_the_cause_no_longer_than_the_attendant_needs() -> None:
    assert mpi.EFFECT_S > 2 * 2.0
