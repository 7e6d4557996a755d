"""The stand-in for the deep-learning AMI: PyTorch for the CPU alone wherever that can be had."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from localaws.machines import image as machine_image

NOTES = 'echo "$0 $*" >> "{calls}"\n'
UNREACHABLE = """case "$*" in *--torch-backend*)
echo 'error: Request failed' >&2; echo '  cause: failed to look up the address' >&2; exit 2;; esac
"""
OF_NO_USE = UNREACHABLE.replace("*--torch-backend*", "*")
PLAN = """case "$*" in *--dry-run*) echo '{{"install": [{packages}]}}';; esac\n"""
CUDA = ", ".join(
    json.dumps({"metadata": {"name": name}, "download_info": {"url": f"https://packages.test/{name}.whl"}})
    for name in ("nvidia-cublas", "torch")
)


def program(place: Path, calls: Path, body: str = "") -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("#!/bin/sh\n" + NOTES.format(calls=calls) + body)
    place.chmod(0o755)


class Machine:
    """A folder where the environment is to be made, with programs that write down how they are called."""

    def __init__(self, folder: Path, *, uv: str = "", packages: str = "") -> None:
        self.image, self._calls = folder / "ami", folder / "calls"
        program(folder / "uv", self._calls, uv)
        program(self.image / "bin" / "pip", self._calls, PLAN.format(packages=packages))
        program(self.image / "bin" / "python", self._calls)

    @property
    def calls(self) -> list[str]:
        """Each with its program ahead."""
        return self._calls.read_text().splitlines()


@pytest.fixture(autouse=True)
def _uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_image, "UV", tmp_path / "uv")


def pips(machine: Machine) -> list[str]:
    return [call for call in machine.calls if "--disable-pip-version-check" in call]


def test_pytorch_comes_from_its_own_index_of_builds_for_the_cpu(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine_image.make(machine.image)
    (uv,) = [call for call in machine.calls if " pip install " in call]
    assert "--torch-backend cpu" in uv
    assert f"--python {machine.image / 'bin' / 'python'}" in uv
    assert pips(machine) == []


def test_where_that_index_cannot_be_reached_pip_looks_and_the_reason_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(tmp_path, uv=UNREACHABLE)
    machine_image.make(machine.image)
    assert len(pips(machine)) == 1  # everything was there
    said = capfd.readouterr().out
    assert "cause: failed to look up the address" in said
    assert "CUDA" not in said


def test_uv_unpacks_what_pip_has_found(tmp_path: Path) -> None:
    machine = Machine(tmp_path, uv=UNREACHABLE, packages=CUDA)
    machine_image.make(machine.image)
    assert any(call.endswith("torch @ https://packages.test/torch.whl") for call in machine.calls)
    assert len(pips(machine)) == 1


def test_where_only_pip_has_the_password_pip_unpacks(tmp_path: Path) -> None:
    machine = Machine(tmp_path, uv=OF_NO_USE, packages=CUDA)
    machine_image.make(machine.image)
    assert [" --dry-run " in call for call in pips(machine)] == [True, False]


def test_packages_for_gpus_are_announced_before_they_are_downloaded(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    machine_image.make(Machine(tmp_path, uv=UNREACHABLE, packages=CUDA).image)
    assert "1 CUDA packages come with them, about 3 GB to download" in capfd.readouterr().out


def test_scripts_run_from_a_folder_with_a_blank_in_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    machine = Machine(folder)
    python, script = machine.image / "bin" / "python", machine.image / "bin" / "aws"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    script.write_text(f"#!{python}\nimport sys\nprint(sys.argv[1:])\n")
    shutil.copymode(python, script)
    machine_image._mend_scripts(python.parent)
    said = subprocess.run([str(script), "s3", "a b"], capture_output=True, text=True, check=True).stdout
    assert said == "['s3', 'a b']\n"
