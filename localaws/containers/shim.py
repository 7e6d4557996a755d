"""Process 1 of a container on a machine of the rehearsal: starts its command, passes signals on, and ends everything with it.

It runs alone (`python -I -S shim.py FOLDER`). The folder has start.json (words, variables, folder, and for an image with a root of its own
what own_root.py needs besides), and gets state.json as docker shows it.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
CODES = {errno.EACCES: 126, errno.ENOENT: 127}
"""How docker's init ends where it cannot run the command: the container has been started then."""
NEVER = "0001-01-01T00:00:00Z"
STARTED = "2026-01-01T00:00:00Z"


def state_of(status: str, *, code: int = 0, pid: int = 0, started: str = NEVER, error: str = "") -> dict[str, Any]:
    """Returns a state as docker shows it."""
    running = status == "running"
    return {
        "Status": status,
        "Running": running,
        "OOMKilled": False,
        "Pid": pid,
        "ExitCode": code,
        "Error": error,
        "StartedAt": started,
    }


def read(folder: Path) -> dict[str, Any] | None:
    """Returns the container's state; None where there is no such container."""
    try:
        found: dict[str, Any] = json.loads((folder / "state.json").read_text())
    except (OSError, ValueError):
        return None
    return found


def write(folder: Path, state: dict[str, Any]) -> None:
    with suppress(OSError):  # it may have been removed meanwhile
        folder.mkdir(parents=True, exist_ok=True)
        new = folder / f"state.{os.getpid()}"
        new.write_text(json.dumps(state))
        new.replace(folder / "state.json")


def descendants(root: int) -> set[int]:
    """Lists every process below `root`, without zombies."""
    parents: dict[int, int] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                state, parent = Path(entry.path, "stat").read_text().rpartition(")")[2].split()[:2]
                if state != "Z":
                    parents[int(entry.name)] = int(parent)
    found, grown = {root}, True
    while grown:
        more = {child for child, parent in parents.items() if parent in found} - found
        found, grown = found | more, bool(more)
    return found - {root}


def main(folder: Path) -> int:
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    start = json.loads((folder / "start.json").read_text())
    rooted, reason = "root" in start, folder / "reason"
    own_root = [
        sys.executable,
        "-I",
        "-S",
        str(Path(__file__).with_name("own_root.py")),
        str(folder / "start.json"),
        str(reason),
    ]
    try:
        process = subprocess.Popen(
            own_root if rooted else start["words"],
            env=start["variables"],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            cwd=None if rooted else start["folder"],
        )
    except OSError as problem:
        code = CODES.get(problem.errno or 0, 1)
        print(f"[FATAL tini (7)] exec {start['words'][0]} failed: {problem.strerror}", flush=True)
        write(folder, state_of("exited", code=code, started=STARTED))
        return code
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, lambda number, _frame: process.send_signal(number))
    write(folder, state_of("running", pid=os.getpid(), started=STARTED))
    code = process.wait()
    while found := descendants(os.getpid()):  # the end of process 1 is the end of its namespace
        for one in found:
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
    code = code if code >= 0 else 128 - code
    if reason.exists():
        return _refused(folder, reason.read_text(), code)
    if folder.exists():
        write(folder, state_of("exited", code=code, started=STARTED))
    return code


def _refused(folder: Path, reason: str, code: int) -> int:
    """The container was made, and its command never began."""
    print(f"docker: Error response from daemon: failed to create task for container: {reason}", flush=True)
    write(folder, state_of("created", code=code, error=reason))
    return code


if __name__ == "__main__":
    os._exit(main(Path(sys.argv[1])))
