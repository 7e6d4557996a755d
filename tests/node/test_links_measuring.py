"""This node's part of an all-reduce: processes that hang, die, lie or flood, and nothing of them left."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from agent.links import measuring
from agent.links.facts import Measured, Reached
from agent.links.measuring import MOST_BYTES, MOST_WORDS, Group, measure, understood
from localaws.testing.waiting import HANG_S
from tests.node.hangs import Hangs

STAND_IN = Path(__file__).with_name("torch_stand_in")
HOST = "127.0.0.1"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "LOOK_S", 0.02)


@pytest.fixture
def port() -> int:
    with closing(socket.create_server((HOST, 0))) as made:
        number: int = made.getsockname()[1]
        return number


Act = Callable[..., Measured]


@pytest.fixture
def alone(tmp_path: Path, port: int, hangs: Hangs) -> Act:
    """A group of one node, whose PyTorch is the stand-in."""

    def run(
        *,
        most_s: float = HANG_S,
        pause: Callable[[float], None] = time.sleep,
        python: str = sys.executable,
        **torch: str,
    ) -> Measured:
        variables = {f"TORCH_{name.upper()}": value for name, value in torch.items()}
        environment: Mapping[str, str] = {**os.environ, "PYTHONPATH": str(STAND_IN), **hangs.variables, **variables}
        group = Group((3,), HOST, port)
        return measure(Path(python), environment, tmp_path, group, 3, most_s=most_s, pause=pause)

    return run


def left(folder: Path) -> list[str]:
    """Processes that work in the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found += [entry.name] * (Path(entry, "cwd").readlink() == folder)
            except OSError:
                continue
    return found


def test_gpus_of_a_node_measure_each_with_a_process_of_its_own(alone: Act) -> None:
    said = alone(gpus="2", delay="0.2")
    assert (said.outcome, said.gpus, said.network, said.words) == (Reached.DONE, 2, "AWS Libfabric, efa", "")
    assert said.gbps == pytest.approx(256 * 1024**2 * 8 / 0.2 / 1e9, abs=1e-4)


def test_an_older_pytorch_has_one_store(alone: Act) -> None:
    assert alone(gpus="2", mode="old").outcome is Reached.DONE


def test_a_port_that_was_used_a_moment_ago_is_free(alone: Act) -> None:
    assert {alone(gpus="2").outcome for _ in range(3)} == {Reached.DONE}


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("missing", "ModuleNotFoundError: No module named 'torch'"),
        ("without distributed", "RuntimeError: this PyTorch was built without torch.distributed"),
    ],
)
def test_an_environment_without_what_it_needs_is_no_fault_of_the_machine(alone: Act, mode: str, words: str) -> None:
    said = alone(gpus="2", mode=mode)
    assert (said.outcome, said.words) == (Reached.UNREADY, words)


def test_a_device_that_does_not_open_is_not_ready(alone: Act) -> None:
    said = alone(gpus="2", mode="broken device")
    assert said.outcome is Reached.UNREADY
    assert "unspecified launch failure" in said.words


def test_a_port_that_is_taken_is_not_ready(alone: Act, port: int) -> None:
    with closing(socket.create_server((HOST, port))):
        said = alone()
    assert said.outcome is Reached.UNREADY
    assert "in use" in said.words


@pytest.mark.parametrize("python", ["/no/such/python", "/etc/hostname"])
def test_a_python_that_cannot_be_started_is_not_ready(alone: Act, python: str) -> None:
    assert alone(python=python).outcome is Reached.UNREADY


def test_a_pytorch_that_hangs_on_import_is_left_in_time_and_is_no_slow_network(
    alone: Act, tmp_path: Path, hangs: Hangs
) -> None:
    hangs.enough = 1
    said = alone(mode="hangs on import")
    assert (said.outcome, said.words) == (Reached.UNREADY, "PyTorch was not ready in time")
    assert left(tmp_path) == []


def test_an_all_reduce_that_hangs_is_stuck_and_ended_with_all_its_processes(alone: Act, tmp_path: Path) -> None:
    said = alone(gpus="2", mode="stuck")
    assert (said.outcome, said.gpus) == (Reached.STUCK, 2)
    assert left(tmp_path) == []


@pytest.mark.parametrize(("mode", "words"), [("fails", "NCCL error"), ("dies", "it ended with code 9")])
def test_a_process_that_dies_ends_the_others_at_once(alone: Act, tmp_path: Path, mode: str, words: str) -> None:
    said = alone(gpus="2", mode=mode)
    assert said.outcome in (Reached.FAILED, Reached.UNREADY)  # the other may not have been ready yet
    # Two processes write to one pipe, and Python writes the name of an error, and what it says, apart.
    assert words in said.words or "closed by peer" in said.words
    assert left(tmp_path) == []


