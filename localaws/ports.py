"""Reserves ports on this computer for one rehearsal, for as long as it needs them.

On AWS every machine has a network of its own; here the machines of all rehearsals share one. PyTorch listens on all addresses, so
a second rehearsal with the same port would find it taken.
"""

from __future__ import annotations

import errno
import socket
from contextlib import suppress

MANY = 1000
"""How many ports are tried. From 32768 on Linux gives ports to outgoing connections, so callers begin well below."""


class Port:
    """Reserves `number`: no other caller on this computer gets it before `release`, or before this process ends."""

    def __init__(self, first: int) -> None:
        """Takes the first free port from `first` on. Raises OSError if none of MANY is free."""
        for number in range(first, first + MANY):
            # The kernel keeps this name as long as the socket, so it disappears with the process, however that ends.
            held = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            with suppress(OSError):
                held.bind(f"\0local-aws-port-{number}")
                if _is_free(number):
                    self.number, self._held = number, held
                    return
            held.close()
        raise OSError(errno.EADDRINUSE, f"no port from {first} to {first + MANY - 1} is free")

    def release(self) -> None:
        """Releases the port. May be called twice."""
        self._held.close()


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
