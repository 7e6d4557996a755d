"""Stands between the containers of one training for ssh and its daemon: a host runs the one command that the first host sends it.

It runs alone, with the image's Python, which the training toolkit needs as well. `serve ADDRESS` waits in a host's container for a command
and ends with it. Anything else is a call in the place of ssh: `[OPTIONS] ADDRESS COMMAND...`. The hosts share the folder of this file. A
command writes into the streams of the call, and has the variables, the root and the end of the container in which it runs.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

FOLDER = Path(__file__).parent
MASTER = "MASTER_ADDR"
"""Variable with the first host's address, which a call to itself finds there."""
WAIT_S = 60.0
"""How long a call waits for a host that does not listen yet; AWS's toolkit waits an hour for its ssh daemon."""
LOST = 255
"""How ssh ends where the connection does."""


def serve(address: str) -> int:
    """Returns the exit code of the command."""
    listener = _open_socket()
    beside = f"{address}.new"
    listener.bind(beside)
    listener.listen(1)
    Path(beside).rename(address)
    connection, _ = listener.accept()
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    command = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    words = ["/bin/sh", "-c", command]
    given = {"stdin": streams[0], "stdout": streams[1], "stderr": streams[2]}
    code = subprocess.Popen(words, env=with_own_memory(), **given).wait()
    code = code if code >= 0 else 128 - code
    if code:
        print(f"mpirun's daemon on this host ended with exit code {code}", file=sys.stderr, flush=True)
    with suppress(OSError):  # mpirun ends its calls when it ends, and the daemon may end later
        connection.sendall(bytes([code]))
    return code


def call(words: list[str]) -> int:
    """Runs the command on the named host and returns its exit code, or 255 where that host ends first."""
    while words and words[0].startswith("-"):
        words = words[2 if words[0] == "-o" else 1 :]
    address, command = words[0], " ".join(words[1:])
    if address == os.environ.get(MASTER):
        os.execve("/bin/sh", ["/bin/sh", "-c", command], with_own_memory())
    connection = _open_socket()
    until = time.monotonic() + WAIT_S
    while True:
        try:
            connection.connect(address)
            break
        except OSError as problem:
            if time.monotonic() > until:
                print(f"ssh: connect to host {address}: {problem.strerror}", file=sys.stderr)
                return LOST
            time.sleep(0.05)
    socket.send_fds(connection, [b"!"], [0, 1, 2])
    connection.sendall(command.encode())
    connection.shutdown(socket.SHUT_WR)
    answer = connection.recv(1)
    return answer[0] if answer else LOST


def with_own_memory() -> dict[str, str]:
    """Returns the variables, with a folder of this host's own for what its ranks share: two hosts of one computer would give it the same
    name. mpirun passes such a variable of its own to all hosts, so it is set here."""
    found = dict(os.environ)
    if "TMPDIR" in found:
        found["OMPI_MCA_btl_sm_backing_directory"] = found["TMPDIR"]
    return found


def _open_socket() -> socket.socket:
    """A socket's path may be longer than an address may be, so the working folder is that of the sockets."""
    os.chdir(FOLDER)
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(serve(given[1]) if given[:1] == ["serve"] else call(given))
