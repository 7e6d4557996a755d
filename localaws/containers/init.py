"""Process 1 of a container: starts its command, passes SIGTERM on, and ends everything with it, or with the rehearsal.

It runs alone (`python -I -S init.py COMMAND...`). The end of standard input means the end of the rehearsal, or an order to
kill. The exit code is the command's; if a signal ended the command, it is 128 plus the signal's number. Processes whose parents are gone
become its children, so that those which left the command's session end with it as well.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


def main(command: list[str]) -> int:
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as problem:
        print(f"exec {command[0]}: {problem.strerror}", file=sys.stderr)
        return 127
    signal.signal(signal.SIGTERM, lambda *_: process.send_signal(signal.SIGTERM))

    def end() -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def cable() -> None:
        while os.read(0, 1024):
            pass
        end()

    threading.Thread(target=cable, daemon=True).start()
    code = process.wait()
    end()
    end_children()
    return code if code >= 0 else 128 - code


def end_children() -> None:
    """Kills its children until it has none; theirs become its own."""
    while True:
        for child in list_children(os.getpid()):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def list_children(parent: int) -> list[int]:
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                if int(Path(entry.path, "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                    found.append(int(entry.name))
    return found


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)
