"""A disk that is full, or a terminal that is gone, ends a command in words: those of what was started are on stderr."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from localaws.testing.waiting import HANG_S
from tests.command_line.account import DEPLOYMENT, PLAN, Account
from trainyard.options import carry_out
from trainyard.patience import keep_following
from trainyard.printer import Printer
from trainyard.starting import begin

ROOT = Path(__file__).parents[2]
FULL = Path("/dev/full")
NO_SPACE = "stdout: No space left on device; what is printed is not whole\n"


class FullDisk(io.StringIO):
    """A file that takes some lines, and no more."""

    def __init__(self, lines: int = 0, code: int = errno.ENOSPC) -> None:
        super().__init__()
        self._left, self._code = lines, code

    def flush(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise OSError(self._code, os.strerror(self._code))


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("follows", [False, True])
@pytest.mark.parametrize("lines", [0, 1])
@pytest.mark.usefixtures("there")
def test_what_was_started_is_named_on_stderr(as_json: bool, follows: bool, lines: int) -> None:
    def follow(_: object) -> int:
        printer.document({"event": "x"})
        printer.say("event")
        return 0

    err = io.StringIO()
    printer = Printer(as_json=as_json, out=FullDisk(lines), err=err)
    code = carry_out(
        lambda: begin(DEPLOYMENT, "job", "digits", PLAN, printer, follow if follows else None), {}, printer
    )
    if as_json and lines and not follows:
        assert code == 0
        return
    assert code == 130
    assert err.getvalue().endswith(
        f"{NO_SPACE}digits goes on; to follow it again: trainyard status digits -f; to stop it: trainyard stop digits\n"
    )


@pytest.mark.parametrize("as_json", [False, True])
def test_a_start_without_an_answer_is_named_on_stderr(there: Account, as_json: bool) -> None:
    there.answers["stepfunctions:StartExecution"] = lambda _: {}
    err = io.StringIO()
    printer = Printer(as_json=as_json, out=FullDisk(), err=err)
    assert begin(DEPLOYMENT, "job", "digits", PLAN, printer, None) == 130
    assert "digits may have been started; to see it: trainyard status digits; to stop it: " in err.getvalue()


def test_an_error_of_following_that_cannot_be_printed_says_what_goes_on() -> None:
    def fail() -> int:
        raise OSError(errno.EIO, "x")

    err = io.StringIO()
    assert keep_following("job", "digits", Printer(as_json=True, out=FullDisk(), err=err), fail) == 130
    assert "digits goes on; to follow it again" in err.getvalue()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EPIPE])
def test_a_message_that_cannot_be_written_is_no_traceback(code: int) -> None:
    def fail() -> int:
        raise OSError(errno.ENOENT, "x")

    printer = Printer(as_json=False, out=FullDisk(), err=FullDisk(code=code))
    assert carry_out(fail, {}, printer) == 130


@pytest.mark.skipif(not FULL.exists(), reason="only Linux has a device that is full")
@pytest.mark.parametrize(
    "arguments",
    [["check", "job.json", "--json"], ["--help"]],
    ids=" ".join,
)
def test_a_command_on_a_full_disk_is_one_line_and_exit_code_2(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "job.json").write_text(json.dumps({"command": ["true"]}))
    path = os.pathsep.join([str(ROOT), str(ROOT / "lambda"), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-P", "-m", "trainyard", *arguments]
    with FULL.open("w") as full:
        ended = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=HANG_S,
            check=False,
        )
    assert (ended.returncode, ended.stderr.endswith(NO_SPACE)) == (2, True)
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr
