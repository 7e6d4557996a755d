"""Children of the agent: their lines, their end, and that nothing of them lives on."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from agent.failures import CannotStart
from agent.training import ChildProcess, described
from localaws.testing.waiting import HANG_S, lives, until


def start(script: str, folder: Path, lines: list[str] | None = None) -> ChildProcess:
    said = [] if lines is None else lines
    return ChildProcess([sys.executable, "-c", script], folder=folder, environment=os.environ, on_line=said.append)


def test_output_and_errors_arrive_in_the_order_they_were_written(tmp_path: Path) -> None:
    lines: list[str] = []
    child = start(
        "import os\nfor n in range(100): os.write(1 + n % 2, b'%d\\n' % n)\nos.write(1, b'no newline')", tmp_path, lines
    )
    assert child.wait(HANG_S) == 0
    child.end()
    assert lines == [*map(str, range(100)), "no newline"]


@pytest.mark.parametrize(("script", "code"), [("raise SystemExit(3)", 3), ("import os; os.kill(os.getpid(), 15)", 143)])
def test_exit_codes_are_those_of_a_shell(tmp_path: Path, script: str, code: int) -> None:
    child = start(script, tmp_path)
    assert child.wait(HANG_S) == code


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's way to choose is Linux's")
def test_where_memory_is_full_the_command_goes_before_the_agent(tmp_path: Path) -> None:
    child = start("import time; time.sleep(60)", tmp_path)
    ours, theirs = (int(Path(f"/proc/{pid}/oom_score_adj").read_text()) for pid in (os.getpid(), child.pid))
    child.end(0.0)
    assert theirs > ours


def test_a_command_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="'no-such-program'"):
        ChildProcess(["no-such-program"], folder=tmp_path, environment=os.environ, on_line=print)


def test_a_text_file_is_no_command(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("words")
    (tmp_path / "text").chmod(0o755)
    with pytest.raises(
        CannotStart, match="does not begin with #! and what runs it; allowed: a first line such as #!/bin/bash"
    ):
        ChildProcess(["./text"], folder=tmp_path, environment=os.environ, on_line=print)


GRANDCHILD = (
    "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', {script!r}]); print(p.pid, flush=True); "
)


def test_an_order_gives_every_process_of_the_group_its_grace(tmp_path: Path) -> None:
    saves = (
        "import signal, sys, time\n"
        "def save(*_): time.sleep(0.4); print('saved', flush=True); sys.exit()\n"
        "signal.signal(signal.SIGTERM, save)\nprint('ready', flush=True)\ntime.sleep(60)"
    )
    lines: list[str] = []
    child = start(GRANDCHILD.format(script=saves) + "time.sleep(60)", tmp_path, lines)
    until(lambda: "ready" in lines)
    assert child.stop(signal.SIGTERM, HANG_S) == 143
    assert lines[-1] == "saved"


def test_what_outlives_its_grace_is_killed_with_its_group(tmp_path: Path) -> None:
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
    )
    lines: list[str] = []
    child = start(GRANDCHILD.format(script=stubborn) + "time.sleep(60)", tmp_path, lines)
    until(lambda: "ready" in lines and len(lines) == 2)  # parent and child write at the same time
    (grandchild,) = (int(line) for line in lines if line != "ready")
    started = time.monotonic()
    child.stop(signal.SIGTERM, 0.3)
    assert time.monotonic() - started >= 0.3
    until(lambda: not lives(grandchild))


def test_what_a_command_leaves_behind_is_ended(tmp_path: Path) -> None:
    lines: list[str] = []
    child = start(GRANDCHILD.format(script="import time; time.sleep(60)") + "print('done')", tmp_path, lines)
    assert child.wait(HANG_S) == 0
    child.end(0.1)
    until(lambda: not lives(int(lines[0])))


def test_only_the_last_lines_are_kept_for_the_report(tmp_path: Path) -> None:
    child = start("for n in range(200): print('x' * 5000)", tmp_path)
    child.wait(HANG_S)
    child.end()
    assert len(child.tail) == 50
    assert len(child.tail[0]) == 1000


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (3, "exited with code 3"),
        (137, "SIGKILL"),
        (139, "SIGSEGV"),
        (128, "exited with code 128"),
        (255, "exited with code 255"),
    ],
)
def test_exit_codes_are_described(code: int, words: str) -> None:
    assert words in described(code)


def test_processes_that_the_command_gave_a_session_of_their_own_end_with_it(tmp_path: Path) -> None:
    """As torchrun and mpirun do."""
    starts = "import subprocess as s, time; print(s.Popen(['sleep', '600'], start_new_session=True).pid, flush=True); time.sleep(600)"
    lines: list[str] = []
    child = start(starts, tmp_path, lines)
    until(lambda: lines)
    child.end(0.0)
    until(lambda: not lives(int(lines[0])))
