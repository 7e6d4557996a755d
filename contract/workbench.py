"""The workbench: JupyterLab on the one node of a job, which a person reaches through a tunnel of Session Manager."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

JUPYTERLAB = "jupyterlab==4.6.6"
"""What is installed where the image has no JupyterLab and the request allows it."""
PORT = 8888
"""On the node's loopback, and on that of the person's machine."""
FOLDER = "/bench"
"""What JupyterLab shows: a mount of the request, or the job's checkpoint folder."""
DOCUMENT = "AWS-StartPortForwardingSession"
"""The only document of Session Manager by which people reach a bench: it opens a port, and no shell."""
TOKEN = "JUPYTER_TOKEN"
"""Variable by which JupyterLab gets its token (jupyter_server's IdentityProvider)."""
TOKEN_BYTES = 32
NOT_THERE, NOT_INSTALLED = 64, 65
"""Exit codes of what starts it: the image has no JupyterLab; it could not be installed."""
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
        "--ServerApp.ip=127.0.0.1",
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


def tunnel(region: str, instance: str) -> str:
    """Returns the command that a person pastes: it opens the bench of the instance on their own machine, with their own credentials."""
    words = ["aws", "ssm", "start-session", "--region", region, "--target", instance, "--document-name", DOCUMENT]
    return shlex.join([*words, "--parameters", f"portNumber={PORT},localPortNumber={PORT}"])


def address(token: str) -> str:
    """Returns where the browser finds the bench once the tunnel is open."""
    return f"http://127.0.0.1:{PORT}/lab?token={token}"
