"""Looks at the machine's block devices and mounts, and changes nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

INSTANCE_STORE = "Amazon EC2 NVMe Instance Storage"
"""The model of the disks that are in the machine itself; an EBS volume's is `Amazon Elastic Block Store` (EC2 user guide)."""
SECTOR = 512
"""Bytes of a sector in /sys, whatever the device's own sectors have (the kernel's ABI/stable/sysfs-block)."""
NOTHING_FOUND = 2
"""blkid's exit code where a device holds nothing that it knows (blkid(8))."""
TOOLS = ("blkid", "lvcreate", "mdadm", "mkfs.ext4", "mkfs.xfs", "mount", "vgcreate")
PATIENCE_S = 60.0
"""The longest that one tool may take: with no discard, a file system of terabytes is made in seconds."""


@dataclass(frozen=True)
class Done:
    """How a tool ended."""

    code: int
    out: str = ""
    err: str = ""


Run = Callable[[Sequence[str]], Done]


def path() -> str:
    """Returns where tools are looked for: a PATH without the folders of system tools must not hide them."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


@dataclass(frozen=True, kw_only=True)
class BlockDevice:
    """A disk, or what md or LVM made of disks."""

    name: str
    """As /sys/block has it, for example `nvme1n1` or `dm-0`."""
    model: str = ""
    size: int = 0
    """In bytes."""
    partitions: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    """Devices that md or LVM made of this one."""
    members: tuple[str, ...] = ()
    """Devices of which md or LVM made this one."""
    read_only: bool = False
    content: str | None = ""
    """What lies on it, by blkid's word; empty for nothing, None where that is unknown."""
    label: str = ""
    """The label of its file system."""


@dataclass(frozen=True, kw_only=True)
class MountPoint:
    """A mounted file system."""

    folder: str
    kind: str = "xfs"
    device: str = ""
    """The block device below it; of a partition, the disk. Empty where there is none."""
    writable: bool = True
    free: int = 0
    """Bytes that may be written; measured only on instance stores."""


@dataclass(frozen=True, kw_only=True)
class Disks:
    """What is known about the machine's disks when the agent starts."""

    work: str
    """Where the work folder is."""
    devices: tuple[BlockDevice, ...] = ()
    mounts: tuple[MountPoint, ...] = ()
    root_free: int = 0
    """Bytes that may be written where the work folder is now."""
    work_in_use: bool = False
    """Whether the work folder has files already, which a mount would hide."""
    tools: frozenset[str] = field(default_factory=frozenset)

    def on_instance_stores(self, name: str) -> bool:
        """Whether a device lies on instance stores and on nothing else. False for a device that is unknown."""
        found = next((one for one in self.devices if name == one.name or name in one.partitions), None)
        if found is None:
            return False
        own = found.model == INSTANCE_STORE
        return own or (bool(found.members) and all(self.on_instance_stores(one) for one in found.members))


def run(command: Sequence[str]) -> Done:
    """Runs a tool without input. Never raises: what cannot be run has the code 127."""
    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
            check=False,
            env={**os.environ, "PATH": path(), "LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError) as problem:
        return Done(127, err=str(problem))
    return Done(done.returncode, done.stdout, done.stderr.strip())


def tools() -> frozenset[str]:
    """Returns which of the tools the image has."""
    return frozenset(one for one in TOOLS if shutil.which(one, path=path()))


def free(folder: Path) -> int:
    """Returns the bytes that may be written in a folder, or in the nearest folder above it that exists."""
    while not folder.exists():
        folder = folder.parent
    facts = os.statvfs(folder)
    return facts.f_bavail * facts.f_frsize


def read_disks(
    root: Path, work: str, *, run: Run = run, tools: frozenset[str], free: Callable[[Path], int] = free
) -> Disks:
    """Returns what `root` (`/` on a real machine) shows. Raises OSError where the kernel does not show it.

    Only instance stores, and what was made of them, are opened: nothing is asked of an EBS volume.
    """
    numbers: dict[str, str] = {}
    shown = tuple(_device(folder, numbers) for folder in _folders(root / "sys/block") if not _is_hidden(folder))
    bare = Disks(work=work, devices=shown)
    ours = [one for one in shown if bare.on_instance_stores(one.name)]
    if not ours:
        return bare
    probed = {one.name: _probed(one, root, run) for one in ours}
    at = root / work.lstrip("/")
    return replace(
        bare,
        devices=tuple(probed.get(one.name, one) for one in shown),
        mounts=tuple(_mounts(root, numbers, bare, free)),
        root_free=free(at),
        work_in_use=at.is_dir() and any(at.iterdir()),
        tools=tools,
    )


def _folders(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _is_hidden(folder: Path) -> bool:
    """Whether it is one of the paths to a device, beside the device itself (NVMe multipath)."""
    return _text(folder / "hidden") == "1"


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def _device(folder: Path, numbers: dict[str, str]) -> BlockDevice:
    partitions = [one for one in _folders(folder) if (one / "partition").exists()]
    for one in (folder, *partitions):
        if number := _text(one / "dev"):
            numbers[number] = folder.name
    size = _text(folder / "size")
    return BlockDevice(
        name=folder.name,
        model=_text(folder / "device/model"),
        size=int(size) * SECTOR if size.isdecimal() else 0,
        partitions=tuple(one.name for one in partitions),
        holders=tuple(one.name for one in (*_folders(folder / "holders"), *_holders(partitions))),
        members=tuple(one.name for one in _folders(folder / "slaves")),
        read_only=_text(folder / "ro") == "1",
    )


def _holders(partitions: Sequence[Path]) -> list[Path]:
    return [holder for one in partitions for holder in _folders(one / "holders")]


def _probed(device: BlockDevice, root: Path, run: Run) -> BlockDevice:
    """The device with what blkid finds on it. blkid says "nothing" of a device that it cannot open, too, so the agent opens it itself."""
    path = root / "dev" / device.name
    if not _is_idle(path):
        return replace(device, content=None)
    done = run(["blkid", "-p", "-o", "export", str(path)])
    found = dict(line.split("=", 1) for line in done.out.splitlines() if "=" in line)
    content: str | None = found.get("TYPE") or found.get("PTTYPE")
    if content is None and done.code == NOTHING_FOUND and not done.err:
        content = ""
    return replace(device, content=content, label=found.get("LABEL", "") if done.code == 0 else "")


def _is_idle(path: Path) -> bool:
    """Whether a device can be opened for itself alone: the kernel denies that for one that is mounted, or that md or LVM uses (open(2))."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _mounts(root: Path, numbers: Mapping[str, str], disks: Disks, free: Callable[[Path], int]) -> list[MountPoint]:
    """Reads mountinfo (proc(5)), which names devices by number: names under /dev may be links."""
    found = []
    for line in (root / "proc/self/mountinfo").read_text("utf-8", "replace").splitlines():
        before, _, after = line.partition(" - ")
        fields, behind = before.split(" "), after.split(" ")
        folder, device = _unescaped(fields[4]), numbers.get(fields[2], "")
        ours = disks.on_instance_stores(device)
        found.append(
            MountPoint(
                folder=folder,
                kind=behind[0],
                device=device,
                writable="rw" in fields[5].split(",") and "rw" in behind[2].split(","),
                free=free(root / folder.lstrip("/")) if ours else 0,
            )
        )
    return found


def _unescaped(path: str) -> str:
    """The kernel writes blanks and backslashes of a path as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), path)
