"""A real torchrun on each node of an attempt, each with an agent of its own: the process that failed first gives its node the exit code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from agent import attempt
from contract.errors import NodeLost, TrainingFailed
from contract.jobs import Launcher
from contract.orders import OrderKind
from localaws.testing.waiting import HANG_S, until
from tests.node.clusters import Cluster
from tests.node.containers import AMI, Dock
from tests.node.world import KEYS, Site

BEGINS = """
import os, pathlib, signal, sys, time
rank, shared = int(os.environ["RANK"]), pathlib.Path(os.environ["SHARED"])
def wait_for(name):
    while not (shared / name).exists():
        time.sleep(0.01)
def save(*_):
    pathlib.Path(os.environ["CHECKPOINT_DIR"], f"saved-{rank}").write_text("whole")
    if "HOLDS" in os.environ:
        (shared / f"holds-{rank}").touch()
        wait_for("released")
    sys.exit(1)
signal.signal(signal.SIGTERM, save)
(shared / f"runs-{rank}").touch()
for other in range(int(os.environ["WORLD_SIZE"])):
    wait_for(f"runs-{other}")
"""
TRAINS = f"{BEGINS}\nos.write(1, ' '.join(sys.argv).encode() + b'\\n')\nwait_for('never')\n"
"""Writes a line at once: two processes print into one pipe."""


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder of all processes of all nodes."""
    (tmp_path / "shared").mkdir()
    return tmp_path / "shared"


@pytest.fixture
def nodes(tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Two nodes of two processes each."""
    monkeypatch.setattr(attempt, "LOOK_S", 0.02)
    monkeypatch.setenv("PATH", f"{AMI / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SHARED", str(shared))
    with ExitStack() as stack:
        yield Cluster.of(stack, tmp_path, 2)


def offer(nodes: Cluster, shared: Path, script: str, **variables: str) -> None:
    nodes.offer(
        script, launcher=Launcher.TORCHRUN, processes_per_node=2, command=("train.py", "--lr", "-1"),
        # The tests' own packages are for another Python.
        environment={"SHARED": str(shared), "PYTHONPATH": "", "OMP_NUM_THREADS": "1", **variables},
    )  # fmt: skip


def fail(how: str, rank: int = 3) -> str:
    return f"{BEGINS}\nif rank == {rank}:\n    {how}\nwait_for('never')\n"


def end_others(nodes: Cluster, failed: int) -> None:
    until(lambda: failed in nodes.ends)
    nodes.end_by_order([], OrderKind.STOP, NodeLost.__name__, f"rank {failed} has failed")
    until(lambda: len(nodes.ends) == len(nodes.sites))


def test_the_process_that_failed_first_gives_its_node_the_code(nodes: Cluster, shared: Path) -> None:
    offer(nodes, shared, fail("print('the data server is away', flush=True); sys.exit(75)"))
    nodes.start()
    end_others(nodes, 1)
    end = nodes.ends[1]
    assert (end.code, end.error) == (75, TrainingFailed.__name__), "its peer ended with 1, and torchrun with 1"
    assert end.reason == "rank 1: the command exited with code 75; it was process 3 of the training"
    assert any("exitcode  : 75" in line for line in end.tail), "torchrun reports what it would have reported without us"


@pytest.mark.at_length
def test_a_process_that_memory_was_too_small_for_is_the_cause(nodes: Cluster, shared: Path) -> None:
    offer(nodes, shared, fail("os.kill(os.getpid(), signal.SIGKILL)", 0))
    nodes.start()
    end_others(nodes, 0)
    assert nodes.ends[0].code == 137
    assert (
        "was ended by SIGKILL (code 137; often the machine's memory was full); it was process 0" in nodes.ends[0].reason
    )
    assert any("Signal 9 (SIGKILL)" in line for line in nodes.ends[0].tail), "as torchrun says it of its own processes"


@pytest.mark.at_length
def test_a_module_that_a_process_lacks_is_named_as_without_a_launcher(nodes: Cluster, shared: Path) -> None:
    offer(nodes, shared, fail("import no_such_module"))
    nodes.start()
    end_others(nodes, 1)
    assert "it was process 3 of the training; the machine image has" in nodes.ends[1].reason
    assert "no module no_such_module" in nodes.ends[1].reason


@pytest.mark.at_length
def test_a_failure_is_reported_while_the_peers_of_its_node_still_save(nodes: Cluster, shared: Path) -> None:
    """A process of another node that dies of it would else be taken for the cause."""
    offer(nodes, shared, fail("sys.exit(75)"), HOLDS="1")
    nodes.start()
    until((shared / "holds-2").exists)
    until(lambda: "failed" in nodes.sites[1].report().timeline)
    assert nodes.sites[1].report().outcome is None
    failed_at = nodes.sites[1].report().timeline["failed"]
    (shared / "released").touch()
    end_others(nodes, 1)
    last = nodes.sites[1].report()
    assert (last.exit and last.exit.code, last.timeline["failed"]) == (75, failed_at)
    assert (nodes.sites[1].root / "var/lib/trainyard/checkpoints/saved-2").read_text() == "whole"


@pytest.mark.at_length
def test_an_order_reaches_every_process_and_lets_it_save(nodes: Cluster, shared: Path) -> None:
    offer(nodes, shared, TRAINS)
    threads = nodes.start()
    until(lambda: all(len(nodes.lines(rank)) >= 2 for rank in (0, 1)))
    nodes.end_by_order(threads, OrderKind.CHECKPOINT_AND_STOP, NodeLost.__name__, "it is time")
    assert [(one.ordered, one.reason) for _, one in sorted(nodes.ends.items())] == [(True, "it is time")] * 2
    for rank in range(4):
        saved = nodes.sites[rank // 2].root / f"var/lib/trainyard/checkpoints/saved-{rank}"
        assert saved.read_text() == "whole"
        assert "train.py --lr -1" in nodes.lines(rank // 2)


def test_processes_that_end_well_end_their_node_well(nodes: Cluster, shared: Path) -> None:
    offer(nodes, shared, BEGINS)
    for thread in nodes.start():
        thread.join(HANG_S)
    assert [(one.code, one.error) for _, one in sorted(nodes.ends.items())] == [(0, ""), (0, "")]


def test_a_process_in_an_image_gives_its_node_the_code_too(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.imds.values["instance-type"] = "m7i.large"
    site.gets_keys = False
    site.give_credentials(replace(KEYS, addresses=("127.0.0.1",)))
    dock = Dock(site, tmp_path / "images", monkeypatch)
    dock.offer(
        "import os, sys; sys.exit(75 + int(os.environ['RANK']))", command=("/app/main.py",),
        launcher=Launcher.TORCHRUN, nodes=1, processes_per_node=1, environment={"PYTHONPATH": ""},
    )  # fmt: skip
    end = site.run()
    assert (end.code, end.reason) == (75, "rank 0: the command exited with code 75; it was process 0 of the training")
