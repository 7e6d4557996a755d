"""Configures JupyterLab on a workbench: who gets its token, where it works, and that only what a person does counts as activity."""

from __future__ import annotations

import os
from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.serverapp import ServerApp

config: Any = globals()["c"]
"""What the server is configured by; who runs this file puts it there."""
TOKEN = "JUPYTER_TOKEN"
READS = ("GET", "HEAD")
OWN = "lab/api/"
"""Where JupyterLab's page keeps how it looks, every ten seconds; below the beginning of all of the server's paths."""
count = APIHandler.update_api_activity
start = ServerApp.start_ioloop


def count_changes(handler: Any) -> None:
    """Counts a request that changes something. An open page lists kernels, terminals and files every few seconds."""
    if handler.request.method not in READS and not handler.request.path.startswith(f"{handler.base_url}{OWN}"):
        count(handler)


def start_in_folder(server: Any) -> None:
    """Starts the server where kernels and terminals begin. It loads its modules and its configuration elsewhere: the folder may have
    files of the same names."""
    os.chdir(server.root_dir)
    start(server)


APIHandler.update_api_activity = count_changes  # type: ignore[method-assign]
ServerApp.start_ioloop = start_in_folder  # type: ignore[method-assign]
if TOKEN in os.environ:
    config.IdentityProvider.token = os.environ.pop(TOKEN)  # kernels and terminals get the environment
config.FileContentsManager.delete_to_trash = False  # it would lie in the folder, and be committed
config.FileContentsManager.always_delete_dir = True  # as with the trash: a person confirms it
