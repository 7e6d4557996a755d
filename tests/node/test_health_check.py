"""The health check on a whole node: beside its preparation, at the gate before its training, and once its command has failed."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent.failures import Unhealthy
from agent.health import check, facts
from agent.health.check import HealthWatch
from agent.metadata import TRIES
from agent.programs import MOST_BYTES, ask
from contract.health import HealthCheck
from contract.jobs import Job
from contract.orders import Order, OrderKind
from localaws.testing.waiting import HANG_S, lives, until
from tests.builders import JOB
from tests.node.devices import LARGE, devices
from tests.node.ordering import once_it_trains
from tests.node.programs import Program
from tests.node.world import FAST, Site

FELL = "kernel: NVRM: Xid (PCI:0000:86:00): 79, pid=12, name=python, GPU has fallen off the bus."
OWN = "kernel: NVRM: Xid (PCI:0000:86:00): 13, pid=12, name=python, Graphics Exception"
LATE = "nvidia-smi has not answered in time"
ROW = "echo '00000000:86:00.0, 0, No, No, [N/A]'"
QUICK = replace(FAST, fabric_patience_s=HANG_S)
CHECKED = {"health": HealthCheck.QUICK, "gpus": {"g5.xlarge": 1}, "timing": QUICK}
"""What Admit gives a job; a machine has much time for its programs."""
HASTY = replace(FAST, fabric_patience_s=1.0)
"""A machine has a fifth of a second for its programs."""
UNCHECKED = {**CHECKED, "health": HealthCheck.OFF}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "SETTLES_S", 0.3)
    monkeypatch.setattr(check, "AGAIN_S", HANG_S)  # one look, which may take long


def smi(root: Path, body: str) -> None:
    """nvidia-smi of the machine's image."""
    file = root / facts.SMI
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)


def kernel(site: Site, program: Program, body: str) -> None:
    """A machine with a journal, whose kernel says what the body prints."""
    (site.root / "run/systemd/system").mkdir(parents=True)
    program("journalctl", body)


@pytest.fixture
def gpu_site(site: Site) -> Site:
    site.imds.values["instance-type"] = "g5.xlarge"
    smi(site.root, ROW)
    return site


def checks(site: Site) -> list[str]:
    return [line.partition("health: ")[2] for line in site.lines if "health: " in line]


# Before the training


