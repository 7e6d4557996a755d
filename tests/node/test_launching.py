"""What the node runs for each launcher, and with which variables."""

from __future__ import annotations

import os
import shlex
import signal
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from agent.identity import NodeIdentity
from agent.launching.mpi import DAEMON, MpiShare
from agent.launching.relay import Meeting
from agent.launching.start import AWS_OPEN_MPI, Launch, describe_cluster, format_command
from agent.launching.torchrun import TorchrunShare
from agent.metadata import Metadata
from agent.store import Store
from contract.codec import encode
from contract.containers import Container
from contract.fabric import Interface, InterfaceType
from contract.jobs import Job, Launcher
from contract.remote import RemoteCommand
from tests.builders import JOB
from tests.node.fakes import FakeS3
from tests.node.recorder import Recorder

ADDRESSES = ("10.0.0.4", "10.0.0.5")
KIND = "m7i.large"
EFA_JOB = {"interfaces": {KIND: (Interface(card=0, device=0, type=InterfaceType.EFA),)}}
IMAGE = Container(source="images:mpi-1", digest="sha256:0", repositories={})


class Typed:
    """Metadata of a machine of one type."""

    def patient(self, path: str, _pause: Callable[[float], None]) -> str:
        assert path == "instance-type"
        return KIND


def node(rank: int = 0, addresses: tuple[str, ...] = ADDRESSES) -> NodeIdentity:
    return NodeIdentity(
        deployment="yard", job=JOB.id, attempt=1, rank=rank, instance="i-0", region=JOB.home_region, deadline=0,
        addresses=addresses,
    )  # fmt: skip


def launched(tmp_path: Path, job: Job, one: NodeIdentity, environment: Mapping[str, str], s3: Any = None) -> Recorder:
    workspace = Recorder(line="started")
    launch = Launch(
        job, one, cast(Any, workspace), Store(s3, "bytes"), tmp_path,
        note=lambda _: None, pause=lambda _: None, tell=lambda _: None, on_failure=lambda _: None,
    )  # fmt: skip
    launch.start(environment, cast(Metadata, Typed()), lambda _: None)
    return workspace


def test_without_a_launcher_the_command_runs_as_it_is(tmp_path: Path) -> None:
    ran = launched(tmp_path, JOB, node(), {"A": "1"})
    assert (tuple(ran.words), ran.variables) == (JOB.command, {"A": "1"})


def test_a_job_without_a_launcher_needs_no_addresses(tmp_path: Path) -> None:
    assert launched(tmp_path, JOB, node(addresses=()), {}).words


def test_torchrun_gets_the_nodes_place_in_the_cluster(tmp_path: Path) -> None:
    job = replace(JOB, launcher=Launcher.TORCHRUN, processes_per_node=2, command=("train.py",))
    ran = launched(tmp_path, job, node(1), {"A": "1"})
    assert ran.words[:7] == ["torchrun", "--nnodes", "2", "--node-rank", "1", "--nproc-per-node", "2"]
    assert (ran.words[-2:], ran.variables) == (["/opt/launcher/worker.py", "train.py"], {"A": "1"})
    assert (tmp_path / "launcher/worker.py").exists()


def test_rank_0_runs_mpirun_over_a_shell_around_each_process(tmp_path: Path) -> None:
    job = replace(JOB, launcher=Launcher.MPI, command=("python", "train.py"), processes_per_node=2)
    ran = launched(tmp_path, job, node(), {})
    assert ran.words == [
        *("/opt/launcher/share", "mpirun", "-np", "4", "/opt/launcher/trainyard-mpi"),
    ]
    assert (tmp_path / "launcher/command").read_text() == "python train.py", "mpirun takes words for its own"
    for name in ("PRTE_MCA_plm_ssh_agent", "OMPI_MCA_plm_rsh_agent", "HYDRA_LAUNCHER_EXEC"):
        assert ran.variables[name] == "/opt/launcher/remote"
    assert (tmp_path / "launcher/addresses").read_text() == "10.0.0.4\n10.0.0.5\n"


