"""The machine around a training: its limits, its fabric manager, its kernel's lines."""

from __future__ import annotations

import resource
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from agent import fabric, machine
from agent.failures import MachineTrouble
from agent.kernel import MOST_NOTED, KernelLog
from contract import names
from localaws.testing.waiting import until
from tests.builders import JOB
from tests.node.programs import Program
from tests.node.world import FAST, Site

ROOT = Path(__file__).parents[2]
XID = "2026-11-22T00:00:00+00:00 ip-10 kernel: NVRM: Xid (PCI:0000:00:1e): 79, GPU has fallen off the bus."


# Limits


def limited(body: str) -> str:
    """What a process says that starts as cloud-init's children do."""
    script = (
        "import resource, subprocess, sys\n"
        f"sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'node')!r}]\n"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))\n"
        f"from agent import machine\n{body}"
    )
    return subprocess.run(
        [sys.executable, "-u", "-c", script], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_a_training_may_open_as_many_files_as_the_machine_allows() -> None:
    said = limited("machine.raise_limits(print)\nsubprocess.run('ulimit -Sn; ulimit -Hn', shell=True)")
    soft, hard = said.splitlines()[-2:]
    assert soft == hard != "256"


def test_a_limit_that_may_not_be_raised_is_told_and_the_node_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(which: int, wanted: tuple[int, int]) -> None:  # noqa: ARG001
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    notes: list[str] = []
    machine.raise_limits(notes.append)
    assert [note.partition(" stays at ")[0] for note in notes] == [
        "the limit of open files",
        "the limit of locked memory",
    ]


def test_locked_memory_is_asked_for_without_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[int, tuple[int, int]] = {}
    monkeypatch.setattr(resource, "setrlimit", asked.__setitem__)
    machine.raise_limits(print)
    assert asked[resource.RLIMIT_MEMLOCK] == (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


# The fabric manager


class Clock:
    """Time that passes in pauses alone."""

    def __init__(self) -> None:
        self.time, self.pauses, self.notes = 0.0, 0, list[str]()

    def now(self) -> float:
        return self.time

    def pause(self, seconds: float) -> None:
        self.time += seconds
        self.pauses += 1

    def wait(self, root: Path) -> None:
        fabric.wait(root, 60, now=self.now, pause=self.pause, note=self.notes.append)


def with_unit(root: Path, *, switches: bool) -> None:
    file = root / "usr/lib/systemd/system" / fabric.UNIT
    file.parent.mkdir(parents=True)
    file.touch()
    (root / "dev").mkdir()
    if switches:
        (root / "dev/nvidia-nvswitch0").touch()


def states(folder: Path, *words: str) -> str:
    """A systemctl that says these states one after the other, and the last one from then on."""
    file = folder / "states"
    file.write_text("\n".join(words) + "\n")
    return f'[ "$1" = status ] && echo "status says why" && exit 3\nhead -n 1 {file}; [ $(wc -l < {file}) -gt 1 ] && sed -i 1d {file}'


def test_a_machine_without_the_unit_waits_for_nothing_and_asks_nobody(tmp_path: Path, program: Program) -> None:
    program("systemctl", f"touch {tmp_path}/asked")
    clock = Clock()
    clock.wait(tmp_path)
    assert (clock.pauses, (tmp_path / "asked").exists()) == (0, False)


def test_the_fabric_manager_is_waited_for_where_it_comes_late(tmp_path: Path, program: Program) -> None:
    with_unit(tmp_path, switches=True)
    program("systemctl", states(tmp_path, "inactive", "activating", "failed", "active"))
    clock = Clock()
    clock.wait(tmp_path)
    assert clock.pauses == 3
    assert clock.notes == [f"waits for {fabric.UNIT}, which is inactive"]


@pytest.mark.parametrize("state", ["failed", "inactive", ""])
def test_a_machine_without_switches_does_not_wait_for_a_unit_that_fails_there(
    tmp_path: Path, program: Program, state: str
) -> None:
    with_unit(tmp_path, switches=False)
    program("systemctl", states(tmp_path, state))
    clock = Clock()
    clock.wait(tmp_path)
    assert clock.pauses == 0


def test_a_fabric_manager_that_does_not_come_is_the_machines_trouble_with_its_own_words(
    tmp_path: Path, program: Program
) -> None:
    with_unit(tmp_path, switches=True)
    program("systemctl", states(tmp_path, "failed"))
    with pytest.raises(MachineTrouble, match=r"(?s)is failed after 60 s, and CUDA needs it.*status says why"):
        Clock().wait(tmp_path)


def test_without_switches_a_unit_that_never_finishes_starting_ends_no_job(tmp_path: Path, program: Program) -> None:
    with_unit(tmp_path, switches=False)
    program("systemctl", states(tmp_path, "activating"))
    clock = Clock()
    clock.wait(tmp_path)
    assert "training starts without it" in clock.notes[-1]


def test_a_node_whose_fabric_manager_does_not_come_reports_why_and_is_lost(site: Site, program: Program) -> None:
    with_unit(site.root, switches=True)
    program("systemctl", states(site.root, "failed"))
    site.offer("print('never')", timing=replace(FAST, fabric_patience_s=0.01))
    ending = site.run()
    assert ending.error == "NodeLost"
    assert ending.reason.startswith(f"rank 0: {fabric.UNIT} is failed after")
    assert site.report().exit == ending
    assert "never" not in site.lines


# The kernel's lines


def test_what_the_kernel_says_has_a_stream_of_its_own_and_what_explains_an_end_is_in_the_nodes(
    site: Site, program: Program
) -> None:
    (site.root / "run/systemd/system").mkdir(parents=True)
    program("journalctl", f"echo booted; echo '{XID}'; exec sleep 60")
    site.offer(f"import time, pathlib\nwhile not pathlib.Path({str(site.root / 'go')!r}).exists(): time.sleep(0.05)")

    def go() -> None:
        until(lambda: any("Xid" in line and line.startswith("[trainyard]") for line in site.lines))
        (site.root / "go").touch()

    thread = threading.Thread(target=go)
    thread.start()
    assert site.run().code == 0
    thread.join()
    assert sorted(site.aws.logs.streams) == [names.log_stream("job-1", 1, 0), names.kernel_stream("job-1", 1, 0)]
    assert {"booted", XID, f"[trainyard] the kernel: {XID}"} <= {*site.lines}
    assert "[trainyard] the kernel: booted" not in site.lines


def test_a_machine_that_systemd_did_not_boot_has_no_journal_to_read(tmp_path: Path, program: Program) -> None:
    program("journalctl", f"touch {tmp_path}/asked")
    KernelLog(tmp_path, ship=print, note=print).end()
    assert not (tmp_path / "asked").exists()


def test_a_machine_without_journalctl_says_so_and_trains(
    site: Site, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("unused", "")
    monkeypatch.setattr("agent.kernel.FOLLOW", ("no-such-journalctl",))
    (site.root / "run/systemd/system").mkdir(parents=True)
    site.offer("print('fine')")
    assert site.run().code == 0
    assert any("no kernel lines" in line for line in site.lines)


def test_a_gpu_that_repeats_itself_does_not_fill_the_nodes_log(tmp_path: Path, program: Program) -> None:
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    program("journalctl", f"for n in $(seq 200); do echo '{XID}'; done")
    shipped, notes = list[str](), list[str]()
    log = KernelLog(tmp_path, ship=shipped.append, note=notes.append)
    until(lambda: len(shipped) == 200)
    log.end()
    assert len(notes) == MOST_NOTED


def test_nodes_measure_into_a_namespace_that_no_alarm_reads() -> None:
    settings = machine.cloudwatch_settings(JOB, 1, 0)
    assert settings["metrics"]["namespace"] == "Trainyard/yard/nodes" != names.METRICS
