"""Stands in for mount and umount on a machine of the rehearsal: the file system's folder appears where it is mounted.

On a machine with a mount namespace of its own it is really mounted there, and the kernel keeps a read-only one from being written.
Elsewhere the place becomes a link, and nothing keeps anybody from writing. What cannot be mounted is told in the words of the real
programs: util-linux's, Lustre's, and those of amazon-efs-utils.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Sequence
from configparser import RawConfigParser
from pathlib import Path
from typing import NoReturn

from localaws.machines.file_systems import ABOUT, DATA, REACHED

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND = 1, 2, 4, 32, 4096
MNT_DETACH = 2
FAILED, USAGE = 32, 1
"""Exit codes of mount (mount(8))."""
OWN = "run/own-mounts"
"""On a machine: exists where it has a mount namespace of its own."""
FSX = re.compile(r"(fs-[0-9a-f]+)\.fsx\.[a-z0-9-]+\.amazonaws\.com(?:\.cn)?@tcp:/(\w+)")
EFS = re.compile(r"(fs-[0-9a-f]+):/")
FOR_EVER_S = 3600.0


def mount(words: Sequence[str]) -> None:
    """`mount -t TYPE -o OPTIONS SOURCE TARGET`, as a machine's program calls it."""
    match list(words):
        case ["-t", kind, "-o", options, source, target]:
            given = dict(_option(one) for one in options.split(","))
        case _:
            _fail(f"mount: {' '.join(words)}: the rehearsal's mount does not know this", USAGE)
    place, root = Path(target), Path(os.environ["LOCAL_AWS_ROOT"])
    if not place.is_dir():
        _fail(f"mount: {target}: mount point does not exist.")
    if shutil.which(f"mount.{kind}") is None:
        _fail(f"mount: {target}: unknown filesystem type '{kind}'.")
    files = _files(kind, source, target, given, root)
    if not (root / OWN).exists():
        place.rmdir()
        place.symlink_to(files)
        return
    flags = sum(flag for name, flag in (("ro", MS_RDONLY), ("nosuid", MS_NOSUID), ("nodev", MS_NODEV)) if name in given)
    _call("mount", str(files).encode(), target.encode(), None, MS_BIND, None)
    _call("mount", None, target.encode(), None, MS_BIND | MS_REMOUNT | flags, None)


def umount(words: Sequence[str]) -> None:
    """`umount [--lazy] TARGET`."""
    lazy, target = "--lazy" in words, Path(words[-1])
    if target.is_symlink():
        target.unlink()
        target.mkdir()
        return
    try:
        _call("umount2", str(target).encode(), MNT_DETACH if lazy else 0)
    except OSError as problem:
        words_of = {16: "target is busy.", 22: "not mounted."}
        _fail(f"umount: {target}: {words_of.get(problem.errno or 0, problem.strerror)}")


def _files(kind: str, source: str, target: str, given: dict[str, str], root: Path) -> Path:
    """The folder of the file system's files; ends with what the real program says where there is none, or no way to it."""
    known = (FSX if kind == "lustre" else EFS).fullmatch(source)
    folder = Path(os.environ["LOCAL_AWS_FILE_SYSTEMS"], known[1] if known else "none")
    about = json.loads((folder / ABOUT).read_text()) if (folder / ABOUT).exists() else None
    if (
        known is None
        or about is None
        or about["type"] != kind
        or given.get("region", about["region"]) != about["region"]
    ):
        _unknown(kind, source)
    reached = root / REACHED
    if reached.exists() and about["id"] not in json.loads(reached.read_text()):
        time.sleep(FOR_EVER_S)  # nothing answers, and mount tries on
    if kind == "lustre" and about["mount_name"] != known[2]:
        _fail(
            f"mount.lustre: mount {source} at {target} failed: No such file or directory\nIs the MGS specification correct?\n"
            "Is the filesystem name correct?",
            2,
        )
    if kind != "lustre":
        _authorised(about, given)
    return folder / DATA


def _unknown(kind: str, source: str) -> NoReturn:
    host = source.partition("@")[0].partition(":")[0]
    if kind == "lustre":
        _fail(f"mount.lustre: Can't resolve hostname '{host}'.\nCan't parse NID '{source}'", 1)
    what = "an EFS" if kind == "efs" else "an S3Files"
    _fail(
        f'Failed to resolve "{host}" - check that your file system ID is correct, and ensure that the VPC has {what} mount target for this '
        "file system ID.",
        1,
    )


def _authorised(about: dict[str, str], given: dict[str, str]) -> None:
    """The keys of a named profile, as the helper reads them; whether they allow it is the file system's to say."""
    profile, file = given.get("awsprofile", "default"), Path(os.environ["HOME"], ".aws/credentials")
    keys = RawConfigParser(default_section="")
    keys.read(file)
    if not keys.get(profile, "aws_access_key_id", fallback=""):
        _fail(
            f"AWS security credentials not found in {file} or {file.with_name('config')} under named profile [{profile}]",
            1,
        )
    if about["closed"] or given.get("accesspoint", "") != about["access_point"]:
        _fail("b'mount.nfs4: access denied by server while mounting 127.0.0.1:/'", 1)


def _option(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def _call(name: str, *given: object) -> None:
    kernel = ctypes.CDLL(None, use_errno=True)
    if getattr(kernel, name)(*given):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _fail(message: str, code: int = FAILED) -> NoReturn:
    print(message, file=sys.stderr, flush=True)
    sys.exit(code)
