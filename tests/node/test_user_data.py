"""The user data under bash with stand-ins for what it calls: the timer comes first, and every way out powers off."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from localaws.testing.waiting import HANG_S

ROOT = Path(__file__).parents[2]
USER_DATA = ROOT / "node" / "user_data.sh"
AGENT = "s3://assets/agent.zip"
WITH_SYSTEMD = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None,
    reason="This machine has no systemd-analyze: that systemd understands the units and the timer's time is not shown.",
)


@dataclass
class Machine:
    """A root folder and a folder of programs; each stand-in writes its call to one list."""

    root: Path
    programs: Path
    log: Path
    digest: str = ""
    """Of the agent that the job was admitted with."""

    def program(self, name: str, body: str = "") -> None:
        file = self.programs / name
        file.write_text(f'#!/bin/bash\necho "{name} $*" >> {self.log}\n{body}\n')
        file.chmod(0o755)

    def boot(self) -> subprocess.CompletedProcess[str]:
        """The script as the launcher renders it, with no program in reach but the stand-ins and the machine's basic ones."""
        body = USER_DATA.read_text().split("\n", 1)[1]
        header = [
            "#!/bin/bash",
            f"TRAINYARD_AGENT={AGENT}",
            f"TRAINYARD_AGENT_SHA256={self.digest}",
            "TRAINYARD_HOME_REGION=eu-central-1",
            "TRAINYARD_HOME_BUCKET=yard-home",
            "TRAINYARD_TABLE=yard-state",
            "TRAINYARD_NODE_ROLE=AROA0123456789ABCDEFG",
            "TRAINYARD_POWER_OFF_S=2700",
        ]
        return subprocess.run(
            ["/bin/bash"],
            input="\n".join([*header, body]),
            env={"PATH": str(self.programs), "TRAINYARD_ROOT": str(self.root)},
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )

    @property
    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    @property
    def timer(self) -> Path:
        return self.root / "etc/systemd/system/trainyard-power-off.timer"


