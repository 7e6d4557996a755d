"""Tells whose process is at the other end of a connection: ports on loopback, and sockets without a file, are open to every user."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path
from typing import Any

LISTS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""The kernel's lists of connections, each with the user who has it."""
ROOT = 0
CREDENTIALS = struct.Struct("3i")
"""Process, user and group of whoever connected a Unix socket."""


def is_own(connection: socket.socket) -> bool:
    """Whether a process of this user, or of root, has the other end. False where that is not known, because the connection is gone."""
    return read_user(connection) in (os.getuid(), ROOT)


def read_user(connection: socket.socket) -> int | None:
    """Returns the user of the process at the other end; None where the kernel no longer knows it."""
    if connection.family == socket.AF_UNIX:
        given = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        user: int = CREDENTIALS.unpack(given)[1]
        return user
    try:
        near, far = connection.getsockname(), connection.getpeername()
    except OSError:
        return None
    return find_user(far, near, [one.read_text("ascii") for one in LISTS if one.exists()])


def find_user(near: Any, far: Any, lists: list[str]) -> int | None:
    """Returns the user of the socket from the address `near` to `far` in the kernel's lists. One that its process has closed already, and
    that still has to be read, belongs to nobody: it has no inode, and the kernel lists root for its user."""
    for listed, family in zip(lists, (socket.AF_INET, socket.AF_INET6), strict=False):
        wanted = f" {_spell(near, family)} {_spell(far, family)} "
        place = listed.find(wanted)
        if place >= 0:
            # State, queues, timer and retries come between the addresses and the user.
            user, _, inode = listed[place + len(wanted) :].split(maxsplit=7)[4:7]
            return int(user) if int(inode) else None
    return None


def _spell(address: Any, family: socket.AddressFamily) -> str:
    """An address as the kernel lists it: words of four bytes in the computer's order, and the port."""
    host, port = address[:2]
    if family == socket.AF_INET6:
        host = host if ":" in host else f"::ffff:{host}"
    words = socket.inet_pton(family, host.removeprefix("::ffff:") if family == socket.AF_INET else host)
    return f"{''.join(words[at : at + 4][::-1].hex() for at in range(0, len(words), 4)).upper()}:{port:04X}"
