"""Reserves ports and loopback addresses on this computer for one rehearsal, for as long as it needs them.

On AWS every machine has a network of its own; here the machines of all rehearsals share one. PyTorch listens on all addresses, so
a second rehearsal with the same port would find it taken; and a program that reaches the address of another rehearsal's machine would meet
a stranger.
"""

from __future__ import annotations

import errno
import itertools
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

MANY = 1000
"""Among how many ports one is looked for. From 32768 on Linux gives ports to outgoing connections, so callers begin well below."""
APART = 16
"""How far the first ports of trainings are apart: many a program also listens on the ports that follow MASTER_PORT."""
BLOCKS = range(64, 255)
"""Second bytes of loopback addresses, of which each local AWS has one. Tests give addresses of lower ones themselves."""


class Port:
    """Reserves `number`: no other caller on this computer gets it before `release`, or before this process ends."""

    def __init__(self, first: int, *, apart: int = 1, many: int = MANY) -> None:
        """Takes the first free port from `first` on of those that are `apart`. Raises OSError if none is free among `many`."""
        for number in range(first, first + many, apart):
            held = _hold(f"port-{number}")
            if held is None:
                continue
            if _is_free(number):
                self.number, self._held = number, held
                return
            held.close()
        raise OSError(errno.EADDRINUSE, f"no port from {first} to {first + many - 1} is free")

    def release(self) -> None:
        """Releases the port. May be called twice."""
        self._held.close()


class Addresses:
    """Gives the machines of one local AWS addresses in 127.0.0.0/8, to which their processes can bind, and of which no other local AWS on
    this computer gives any before `release`, or before this process ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: socket.socket | None = None
        self._left: Iterator[str] = iter(())

    def take(self) -> str:
        """Returns an address that was not given before; once all 63,488 of a block were, they come again in their order. Raises OSError if
        every block is taken."""
        with self._lock:
            if self._held is None:
                self._reserve()
            return next(self._left)

    def release(self) -> None:
        """Releases all addresses. May be called twice."""
        with self._lock:
            if self._held is not None:
                self._held.close()
            self._held = None

    def _reserve(self) -> None:
        for block in BLOCKS:
            if (held := _hold(f"addresses-{block}")) is not None:
                self._held = held
                # In a subnet AWS keeps the first four addresses and the last one.
                self._left = itertools.cycle(
                    f"127.{block}.{third}.{last}" for third in range(256) for last in range(4, 252)
                )
                return
        raise OSError(errno.EADDRINUSE, f"{len(BLOCKS)} local AWSs have every block of addresses of this computer")


def _hold(name: str) -> socket.socket | None:
    """Returns a socket of that name; None if anybody on this computer has it. The kernel keeps the name as long as the socket, so it
    disappears with the process, however that ends."""
    held = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with suppress(OSError):
        held.bind(f"\0local-aws-{name}")
        return held
    held.close()
    return None


def _is_free(port: int) -> bool:
    """Whether the port is free on every address, because PyTorch listens on all."""
    both = socket.has_dualstack_ipv6()
    try:
        socket.create_server(
            ("", port), family=socket.AF_INET6 if both else socket.AF_INET, dualstack_ipv6=both
        ).close()
    except OSError:
        return False
    return True
