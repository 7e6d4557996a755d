"""Where a training stands goes to the log within seconds: of every process that the command started, and whatever state one is in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent import dumps, programs, requirements
from agent.dumps import STACKS, dump, processes, standing
from agent.orders import PATIENCE
from agent.requirements import Python
from agent.training import ChildProcess
from contract.orders import Order, OrderKind
from localaws.testing.waiting import HANG_S, condition, lives, until
from tests.node.ordering import once_it_trains
from tests.node.world import FAST, Site

HANGS = """
import threading, time
def hangs_in_a_collective():
    print("up", flush=True)
    threading.Lock().acquire()
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
"""
BREEDS = """
import subprocess, sys
worker = subprocess.Popen([sys.executable, "-c", {worker!r}], start_new_session=True)
worker.wait()
"""
"""As torchrun, whose workers have sessions of their own."""


class Trainer:
    """A command that runs in a job's environment, with all that it writes."""

    def __init__(self, python: Python, folder: Path, script: str) -> None:
        self.lines, self.notes = list[str](), list[str]()
        environment = python.variables(os.environ)
        self.child = ChildProcess(
            [str(python.program), "-u", "-c", script], folder=folder, environment=environment, on_line=self.lines.append
        )
        self._root = folder
        until(lambda: "up" in self.lines)
        until(lambda: all(condition(one) == "S" for one in processes(self.child.pid)))

    def dump(self, *words: str) -> str:
        """All that is written because of it, which has each of the words."""
        before = len(self.lines)

        def written() -> str:
            return "\n".join(self.lines[before:])

        dump(self.child.pid, self._root, heard=lambda: self.child.heard_at, note=self.notes.append)
        until(lambda: all(word in written() for word in words))
        return written()


@pytest.fixture(autouse=True)
def no_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that can answer has the time for it on any machine."""
    monkeypatch.setattr(dumps, "ANSWER_S", HANG_S)
    monkeypatch.setattr(dumps, "MOST_S", HANG_S)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Python:
    return requirements.make(tmp_path_factory.mktemp("job") / "env")


@pytest.fixture
def started() -> Iterator[list[Trainer]]:
    trainers: list[Trainer] = []
    yield trainers
    for one in trainers:
        for process in processes(one.child.pid):
            with_continue(process, signal.SIGKILL)
        one.child.end(0.0)


def with_continue(process: int, number: signal.Signals) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return


def start(started: list[Trainer], python: Python, folder: Path, script: str) -> Trainer:
    started.append(Trainer(python, folder, script))
    return started[-1]


def test_a_trainer_that_waits_for_ever_writes_its_stack_and_lives_on(
    started: list[Trainer], python: Python, tmp_path: Path
) -> None:
    trainer = start(started, python, tmp_path, HANGS + "hangs_in_a_collective()")
    trainer.dump("in hangs_in_a_collective")
    assert trainer.child.wait(0.2) is None
    (note,) = trainer.notes
    assert note.startswith(f"process {trainer.child.pid} (")
    assert note.endswith("; its stacks follow")


def test_every_thread_writes_its_stack(started: list[Trainer], python: Python, tmp_path: Path) -> None:
    script = (
        HANGS + "inside = threading.Event()\ndef loads():\n    inside.set()\n    time.sleep(100)\n"
        "threading.Thread(target=loads, daemon=True).start()\ninside.wait()\nhangs_in_a_collective()"
    )
    start(started, python, tmp_path, script).dump("in loads", "in hangs_in_a_collective")


def test_workers_in_sessions_of_their_own_write_theirs_after_their_parent(
    started: list[Trainer], python: Python, tmp_path: Path
) -> None:
    trainer = start(started, python, tmp_path, BREEDS.format(worker=HANGS + "hangs_in_a_collective()"))
    written = trainer.dump("in wait", "in hangs_in_a_collective")
    assert written.index("in wait") < written.index("in hangs_in_a_collective")
    assert len(trainer.notes) == 2
    assert f"of {trainer.child.pid})" in trainer.notes[1]


def test_a_forked_loader_of_data_writes_its_own(started: list[Trainer], python: Python, tmp_path: Path) -> None:
    script = "import os\nif os.fork() == 0:\n    def loads_a_batch():\n        import time\n        time.sleep(100)\n    loads_a_batch()\n"
    trainer = start(started, python, tmp_path, f"{script}\n{HANGS}hangs_in_a_collective()")
    trainer.dump("in loads_a_batch", "in hangs_in_a_collective")


def test_one_that_was_stopped_is_woken_to_write_its_stack(
    started: list[Trainer], python: Python, tmp_path: Path
) -> None:
    trainer = start(started, python, tmp_path, HANGS + "hangs_in_a_collective()")
    os.kill(trainer.child.pid, signal.SIGSTOP)
    until(lambda: condition(trainer.child.pid) == "T")
    trainer.dump("in hangs_in_a_collective")
    assert " is stopped" in trainer.notes[0]


def test_a_program_that_is_no_python_of_the_job_is_told_and_gets_no_signal(
    started: list[Trainer], python: Python, tmp_path: Path
) -> None:
    """Without a handler the signal would end it."""
    script = "import subprocess\nother = subprocess.Popen(['sleep', '100'])\nprint('up', flush=True)\nother.wait()"
    trainer = start(started, python, tmp_path, script)
    trainer.dump()
    assert "(sleep, of " in trainer.notes[1]
    assert trainer.notes[1].endswith("it writes no stacks: it does not run the job's Python")
    assert len(processes(trainer.child.pid)) == 2


def test_a_python_without_the_hook_gets_no_signal(tmp_path: Path) -> None:
    """One that the image or the code brings: the signal would end a training that may yet save."""
    bare = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"], cwd=tmp_path)
    try:
        until(lambda: condition(bare.pid) == "S")
        notes: list[str] = []
        dump(bare.pid, tmp_path, heard=lambda: 0.0, note=notes.append)
        assert "it writes no stacks" in notes[0]
        assert bare.poll() is None
    finally:
        bare.kill()
        bare.wait()


def test_one_that_blocks_its_stderr_is_waited_for_a_moment_and_no_longer(
    started: list[Trainer], python: Python, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dumps, "ANSWER_S", 0.3)
    script = "import os\nos.close(2)\nimport time\nprint('up', flush=True)\ntime.sleep(10_000)"
    trainer = start(started, python, tmp_path, script)
    assert trainer.dump() == ""
    assert trainer.notes[1] == f"process {trainer.child.pid} has not answered within 0 s"
    assert lives(trainer.child.pid)


def test_of_very_many_processes_those_that_answer_are_asked_first(
    started: list[Trainer], python: Python, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On rank 0 of a large MPI job more shells wait for other nodes than are asked at all."""
    monkeypatch.setattr(dumps, "MOST_PROCESSES", 3)
    shells = 'import os, subprocess; [subprocess.Popen(["sleep", "60"]) for _ in range(5)]\n'
    trainer = start(started, python, tmp_path, BREEDS.format(worker=shells + HANGS + "hangs_in_a_collective()"))
    trainer.dump("in hangs_in_a_collective")
    assert trainer.notes[-1] == "4 more processes are not asked for their stacks"