@pytest.mark.parametrize("launcher", Launcher)
def test_arguments_beside_an_image_are_the_commands_own(tmp_path: Path, launcher: Launcher) -> None:
    job = replace(JOB, launcher=launcher, command=("train",), container=replace(IMAGE, arguments=("--map-by", "x")))
    ran = launched(tmp_path, job, node(), {})
    if launcher is Launcher.MPI:
        assert "--map-by" not in ran.words, "mpirun would read it"
        ran.words = shlex.split((tmp_path / "launcher/command").read_text())
    assert ran.words[-3:] == ["train", "--map-by", "x"]


def test_another_node_runs_what_mpirun_asks_for(tmp_path: Path) -> None:
    job, s3 = replace(JOB, launcher=Launcher.MPI), FakeS3()
    meeting = Meeting(store=Store(s3, "bytes"), job=job.id, attempt=1, nodes=2)
    meeting.store.put(meeting.command(1), encode(RemoteCommand(command="prted --x")))
    assert launched(tmp_path, job, node(1), {}, s3).words == ["/opt/launcher/share", "/bin/sh", "-c", "prted --x"]


def test_a_job_with_efa_names_it_to_libfabric(tmp_path: Path) -> None:
    job = replace(JOB, launcher=Launcher.MPI, **EFA_JOB)  # type: ignore[arg-type]
    assert launched(tmp_path, job, node(), {}).variables["FI_PROVIDER"] == "efa"


def test_a_job_without_efa_leaves_the_choice_to_libfabric(tmp_path: Path) -> None:
    assert "FI_PROVIDER" not in launched(tmp_path, replace(JOB, launcher=Launcher.MPI), node(), {}).variables


def test_what_the_request_sets_wins(tmp_path: Path) -> None:
    job = replace(JOB, launcher=Launcher.MPI, **EFA_JOB)  # type: ignore[arg-type]
    asked = {"FI_PROVIDER": "tcp", "PRTE_MCA_hwloc_default_binding_policy": "core"}
    ran = launched(tmp_path, job, node(), asked)
    assert {name: ran.variables[name] for name in asked} == asked


def test_mpirun_of_awss_images_is_found_behind_all_others(tmp_path: Path) -> None:
    ran = launched(tmp_path, replace(JOB, launcher=Launcher.MPI), node(), {"PATH": "/mine:/usr/bin"})
    assert ran.variables["PATH"] == f"/mine:/usr/bin:{AWS_OPEN_MPI}"


def test_an_image_has_its_own_path_and_libraries(tmp_path: Path) -> None:
    ran = launched(tmp_path, replace(JOB, launcher=Launcher.MPI, container=IMAGE), node(), {})
    assert not {"PATH", "LD_LIBRARY_PATH"} & ran.variables.keys()


class Ended:
    """A training that has ended."""

    pid, why, tail, heard_at, ended_s = -1, "", deque[str](), 0.0, 0.0

    def wait(self, timeout_s: float) -> int | None:  # noqa: ARG002
        return 7

    def stop(self, first: signal.Signals, grace_s: float) -> int:  # noqa: ARG002
        return 7

    def end(self, linger_s: float = 0.0) -> int:  # noqa: ARG002
        return 7


@pytest.mark.parametrize("how", ["by itself", "by an order"])
def test_the_end_of_a_share_is_told_once_however_it_ends(tmp_path: Path, how: str) -> None:
    told, closed = list[int](), list[bool]()

    def tell(code: int) -> bool:
        told.append(code)
        return True

    share = MpiShare(
        Ended(), tmp_path, 1, what=DAEMON, on_end=tell, close=lambda: closed.append(True), sleep=lambda _: None
    )
    if how == "by an order":
        share.stop(signal.SIGTERM, 1.0)
    else:
        share.wait(0.0)
        share.end(0.0)
    assert (told, closed) == ([7], [True])


