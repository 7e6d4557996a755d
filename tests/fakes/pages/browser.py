"""Opens pages in headless Chromium by its DevTools protocol over a pipe, and says what a page asked for, ran and broke."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAM = shutil.which("chromium")
THEMES = ("light", "dark")
WIDTHS = {"wide": 1100, "phone": 360}
ANSWERED_S = 60.0


class BrowserFailed(RuntimeError):
    """Chromium refused a command, or ended."""


@dataclass(slots=True)
class Seen:
    """What a page did while it was open."""

    addresses: list[str] = field(default_factory=list)
    """Everything that it asked for, itself among them."""
    complaints: list[str] = field(default_factory=list)
    """Of the console and the log: violations of the page's policy are there."""


class Browser:
    """One tab of a running Chromium."""

    def __init__(self, to: int, answers: int) -> None:
        self._to, self._answers = to, os.fdopen(answers, "rb")
        self._number, self._rest = 0, b""
        self._session = ""
        self.seen = Seen()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Mapping[str, Any]:
        """Returns the answer to a command. Raises BrowserFailed."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._to, json.dumps(command).encode() + b"\0")
        while True:
            message = self._receive()
            if message.get("id") == self._number:
                if "error" in message:
                    raise BrowserFailed(f"{method}: {message['error']}")
                result: Mapping[str, Any] = message["result"]
                return result
            self._note(message)

    def open(self, page: Path, *, theme: str, width: int) -> Seen:
        """Opens a file at a width in a theme, and returns what it did."""
        self.seen = Seen()
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.resize(width, 900)
        self.call("Page.navigate", url=page.resolve().as_uri())
        while not self.evaluate("document.readyState === 'complete'"):
            continue
        return self.seen

    def resize(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def evaluate(self, expression: str) -> Any:
        """Returns the value of an expression, which DevTools computes although the page itself may run nothing."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in found:
            raise BrowserFailed(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def photograph(self, file: Path, *, most_height: int = 12_000) -> None:
        """Writes the whole page as a PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], most_height), "scale": 1}
        shot = self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shot["data"]))

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = self._answers.read1(1 << 20)  # type: ignore[attr-defined]
            if not more:
                raise BrowserFailed("Chromium ended")
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def _note(self, message: Mapping[str, Any]) -> None:
        parameters = message.get("params", {})
        match message.get("method"):
            case "Network.requestWillBeSent":
                self.seen.addresses.append(parameters["request"]["url"])
            case "Log.entryAdded":
                self.seen.complaints.append(parameters["entry"]["text"])
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown":
                self.seen.complaints.append(json.dumps(parameters)[:500])


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Starts Chromium with a profile of its own, and ends it."""
    assert PROGRAM, "install the Debian package chromium"
    from_us, to_them = os.pipe()
    from_them, to_us = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:  # a child of it may still write there
        options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage")
        quiet = ("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync")
        command = [PROGRAM, *options, *quiet, f"--user-data-dir={profile}", "--remote-debugging-pipe"]
        given = [fcntl.fcntl(one, fcntl.F_DUPFD, 10) for one in (from_us, to_us)]  # Chromium wants them as 3 and 4
        child = subprocess.Popen(
            command,
            pass_fds=(3, 4),
            preexec_fn=lambda: [os.dup2(one, place) for place, one in enumerate(given, 3)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for one in (from_us, to_us, *given):
            os.close(one)
        try:
            yield Browser(to_them, from_them)
        finally:
            os.close(to_them)
            child.terminate()
            child.wait(timeout=ANSWERED_S)