def test_of_very_many_processes_the_first_are_asked(
    started: list[Trainer], python: Python, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dumps, "MOST_PROCESSES", 1)
    trainer = start(started, python, tmp_path, BREEDS.format(worker=HANGS + "hangs_in_a_collective()"))
    trainer.dump("in wait")
    assert trainer.notes[1] == "1 more processes are not asked for their stacks"


def test_a_command_that_has_ended_is_no_error(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    notes: list[str] = []
    dump(ended.pid, tmp_path, heard=lambda: 0.0, note=notes.append)
    assert notes == []
    assert standing(ended.pid) is None


def test_a_program_that_does_not_speak_english_or_utf_8_has_a_name_all_the_same(tmp_path: Path) -> None:
    program = tmp_path / os.fsdecode(b"tr\xe4iner) 9 (")
    program.write_bytes(Path("/bin/sleep").resolve().read_bytes())
    program.chmod(0o755)
    running = subprocess.Popen([str(program), "100"])
    try:
        until(lambda: (one := standing(running.pid)) and "iner" in one.name)
        assert processes(running.pid) == [running.pid]
    finally:
        running.kill()
        running.wait()


def test_the_hook_takes_one_signal_and_no_other(python: Python) -> None:
    script = "print(next(line for line in open('/proc/self/status') if line.startswith('SigCgt')).split()[1])"

    def caught(*options: str) -> int:
        told = subprocess.run([python.program, *options, "-c", script], capture_output=True, text=True, check=True)
        assert told.stderr == ""
        return int(told.stdout, 16)

    assert caught() ^ caught("-S") == 1 << (STACKS - 1)


def test_a_python_without_stderr_starts_all_the_same(python: Python) -> None:
    closed = ["sh", "-c", f'exec "{python.program}" -c "import sys; sys.exit(7)" 2>&-']
    assert subprocess.run(closed, check=False).returncode == 7


# Devices


def tool(root: Path, name: str, body: str) -> None:
    file = root / name
    file.parent.mkdir(parents=True)
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)


