"""A site, a fake S3, a folder of checkpoints and programs on PATH, for each test that wants one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from agent import attempt
from agent.launching import relay
from agent.links import measuring
from tests.node.clusters import Cluster
from tests.node.fakes import FakeS3, imds
from tests.node.folders import Rank
from tests.node.hangs import Hangs
from tests.node.programs import Program
from tests.node.world import Site, metadata


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(attempt, "LOOK_S", 0.02)
    with imds(metadata()) as service:
        yield Site(tmp_path, service)


@pytest.fixture
def s3() -> FakeS3:
    return FakeS3()


@pytest.fixture
def folder(tmp_path: Path, s3: FakeS3) -> Rank:
    return Rank(tmp_path, s3)


@pytest.fixture
def hangs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Hangs:
    made = Hangs(tmp_path_factory.mktemp("hangs"))
    monkeypatch.setattr(measuring, "time", made)
    return made


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Puts a shell script of that name before all others on PATH."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")

    def write(name: str, body: str) -> None:
        (programs / name).write_text(f"#!/bin/sh\n{body}\n")
        (programs / name).chmod(0o755)

    return write


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setattr(relay, "ASK_S", 0.1)
    monkeypatch.setattr(relay, "LOOK_S", 0.05)
    monkeypatch.setenv("OMPI_MCA_coll", "^han")  # to Open MPI, nodes of one name are one node
    with ExitStack() as stack:
        yield Cluster.of(stack, tmp_path, 3)
