"""Gives the job's work folder its place, early in the boot. A disk that cannot be used never ends a node."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent.disk import devices
from agent.disk.devices import Disks, Done, Run
from agent.disk.policy import Verdict, Way, commands, judge

IMAGES_OWN = "dlami-nvme.service"
"""Joins and mounts the instance stores of a deep-learning image at its boot."""
UNITS = ("etc/systemd/system", "usr/lib/systemd/system", "lib/systemd/system")
IMAGE_PATIENCE_S = 60.0
"""How long the image's own service may take; it needs seconds, and is usually done before user data runs."""
LOOK_S = 1.0
ALL_S = 120.0
"""After so many seconds no further tool is started: broken disks must not use up the time in which a node has to report."""


class DiskTrouble(Exception):
    """An instance store could not be used; the message says why."""


@dataclass(frozen=True)
class WorkPlace:
    """Where the work folder lies."""

    folder: Path
    reason: str = ""
    """Why it lies there, for the node's log."""
    on_instance_store: bool = False
    root: Path = Path("/")
    """A folder of the root volume."""


def settle(
    root: Path,
    work: str,
    *,
    run: Run = devices.run,
    tools: Callable[[], frozenset[str]] = devices.tools,
    free: Callable[[Path], int] = devices.free,
    sleep: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> WorkPlace:
    """Puts `root`/`work` on the instance stores where that can be done, and returns where it lies. Never raises: after any failure the
    work folder is on the root volume. A second call changes nothing."""
    folder, path = root / work, f"/{work}"

    def read() -> Disks:
        return devices.read_disks(root, path, run=in_time, tools=tools(), free=free)

    try:
        _wait_for_image(root, run, sleep)
        in_time = _in_time(run, monotonic)
        verdict = judge(read())
        if verdict.way is not Way.NOTHING:
            _carry_out(verdict, root, folder, in_time)
            _prove(read, path, folder, run)
    except Exception as problem:
        return WorkPlace(folder, f"the work folder stays on the root volume: {problem}", root=root)
    return WorkPlace(folder, verdict.reason, verdict.on_instance_store, root)


def _in_time(run: Run, monotonic: Callable[[], float]) -> Run:
    until = monotonic() + ALL_S

    def limited(command: Sequence[str]) -> Done:
        return run(command) if monotonic() < until else Done(127, err=f"not started, {ALL_S:.0f} s had passed")

    return limited


def _wait_for_image(root: Path, run: Run, sleep: Callable[[float], None]) -> None:
    """Two that join the same disks at the same time would both fail."""
    if not any((root / unit / IMAGES_OWN).exists() for unit in UNITS):
        return
    for _ in range(int(IMAGE_PATIENCE_S / LOOK_S)):
        if run(["systemctl", "is-active", IMAGES_OWN]).out.strip() != "activating":
            return
        sleep(LOOK_S)
    raise DiskTrouble(f"{IMAGES_OWN} of the image is still starting after {IMAGE_PATIENCE_S:.0f} s")


def _carry_out(verdict: Verdict, root: Path, folder: Path, run: Run) -> None:
    prefix = str(root).rstrip("/")
    bound = replace(verdict, folder=prefix + verdict.folder)
    for command in commands(bound, f"{prefix}/dev", str(folder)):
        done = run(command)
        if done.code:
            said = (done.err or done.out).strip()[-300:]
            raise DiskTrouble(
                f"{command[0]} of {', '.join(verdict.devices) or verdict.folder} failed ({done.code}): {said}"
            )


def _prove(read: Callable[[], Disks], path: str, folder: Path, run: Run) -> None:
    """Raises DiskTrouble, and unmounts, where the work folder is not on instance stores now, or cannot be written to."""
    probe = folder / ".probe"
    try:
        disks = read()
        mount = next((one for one in disks.mounts if one.folder == path), None)
        if mount is None:
            raise DiskTrouble("the mount is not there, although mount reported no error")
        if not disks.on_instance_stores(mount.device):
            raise DiskTrouble(f"the mount is on {mount.device or 'no block device'}, which is not an instance store")
        with probe.open("wb") as file:
            file.write(b"trainyard")
            os.fsync(file.fileno())
        probe.unlink()
    except Exception as problem:
        run(["umount", "-l", str(folder)])
        raise DiskTrouble(f"what was mounted cannot be used: {problem}") from problem
