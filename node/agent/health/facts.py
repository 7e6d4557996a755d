"""What a machine says of itself: the facts by which agent.health.judging decides, and how they are gathered."""

from __future__ import annotations

import errno
import os
import resource
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent.programs import Said, ask

SMI, NEURON_LS = "usr/bin/nvidia-smi", "opt/aws/neuron/bin/neuron-ls"
FIELDS = (
    "pci.bus_id",
    "ecc.errors.uncorrected.volatile.total",
    "remapped_rows.failure",
    "remapped_rows.pending",
    "retired_pages.pending",
)
FEWER_FIELDS = FIELDS[:2]
"""What every driver knows: GPUs before Ampere remap no rows, and an unknown field ends the program with code 2."""
INVALID_ARGUMENT = 2
"""Exit code of nvidia-smi (its man page), for a field that it does not know too."""
NVIDIA, DISPLAY = "0x10de", "0x03"
"""Vendor and beginning of the class of a GPU on PCI; switches and sound are of other classes."""
PROBE = ".health"
PROBE_BYTES = b"\xa5" * 4096
DISK_S = 20.0
"""How long a disk may take to keep 4 KiB: EBS and instance stores take milliseconds."""
LATE = "late"


@dataclass(frozen=True)
class Promised:
    """What EC2 says that a machine of this type has; 0 of what a type has none, or an unknown number."""

    gpus: int = 0
    neurons: int = 0
    efas: int = 0


@dataclass(frozen=True)
class MachineFacts:
    """What the machine said. None stands for what nothing could be learnt about."""

    promised: Promised
    smi: Said | None = None
    """nvidia-smi's answer: a line for each GPU, with FIELDS."""
    pci_gpus: int | None = None
    """NVIDIA's GPUs on PCI, which the kernel sees without NVIDIA's driver."""
    neuron_ls: Said | None = None
    neuron_devices: int | None = None
    """Devices of the Neuron driver in /dev."""
    kernel: tuple[str, ...] = ()
    """Errors of the hardware that the kernel has told, in words."""
    disk: str | None = None
    """Name of the error of a write to the work folder, LATE where none came in time, empty where it went well."""
    free: int | None = None
    """Bytes that the work folder has room for."""
    archive: int = 0
    """Bytes of the archive of the job's code."""
    clock_ahead_s: float | None = None
    """By how much the machine's clock is ahead of AWS's; below 0: behind."""
    open_files: int | None = None
    locked_memory: int | None = None
    """Bytes, -1 for no limit."""
    shared_memory: int | None = None
    """Bytes of /dev/shm."""


def gpus(root: Path, most_s: float) -> Said | None:
    """nvidia-smi's answer; None where the image has no nvidia-smi."""
    program = root / SMI
    if not program.exists():
        return None
    until = time.monotonic() + most_s
    said = _queried(program, FIELDS, most_s)
    if said is not None and said.code == INVALID_ARGUMENT:
        said = _queried(program, FEWER_FIELDS, until - time.monotonic())
    return said


def _queried(program: Path, fields: tuple[str, ...], most_s: float) -> Said | None:
    return _run_program(program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits", most_s=most_s)


def _run_program(program: Path, *options: str, most_s: float) -> Said | None:
    try:
        return ask([str(program), *options], most_s)
    except OSError:  # a file that is no program is as good as none
        return None


def pci_gpus(root: Path) -> int | None:
    """NVIDIA's GPUs on PCI; None where the kernel does not show PCI."""
    folder = root / "sys/bus/pci/devices"
    if not folder.is_dir():
        return None
    found = 0
    for device in folder.iterdir():
        with suppress(OSError):
            vendor, kind = ((device / name).read_text("utf-8", "replace").strip() for name in ("vendor", "class"))
            found += vendor == NVIDIA and kind.startswith(DISPLAY)
    return found


def neuron_ls(root: Path, most_s: float) -> Said | None:
    """neuron-ls's answer; None where the image has none."""
    program = root / NEURON_LS
    return _run_program(program, "--json-output", most_s=most_s) if program.exists() else None


def neuron_devices(root: Path) -> int | None:
    """None where there is no /dev."""
    folder = root / "dev"
    if not folder.is_dir():
        return None
    return sum(one.name.removeprefix("neuron").isdecimal() for one in folder.glob("neuron*"))


def disk(folder: Path, most_s: float = DISK_S) -> str:
    """Whether the folder keeps what is written to it: empty where it does, else the error's name, or LATE."""
    told = [LATE]

    def write() -> None:
        try:
            _written(folder / PROBE)
            told[0] = ""
        except OSError as problem:
            told[0] = errno.errorcode.get(problem.errno or 0, "OSError")

    thread = threading.Thread(target=write, name="disk", daemon=True)
    thread.start()
    thread.join(most_s)
    return told[0]


def _written(file: Path) -> None:
    try:
        with file.open("wb") as stream:
            stream.write(PROBE_BYTES)
            stream.flush()
            os.fsync(stream.fileno())
        if file.read_bytes() != PROBE_BYTES:
            raise OSError(errno.EIO, "other bytes came back than were written")
    finally:
        file.unlink(missing_ok=True)


def free(folder: Path) -> int | None:
    try:
        facts = os.statvfs(folder)
    except OSError:
        return None
    return facts.f_bavail * facts.f_frsize


def shared_memory(root: Path) -> int | None:
    try:
        facts = os.statvfs(root / "dev/shm")
    except OSError:
        return None
    return facts.f_blocks * facts.f_frsize


def limits() -> tuple[int, int]:
    """How many files may be open, and how many bytes of memory may be locked (-1 for any number)."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0], resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]


def gathered(
    root: Path,
    folder: Path,
    promised: Promised,
    *,
    kernel: Callable[[], list[str]],
    clock_ahead_s: Callable[[], float | None],
    archive: int,
    most_s: float,
) -> MachineFacts:
    """Asks the machine everything once. `folder` is the work folder. Takes at most `most_s` for each program, and `DISK_S`."""
    smi = gpus(root, most_s) if promised.gpus else None
    files, locked = limits()
    return MachineFacts(
        promised=promised,
        smi=smi,
        pci_gpus=pci_gpus(root) if promised.gpus else None,
        neuron_ls=neuron_ls(root, most_s) if promised.neurons else None,
        neuron_devices=neuron_devices(root) if promised.neurons else None,
        kernel=tuple(kernel()),
        disk=disk(folder),
        free=free(folder),
        archive=archive,
        clock_ahead_s=clock_ahead_s(),
        open_files=files,
        locked_memory=locked,
        shared_memory=shared_memory(root) if promised.gpus else None,
    )
