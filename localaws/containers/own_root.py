"""Runs a command in the root of an image, as a container is run: its own mounts, processes, user and rights.

It runs alone (`python -I -S own_root.py START [REASON]`). START is a file with what `start` describes; REASON is a file for the reason why
the command never began. What the container writes beside its mounts is kept in
memory, up to LAYER_MB, and is gone with it; nobody else sees its mounts. It sees no process of the computer, has the rights that docker
leaves to root but for the making of devices, and its processes end with the first of them. The network is the computer's, and nothing
limits its memory and the number of its processes.
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

CLONE_NEWNS, CLONE_NEWPID = 0x00020000, 0x20000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND = 1, 2, 4, 8, 32, 4096
MS_REC, MS_PRIVATE = 16384, 1 << 18
PR_SET_PDEATHSIG, PR_CAPBSET_DROP = 1, 24
KEPT_RIGHTS = {0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 29, 31}
"""Docker's: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE, NET_RAW, SYS_CHROOT, AUDIT_WRITE,
SETFCAP. Without MKNOD: docker has a list of devices beside it, which needs a cgroup."""
LAST_RIGHT = 63
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
OF_THE_HOST = ("/etc/resolv.conf", "/etc/hosts")
LAYER_MB = 512
STAGE = "/proc"
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT)
CODES = {errno.EACCES: 126, errno.ENOENT: 127}
REFUSED = 125


def start(
    root: str,
    words: list[str],
    variables: dict[str, str],
    folder: str,
    *,
    mounts: list[tuple[str, str, bool]],
    user: str = "",
    read_only: bool = False,
    init: bool = False,
) -> dict[str, Any]:
    """Describes a container. `mounts` are folders of the computer, their places, and whether they are read only; `user` is the image's
    USER; `read_only`: nothing beside the mounts can be written; `init`: docker's init, which has begun when it cannot run the command."""
    return {
        "root": root,
        "words": words,
        "variables": variables,
        "folder": folder,
        "mounts": mounts,
        "user": user,
        "read_only": read_only,
        "init": init,
    }


def can_run() -> bool:
    """Whether the computer gives processes mounts of their own, an overlay among them."""
    layers = "lowerdir=/etc,upperdir=/mnt/u,workdir=/mnt/w"
    probe = f"mount -t tmpfs none /mnt && mkdir /mnt/u /mnt/w /mnt/m && mount -t overlay none -o {layers} /mnt/m"
    words = ["unshare", "--mount", "--pid", "--fork", "sh", "-c", probe]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


class Kernel:
    """Calls that Python has no functions for."""

    def __init__(self) -> None:
        self._calls = ctypes.CDLL(None, use_errno=True)

    def call(self, name: str, *given: object) -> None:
        if getattr(self._calls, name)(*given):
            number = ctypes.get_errno()
            raise OSError(number, f"{os.strerror(number)} ({name} {given})")

    def mount(self, source: str, target: str, kind: str | None = None, flags: int = 0, options: str = "") -> None:
        self.call(
            "mount", source.encode(), target.encode(), kind.encode() if kind else None, flags, options.encode() or None
        )


