"""What rehearsals of workbenches share: a JupyterLab of PyPI, a tunnel in the place of Session Manager's, and a person at the page.

The tunnel is ours: it carries bytes as Session Manager does, and asks nothing of IAM. Who may open which bench is tests/security's.
"""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from contract.workbench import DOCUMENT, JUPYTERLAB, PORT
from localaws.machines.wire import Wire
from localaws.peers import is_own
from localaws.testing.waiting import HANG_S, until
from tests.fakes.pages.browser import Browser, open_browser

PYTHON = Path(__file__).parents[2] / "build" / "ami" / "bin" / "python"
"""Of the machine image."""
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")
TUNNEL, THEN = "trainyard: open the tunnel with: ", "trainyard: then open "
LAUNCHER = """document.querySelector('.jp-LauncherCard[data-category="Notebook"]')"""
SHOWN = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook"
CELL = f"[...document.querySelectorAll('{SHOWN} .jp-Cell .cm-content')].at(-1)"
SPLASH = "document.querySelector('#jupyterlab-splash')"
NEW = """document.querySelector('[data-command="launcher:create"]')"""
IDLE = "document.querySelector('#jp-main-statusbar').textContent.includes('| Idle')"
LISTED = "[...document.querySelectorAll('.jp-DirListing-itemText')].map(one => one.textContent)"
SHIFT, CONTROL = 8, 2
LOOK_S = 0.2


def busy() -> str:
    """Says that the one port of a bench is taken on this computer; empty where it is free."""
    try:
        socket.create_server(("127.0.0.1", PORT)).close()
    except OSError as problem:
        return f"port {PORT}, on which every workbench listens, is taken on this computer: {problem.strerror}"
    return ""


class Laboratory:
    """The pinned JupyterLab: its wheels, which pip fetches once, and an environment that has it."""

    def __init__(self, folder: Path) -> None:
        self.wheels = folder / "wheels"
        self._environment = folder / "environment"
        fetch_wheels(self.wheels)
        _call(PYTHON, "-m", "venv", "--without-pip", self._environment)
        own = ("--python", self._environment / "bin" / "python")
        _call(PYTHON, *PIP, *own, "install", "--no-index", "--find-links", self.wheels, JUPYTERLAB)

    @property
    def installing(self) -> dict[str, str]:
        """Variables of a job that installs it from these wheels, without the network."""
        return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels)}

    @property
    def installed(self) -> dict[str, str]:
        """Variables of a job whose image has it already."""
        (packages,) = self._environment.glob("lib/python3.*/site-packages")
        share = self._environment / "share" / "jupyter"
        return {"PYTHONPATH": str(packages), "JUPYTERLAB_DIR": str(share / "lab"), "JUPYTER_PATH": str(share)}


def fetch_wheels(folder: Path, *options: str) -> None:
    """Has pip fetch the pinned JupyterLab and all that it needs, for the Python of the machine image or for that of the options."""
    _call(PYTHON, *PIP, "download", "--only-binary", ":all:", *options, "--dest", folder, JUPYTERLAB)


def _call(*words: str | Path) -> None:
    subprocess.run(list(map(str, words)), check=True, timeout=HANG_S, stdout=subprocess.DEVNULL)


@dataclass(frozen=True, slots=True)
class Way:
    """What a node's log says to paste."""

    command: Sequence[str]
    address: str

    @property
    def instance(self) -> str:
        return self.command[self.command.index("--target") + 1]

    @property
    def token(self) -> str:
        return parse_qs(urlsplit(self.address).query)["token"][0]

    def through(self, tunnel: str) -> str:
        """The address by a tunnel whose port is another one."""
        return self.address.replace(f"http://127.0.0.1:{PORT}", tunnel)


def read_way(lines: Sequence[str]) -> Way | None:
    """The newest way in that the lines say; None where they say none."""
    tunnels = [line.removeprefix(TUNNEL) for line in lines if line.startswith(TUNNEL)]
    addresses = [line.removeprefix(THEN) for line in lines if line.startswith(THEN)]
    return Way(shlex.split(tunnels[-1]), addresses[-1]) if tunnels and addresses else None