def test_an_end_that_was_not_told_is_told_again_before_the_node_reports_its_own(tmp_path: Path) -> None:
    (tmp_path / "codes").mkdir()
    (tmp_path / "codes/0").write_text("0\n")
    moments, answers = iter(range(0, 1000, 3)), iter([False, False, True])
    ended = Ended()
    ended.wait = lambda _: 0  # type: ignore[method-assign]
    share = MpiShare(
        ended, tmp_path, 1, what=DAEMON, on_end=lambda _: next(answers), close=lambda: None,
        monotonic=lambda: float(next(moments)), sleep=lambda _: None,
    )  # fmt: skip
    assert [share.wait(0.0) for _ in range(5)] == [None, None, None, None, 0]


@pytest.mark.parametrize(("codes", "end"), [({}, 1), ({0: 0}, 1), ({0: 0, 1: 143}, 1), ({0: 0, 1: 0}, 0)])
def test_a_share_ends_well_only_where_each_process_did_whatever_mpirun_says(
    tmp_path: Path, codes: dict[int, int], end: int
) -> None:
    """Open MPI 5.0.11 ends with 0 where it loses a daemon."""
    (tmp_path / "codes").mkdir()
    for rank, code in codes.items():
        (tmp_path / f"codes/{rank}").write_text(f"{code}\n")
    moments, ended = iter(range(0, 1000, 3)), Ended()
    ended.wait = lambda _: 0  # type: ignore[method-assign]
    share = MpiShare(
        ended, tmp_path, 2, what=DAEMON, on_end=lambda _: True, close=lambda: None,
        monotonic=lambda: float(next(moments)), sleep=lambda _: None,
    )  # fmt: skip
    said = [share.wait(0.0) for _ in range(5)]
    assert next(code for code in said if code is not None) == end


@pytest.mark.parametrize(
    ("ended", "codes", "code"),
    [
        (1, {}, 1),
        (1, {0: 0, 1: 0}, 1),
        (1, {0: 75}, 75),
        (1, {0: 143}, 143),
        (1, {0: 143, 1: 137}, 137),
        (0, {0: 75}, 0),
        (127, {}, 127),
    ],
)
def test_a_share_under_torchrun_ends_as_the_process_that_explains_its_end(
    tmp_path: Path, ended: int, codes: dict[int, int], code: int
) -> None:
    (tmp_path / "codes").mkdir()
    for rank, one in codes.items():
        (tmp_path / f"codes/{rank}").write_text(f"{one}\n")
    training = Ended()
    training.wait = lambda _: ended  # type: ignore[method-assign]
    share = TorchrunShare(training, tmp_path, on_failure=lambda _: None)
    assert share.wait(0.0) == code
    assert ("it was process" in share.why) is (code not in (0, ended))


def test_a_failure_under_torchrun_is_noted_once_with_its_moment_while_torchrun_runs(tmp_path: Path) -> None:
    training, noted = Ended(), list[float]()
    training.wait = lambda _: None  # type: ignore[assignment, method-assign]
    share = TorchrunShare(training, tmp_path, on_failure=noted.append)
    (tmp_path / "codes").mkdir()
    for code, moment in ((0, 100.0), (143, 200.0), (75, 300.0), (1, 400.0)):
        (tmp_path / f"codes/{moment:.0f}").write_text(f"{code}\n")
        os.utime(tmp_path / f"codes/{moment:.0f}", (moment, moment))
        assert share.wait(0.0) is None
    assert noted == [300.0]


@pytest.mark.parametrize(("nodes", "addresses"), [(1, ADDRESSES[:1]), (2, ()), (3, ADDRESSES)])
def test_a_cluster_that_is_not_known_or_is_none_is_not_described(nodes: int, addresses: tuple[str, ...]) -> None:
    assert describe_cluster(replace(JOB, nodes=nodes), node(addresses=addresses)) == {}


def test_several_nodes_have_the_cluster_in_tensorflows_words() -> None:
    assert describe_cluster(JOB, node()).keys() == {"TF_CONFIG", "CLUSTER_SPEC"}


def test_the_log_names_the_launcher() -> None:
    assert format_command(replace(JOB, launcher=Launcher.MPI, command=("a", "b c"))) == "mpi: a 'b c'"
    assert format_command(replace(JOB, command=())) == "the entry point of the image"
