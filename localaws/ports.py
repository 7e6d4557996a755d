"""Ports that one rehearsal of this computer has for itself, for as long as it wants them.

On AWS every machine has a network of its own; here the machines of all rehearsals share one, and PyTorch listens on all addresses of
it, so the same port in two rehearsals would be taken for the second.
"""

from __future__ import annotations

import errno
import socket
from contextlib import suppress

MANY = 1000
"""How many are tried. From 32768 on Linux gives ports to outgoing connections: whoever asks begins well below."""


class Port:
    """Nobody else who asks here is given `number` before `release`, or before this process is over."""

    def __init__(self, first: int) -> None:
        """The first that is free from `first` on. Raises OSError where none of so many is."""
        for number in range(first, first + MANY):
            # A name that the kernel keeps as long as the socket: it outlives no process, however that ends.
            held = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            with suppress(OSError):
                held.bind(f"\0trainyard-port-{number}")
                if _is_free(number):
                    self.number, self._held = number, held
                    return
            held.close()
        raise OSError(errno.EADDRINUSE, f"no port from {first} to {first + MANY - 1} is free")

    def release(self) -> None:
        """May be called twice."""
        self._held.close()


def _is_free(port: int) -> bool:
    """On every address, as PyTorch listens."""
    both = socket.has_dualstack_ipv6()
    try:
        socket.create_server(
            ("", port), family=socket.AF_INET6 if both else socket.AF_INET, dualstack_ipv6=both
        ).close()
    except OSError:
        return False
    return True
