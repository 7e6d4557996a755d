"""The workbench: JupyterLab on the one node of a job, which a person reaches through a tunnel of Session Manager."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

JUPYTERLAB = "jupyterlab==4.6.6"
"""What is installed where the image has no JupyterLab and the request allows it."""
LOOPBACK, PORT = "127.0.0.1", 8888
"""On the node, and on the person's own machine."""
FOLDER = "/bench"
"""What JupyterLab shows: a mount of the request, or the job's checkpoint folder."""
DOCUMENT = "AWS-StartPortForwardingSession"
"""The only document of Session Manager by which people reach a bench: it opens a port, and no shell."""
TOKEN = "JUPYTER_TOKEN"
"""Variable by which JupyterLab gets its token (jupyter_server's IdentityProvider)."""
TOKEN_BYTES = 32
ADDRESS = re.compile(rf"http://{re.escape(LOOPBACK)}:{PORT}/lab\?token=([0-9a-f]{{{2 * TOKEN_BYTES}}})(?![0-9a-f])")
NOT_THERE, NOT_INSTALLED, NO_PYTHON, BROKEN, TOO_OLD = 64, 65, 66, 67, 68
"""Exit codes of what starts it: the image has no JupyterLab; it could not be installed; there is no Python; the JupyterLab that is there
cannot be imported, or is older than version 4."""
NOTICE_S = 900.0
"""Seconds before the end of a bench's hours or money that a file in its folder says so."""
NOTICE = "THIS-BENCH-ENDS.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workbench:
    """What a request says of its bench."""

    idle_minutes: int
    """After so long without a running cell, a terminal's output or a change, it ends itself."""
    install: bool = False
    """Whether JUPYTERLAB is installed where the image has none."""


def build_command(bench: Workbench) -> tuple[str, ...]:
    """Returns the words that serve the bench from the folder in which they run.

    Kernels and terminals end once they are idle, those with an open page too, because a forgotten page would keep the machine. The server
    ends with code 0 once it has neither, and nothing was changed for as long; it looks once a minute (jupyter_server 2.21).
    """
    idle_s = bench.idle_minutes * 60
    return (
        "python",
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        f"--ServerApp.ip={LOOPBACK}",
        f"--ServerApp.port={PORT}",
        "--ServerApp.port_retries=0",
        f"--ServerApp.shutdown_no_activity_timeout={idle_s}",
        f"--MappingKernelManager.cull_idle_timeout={idle_s}",
        "--MappingKernelManager.cull_interval=60",
        "--MappingKernelManager.cull_connected=True",
        f"--TerminalManager.cull_inactive_timeout={idle_s}",
        "--TerminalManager.cull_interval=60",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.news_url=None",
    )


def list_tunnel_words(region: str, instance: str, port: int = PORT) -> list[str]:
    """Returns the command that opens the bench of the instance at a port of a person's own machine, with their own credentials."""
    words = ["aws", "ssm", "start-session", "--region", region, "--target", instance, "--document-name", DOCUMENT]
    return [*words, "--parameters", f"portNumber={PORT},localPortNumber={port}"]


def tunnel(region: str, instance: str) -> str:
    """Returns that command as a person pastes it."""
    return shlex.join(list_tunnel_words(region, instance))


def address(token: str, port: int = PORT) -> str:
    """Returns where the browser finds the bench once the tunnel is open."""
    return f"http://{LOOPBACK}:{port}/lab?token={token}"


def find_token(line: str) -> str:
    """Returns the token in a line of the node's log that has the address of a bench; empty in any other line. Code on the node may write
    what it likes there: what is returned has the form of a token, and nothing else of the line is."""
    found = ADDRESS.search(line)
    return found[1] if found else ""
