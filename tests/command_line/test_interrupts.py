"""Ctrl-C at any time is one line and exit code 130: also while Python, this program or the CDK begins."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from localaws.testing.waiting import HANG_S
from trainyard import interrupts, options
from trainyard.printer import Printer

ROOT = Path(__file__).parents[2]
INTERRUPT = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the command line of this one, in which files can be put before others."""
    folder = tmp_path / "checkout"
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "bin" / "trainyard").write_bytes((ROOT / "bin" / "trainyard").read_bytes())
    (folder / "bin" / "trainyard").chmod(0o755)
    (folder / ".venv" / "bin" / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (folder / ".venv" / "bin" / "python").chmod(0o755)
    for name in ("trainyard", "lambda", "contract"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def start(checkout: Path, *arguments: str) -> tuple[int, str, str]:
    """Runs the script of the checkout; returns its exit code, stdout and stderr."""
    ended = subprocess.run(
        [checkout / "bin" / "trainyard", *arguments], capture_output=True, text=True, timeout=HANG_S, check=False
    )
    return ended.returncode, ended.stdout, ended.stderr


def test_an_interrupt_while_python_begins_is_no_traceback(checkout: Path) -> None:
    (checkout / "sitecustomize.py").write_text(INTERRUPT)
    code, out, err = start(checkout, "--help")
    assert (code, err) == (0, "")
    assert "Usage: trainyard" in out


def test_an_interrupt_while_libraries_are_imported_is_one_line(checkout: Path) -> None:
    (checkout / "typer").mkdir()
    (checkout / "typer" / "__init__.py").write_text(INTERRUPT)
    assert start(checkout, "status") == (130, "", "interrupted; nothing was started\n")


def test_an_interrupt_of_a_command_is_one_line_and_what_libraries_say_at_the_end_is_none(checkout: Path) -> None:
    noise = "import atexit\natexit.register(lambda: 1 / 0)\n"
    (checkout / "boto3.py").write_text(noise + INTERRUPT)
    code, out, err = start(checkout, "status", "--deployment", "yard", "--region", "eu-central-1")
    assert (code, out, err) == (130, "", "interrupted; what runs in AWS goes on\n")


def test_an_interrupt_waits_for_the_end_of_a_block_and_counts_more_than_its_error() -> None:
    reached = list[str]()

    def begin() -> None:
        with interrupts.hold():
            os.kill(os.getpid(), signal.SIGINT)
            reached.append("after it")
            raise ValueError("the CDK's node is gone")

    with pytest.raises(KeyboardInterrupt):
        begin()
    assert reached == ["after it"]


def test_an_interrupt_waits_although_another_thread_hears_it() -> None:
    reached, over = list[str](), threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()

    def begin() -> None:
        with interrupts.hold():
            os.kill(os.getpid(), signal.SIGINT)
            reached.append("after it")

    try:
        with pytest.raises(KeyboardInterrupt):
            begin()
    finally:
        over.set()
        other.join()
    assert reached == ["after it"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_block_without_an_interrupt_ends_as_it_would_and_holds_none_afterwards() -> None:
    with pytest.raises(ValueError, match="own"), interrupts.hold():
        raise ValueError("own")
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_program_that_begins_in_a_block_hears_of_no_interrupt() -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('goes on')"
    with interrupts.hold():
        ended = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_S, check=False
        )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "goes on\n", "")


def test_an_interrupt_while_an_error_is_worded_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def fail() -> int:
        raise ValueError

    err = io.StringIO()
    monkeypatch.setattr(options, "say_problem", interrupt)
    assert options.carry_out(fail, {}, Printer(as_json=False, err=err)) == 130
    assert err.getvalue() == "interrupted; what runs in AWS goes on\n"


def test_a_letter_that_a_terminal_has_not_ends_no_command(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    code, _, err = start(checkout, "run", "ü.json")
    assert (code, err) == (2, "\\xfc.json: there is no such file\n")
