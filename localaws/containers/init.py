"""Process 1 of a container: starts its command, passes SIGTERM on, and ends everything with it, or with the rehearsal.

It stands alone (`python -I -S init.py COMMAND...`). The end of standard input is the end of the rehearsal, or its order to
kill; the exit code is the command's, 128 and the signal's number where a signal ended it.
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
