"""Tells from the kernel's lines which errors are the hardware's, and which are the code's own."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable

XID = re.compile(r"NVRM: Xid \((?:PCI:)?(?P<where>[0-9A-Fa-f:.]+)\): (?P<number>\d+)\b")
SWITCH = re.compile(r"SXid \((?:PCI:)?(?P<where>[0-9A-Fa-f:.]+)\): (?P<number>\d+), Fatal\b")
"""Of an NVSwitch. Its other errors are recovered from, or corrected."""
HARDWARE_XIDS = {
    48: "an uncorrectable memory error (double-bit ECC)",
    62: "the GPU's own controller has halted",
    63: "a row of its memory was remapped, or a page retired",
    64: "a row of its memory could not be remapped, or a page not retired",
    74: "an error of its NVLink",
    79: "the GPU has fallen off the bus",
    94: "an uncorrectable memory error, contained",
    95: "an uncorrectable memory error, not contained",
    119: "the GPU's system processor (GSP) does not answer",
    120: "an error of the GPU's system processor (GSP)",
    140: "an unrecovered memory error (ECC)",
    143: "the GPU could not be initialized",
}
"""Xids that tell of the machine, as NVIDIA describes them (docs.nvidia.com/deploy/xid-errors, "Analyzing Xid Errors with the Xid Catalog").
Every other one counts as the code's own: above all 13, 31, 43 and 45, which programs cause by a wrong address, a time-out or their end."""
OTHERS = (
    (re.compile(r"Memory failure: 0x[0-9a-f]+: (Killing|recovery action)"), "the machine's memory has failed"),
    (re.compile(r"PCIe Bus Error: severity=Uncorrect\w+ \(Fatal\)"), "a fatal error of PCIe"),
    (
        re.compile(
            r"(efa|infiniband) \S+: (The device didn't send any completion|Wait for completion \(polling\) timeout)"
        ),
        "an EFA device does not answer",
    ),
    (re.compile(r"\bI/O error, dev nvme"), "a disk does not read or write"),
)
"""Lines of the kernel beside Xids: mm/memory-failure.c, drivers/pci/pcie/aer.c, drivers/infiniband/hw/efa/efa_com.c, block/blk-core.c."""
RECENT_S = 600.0
"""How long an error of the hardware may explain an error of the command. NCCL gives up a collective after ten minutes."""
MOST_KEPT = 50
SHOWN = 200
"""Characters of a line that is quoted."""


def hardware(line: str) -> str:
    """What the line says of the machine's hardware, in words for a person; empty where it says nothing of it."""
    if found := XID.search(line):
        number = int(found["number"])
        words = HARDWARE_XIDS.get(number)
        return f"Xid {number} of GPU {found['where']} ({words})" if words else ""
    if found := SWITCH.search(line):
        return f"fatal SXid {found['number']} of NVSwitch {found['where']}"
    found_words = next((words for pattern, words in OTHERS if pattern.search(line)), "")
    return f"{found_words}: {line.strip()[-SHOWN:]}" if found_words else ""


class KernelErrors:
    """Keeps the hardware's errors that the kernel has told, with when they were heard. Safe to use from any thread."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._lock = now, threading.Lock()
        self._heard: deque[tuple[float, str]] = deque(maxlen=MOST_KEPT)

    def hear(self, line: str) -> None:
        if words := hardware(line):
            with self._lock:
                self._heard.append((self._now(), words))

    def recent(self) -> list[str]:
        """Those of the last `RECENT_S` seconds, each once, in their order."""
        since = self._now() - RECENT_S
        with self._lock:
            return list(dict.fromkeys(words for at, words in self._heard if at >= since))