def test_what_ends_the_wait_ends_the_processes(alone: Act, tmp_path: Path, hangs: Hangs) -> None:
    class OrderedError(Exception):
        pass

    def ordered(seconds: float) -> None:
        time.sleep(seconds)
        if left(tmp_path):
            raise OrderedError

    hangs.enough = 1000
    with pytest.raises(OrderedError):
        alone(gpus="2", mode="stuck", pause=ordered)
    assert left(tmp_path) == []


def test_a_flood_of_lies_is_cut_and_believed_nowhere(alone: Act) -> None:
    said = alone(gpus="2", mode="floods", delay="0.05")
    assert len(said.words) <= MOST_WORDS
    assert said.gbps < 10_000


# What is said


@pytest.mark.parametrize(
    ("words", "network"),
    [
        ("NCCL INFO Using network Socket", "Socket"),
        (
            "NCCL INFO NET/OFI Selected provider is efa, fabric is efa\nNCCL INFO Using network Libfabric",
            "Libfabric, efa",
        ),
        ("NCCL INFO NET/OFI Selected Provider is tcp\nNCCL INFO Using network AWS Libfabric", "AWS Libfabric, tcp"),
        ("NCCL INFO Using network " + "x" * 500, "x" * 40),
        ("", ""),
    ],
)
def test_the_network_is_named_in_the_words_of_nccl(words: str, network: str) -> None:
    figures = '{"seconds": 0.1, "bytes": 1000000, "ranks": 2}'
    assert understood(lines(*READY, figures), words.encode(), 0).network == network


def lines(*said: str) -> bytes:
    return "\n".join(said).encode()


READY = ('{"processes": 1, "gpus": 0}', '{"ready": 0}')


@pytest.mark.parametrize(
    "figures",
    [
        '{"seconds": NaN, "bytes": 1048576, "ranks": 2}',
        '{"seconds": Infinity, "bytes": 1048576, "ranks": 2}',
        '{"seconds": 0.0, "bytes": 1048576, "ranks": 2}',
        '{"seconds": -1.0, "bytes": 1048576, "ranks": 2}',
        '{"seconds": 1e-300, "bytes": 1048576, "ranks": 2}',
        '{"seconds": "1.0", "bytes": 1048576, "ranks": 2}',
        '{"seconds": 1.0, "bytes": 0, "ranks": 2}',
        '{"seconds": 1.0, "bytes": 1e9, "ranks": 2}',
        '{"seconds": 1.0, "bytes": 1048576, "ranks": 1}',
        '{"seconds": 1.0, "bytes": 1048576, "ranks": 0}',
        '{"seconds": 1.0, "bytes": 1048576}',
        '{"seconds": 1.0, "bytes": 1' + "0" * 5000 + ', "ranks": 2}',
        "[" * 100_000,
        "seconds: 1",
        "",
    ],
)
def test_figures_that_cannot_be_are_none(figures: str) -> None:
    said = understood(lines(*READY, figures), b"boom", 1)
    assert (said.outcome, said.gbps, said.words) == (Reached.FAILED, 0.0, "boom")


def test_of_different_figures_the_lowest_counts() -> None:
    said = understood(lines(*READY, *(f'{{"seconds": {s}, "bytes": 1000000, "ranks": 2}}' for s in (0.1, 0.2))), b"", 0)
    assert said.gbps == pytest.approx(0.04)


@pytest.mark.parametrize(
    "said",
    [
        (),
        ('{"processes": 8, "gpus": 8}',),
        ('{"processes": 2, "gpus": 2}', '{"ready": 0}', '{"ready": 0}'),
        ('{"processes": 100000, "gpus": 0}', '{"ready": 0}'),
        ('{"processes": true}', '{"ready": 0}'),
        ('{"ready": 0}',),
    ],
)
def test_before_every_process_is_ready_nothing_is_known_of_the_network(said: tuple[str, ...]) -> None:
    assert understood(lines(*said), b"", None).outcome is Reached.UNREADY


def test_words_are_the_last_line_and_short() -> None:
    words = f"Traceback\n{'x' * 5000}\n\n".encode() + b"\xff" * 10
    said = understood(lines(*READY), words, 1)
    assert len(said.words) <= MOST_WORDS
    assert understood(lines(*READY), b"a\nb\n \n", -6).words == "b"
    assert understood(lines(*READY), b"", -6).words == "it ended with code -6"
    assert MOST_BYTES < 10**6
