"""The GPUs that a node of the local AWS shows: by the words and exit codes of its own nvidia-smi."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from localaws.machines import gpus
from localaws.machines.gpus import GpuState
from localaws.services.ec2_moto import gpus_of


def run_nvidia_smi(folder: Path, timeout: float = 10.0) -> tuple[int, list[str]]:
    """What the node's nvidia-smi answers."""
    command = [str(folder / gpus.INSTALLED), "--query-gpu=pci.bus_id", "--format=csv,noheader"]
    done = subprocess.run(
        command, env={"LOCAL_AWS_ROOT": str(folder), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.splitlines()


def test_a_node_shows_as_many_healthy_gpus_as_its_type_has(tmp_path: Path) -> None:
    gpus.install(tmp_path, GpuState(gpus=gpus_of("p5.48xlarge")))
    code, rows = run_nvidia_smi(tmp_path)
    assert (code, len(rows), len(set(rows))) == (0, 8, 8)
    assert all(row.endswith(", 0, No, No, [N/A]") for row in rows)


@pytest.mark.parametrize(("name", "number"), [("t3.large", 0), ("trn1.32xlarge", 0), ("g6f.large", 0), ("no.such", 0)])
def test_a_type_without_whole_gpus_of_nvidia_has_none(name: str, number: int) -> None:
    assert gpus_of(name) == number


def test_a_bad_one_answers_with_its_words_and_its_code(tmp_path: Path) -> None:
    gpus.install(tmp_path, GpuState(gpus=1))
    gpus.show(tmp_path, GpuState(gpus=0, code=15, words="GPU is lost"))
    assert run_nvidia_smi(tmp_path) == (15, ["GPU is lost"])


def test_only_the_first_one_has_errors(tmp_path: Path) -> None:
    gpus.install(tmp_path, GpuState(gpus=2, errors=3))
    assert [row.split(", ")[1] for row in run_nvidia_smi(tmp_path)[1]] == ["3", "0"]


def test_one_that_hangs_says_nothing(tmp_path: Path) -> None:
    gpus.install(tmp_path, GpuState(gpus=1, hangs=True))
    with pytest.raises(subprocess.TimeoutExpired):
        run_nvidia_smi(tmp_path, timeout=0.3)