def main(given: dict[str, Any]) -> tuple[int, str]:
    """Returns the exit code of the container, which has ended with everything in it, and why its command never began, if so."""
    kernel = Kernel()
    kernel.call("unshare", CLONE_NEWNS | CLONE_NEWPID)
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    told, tell = os.pipe()  # closed by the command's beginning
    first = os.fork()
    if not first:
        os.close(told)
        os._exit(_first(kernel, given, tell))
    os.close(tell)
    for number in PASSED_ON:
        signal.signal(number, lambda number, _frame: _send(first, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    with os.fdopen(told, errors="replace") as said:
        why = said.read()
    _, status = os.waitpid(first, 0)
    return _code(status), why


def _first(kernel: Kernel, given: dict[str, Any], tell: int) -> int:
    """Process 1 of the container, as docker's init: it passes signals on and reaps; with its end the kernel ends all others."""
    kernel.call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        _enter(kernel, given)
    except OSError as problem:
        os.write(tell, str(problem).encode())
        return REFUSED
    program = os.fork()
    if not program:
        code, why = _become(kernel, given)
        os.write(tell, why.encode())
        os._exit(code)
    os.close(tell)
    for number in PASSED_ON:
        signal.signal(number, lambda number, _frame: _send(program, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    while True:
        ended, status = os.wait()
        if ended == program:
            return _code(status)


def _enter(kernel: Kernel, given: dict[str, Any]) -> None:
    """Makes the image's root the process's own: an overlay, with the mounts in it."""
    image = str(given["root"])
    kernel.mount("none", "/", None, MS_REC | MS_PRIVATE)
    # A mount hides what lies below it. Nothing that a container is given lies below /proc.
    kernel.mount("none", STAGE, "tmpfs", 0, f"size={LAYER_MB}m,mode=755")
    for name in ("upper", "work", "root"):
        Path(STAGE, name).mkdir()
    Path(STAGE, "upper").chmod(Path(image).stat().st_mode & 0o7777)
    lower = image.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")
    root = f"{STAGE}/root"
    kernel.mount("none", root, "overlay", 0, f"lowerdir={lower},upperdir={STAGE}/upper,workdir={STAGE}/work")
    Path(root + given["folder"]).mkdir(parents=True, exist_ok=True)
    for source, target, read_only in given["mounts"]:
        _bind(kernel, source, root + target, read_only=read_only)
    for source in OF_THE_HOST:
        if Path(source).exists():
            _bind(kernel, source, root + source, read_only=True)
    _mount_systems(kernel, root)
    if given["read_only"]:
        kernel.mount("none", root, None, MS_REMOUNT | MS_BIND | MS_RDONLY)
    os.chroot(root)
    os.chdir(given["folder"])


def _mount_systems(kernel: Kernel, root: str) -> None:
    """Mounts the kernel's own file systems: the container's processes, few devices, and what may only be read."""
    for name in ("proc", "sys", "dev"):
        Path(root, name).mkdir(exist_ok=True)
    quiet = MS_NOSUID | MS_NOEXEC | MS_NODEV
    kernel.mount("proc", f"{root}/proc", "proc", quiet)
    kernel.mount("/sys", f"{root}/sys", None, MS_BIND)
    kernel.mount("/sys", f"{root}/sys", None, MS_BIND | MS_REMOUNT | MS_RDONLY | quiet)
    devices = Path(root, "dev")
    kernel.mount("none", str(devices), "tmpfs", MS_NOSUID, "size=1m,mode=755")
    for name in DEVICES:
        _bind(kernel, f"/dev/{name}", str(devices / name), read_only=False)
    (devices / "shm").mkdir()
    kernel.mount("none", str(devices / "shm"), "tmpfs", quiet, "mode=1777")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        (devices / name).symlink_to(f"/proc/self/fd/{number}")
    (devices / "fd").symlink_to("/proc/self/fd")


def _bind(kernel: Kernel, source: str, place: str, *, read_only: bool) -> None:
    if Path(source).is_dir():
        Path(place).mkdir(parents=True, exist_ok=True)
    else:
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        Path(place).touch()
    kernel.mount(source, place, None, MS_BIND | MS_REC)
    if read_only:
        kernel.mount(source, place, None, MS_BIND | MS_REMOUNT | MS_RDONLY)


def _become(kernel: Kernel, given: dict[str, Any]) -> tuple[int, str]:
    """Turns into the container's command, without the rights that no container has. Returns an exit code if it cannot, and the reason
    where the container never began."""
    words, variables = given["words"], given["variables"]
    try:
        os.setsid()
        for right in set(range(LAST_RIGHT + 1)) - KEPT_RIGHTS:
            with suppress(OSError):  # the kernel has fewer
                kernel.call("prctl", PR_CAPBSET_DROP, right, 0, 0, 0)
        user, group, others = identity(given["user"])
        os.setgroups(others)
        os.setgid(group)
        os.setuid(user)
        for number in (*PASSED_ON, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    except LookupError as problem:
        return REFUSED, f"unable to find {problem.args[0]}: no matching entries in passwd file"
    try:
        os.execvpe(words[0], words, variables)
    except OSError as problem:
        code = CODES.get(problem.errno or 0, 1)
        if given["init"]:
            print(f"[FATAL tini (7)] exec {words[0]} failed: {problem.strerror}", flush=True)
            return code, ""
        what = "executable file not found in $PATH" if code == CODES[errno.ENOENT] else str(problem.strerror).lower()
        return code, f'exec: "{words[0]}": {what}: unknown'


def identity(user: str, etc: Path = Path("/etc")) -> tuple[int, int, list[int]]:
    """Returns the numbers of an image's USER: user, group, further groups. Raises LookupError for a name that nobody has."""
    name, _, group = user.partition(":")
    people, groups = _listed(etc / "passwd"), _listed(etc / "group")
    name = name or "0"
    own = next((one for one in people if name in (one[0], one[2])), None)
    if own is None and not name.isdigit():
        raise LookupError(f"user {name}")
    number = int(own[2]) if own else int(name)
    if group:
        found = next((one for one in groups if group in (one[0], one[2])), None)
        if found is None and not group.isdigit():
            raise LookupError(f"group {group}")
        return number, int(found[2]) if found else int(group), []
    mine = int(own[3]) if own else 0
    return number, mine, [int(one[2]) for one in groups if own and own[0] in one[3].split(",")]


def _listed(file: Path) -> list[list[str]]:
    with suppress(OSError):
        return [line.split(":") for line in file.read_text().splitlines() if line.count(":") >= 3]
    return []


def _send(process: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, number)


def _code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    file = Path(sys.argv[1])
    code, reason = main(json.loads(file.read_text()))
    if reason and len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(reason)
    elif reason:
        print(f"failed to create task for container: {reason}")
    sys.stdout.flush()
    os._exit(code)
