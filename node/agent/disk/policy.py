"""Decides where the job's work folder lies: on instance stores where they are free and large enough, otherwise on the root volume."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from agent.disk.devices import INSTANCE_STORE, BlockDevice, Disks, MountPoint

LABEL = "trainyard"
"""The label of our file system, and the name of the array or volume group below it."""
VOLUME = "work"
"""The name of the logical volume."""
KINDS = ("xfs", "ext4")
GIB = 1024**3


class Way(Enum):
    """What is done to give the work folder its place."""

    NOTHING = "nothing"
    """It stays where it is."""
    BIND = "bind"
    """A folder of a file system that is mounted already takes its place."""
    MOUNT = "mount"
    """A file system of ours is there and is mounted."""
    MAKE = "make"
    """A file system is made of disks that hold nothing, and is mounted."""


class Join(Enum):
    """How several disks become one."""

    SINGLE = "single"
    MD = "md"
    LVM = "lvm"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Where the work folder lies, and why."""

    way: Way
    reason: str
    """A sentence for the node's log."""
    on_instance_store: bool = False
    devices: tuple[str, ...] = ()
    """Names of the devices to use, of which nothing else is touched."""
    join: Join = Join.SINGLE
    kind: str = "xfs"
    """The file system to make."""
    folder: str = ""
    """The folder to bind."""


def judge(disks: Disks) -> Verdict:
    """Decides for instance stores only where nothing speaks against it. The first that fits counts: what is mounted already, what we
    made before, and disks that hold nothing. Smaller ones than what is free on the root volume are not used, so a job has at least
    the room that its `volume_gb` gives it."""
    stores = [one for one in disks.devices if one.model == INSTANCE_STORE]
    if at_work := next((one for one in disks.mounts if one.folder == disks.work), None):
        ours = disks.on_instance_stores(at_work.device)
        return _stays(f"it has a file system of its own ({at_work.kind}) already", on_instance_store=ours)
    if not stores:
        return _stays("the machine has no NVMe instance store")
    if disks.work_in_use:
        return _stays("it has files already")
    return _mounted(disks) or _mount_earlier(disks) or _new(stores, disks)


def objection(device: BlockDevice, disks: Disks) -> str:
    """Returns why a disk must not be overwritten, as the second half of a sentence; empty where it holds nothing at all."""
    if device.read_only:
        return "is read-only"
    if device.partitions:
        return f"has partitions ({', '.join(device.partitions)})"
    if at := [one.folder for one in disks.mounts if one.device == device.name]:
        return f"is mounted at {at[0]}"
    if device.holders:
        return f"belongs to {', '.join(device.holders)}"
    if device.content is None:
        return "could not be examined"
    if device.content:
        return f"holds {device.content}"
    return "" if device.size else "has no size"


def _stays(why: str, *, on_instance_store: bool = False) -> Verdict:
    where = "where it is" if on_instance_store else "on the root volume"
    return Verdict(way=Way.NOTHING, reason=f"the work folder stays {where}: {why}", on_instance_store=on_instance_store)


def _mounted(disks: Disks) -> Verdict | None:
    """Uses what the image has mounted: deep-learning images join their instance stores at /opt/dlami/nvme before user data runs."""
    fit = [one for one in disks.mounts if _is_fit(one, disks)]
    if not fit:
        return None
    best = max(fit, key=lambda one: one.free)
    if best.free < disks.root_free:
        return _stays(f"{_smaller(f'the instance store at {best.folder}', best.free, disks)}")
    return Verdict(
        way=Way.BIND,
        reason=f"the work folder is on the instance store that is mounted at {best.folder} ({_gib(best.free)} free)",
        on_instance_store=True,
        folder=f"{best.folder.rstrip('/')}/{LABEL}",
    )


def _is_fit(mount: MountPoint, disks: Disks) -> bool:
    return mount.writable and mount.kind in KINDS and disks.on_instance_stores(mount.device)


def _mount_earlier(disks: Disks) -> Verdict | None:
    mounted = {one.device for one in disks.mounts}
    for one in disks.devices:
        ours = one.label == LABEL and one.content in KINDS and disks.on_instance_stores(one.name)
        if ours and one.name not in mounted and not one.read_only:
            return Verdict(
                way=Way.MOUNT,
                reason=f"the work folder is on the instance store {one.name}, whose file system was made before",
                on_instance_store=True,
                devices=(one.name,),
                kind=one.content or "",
            )
    return None


