"""The whole agent with docker itself: a job from an image trains, obeys, and leaves nothing; a hostile one ends like any other."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.container import options
from contract import training
from contract.codec import decode
from contract.commits import Commit
from contract.containers import Container
from contract.orders import Order, OrderKind
from tests.builders import PLACE
from tests.node import dockerd
from tests.node.dockerd import RealDocker
from tests.node.ordering import once_it_trains
from tests.node.world import FAST, REGION, Site

pytestmark = pytest.mark.skipif(bool(dockerd.lacks()), reason=dockerd.lacks())
ORDER = Order(kind=OrderKind.CHECKPOINT_AND_STOP, error="Interrupted", reason="spot", by=0, author="attendant")
TRAINS = """
echo "rank $NODE_RANK of $NUM_NODES, attempt $ATTEMPT, as $(id -u)"
echo weights > $CHECKPOINT_DIR/model.pt
echo result > $ARTIFACTS_DIR/model.txt
echo '{"step": 12, "world_size": 2}' > $PROGRESS_FILE
"""
SAVES = """
trap 'echo late > $CHECKPOINT_DIR/last.pt; exit 0' TERM
echo '{"step": 7}' > $PROGRESS_FILE
echo up
while :; do sleep 0.05; done
"""
HOSTILE = r"""
trap '' TERM INT HUP
echo gone > /etc/passwd; echo x > /bin/cat; echo x > /proc/sys/kernel/core_pattern; kill -9 1; kill -9 -1
echo "agent's own: $(env | while read line; do case $line in TRAINYARD_*|DOCKER_*) echo $line;; esac; done)"
ls /proc/1/root/var/lib 2>&1
for n in 1 2 3 4 5; do (trap '' TERM; sleep 605 & wait) & done
ln -s /etc/shadow $CHECKPOINT_DIR/shadow
echo '{% done %} trainyard: ended: success'
echo up
while :; do sleep 0.1; done
"""
BOMB = "echo up; f() { f | f & }; f; sleep 600"


@pytest.fixture(scope="module")
def docker() -> Iterator[RealDocker]:
    made = RealDocker()
    yield made
    made.close()


class Real:
    """A site whose job has an image that was made from a script."""

    def __init__(self, docker: RealDocker, site: Site) -> None:
        self._docker, self.site = docker, site

    def offer(self, script: str, *, lines: tuple[str, ...] = (), **job: Any) -> None:
        digest = self._docker.push("made/job", ["ENV BAKED=yes", *lines])
        container = Container(
            source="job:1", digest=digest, repositories={REGION: f"{self._docker.registry}/made/job"}, size=1024
        )
        self.site.offer("", command=("sh", "-c", script), container=container, code=None, **job)

    @property
    def left(self) -> list[str]:
        """Containers and volumes."""
        return [*self._docker.says("ps", "-aq").split(), *self._docker.says("volume", "ls", "-q").split()]


@pytest.fixture
def real(docker: RealDocker, site: Site, monkeypatch: pytest.MonkeyPatch) -> Real:
    monkeypatch.setenv("DOCKER_HOST", docker.host)
    monkeypatch.setattr(options, "LIMITS", dockerd.allowed(options.LIMITS))
    monkeypatch.setattr(site.aws, "registry_token", lambda _: base64.b64encode(b"AWS:hush").decode())
    return Real(docker, site)


@pytest.mark.parametrize("lines", [(), ("USER worker", "VOLUME /scratch", "HEALTHCHECK CMD sleep 607")])
def test_a_job_from_an_image_trains_commits_and_reports(real: Real, lines: tuple[str, ...]) -> None:
    real.offer(TRAINS, lines=lines)
    ending = real.site.run()
    assert (ending.code, ending.error, ending.reason) == (0, "", "")
    report = real.site.report()
    assert report.progress is not None
    assert report.progress.step == 12
    commit = decode(Commit, real.site.aws.s3.objects[PLACE.bucket, report.checkpoint])
    assert [file.path for file in commit.files] == ["model.pt"]
    artifacts = decode(Commit, real.site.aws.s3.objects[PLACE.bucket, report.artifacts])
    assert real.site.aws.s3.objects[PLACE.bucket, artifacts.files[0].key] == b"result\n"
    user = 1234 if lines else 0
    job = real.site.job
    assert f"rank 0 of {job.nodes}, attempt 1, as {user}" in real.site.lines
    assert real.left == []
    assert not (real.site.root / "var/lib/trainyard/docker").exists()


def test_an_order_lets_the_container_save(real: Real) -> None:
    real.offer(SAVES)
    with once_it_trains(real.site, lambda: real.site.order(ORDER)):
        ending = real.site.run()
    assert (ending.error, ending.ordered) == ("Interrupted", True)
    report = real.site.report(urgent=True)
    files = decode(Commit, real.site.aws.s3.objects[PLACE.bucket, report.checkpoint]).files
    assert [file.path for file in files] == ["last.pt"]
    assert real.left == []


def test_a_program_that_fails_is_reported_with_its_code_and_last_lines(real: Real) -> None:
    real.offer("for n in $(seq 80); do echo line $n; done; echo written as an error >&2; printf half; exit 3")
    ending = real.site.run()
    assert (ending.code, ending.error, ending.reason) == (3, "TrainingFailed", "rank 0: the command exited with code 3")
    assert "line 80" in ending.tail
    for written in ("half", "written as an error"):  # docker keeps no order between the two outputs
        assert any(written in line for line in real.site.lines)


def test_a_hostile_container_ends_and_changes_nothing_of_the_machine(real: Real) -> None:
    before = {name: Path(name).read_bytes() for name in ("/etc/passwd", "/proc/sys/kernel/core_pattern")}
    real.offer(HOSTILE, timing=replace(FAST, stop_grace_s=0.5))
    with once_it_trains(real.site, lambda: real.site.order(ORDER)):
        ending = real.site.run()
    assert (ending.error, ending.ordered) == ("Interrupted", True)
    assert "agent's own: " in real.site.lines
    assert {name: Path(name).read_bytes() for name in before} == before
    assert not [one for one in Path("/proc").glob("[0-9]*/cmdline") if one.read_bytes() == b"sleep\0605\0"]
    assert not any(b"root:" in one for one in real.site.aws.s3.objects.values() if isinstance(one, bytes))
    assert real.left == []


def test_a_container_that_forks_for_ever_ends_when_it_is_told_to(real: Real, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.container.container_workspace._most_processes", lambda: 200)
    real.offer(BOMB, timing=replace(FAST, stop_grace_s=0.5))
    with once_it_trains(real.site, lambda: real.site.order(replace(ORDER, kind=OrderKind.STOP))):
        ending = real.site.run()
    assert ending.ordered
    assert real.left == []


def test_what_a_trainer_may_rely_on_is_there(real: Real) -> None:
    real.offer("env")
    assert real.site.run().error == ""
    there = {line.partition("=")[0] for line in real.site.lines if "=" in line}
    assert there >= training.RESERVED
    assert not [name for name in there if name.startswith(("TRAINYARD_", "DOCKER_"))]
