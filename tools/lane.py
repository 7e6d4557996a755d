"""A plugin of pytest for parts that run side by side: each line says whose it is, and none breaks into another.

`python -m pytest -p tools.lane --lane=PART 3>&1 >FILE 2>&1`: what pytest prints as always goes to FILE. A line at each tenth of the
tests, or each minute, and a line for each failed test go to descriptor 3, each in one write.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any

import pytest

from tools.screens import FILES, PROCESSOR

LINES = 3
"""The descriptor for lines."""
STEPS = 10
"""How often a part that runs for less than minutes tells how far it is."""
MOST_SILENT_S = 60.0


class Lane:
    """Tells how far a part of the tests is, and which of them failed."""

    def __init__(self, name: str, tell: Callable[[str], None], now: Callable[[], float]) -> None:
        self._name, self._tell, self._now = name, tell, now
        self._begun = self._told = now()
        self._all = self._done = 0
        self._used = 0.0
        """Processor time until the current test began."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        self._all = len(items)
        self._say(f"{self._all:,} tests")

    def pytest_runtest_logstart(self) -> None:
        self._used = _read_processor_time()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        if call.when == "teardown":
            item.user_properties.append((PROCESSOR, f"{_read_processor_time() - self._used:.2f}"))
        report = yield
        folder = getattr(item, "funcargs", {}).get("tmp_path")
        if report.failed and folder is not None:
            item.user_properties.append((FILES, str(folder)))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._say(f"FAILED {report.nodeid}")

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._done += 1
        before, after = ((self._done + more) * STEPS // max(self._all, 1) for more in (-1, 0))
        if after > before or self._now() - self._told >= MOST_SILENT_S:
            self._say(f"{self._done:,} of {self._all:,} after {_write_span(self._now() - self._begun)}, last {nodeid}")

    def _say(self, what: str) -> None:
        self._told = self._now()
        self._tell(f"{self._name}: {what}\n")


def _read_processor_time() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _write_span(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _write_line(line: str) -> None:
    # Whoever reads the lines may have gone; the results need them not.
    with suppress(OSError):
        os.write(LINES, line.encode(errors="backslashreplace"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--lane", help="name of the part whose lines go to descriptor 3")


def pytest_configure(config: pytest.Config) -> None:
    os.set_inheritable(LINES, False)  # what a test starts and does not end would keep a pipe open
    config.pluginmanager.register(Lane(str(config.getoption("--lane")), _write_line, time.monotonic))
