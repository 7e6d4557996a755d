"""A workbench in a really built image: JupyterLab is installed into it and served from it, or the job fails by the image's name."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contract.codec import decode
from contract.commits import Commit
from contract.reports import Exit
from contract.workbench import Workbench, build_command
from localaws.containers import base, real
from localaws.containers.unpacked import OWN
from localaws.testing.roots import NEEDED, Builder, dockerfile
from localaws.testing.waiting import until
from tests.builders import PLACE
from tests.node.containers import CONTAINER, REPOSITORY, Dock
from tests.node.fakes import imds
from tests.node.world import Site, metadata
from tests.rehearsal.benches import busy, fetch_wheels, put_notebook, read_way, shut_down, status_of, tunnel

pytestmark = [pytest.mark.rehearsal, pytest.mark.images, NEEDED]
PUBLIC = "public.ecr.aws/docker/library/python:3.13-slim-bookworm"
BARE = "ARG BASE\nFROM ${BASE}\nRUN touch /made\n"
WITH_WHEELS = BARE + "COPY wheels /wheels\nENV PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels\n"
NOTEBOOK = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builder]:
    folder = tmp_path_factory.mktemp("images")
    with ExitStack() as stack:
        real.begin(folder, stack.callback)
        yield Builder(folder)


class Machine:
    """A machine whose docker has one image."""

    def __init__(self, site: Site, builder: Builder, patch: pytest.MonkeyPatch) -> None:
        self.site, self._builder = site, builder
        self._dock = Dock(site, builder.images, patch)
        self.ending: list[Exit] = []

    def offer(self, folder: Path, bench: Workbench) -> None:
        """Admits a bench in the image that is built from the folder."""
        digest = self._builder.digest(folder, {"BASE": PUBLIC})
        address = f"{REPOSITORY}@{digest}"
        self._dock.have(address, {}, built=f"{real.registry(self._builder.images)}/images@{digest}")
        facts: dict[str, Any] = {"workbench": bench, "nodes": 1, "owner": "ada", "code": None}
        container = replace(CONTAINER, digest=digest)
        self.site.offer("", command=build_command(bench), container=container, **facts)

    def run(self) -> threading.Thread:
        thread = threading.Thread(target=lambda: self.ending.append(self.site.run()))
        thread.start()
        return thread


@pytest.fixture
def machine(tmp_path: Path, builder: Builder, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    with imds(metadata()) as service:
        yield Machine(Site(tmp_path, service), builder, monkeypatch)


@pytest.mark.skipif(bool(busy()), reason=busy())
def test_jupyterlab_is_installed_into_an_image_and_served_from_it(
    machine: Machine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    context = dockerfile(tmp_path_factory.mktemp("with") / "context", WITH_WHEELS)
    fetch_wheels(context / "wheels", "--python-version", base.python_of().removeprefix("python"))
    machine.offer(context, Workbench(idle_minutes=60, install=True))
    thread = machine.run()

    def read_served() -> object:
        assert not machine.ending, machine.ending
        return read_way(machine.site.lines)

    way: Any = until(read_served)
    with tunnel(way) as beginning:
        until(lambda: machine.ending or status_of(f"{beginning}/api/contents?token={way.token}") == 200)
        assert not machine.ending, (machine.ending, machine.site.lines[-20:])
        assert status_of(f"{beginning}/api/contents") == 403
        put_notebook(way, beginning, "in-an-image.ipynb", NOTEBOOK)
        shut_down(way, beginning)
    thread.join()
    assert machine.ending[0].error == ""
    assert OWN in machine.site.lines
    assert any("installs jupyterlab==" in line for line in machine.site.lines)
    commit = decode(Commit, machine.site.aws.s3.objects[PLACE.bucket, machine.site.report().checkpoint])
    assert "in-an-image.ipynb" in [file.path for file in commit.files]


def test_an_image_without_it_that_may_not_install_it_fails_on_the_node_by_name(
    machine: Machine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    machine.offer(dockerfile(tmp_path_factory.mktemp("without") / "context", BARE), Workbench(idle_minutes=60))
    machine.run().join()
    (ending,) = machine.ending
    assert (ending.code, ending.error) == (1, "TrainingFailed")
    assert "workbench: the image images:v1 has no JupyterLab" in ending.reason
    assert OWN in machine.site.lines
    assert not any("installs" in line for line in machine.site.lines)
