"""Which devices of a machine a container gets, by the words that a docker gets that is a script of the test's."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from contract.fabric import Interface, InterfaceType
from localaws.testing.waiting import HANG_S
from tests.node.programs import Program
from tests.node.pulls import Pulled, docker

GPUS = ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
FABRIC = ("infiniband/uverbs0", "infiniband/uverbs1", "infiniband/rdma_cm")


class Bench:
    """Starts a container on a machine with these device files."""

    def __init__(self, folder: Path, program: Program) -> None:
        self._folder = folder
        program("docker", docker("exit 0"))

    def words(self, devices: tuple[str, ...], environment: dict[str, str] | None = None, **job: Any) -> list[str]:
        """Those that docker got to run it."""
        for name in devices:
            file = self._folder / "dev" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        variables = {"PATH": f"{self._folder}/programs:/usr/bin:/bin", "AWS_PROFILE": "agents"}
        machine = Pulled(self._folder, variables=variables, **job)
        machine.run()
        machine.workspace.start((), environment or {}, lambda _: None).wait(HANG_S)
        return [call for call in machine.calls if call.split()[2] == "run"][-1].split()

    @property
    def environment(self) -> set[str]:
        """Names of docker's own."""
        return {line.partition("=")[0] for line in (self._folder / "environment").read_text().splitlines()}

    def devices(self, there: tuple[str, ...], **job: Any) -> list[str]:
        """Paths in the container; each is the machine's own."""
        found = values(self.words(there, **job), "--device")
        assert all(one == f"{self._folder}{one.rpartition(':')[2]}:{one.rpartition(':')[2]}" for one in found)
        return [one.rpartition(":")[2].removeprefix("/dev/") for one in found]


def values(words: list[str], option: str) -> list[str]:
    return [value for name, value in pairwise(words) if name == option]


@pytest.fixture
def bench(tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("DOCK", str(tmp_path))
    return Bench(tmp_path, program)


def test_gpus_are_named_one_by_one_beside_the_toolkits_option(bench: Bench) -> None:
    """Of what the toolkit gives alone systemd does not know: it takes them away when it reads its units anew."""
    words = bench.words(GPUS)
    assert values(words, "--gpus") == ["all"]
    assert {one.rpartition("/")[2] for one in values(words, "--device")} == {*GPUS}


def test_what_is_no_gpu_of_the_jobs_is_left_out(bench: Bench) -> None:
    others = ("nvidia-nvswitchctl", "nvidia-nvswitch0", "nvme0n1", "sda", "mem", "kmsg")
    assert bench.devices(("nvidia0", *others)) == ["nvidia0"]


def test_a_machine_without_any_gives_no_device(bench: Bench) -> None:
    assert bench.devices(("null", "nvme0n1"), gpus={}) == []


def test_efa_devices_are_given_where_the_job_uses_efa(bench: Bench) -> None:
    assert bench.devices(
        FABRIC, gpus={}, interfaces={"g5.xlarge": (Interface(card=0, type=InterfaceType.EFA),)}
    ) == sorted(FABRIC, key=lambda one: "rdma" in one)


def test_efa_devices_are_not_given_where_it_does_not(bench: Bench) -> None:
    assert bench.devices(FABRIC, gpus={}) == []


def test_what_dockers_client_has_itself_does_not_come_into_a_container_with_a_job_role(bench: Bench) -> None:
    """Names without a value take away what the image says; with a value of docker's own they would set that."""
    assert "AWS_PROFILE" in values(bench.words((), gpus={}, job_role="datasets"), "--env")
    assert "AWS_PROFILE" not in bench.environment


def test_without_a_job_role_nothing_of_the_images_is_taken_away(bench: Bench) -> None:
    assert values(bench.words((), gpus={}), "--env") == []
    assert "AWS_PROFILE" in bench.environment