def _new(stores: list[BlockDevice], disks: Disks) -> Verdict:
    against = {one.name: objection(one, disks) for one in stores}
    fit = [one for one in stores if not against[one.name]]
    kind = next((kind for kind in KINDS if f"mkfs.{kind}" in disks.tools), None)
    if not fit:
        return _stays("no instance store is free: " + "; ".join(f"{name} {why}" for name, why in against.items()))
    if kind is None or "mount" not in disks.tools:
        return _stays("the image has no tool that makes and mounts a file system (mkfs.xfs or mkfs.ext4, mount)")
    join = _join(disks) if len(fit) > 1 else Join.SINGLE
    used = [max(fit, key=lambda one: one.size)] if join is Join.SINGLE else fit
    size = sum(one.size for one in used)
    names = ", ".join(one.name for one in used)
    if size < disks.root_free:
        return _stays(_smaller(f"the instance store ({names})", size, disks))
    how = {
        Join.SINGLE: "" if len(fit) == 1 else f", one of {len(fit)}, because the image has neither mdadm nor LVM",
        Join.MD: ", joined by mdadm (RAID-0)",
        Join.LVM: ", joined by LVM (stripes)",
    }[join]
    return Verdict(
        way=Way.MAKE,
        reason=f"the work folder is on the instance store ({names}, {_gib(size)}{how}) with a new file system ({kind})",
        on_instance_store=True,
        devices=tuple(one.name for one in used),
        join=join,
        kind=kind,
    )


def _join(disks: Disks) -> Join:
    if "mdadm" in disks.tools:
        return Join.MD
    return Join.LVM if {"vgcreate", "lvcreate"} <= disks.tools else Join.SINGLE


def _smaller(what: str, size: int, disks: Disks) -> str:
    return f"{what} has {_gib(size)}, less than the {_gib(disks.root_free)} that are free on the root volume"


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"


def commands(verdict: Verdict, dev: str, work: str) -> list[list[str]]:
    """Returns the commands that carry a verdict out, in their order. `dev` is the folder of devices, `work` the work folder.

    mkfs.xfs and vgcreate refuse a device on which they find something. mdadm asks, and nothing answers here, so it is told not to
    (`--run`): `objection` has made sure that there is nothing.
    """
    paths = [f"{dev}/{name}" for name in verdict.devices]
    if verdict.way is Way.NOTHING:
        return []
    if verdict.way is Way.BIND:
        return [["mkdir", "-p", verdict.folder, work], ["mount", "-o", "bind,noatime", verdict.folder, work]]
    made, device = _joined(verdict.join, paths, dev) if verdict.way is Way.MAKE else ([], paths[0])
    if verdict.way is Way.MAKE:
        made.append(_file_system(verdict.kind, device))
    return [*made, ["mkdir", "-p", work], ["mount", "-t", verdict.kind, "-o", "noatime", device, work]]


def _joined(join: Join, paths: list[str], dev: str) -> tuple[list[list[str]], str]:
    """The commands that join disks, and the device that they make."""
    count = str(len(paths))
    if join is Join.MD:
        device = f"{dev}/md/{LABEL}"
        options = ["--run", "--level=0", f"--raid-devices={count}", f"--name={LABEL}"]
        return [["mdadm", "--create", device, *options, *paths]], device
    if join is Join.LVM:
        make = ["lvcreate", "--yes", "--stripes", count, "--extents", "100%FREE", "--name", VOLUME, LABEL]
        return [["vgcreate", LABEL, *paths], make], f"{dev}/{LABEL}/{VOLUME}"
    return [], paths[0]


def _file_system(kind: str, device: str) -> list[str]:
    """Without discard: the disks are empty, and to discard terabytes takes minutes."""
    if kind == "xfs":
        return ["mkfs.xfs", "-q", "-K", "-L", LABEL, device]
    options = "nodiscard,lazy_itable_init=1,lazy_journal_init=1"
    return ["mkfs.ext4", "-q", "-m", "0", "-E", options, "-L", LABEL, device]
