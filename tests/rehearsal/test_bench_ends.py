"""How a workbench ends: by itself where it is idle, although its page is open, and not while a cell runs; and at the end of its hours.

The whole agent runs on fakes of AWS, with a real JupyterLab, whose words have other numbers: a person waits for minutes at least.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from contract.codec import decode
from contract.commits import Commit
from contract.orders import Order, OrderKind
from contract.reports import Exit
from contract.workbench import NOTICE, PORT, Workbench, build_command
from localaws.ports import Port
from localaws.testing.waiting import until
from tests.builders import PLACE
from tests.fakes.pages.browser import PROGRAM
from tests.node.fakes import imds
from tests.node.world import Site, metadata
from tests.rehearsal.benches import Laboratory, Person, Way, at_bench, put_notebook, read_way, status_of, tunnel

pytestmark = [
    pytest.mark.rehearsal,
    pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed: apt-get install chromium"),
]
FIRST_PORT = 8890
IDLE_S, HOURS_S = 20, 180
"""Seconds: JupyterLab itself looks once a minute."""
BENCH = Workbench(idle_minutes=60)
ENOUGH = Order(kind=OrderKind.CHECKPOINT_AND_STOP, error="Interrupted", reason="enough", by=0, author="attendant")


@dataclass
class Served:
    """A bench in an agent of its own."""

    site: Site
    port: int
    ending: list[Exit] = field(default_factory=list)

    @property
    def runs(self) -> bool:
        return not self.ending

    @property
    def way(self) -> Way:
        """What the log says, for the port that it really has."""

        def read_served() -> Way | None:
            assert self.runs, self.ending
            return read_way(self.site.lines)

        way: Way = until(read_served)
        return Way([one.replace(f"portNumber={PORT}", f"portNumber={self.port}") for one in way.command], way.address)

    @property
    def committed(self) -> list[str]:
        """Paths of the files of the newest commit."""
        commit = decode(Commit, self.site.aws.s3.objects[PLACE.bucket, self.site.report().checkpoint])
        return [file.path for file in commit.files]


def write_words(port: int, idle_s: int) -> Sequence[str]:
    """The words that Admit writes, with another port and other numbers."""
    changes = {
        f"--ServerApp.port={PORT}": f"--ServerApp.port={port}",
        "--ServerApp.shutdown_no_activity_timeout=3600": f"--ServerApp.shutdown_no_activity_timeout={idle_s}",
        "--MappingKernelManager.cull_idle_timeout=3600": f"--MappingKernelManager.cull_idle_timeout={idle_s}",
        "--MappingKernelManager.cull_interval=60": "--MappingKernelManager.cull_interval=2",
    }
    words = build_command(BENCH)
    assert changes.keys() <= set(words)
    return [changes.get(word, word) for word in words]


@contextmanager
def serve(folder: Path, laboratory: Laboratory, idle_s: int, **changes: Any) -> Iterator[Served]:
    port = Port(FIRST_PORT)
    with imds(metadata()) as service:
        site = Site(folder, service)
        site.job = replace(site.job, checkpoint_minutes=0.02)
        environment = {**laboratory.installed, "HOME": str(folder)}
        facts = {"workbench": BENCH, "nodes": 1, "owner": "ada", "code": None, "environment": environment, **changes}
        site.offer("", command=write_words(port.number, idle_s), **facts)
        served = Served(site, port.number)
        thread = threading.Thread(target=lambda: served.ending.append(site.run()))
        thread.start()
        try:
            yield served
        finally:
            site.order(ENOUGH)
            thread.join()
            port.release()


@pytest.fixture(scope="module")
def benches(tmp_path_factory: pytest.TempPathFactory, laboratory: Laboratory) -> Iterator[dict[str, Served]]:
    """All at once; the busy one first, so that the end of the idle one is late enough for both."""
    begun = {
        "late": {"idle_s": 3600, "deadline": int(time.time()) + HOURS_S},
        "busy": {"idle_s": IDLE_S},
        "idle": {"idle_s": IDLE_S},
    }
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(serve(tmp_path_factory.mktemp(name), laboratory, **changes))
            for name, changes in begun.items()
        }


@pytest.fixture(scope="module", autouse=True)
def warned(benches: dict[str, Served]) -> Served:
    """The bench whose hours are over soon, which a person sees in its folder, and works on."""
    way = benches["late"].way
    with tunnel(way) as beginning:
        until(lambda: status_of(f"{beginning}/api/contents/{NOTICE}?token={way.token}") == 200)
        put_notebook(way, beginning, "late.ipynb", {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    return benches["late"]


@pytest.fixture(scope="module")
def computing(benches: dict[str, Served]) -> Served:
    """The bench whose cell runs for ever; nobody looks at its page."""
    with at_bench(benches["busy"].way) as person:
        write(person, "kept.txt")
        person.begin_cell("while True: pass")
    return benches["busy"]


def write(person: Person, name: str) -> None:
    person.start_notebook()
    person.run_cell(f"open('{name}', 'w').write('x'); print('wrote', '{name}'.upper())", f"wrote {name.upper()}")


@pytest.fixture(scope="module")
def idle(benches: dict[str, Served], computing: Served) -> Iterator[tuple[Served, Person]]:  # noqa: ARG001  (begins before)
    """The bench whose page stays open, with a kernel, and with a person who does nothing."""
    with at_bench(benches["idle"].way) as person:
        write(person, "idle.txt")
        yield benches["idle"], person


def test_an_idle_bench_ends_itself_although_its_page_is_open(idle: tuple[Served, Person]) -> None:
    served, person = idle
    assert served.runs
    until(lambda: not served.runs)
    assert person.lists("idle.txt")  # the page is open still
    (ending,) = served.ending
    assert (ending.code, ending.error, ending.reason) == (0, "", "")
    assert "idle.txt" in served.committed
    assert NOTICE not in served.committed


def test_one_whose_cell_runs_does_not_although_nobody_looks(idle: tuple[Served, Person], computing: Served) -> None:
    """It has the same words, began before, and was touched before the one that has ended by itself."""
    until(lambda: not idle[0].runs)
    assert computing.runs


def test_an_order_ends_a_running_cell_and_its_work_is_committed(computing: Served) -> None:
    computing.site.order(ENOUGH)
    until(lambda: not computing.runs)
    assert computing.ending[0].error == "Interrupted"
    assert {"kept.txt", NOTICE} <= set(computing.committed)


def test_the_end_of_its_hours_is_said_before_and_commits_the_work(warned: Served) -> None:
    until(lambda: not warned.runs)
    assert warned.ending[0].ordered
    assert {"late.ipynb", NOTICE} <= set(warned.committed)