def said(root: Path) -> list[str]:
    ended = subprocess.Popen(["true"])
    ended.wait()
    notes: list[str] = []
    dump(ended.pid, root, heard=lambda: 0.0, note=notes.append)
    return notes


@pytest.mark.parametrize("name", ["usr/bin/nvidia-smi", "opt/aws/neuron/bin/neuron-ls"])
def test_the_state_of_the_devices_stands_in_the_log(tmp_path: Path, name: str) -> None:
    tool(tmp_path, name, "echo 'GPU 0: 100%'; echo 'GPU 1: ERR!' >&2; exit 3")
    assert said(tmp_path) == [f"{Path(name).name} says:", "GPU 0: 100%", "GPU 1: ERR!"]


def test_a_tool_that_never_ends_is_left_after_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dumps, "MOST_S", 0.3)
    tool(tmp_path, "usr/bin/nvidia-smi", "trap '' TERM; sleep 10000")
    assert said(tmp_path)[-1] == "it has not ended within 0 s"


def test_a_tool_that_says_very_much_is_cut(tmp_path: Path) -> None:
    tool(tmp_path, "usr/bin/nvidia-smi", "yes line")
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch:
        patch.setattr(dumps, "MOST_S", 0.3)
        patch.setattr(programs, "MOST_BYTES", 20)
        assert len(said(tmp_path)) <= 8


def test_a_tool_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    (tmp_path / "usr/bin/nvidia-smi").mkdir(parents=True)
    assert "it cannot be started: " in said(tmp_path)[1]


# The whole agent

ORDER = Order(kind=OrderKind.DUMP, error="Stalled", reason="No progress.", by=0, author="attendant")
SAVES = """
import json, os, signal, sys, threading
def leave(*_):
    open(os.environ["CHECKPOINT_DIR"] + "/last.pt", "w").write("saved late")
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
open(os.environ["PROGRESS_FILE"], "w").write(json.dumps({"step": 7}))
def waits_for_peers():
    print("up", flush=True)
    threading.Event().wait()
waits_for_peers()
"""


def test_an_order_to_dump_writes_stacks_and_devices_and_lets_the_trainer_save(site: Site) -> None:
    site.offer(SAVES)
    tool(site.root, "usr/bin/nvidia-smi", "echo 'GPU 0: 100%'")
    with once_it_trains(site, lambda: site.order(ORDER)):
        ending = site.run()
    assert (ending.error, ending.reason, ending.ordered) == ("Stalled", "No progress.", True)
    assert any("in waits_for_peers" in line for line in site.lines)
    assert "[trainyard] GPU 0: 100%" in site.lines
    assert site.report().checkpoint_step == 7


def test_a_trainer_is_not_stopped_before_its_peers_have_had_the_time_to_write_theirs(site: Site) -> None:
    """The trainers of its peers break once it has stopped, and their stacks would be gone."""
    tells = "def leave(*_):\n    import time\n    print('stopped', time.monotonic(), flush=True)"
    site.offer(SAVES.replace("def leave(*_):", tells), timing=replace(FAST, orders_every_s=0.5))
    given: list[float] = []

    def give() -> None:
        given.append(time.monotonic())
        site.order(ORDER)

    with once_it_trains(site, give):
        site.run()
    stopped = next(float(line.split()[1]) for line in site.lines if line.startswith("stopped "))
    assert stopped - given[0] >= PATIENCE * 0.5


def test_a_trainer_that_hangs_for_good_is_killed_after_its_stacks(site: Site) -> None:
    ignores = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ndef hangs():\n    print('up', flush=True)\n"
    site.offer(f"{ignores}    time.sleep(60)\nhangs()", timing=replace(FAST, stop_grace_s=0.3))
    with once_it_trains(site, lambda: site.order(ORDER)):
        ending = site.run()
    assert (ending.code, ending.error) == (137, "Stalled")
    assert any("in hangs" in line for line in site.lines)


@pytest.mark.parametrize("kind", [OrderKind.CHECKPOINT_AND_STOP, OrderKind.STOP])
def test_no_other_order_writes_stacks(site: Site, kind: OrderKind) -> None:
    site.offer(SAVES)
    with once_it_trains(site, lambda: site.order(replace(ORDER, kind=kind))):
        site.run()
    assert not any("in waits_for_peers" in line or "its stacks follow" in line for line in site.lines)


def test_an_order_to_dump_before_the_training_dumps_nothing(site: Site) -> None:
    site.offer("print('up')")
    site.order(ORDER)
    assert site.run().error == "Stalled"
    assert not any("stacks" in line for line in site.lines)
