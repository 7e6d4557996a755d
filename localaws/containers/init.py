"""Process 1 of a container: starts its command, passes SIGTERM on, and ends everything with it, or with the rehearsal.

It runs alone (`python -I -S init.py COMMAND...`). The end of standard input means the end of the rehearsal, or an order to
kill. The exit code is the command's; if a signal ended the command, it is 128 plus the signal's number.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress


def main(command: list[str]) -> int:
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
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)
