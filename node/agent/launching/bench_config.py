"""Configures JupyterLab on a workbench: only what a person does counts as activity, and not what an open page asks by itself."""

from __future__ import annotations

from typing import Any

from jupyter_server.base.handlers import APIHandler

READS = ("GET", "HEAD")
OWN = "/lab/api/"
"""Where JupyterLab's page keeps how it looks, every ten seconds."""
count = APIHandler.update_api_activity


def count_changes(handler: Any) -> None:
    """Counts a request that changes something. An open page lists kernels, terminals and files every few seconds."""
    if handler.request.method not in READS and OWN not in handler.request.path:
        count(handler)


APIHandler.update_api_activity = count_changes  # type: ignore[method-assign]
