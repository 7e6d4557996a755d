"""The configuration of a workbench's JupyterLab, on stand-ins for what it changes.

tests/rehearsal/test_bench_server.py has the real one.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from agent.launching import bench
from contract.workbench import TOKEN

CONFIG = Path(bench.__file__).with_name(bench.CONFIG)


class Handler:
    """The handler of one call of the server."""

    def __init__(self, method: str, path: str, base_url: str) -> None:
        self.request, self.base_url, self.counted = SimpleNamespace(method=method, path=path), base_url, 0

    def update_api_activity(self) -> None:
        self.counted += 1


class Server:
    """The server as it starts."""

    began = ""

    def __init__(self, root_dir: str) -> None:
        self.root_dir = root_dir

    def start_ioloop(self) -> None:
        self.began = str(Path.cwd())


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the file says, with classes of its own that it changes."""
    handlers, serverapp = ModuleType("jupyter_server.base.handlers"), ModuleType("jupyter_server.serverapp")
    handlers.APIHandler = type("APIHandler", (Handler,), {"update_api_activity": Handler.update_api_activity})  # type: ignore[attr-defined]
    serverapp.ServerApp = type("ServerApp", (Server,), {"start_ioloop": Server.start_ioloop})  # type: ignore[attr-defined]
    for name in ("jupyter_server", "jupyter_server.base"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, handlers.__name__, handlers)
    monkeypatch.setitem(sys.modules, serverapp.__name__, serverapp)
    monkeypatch.setenv(TOKEN, "of-this-bench")
    said = SimpleNamespace(IdentityProvider=SimpleNamespace(), FileContentsManager=SimpleNamespace())
    runpy.run_path(str(CONFIG), init_globals={"c": said})
    return SimpleNamespace(said=said, handler=handlers.APIHandler, server=serverapp.ServerApp)


@pytest.mark.parametrize("base_url", ["/", "/user/ada/"])
@pytest.mark.parametrize(
    ("method", "path", "counts"),
    [
        ("PUT", "api/contents/notes.ipynb", True),
        ("PUT", "api/contents/lab/api/settings.py", True),
        ("POST", "api/kernels", True),
        ("GET", "api/kernels", False),
        ("HEAD", "api/contents/notes.ipynb", False),
        ("PUT", "lab/api/workspaces/default", False),
    ],
)
def test_only_what_a_person_changes_counts_as_activity(
    config: Any, base_url: str, method: str, path: str, counts: bool
) -> None:
    handler = config.handler(method, base_url + path, base_url)
    handler.update_api_activity()
    assert bool(handler.counted) == counts


def test_the_server_has_the_token_and_its_environment_no_longer(config: Any) -> None:
    assert config.said.IdentityProvider.token == "of-this-bench"
    assert TOKEN not in os.environ


def test_kernels_and_terminals_begin_in_the_folder(
    config: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    server = config.server(str(tmp_path))
    server.start_ioloop()
    assert server.began == str(tmp_path)


def test_what_a_person_deletes_is_not_moved_within_the_folder(config: Any) -> None:
    assert config.said.FileContentsManager.delete_to_trash is False
    assert config.said.FileContentsManager.always_delete_dir is True