def test_a_healthy_machine_trains_and_says_what_was_found(gpu_site: Site) -> None:
    gpu_site.offer("print('trains')", **CHECKED)
    assert gpu_site.run().error == ""
    (line,) = checks(gpu_site)
    assert line.startswith("nothing is wrong with the machine with 1 GPUs (")
    assert {one.unhealthy for one in gpu_site.sent()} == {""}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("exit 15", "a GPU has fallen off the bus"),
        ("printf 'garbage\\000\\377'; exit 15", "a GPU has fallen off the bus"),
        ("true", "it has 0 of the 1 GPUs of its type"),
        ("exec sleep 100", LATE),
        ("trap '' TERM; while :; do sleep 1; done", LATE),
        ("echo '00000000:86:00.0, 2, No, No, [N/A]'", "has 2 uncorrectable memory errors"),
    ],
)
def test_a_machine_with_a_bad_gpu_does_not_train_and_says_why(
    gpu_site: Site, body: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    smi(gpu_site.root, body)
    if words == LATE:
        monkeypatch.setattr(check, "AGAIN_S", 0.1)
    gpu_site.offer("print('trains')", **{**CHECKED, "timing": HASTY if words == LATE else QUICK})
    ending = gpu_site.run()
    assert (ending.code, ending.error) == (1, "NodeUnhealthy")
    assert ending.reason.startswith("rank 0: its machine is unhealthy: ")
    assert words in ending.reason
    assert words in gpu_site.report(urgent=True).unhealthy
    assert "trains" not in gpu_site.lines


@pytest.mark.parametrize("lost", [1, TRIES - 1])
def test_a_bad_gpu_is_found_though_the_metadata_service_leaves_requests_for_the_type_unanswered(
    gpu_site: Site, lost: int
) -> None:
    gpu_site.imds.lost["instance-type"], gpu_site.sleep = lost, lambda _: None
    smi(gpu_site.root, "true")
    gpu_site.offer("print('trains')", **CHECKED)
    assert gpu_site.run().error == "NodeUnhealthy"
    assert "trains" not in gpu_site.lines


@pytest.mark.parametrize("changes", [UNCHECKED, {**CHECKED, "gpus": {}}])
def test_a_job_without_checks_or_without_gpus_never_asks_for_them(gpu_site: Site, changes: dict[str, object]) -> None:
    smi(gpu_site.root, f"touch {gpu_site.root}/asked; exit 15")
    gpu_site.offer("print('trains')", **changes)
    assert gpu_site.run().error == ""
    assert not (gpu_site.root / "asked").exists()


@pytest.mark.parametrize("body", ["exit 9", "echo no; exit 12"])
def test_an_image_without_a_driver_trains_and_is_told(gpu_site: Site, body: str) -> None:
    smi(gpu_site.root, body)
    gpu_site.offer("print('trains')", **CHECKED)
    assert gpu_site.run().error == ""
    assert checks(gpu_site)[0].startswith("the GPUs were not checked: NVIDIA's ")


def test_an_image_without_nvidia_smi_trains_at_once(gpu_site: Site) -> None:
    (gpu_site.root / facts.SMI).unlink()
    gpu_site.offer("print('trains')", **CHECKED)
    assert gpu_site.run().error == ""
    assert checks(gpu_site)[0] == "the GPUs were not checked: the image has no nvidia-smi"


def test_a_file_that_is_no_program_is_as_good_as_none(gpu_site: Site) -> None:
    (gpu_site.root / facts.SMI).chmod(0o600)
    gpu_site.offer("print('trains')", **CHECKED)
    assert gpu_site.run().error == ""
    assert "the GPUs were not checked" in checks(gpu_site)[0]


def test_a_driver_that_loads_late_is_waited_for(gpu_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "AGAIN_S", 0.1)
    smi(gpu_site.root, f"mkdir {gpu_site.root}/first && exit 9; mkdir {gpu_site.root}/second && exit 6; {ROW}")
    gpu_site.offer("print('trains')", **CHECKED)
    assert gpu_site.run().error == ""
    assert (gpu_site.root / "second").is_dir()


def test_a_driver_that_knows_fewer_fields_is_asked_for_those(gpu_site: Site) -> None:
    smi(
        gpu_site.root,
        "case $1 in *remapped*) echo 'Field is not a valid field'; exit 2;; esac; echo '00000000:86:00.0, 0'",
    )
    gpu_site.offer("print('trains')", **CHECKED)
    assert gpu_site.run().error == ""


def test_an_xid_since_the_boot_keeps_the_machine_from_training(gpu_site: Site, program: Program) -> None:
    kernel(gpu_site, program, f"echo '{FELL}'; exec sleep 60")
    gpu_site.offer("print('trains')", **CHECKED)

    def hears_first(call: str, _key: str) -> None:
        """Holds up the preparation until the agent has read the Xid in the journal."""
        if call == "download":
            until(lambda: any("Xid" in line for line in gpu_site.lines))

    gpu_site.aws.s3.fault = hears_first
    ending = gpu_site.run()
    assert ending.error == "NodeUnhealthy"
    assert "Xid 79 of GPU 0000:86:00" in ending.reason


def test_pci_tells_of_a_missing_gpu_where_there_is_no_driver(gpu_site: Site) -> None:
    (gpu_site.root / facts.SMI).unlink()
    for place, vendor, kind in (("a", "0x10de", "0x030200"), ("b", "0x10de", "0x068000"), ("c", "0x1d0f", "0x030000")):
        folder = gpu_site.root / "sys/bus/pci/devices" / place
        folder.mkdir(parents=True)
        (folder / "vendor").write_text(f"{vendor}\n")
        (folder / "class").write_text(f"{kind}\n")
    (gpu_site.root / "sys/bus/pci/devices/d").mkdir()
    assert facts.pci_gpus(gpu_site.root) == 1
    gpu_site.offer("print('trains')", **{**CHECKED, "gpus": {"g5.xlarge": 2}})
    assert "PCI shows 1 of the 2 GPUs" in gpu_site.run().reason


def test_a_machine_that_shows_only_some_efa_devices_does_not_train(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.efa.LOADS_S", 0.0)
    site.imds.values["instance-type"] = "p4d.24xlarge"
    devices(site.root, 1)
    site.offer("print('trains')", interfaces=LARGE.interfaces, health=HealthCheck.QUICK)
    ending = site.run()
    assert (ending.error, "trains" in site.lines) == ("NodeUnhealthy", False)
    assert "it shows 1 of the 2 EFA devices" in ending.reason


def test_without_checks_such_a_machine_trains_as_before(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.efa.LOADS_S", 0.0)
    site.imds.values["instance-type"] = "p4d.24xlarge"
    devices(site.root, 1)
    site.offer("print('trains')", interfaces=LARGE.interfaces)
    assert site.run().error == ""


# Once the command has failed


def test_an_exit_beside_an_xid_is_the_machines_fault(
    gpu_site: Site, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "SETTLES_S", 2.0)
    kernel(gpu_site, program, f"while ! [ -e {gpu_site.root}/now ]; do sleep 0.02; done; echo '{FELL}'; exec sleep 60")
    gpu_site.offer(f"open({str(gpu_site.root / 'now')!r}, 'w')\nprint('cuda error')\nraise SystemExit(3)", **CHECKED)
    ending = gpu_site.run()
    assert (ending.code, ending.error) == (3, "NodeUnhealthy")
    assert ending.reason.startswith(
        "rank 0: the command exited with code 3, beside a fault of its machine: Xid 79 of GPU"
    )
    assert ending.tail == ("cuda error",)
    assert gpu_site.report(urgent=True).exit == ending


def test_the_error_is_told_at_once_and_that_the_machine_is_looked_at(gpu_site: Site) -> None:
    gpu_site.offer("raise SystemExit(3)", **CHECKED)
    assert gpu_site.run().error == "TrainingFailed"
    looking = [one for one in gpu_site.sent(urgent=True) if one.examines]
    assert looking
    assert all(one.outcome is not None and one.outcome.error == "TrainingFailed" for one in looking)
    assert not gpu_site.report().examines


@pytest.mark.parametrize("line", [OWN, "kernel: Out of memory: Killed process 12 (python)"])
def test_an_exit_beside_an_error_of_its_own_stays_the_codes(gpu_site: Site, program: Program, line: str) -> None:
    kernel(gpu_site, program, f"echo '{line}'; exec sleep 60")
    gpu_site.offer("raise SystemExit(3)", **CHECKED)
    assert gpu_site.run().error == "TrainingFailed"


def test_a_gpu_that_is_gone_after_the_exit_explains_it_without_a_journal(gpu_site: Site) -> None:
    smi(gpu_site.root, f"[ -e {gpu_site.root}/gone ] && {{ echo 'GPU is lost'; exit 15; }}; {ROW}")
    gpu_site.offer(f"open({str(gpu_site.root / 'gone')!r}, 'w')\nraise SystemExit(1)", **CHECKED)
    assert gpu_site.run().error == "NodeUnhealthy"


@pytest.mark.parametrize("late", ["exec sleep 100", "exit 9", "exit 12"])
def test_a_program_that_says_nothing_after_the_exit_leaves_the_error_to_the_code(
    gpu_site: Site, late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "LATE_S", 0.2)
    smi(gpu_site.root, f"[ -e {gpu_site.root}/ended ] && {late}; {ROW}")
    gpu_site.offer(f"open({str(gpu_site.root / 'ended')!r}, 'w')\nraise SystemExit(1)", **CHECKED)
    assert gpu_site.run().error == "TrainingFailed"


def test_a_success_beside_an_xid_is_a_success(gpu_site: Site, program: Program) -> None:
    kernel(gpu_site, program, f"while ! [ -e {gpu_site.root}/now ]; do sleep 0.02; done; echo '{FELL}'; exec sleep 60")
    wait = f"import os, time\nwhile not os.path.exists({str(gpu_site.root / 'go')!r}): time.sleep(0.05)"
    gpu_site.offer(f"open({str(gpu_site.root / 'now')!r}, 'w')\nprint('up', flush=True)\n{wait}", **CHECKED)

    def go() -> None:
        until(lambda: any("Xid 79" in one.unhealthy for one in gpu_site.sent()))
        (gpu_site.root / "go").touch()

    with once_it_trains(gpu_site, go):
        assert gpu_site.run().error == ""


def test_without_checks_an_exit_beside_an_xid_stays_the_codes(gpu_site: Site, program: Program) -> None:
    kernel(gpu_site, program, f"echo '{FELL}'; exec sleep 60")
    gpu_site.offer("raise SystemExit(3)", **UNCHECKED)
    assert gpu_site.run().error == "TrainingFailed"
    assert {(one.unhealthy, one.examines) for one in gpu_site.sent()} == {("", False)}


@pytest.mark.parametrize("command", [("no-such-program",), ("./train.py",)])
def test_code_that_could_not_start_is_not_looked_at(gpu_site: Site, command: tuple[str, ...]) -> None:
    smi(gpu_site.root, f"echo >> {gpu_site.root}/asked; {ROW}")
    gpu_site.offer("", command=command, **CHECKED)
    assert gpu_site.run().error == "TrainingFailed"
    assert not any(one.examines for one in gpu_site.sent())


@pytest.mark.parametrize("kind", [OrderKind.CHECKPOINT_AND_STOP, OrderKind.STOP])
def test_a_command_that_ends_by_an_order_is_not_looked_at(gpu_site: Site, kind: OrderKind) -> None:
    smi(gpu_site.root, f"[ -e {gpu_site.root}/gone ] && exit 15; {ROW}")
    order = Order(kind=kind, error="Interrupted", reason="spot", by=0, author="attendant")
    gone = str(gpu_site.root / "gone")
    gpu_site.offer(f"import time\nopen({gone!r}, 'w')\nprint('up', flush=True)\ntime.sleep(60)", **CHECKED)
    with once_it_trains(gpu_site, lambda: gpu_site.order(order)):
        ending = gpu_site.run()
    assert (ending.error, ending.ordered) == ("Interrupted", True)
    assert not any(one.examines for one in gpu_site.sent())


# The watch alone


def watch(
    root: Path,
    job: Job,
    *,
    kind: Callable[[], str] = lambda: "g5.xlarge",
    notes: list[str] | None = None,
    hurry: Callable[[], None] = lambda: None,
) -> HealthWatch:
    return HealthWatch(
        job, root, root, instance_type=kind, clock_ahead_s=lambda: 0.0,
        note=(notes if notes is not None else []).append, hurry=hurry,
    )  # fmt: skip


def test_where_the_metadata_does_not_tell_the_type_no_gpu_is_missed(tmp_path: Path) -> None:
    def unanswered() -> str:
        raise OSError("no answer")

    notes: list[str] = []
    one = watch(tmp_path, replace(JOB, **CHECKED), kind=unanswered, notes=notes)  # type: ignore[arg-type]
    one.start()
    one.gate()
    assert notes[0].startswith("health: GPUs are not counted")


def test_a_check_that_fails_by_itself_keeps_no_machine_from_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise ValueError("a fault of ours")

    monkeypatch.setattr(facts, "gathered", breaks)
    notes: list[str] = []
    one = watch(tmp_path, replace(JOB, health=HealthCheck.QUICK), notes=notes)
    one.start()
    one.gate()
    assert notes == ["health: the check failed: ValueError: a fault of ours"]


@pytest.mark.parametrize(("said", "hurried"), [(FELL, [1]), (OWN, [])])
def test_only_what_is_wrong_is_reported_at_once(tmp_path: Path, said: str, hurried: list[int]) -> None:
    calls: list[int] = []
    one = watch(tmp_path, replace(JOB, health=HealthCheck.QUICK), hurry=lambda: calls.append(1))
    one.hear(said)
    one.start()
    until(lambda: not one._thread.is_alive())
    assert calls == hurried


def test_an_xid_that_comes_while_the_node_prepares_is_seen_at_the_gate(tmp_path: Path) -> None:
    one = watch(tmp_path, replace(JOB, health=HealthCheck.QUICK))
    one.start()
    until(lambda: not one._thread.is_alive())
    one.hear(FELL)
    with pytest.raises(Unhealthy, match="Xid 79"):
        one.gate()
    assert "Xid 79" in one.words


# How it is gathered


@pytest.mark.parametrize(("problem", "name"), [(errno.EIO, "EIO"), (errno.ENOSPC, "ENOSPC"), (errno.EROFS, "EROFS")])
def test_an_error_of_the_disk_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: int, name: str
) -> None:
    def fails(_: int) -> None:
        raise OSError(problem, "words")

    monkeypatch.setattr(os, "fsync", fails)
    assert facts.disk(tmp_path) == name
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_hangs_is_left_after_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = threading.Event()
    monkeypatch.setattr(os, "fsync", lambda _: held.wait(HANG_S))
    assert facts.disk(tmp_path, most_s=0.1) == facts.LATE
    held.set()


def test_a_disk_that_works_keeps_nothing_of_the_check(tmp_path: Path) -> None:
    assert facts.disk(tmp_path) == ""
    assert list(tmp_path.iterdir()) == []


def test_a_program_may_say_what_it_likes() -> None:
    assert ask(["sh", "-c", "echo out; echo err >&2; exit 3"], 5).text == "out\nerr\n"
    assert ask(["sh", "-c", "kill -9 $$"], 5).code == -9
    assert len(ask(["sh", "-c", f"head -c {3 * MOST_BYTES} /dev/zero"], 5).text) == MOST_BYTES


def test_what_a_program_leaves_behind_holds_nobody_up() -> None:
    said = ask(["sh", "-c", "sleep 600 & echo $!; exit 0"], HANG_S)
    left = int(said.text)
    assert (said.code, lives(left)) == (0, True)
    os.kill(left, signal.SIGKILL)


def test_neuron_devices_are_those_with_a_number(tmp_path: Path) -> None:
    assert facts.neuron_devices(tmp_path) is None
    for name in ("neuron0", "neuron12", "neuron_x", "neuron", "nvidia0"):
        (tmp_path / "dev").mkdir(exist_ok=True)
        (tmp_path / "dev" / name).touch()
    assert facts.neuron_devices(tmp_path) == 2
