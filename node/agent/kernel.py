"""The kernel's lines: GPU faults (Xid), memory that ran out, disks that fail. Amazon Linux 2023 has them in the journal alone."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from agent.failures import CannotStart
from agent.training import ChildProcess

BOOTED = "run/systemd/system"
"""There where systemd is the machine's init (sd_booted(3))."""
FOLLOW = ("journalctl", "--dmesg", "--follow", "--no-tail", "--quiet", "--output=short-iso")
NOTABLE = re.compile(r"NVRM: Xid|out of memory|oom-kill|I/O error|machine check|hardware error", re.IGNORECASE)
MOST_NOTED = 20
"""A GPU that fell off the bus repeats itself."""


class KernelLog:
    """Follows the kernel from the boot on: every line to `ship`, those that explain the end of a training to `note` as well.

    A machine without a journal is a line in the log, nothing else.
    """

    def __init__(self, root: Path, *, ship: Callable[[str], None], note: Callable[[str], None]) -> None:
        self._ship, self._note, self._noted = ship, note, 0
        self._child: ChildProcess | None = None
        if not (root / BOOTED).is_dir():
            return
        try:
            self._child = ChildProcess(FOLLOW, folder=root, environment=os.environ, on_line=self._line)
        except CannotStart as problem:
            note(f"no kernel lines: {problem}")

    def end(self) -> None:
        """What was said until now is shipped afterwards."""
        if self._child is not None:
            self._child.end(0.0)

    def _line(self, line: str) -> None:
        self._ship(line)
        if NOTABLE.search(line) and self._noted < MOST_NOTED:
            self._noted += 1
            self._note(f"the kernel: {line}")