def agent(folder: Path, main: str) -> Path:
    """An archive with an agent that does `main`."""
    file = folder / "agent.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("agent/__init__.py", "")
        archive.writestr("agent/__main__.py", main)
    return file


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A healthy machine whose agent prints where it runs."""
    made = Machine(tmp_path / "root", tmp_path / "bin", tmp_path / "calls")
    made.root.mkdir()
    made.programs.mkdir()
    for name in ("mkdir", "cat", "chmod", "date", "mv", "touch", "sha256sum"):
        (made.programs / name).symlink_to(shutil.which(name) or "/bin/false")
    for name in ("systemctl", "sleep"):
        made.program(name)
    made.program("timeout", 'shift; exec "$@"')
    (made.programs / "python3").symlink_to(sys.executable)
    names = ("TRAINYARD_HOME_BUCKET", "TRAINYARD_HOME_REGION", "TRAINYARD_TABLE", "TRAINYARD_NODE_ROLE", "HOME")
    says = f"import os; print('agent:', *(os.environ[name] for name in {names}))"
    archive = agent(tmp_path, says)
    made.digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    made.program("aws", f'{shutil.which("cp")} {archive} "${{@: -1}}"')
    return made


def powered_off(machine: Machine) -> bool:
    return "systemctl poweroff" in machine.calls


def test_a_healthy_machine_runs_the_agent_and_powers_off(machine: Machine) -> None:
    done = machine.boot()
    assert "agent: yard-home eu-central-1 yard-state AROA0123456789ABCDEFG /" in done.stdout
    assert f"--region eu-central-1 {AGENT}" in " ".join(machine.calls)
    assert powered_off(machine)
    assert done.returncode == 0


def test_an_agent_of_other_bytes_than_the_job_was_admitted_with_never_runs(machine: Machine) -> None:
    machine.digest = "0" * 64
    done = machine.boot()
    assert "agent:" not in done.stdout
    assert "is not the agent that the job was admitted with" in done.stderr
    assert powered_off(machine)
    assert done.returncode != 0


def test_the_timer_is_absolute_persistent_and_armed(machine: Machine) -> None:
    before = int(time.time())
    machine.boot()
    text = machine.timer.read_text()
    found = re.search(r"^OnCalendar=(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC$", text, re.M)
    assert found
    at = subprocess.run(["date", "-u", "-d", f"{found[1]} UTC", "+%s"], capture_output=True, text=True, check=True)
    assert before + 2700 <= int(at.stdout) <= time.time() + 2700
    assert "Persistent=true" in text
    assert "AccuracySec=1s" in text
    units = [call for call in machine.calls if call.endswith((".timer", "daemon-reload"))]
    assert units == [
        "systemctl daemon-reload",
        "systemctl enable trainyard-power-off.timer",
        "systemctl restart trainyard-power-off.timer",
    ]


def test_the_timer_is_armed_before_anything_else_is_tried(machine: Machine) -> None:
    machine.boot()
    armed = machine.calls.index("systemctl restart trainyard-power-off.timer")
    tried = next(place for place, call in enumerate(machine.calls) if call.startswith("aws"))
    assert armed < tried
    assert {call.split()[0] for call in machine.calls[:armed]} == {"systemctl"}


def test_a_machine_that_cannot_arm_its_timer_runs_nothing(machine: Machine) -> None:
    machine.program("systemctl", '[ "$1" != restart ]')
    machine.boot()
    assert powered_off(machine)
    assert not any(call.startswith("aws") for call in machine.calls)


def test_a_machine_without_the_agent_powers_off_after_patient_tries(machine: Machine) -> None:
    machine.program("aws", "exit 1")
    done = machine.boot()
    assert powered_off(machine)
    assert f"could not fetch {AGENT}" in done.stderr
    waits = [float(call.split()[1]) for call in machine.calls if call.startswith("sleep")]
    assert 180 < sum(waits[:-1]) < 600


def test_a_network_that_is_late_is_waited_for(machine: Machine) -> None:
    copy = (machine.programs / "aws").read_text().splitlines()[-1]
    machine.program("aws", f"[ $(/bin/grep -c ^aws {machine.log}) -ge 3 ] || exit 1\n{copy}")
    assert "agent: yard-home" in machine.boot().stdout


def test_a_machine_without_a_command_line_powers_off(machine: Machine) -> None:
    (machine.programs / "aws").unlink()
    machine.boot()
    assert powered_off(machine)


def test_a_machine_without_python_powers_off_and_says_so(machine: Machine) -> None:
    (machine.programs / "python3").unlink()
    done = machine.boot()
    assert powered_off(machine)
    assert "no Python 3.10" in done.stderr


def test_a_python_that_is_too_old_is_passed_over(machine: Machine) -> None:
    old = machine.root / "opt/pytorch/bin/python"
    old.parent.mkdir(parents=True)
    old.write_text("#!/bin/bash\nexit 1\n")
    old.chmod(0o755)
    assert "agent: yard-home" in machine.boot().stdout


def with_python(machine: Machine, folder: str) -> None:
    chosen = machine.root / folder / "bin/python"
    chosen.parent.mkdir(parents=True)
    chosen.write_text(f'#!/bin/bash\necho "{folder} $*" >> {machine.log}\nexec "{sys.executable}" "$@"\n')
    chosen.chmod(0o755)


def test_the_python_of_a_pytorch_image_comes_first(machine: Machine) -> None:
    with_python(machine, "opt/pytorch")
    machine.boot()
    assert "opt/pytorch -m agent" in machine.calls


@pytest.mark.parametrize("newest", ["pytorch_2_9", "torch_neuronx_2_14_0"])
def test_the_python_of_a_neuron_image_is_that_of_plain_pytorch(machine: Machine, newest: str) -> None:
    for name in (newest, f"{newest}_nxd_training", "pytorch_inference_vllm_0_13", "jax_0_7"):
        with_python(machine, f"opt/aws_neuronx_venv_{name}")
    machine.boot()
    assert f"opt/aws_neuronx_venv_{newest} -m agent" in machine.calls


def test_an_archive_that_is_none_powers_off(machine: Machine) -> None:
    machine.program("aws", 'echo garbage > "${@: -1}"')
    machine.digest = hashlib.sha256(b"garbage\n").hexdigest()
    done = machine.boot()
    assert powered_off(machine)
    assert "not an archive" in done.stderr


@pytest.mark.parametrize("main", ["raise SystemExit(7)", "import os; os.kill(os.getpid(), 9)", "syntax error"])
def test_an_agent_that_crashes_powers_off(machine: Machine, main: str) -> None:
    archive = agent(machine.log.parent, main)
    machine.digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    machine.program("aws", f'{shutil.which("cp")} {archive} "${{@: -1}}"')
    done = machine.boot()
    assert powered_off(machine)
    assert "the agent ended with code" in done.stderr
    assert done.returncode != 0


def test_a_power_off_that_hangs_becomes_a_hard_one(machine: Machine) -> None:
    (machine.root / "proc").mkdir()
    machine.boot()
    end = machine.calls.index("systemctl poweroff")
    assert machine.calls[end:] == [
        "systemctl poweroff",
        "sleep 60",
        "timeout 20 systemctl poweroff --force --force",
        "systemctl poweroff --force --force",
    ]
    assert (machine.root / "proc/sysrq-trigger").read_text() == "o\n"  # the kernel's own way, when nothing else went


def test_the_power_off_runs_as_a_service_that_a_shutdown_does_not_end(machine: Machine) -> None:
    machine.boot()
    text = (machine.root / "etc/systemd/system/trainyard-power-off.service").read_text()
    assert "DefaultDependencies=no" in text
    assert f"ExecStart={machine.root}/opt/trainyard/power-off" in text
    assert machine.calls.index("systemctl start --no-block trainyard-power-off.service") < machine.calls.index(
        "systemctl poweroff"
    )


def test_a_later_boot_powers_off_and_the_first_does_not(machine: Machine) -> None:
    machine.boot()
    unit = (machine.root / "etc/systemd/system/trainyard-later-boot.service").read_text()
    found = re.search(r"^ConditionPathExists=!(.*)$", unit, re.M)
    assert found
    assert Path(found[1]).is_relative_to(machine.root / "run")  # a file system that a reboot empties
    assert Path(found[1]).exists()
    assert "systemctl enable trainyard-later-boot.service" in machine.calls


def test_arming_for_a_time_that_is_over_means_now(machine: Machine) -> None:
    machine.boot()
    arm = machine.root / "opt/trainyard/arm-power-off"
    subprocess.run([arm, "1000"], env={"PATH": str(machine.programs)}, check=True, timeout=HANG_S)
    found = re.search(r"^OnCalendar=(.*)$", machine.timer.read_text(), re.M)
    assert found
    at = subprocess.run(["date", "-d", found[1], "+%s"], capture_output=True, text=True, check=True)
    assert abs(int(at.stdout) - time.time()) < 10


def test_user_data_fits_into_its_limit() -> None:
    assert len(USER_DATA.read_bytes()) < 8192


def test_shellcheck_finds_nothing() -> None:
    done = subprocess.run(["shellcheck", str(USER_DATA)], capture_output=True, text=True, check=False)
    assert done.stdout == ""


@WITH_SYSTEMD
def test_systemd_understands_the_units(machine: Machine) -> None:
    machine.boot()
    units = [str(unit) for unit in machine.timer.parent.iterdir()]
    assert len(units) == 3
    done = subprocess.run(
        ["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False, env=os.environ
    )
    assert [line for line in done.stderr.splitlines() if "trainyard" in line] == []


@WITH_SYSTEMD
def test_systemd_reads_the_timers_time_as_the_second_that_was_asked_for(machine: Machine) -> None:
    machine.boot()
    at = int(time.time()) + 100 * 24 * 3600
    arm = machine.root / "opt/trainyard/arm-power-off"
    subprocess.run([arm, str(at)], env={"PATH": str(machine.programs)}, check=True, timeout=HANG_S)
    found = re.search(r"^OnCalendar=(.*)$", machine.timer.read_text(), re.M)
    assert found
    done = subprocess.run(
        ["systemd-analyze", "calendar", found[1]],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"TZ": "UTC"},
    )
    assert time.strftime("Next elapse: %a %Y-%m-%d %H:%M:%S UTC", time.gmtime(at)) in done.stdout