@contextmanager
def tunnel(way: Way) -> Iterator[str]:
    """Carries a free port of this computer to the one that the command names, in the place of Session Manager and its plugin. Machines of
    a rehearsal share this computer's loopback. The yield is the beginning of an address."""
    assert list(way.command[:3]) == ["aws", "ssm", "start-session"]
    assert way.command[way.command.index("--document-name") + 1] == DOCUMENT
    ports = dict(one.split("=") for one in way.command[way.command.index("--parameters") + 1].split(","))
    wire = Wire("127.0.0.1", partial(socket.create_connection, ("127.0.0.1", int(ports["portNumber"]))), accepts=is_own)
    try:
        yield wire.endpoint
    finally:
        wire.stop()


def status_of(address: str) -> int:
    """What a server answers; 0 where none answers."""
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as problem:
        return problem.code
    except OSError:
        return 0


def shut_down(way: Way, tunnel: str) -> None:
    """Ends the server as its menu does."""
    words = {"Authorization": f"token {way.token}"}
    urllib.request.urlopen(urllib.request.Request(f"{tunnel}/api/shutdown", method="POST", headers=words)).close()


def put_notebook(way: Way, tunnel: str, name: str, notebook: Mapping[str, Any]) -> None:
    """Uploads a notebook as the page does."""
    words = {"Authorization": f"token {way.token}", "Content-Type": "application/json"}
    body = json.dumps({"type": "notebook", "format": "json", "content": notebook}).encode()
    address = f"{tunnel}/api/contents/{name}"
    urllib.request.urlopen(urllib.request.Request(address, body, words, method="PUT")).close()


class Person:
    """Works in JupyterLab's page."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        browser.resize(1200, 800)

    def open(self, address: str) -> None:
        """Opens the page once its server answers."""
        until(lambda: status_of(address) == 200)
        self._browser.call("Page.navigate", url=address)
        self._until(f"!{SPLASH} && !!{NEW}")  # under its splash it takes no clicks

    def start_notebook(self) -> None:
        """Opens a new one. A page of a server that had one before shows that again, and no launcher."""
        self._browser.evaluate(f"!!({LAUNCHER} || {NEW}.click())")
        self._until(f"!!{LAUNCHER}")
        self._browser.evaluate(f"{LAUNCHER}.click()")
        self._until(f"!!{CELL} && {IDLE}")  # a cell that is run before its kernel is there says nothing

    def run_cell(self, code: str, says: str) -> None:
        """Types into the notebook's cell, runs it, and waits until it has printed `says`."""
        self.begin_cell(code)
        self._until(
            f"[...document.querySelectorAll('.jp-OutputArea-output')].some(one => one.textContent.includes({json.dumps(says)}))"
        )

    def begin_cell(self, code: str) -> None:
        """As `run_cell`, without waiting."""
        self._until(f"(one => one && (one.focus(), document.activeElement === one))({CELL})")
        self._browser.call("Input.insertText", text=code)
        self._press("Enter", "Enter", 13, SHIFT)

    def save(self) -> None:
        """Saves the notebook under the name that it is offered."""
        self._press("s", "KeyS", 83, CONTROL)
        self._until("!!document.querySelector('.jp-Dialog')")
        self._press("Enter", "Enter", 13)
        self._until("!document.querySelector('.jp-Dialog')")

    def sees(self, name: str) -> bool:
        """Waits until the list of files has the name."""
        self._until(f"{LISTED}.includes({json.dumps(name)})")
        return True

    def lists(self, name: str) -> bool:
        """Whether the list of files, which is there, has the name now."""
        return bool(self._browser.evaluate(f"{LISTED}.includes({json.dumps(name)})"))

    def _until(self, expression: str) -> None:
        end = time.monotonic() + HANG_S / 4
        while not self._browser.evaluate(expression):
            assert time.monotonic() < end, f"the page never had {expression}"
            time.sleep(LOOK_S)

    def _press(self, key: str, code: str, number: int, modifiers: int = 0) -> None:
        for kind in ("keyDown", "keyUp"):
            self._browser.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=code,
                windowsVirtualKeyCode=number,
                modifiers=modifiers,
            )


@contextmanager
def at_bench(way: Way) -> Iterator[Person]:
    """A person at the page, in a browser of their own: one with unsaved cells asks before it opens another page."""
    with tunnel(way) as beginning, open_browser() as browser:
        person = Person(browser)
        person.open(way.through(beginning))
        yield person
