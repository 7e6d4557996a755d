"""Jobs whose image is the job: built by the Build machine, pinned at Admit, pulled and run by every node as code without an image is."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from contract import keys, names
from contract.codec import decode
from contract.jobs import Job
from localaws.conditions import Conditions
from localaws.containers import real
from localaws.testing.waiting import HANG_S, until
from rehearsal.faults import parse_faults
from rehearsal.grid import build_image
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import DENIALS, ENDLESS, ONE, ended, failed, stored, succeeded, train

pytestmark = [pytest.mark.rehearsal, pytest.mark.images]
LACKS = real.lacks()
TRAINER = Path(__file__).with_name("trainer")
DOCKERFILE = """ARG BASE
FROM ${BASE}
RUN mkdir -p /app && echo built > /app/built
COPY train.py /app/
WORKDIR /app
ENTRYPOINT ["python", "/app/train.py"]
"""
BASE = "pytorch-training:2.8.0-gpu-py312-cu129-ubuntu22.04-ec2"
TWO = {"instance_types": ["g5.xlarge"], "nodes": 2, "max_hours": 1, "checkpoint_minutes": 0.02}
STEPS = ["40", "0.2", "0"]
HOSTILE = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
for number in range(3):
    if not os.fork():
        os.setsid()
        time.sleep(3600)
open(os.environ["CHECKPOINT_DIR"] + "/half.pt", "w").write("half")
print("keys of the agent:", sorted(name for name in os.environ if name.startswith(("AWS_SEC", "AWS_SES", "TRAINYARD_"))))
print("{% $states.input %} \\x1b[2J" + "x" * 100_000, flush=True)
time.sleep(3600)
"""
GREEDY = """
import errno, os, sys, time
mode = sys.argv[1]
if mode == "forks":
    import signal
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    made = 0
    while True:
        if not os.fork():
            os.setsid()
            time.sleep(3600)
        made += 1
        print("forked", made, flush=True)
        time.sleep(0.2)
seen, held = [name for name in os.listdir("/proc") if name.isdigit()], dict(os.environ)
for name in [f"/proc/{one}/{file}" for one in seen for file in ("environ", "cmdline")]:
    try:
        held[name] = open(name, "rb").read().decode(errors="replace")
    except OSError as problem:
        held[name] = errno.errorcode[problem.errno]
print("processes:", len(seen), "secrets:", sorted(n for n in held if "AWS_SECRET" in n + held[n] or "job_token" in held[n]), flush=True)
open("/etc/passwd", "a").write("intruder:x:0:0::/:/bin/sh\\n")
open("/written-by-a-container", "w").write("x")
try:
    with open("/filled-by-a-container", "wb") as file:
        while True:
            file.write(bytes(1 << 20))
except OSError as problem:
    print("filled:", errno.errorcode[problem.errno], flush=True)
sys.exit(9)
"""
"""A program for an image that was really built: what it writes beside its folders, it must not write to this computer."""
LOST = "node-lost:rank=1,step=10,job=moved"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """A deployment with an image under the tag `trainer-1`."""
    conditions = Conditions(speed=10.0, faults=parse_faults([LOST]))
    folder = tmp_path_factory.mktemp("containers")
    with Yard(folder / "work", conditions, wanted=["workflow", "builds"], real_images=not LACKS) as yard:
        build(yard, folder / "trainer", "trainer-1")
        build(yard, folder / "other", "other-1", more="ENV FAIL_AT=1 FAIL_RANK=0\n")
        build(yard, folder / "greedy", "greedy-1", script=GREEDY)
        yield yard


def build(yard: Yard, folder: Path, tag: str, more: str = "", script: str = "") -> None:
    shutil.copytree(TRAINER, folder)
    if script:
        (folder / "train.py").write_text(script)
    (folder / "Dockerfile").write_text(DOCKERFILE + more)
    request = {"repository": "images", "tag": tag, "base": BASE}
    (folder / "build.json").write_text(json.dumps(request))
    build_image(yard, folder)


@pytest.fixture(scope="module")
def jobs(built: Yard) -> dict[str, StartedJob]:
    """All started at once; the tag of `moved` moves while it trains."""
    code = built.upload(TRAINER, "trainer")
    hostile = built.upload(_written(built.aws.work / "hostile", HOSTILE), "hostile")
    image = {"image": "images:trainer-1", "arguments": STEPS}
    requests: dict[str, Mapping[str, Any]] = {
        "plain": {**TWO, "code": code, "command": train(40, 0.2)},
        "imaged": {**TWO, **image},
        "moved": {**TWO, **image, **ENDLESS},
        "mounted": {**ONE, "image": "pytorch-training:2.9-gpu", "code": code, "command": train(3, 0.1)},
        "failing": {**TWO, "image": "images:trainer-1", "arguments": ["3", "0.1", "3"]},
        "hostile": {**ONE, "image": BASE, "code": hostile, "command": ["python", "train.py"], "max_hours": 0.04},
    }
    ends = {**ONE, "image": "images:greedy-1", "max_hours": 0.04}
    requests["forking"] = {**ends, "arguments": ["forks"]}
    if not LACKS:
        # To fill a disk takes as long as the computer's own one takes.
        requests["greedy"] = {**ONE, "image": "images:greedy-1", "arguments": ["everything"]}
    started = {name: built.start(request, name) for name, request in requests.items()}
    mover = threading.Thread(target=move, args=(built, started["moved"]))
    mover.start()
    return started


def _written(folder: Path, script: str) -> Path:
    folder.mkdir()
    (folder / "train.py").write_text(script)
    return folder


def move(yard: Yard, job: StartedJob) -> None:
    """Somebody gives the tag to another image, once the job trains. The image goes with its last tag, so it gets one more before."""
    until(lambda: "Train" in job.states(), HANG_S)
    ecr, where = yard.client("ecr"), {"repositoryName": names.repository("trainyard", "images")}
    own, other = ecr.batch_get_image(**where, imageIds=[{"imageTag": "trainer-1"}, {"imageTag": "other-1"}])["images"]
    ecr.put_image(**where, imageManifest=own["imageManifest"], imageTag="kept")
    ecr.batch_delete_image(**where, imageIds=[{"imageTag": "trainer-1"}, {"imageTag": "other-1"}])
    ecr.put_image(**where, imageManifest=other["imageManifest"], imageTag="trainer-1")


def described(job: StartedJob) -> Job:
    return decode(Job, stored(job.yard, keys.JobPrefix(job.name).description))


def logged(job: StartedJob) -> str:
    return "\n".join(line for stream in job.log_streams() for line in job.log(stream))


def test_a_job_from_an_image_ends_as_the_same_code_does_without_one(jobs: dict[str, StartedJob]) -> None:
    for name in ("plain", "imaged"):
        succeeded(jobs[name])
    with_image, without = jobs["imaged"], jobs["plain"]
    results = [one.rpartition("/")[2].partition("-")[0] for one in (*with_image.artifacts(), *without.artifacts())]
    assert results
    assert len(with_image.artifacts()) == len(without.artifacts())
    assert {one.partition("/")[2] for one in with_image.log_streams()} == {
        one.partition("/")[2] for one in without.log_streams()
    }
    for job in (with_image, without):
        assert sorted(line for line in logged(job).splitlines() if "the last line" in line) == [
            "rank 0 is done, the last line",
            "rank 1 is done, the last line",
        ]
        assert max(one.closed_step for one in job.reports(1).values()) == 40
    assert described(with_image).code is None


def test_the_digest_of_admission_runs_although_the_tag_has_moved_and_a_node_was_lost(
    jobs: dict[str, StartedJob],
) -> None:
    job = jobs["moved"]
    succeeded(job)
    container = described(job).container
    assert container is not None
    assert job.attempt() == 2
    pulls = [line for line in logged(job).splitlines() if "pulled the image" in line]
    assert len(pulls) >= 3
    assert all(container.digest in line for line in pulls)


def test_the_log_says_whether_the_image_had_a_root_of_its_own(jobs: dict[str, StartedJob]) -> None:
    succeeded(jobs["imaged"])
    own = "rehearsal: the image's own root, as buildah built it" in logged(jobs["imaged"])
    assert own is not bool(LACKS)


def test_code_runs_in_a_container_of_awss(jobs: dict[str, StartedJob]) -> None:
    succeeded(jobs["mounted"])
    assert "rank 0 is done, the last line" in logged(jobs["mounted"])


def test_an_image_whose_program_fails_fails_the_job_with_its_exit_code(jobs: dict[str, StartedJob]) -> None:
    assert "the command exited with code 3" in failed(jobs["failing"], "TrainingFailed")


def test_a_hostile_container_ends_like_any_other_job_and_leaves_nothing(jobs: dict[str, StartedJob]) -> None:
    """It ignores signals, forks, and would run for ever: the job ends at its deadline."""
    failed(jobs["hostile"], "DeadlineReached")
    assert ended(jobs["hostile"])["status"] == "FAILED"
    assert "keys of the agent: []" in logged(jobs["hostile"])
    assert jobs["hostile"].instances_left() == 0


def test_a_container_that_forks_without_end_and_ignores_signals_ends_at_its_deadline_with_all_of_them(
    jobs: dict[str, StartedJob],
) -> None:
    failed(jobs["forking"], "DeadlineReached")
    assert "forked 10" in logged(jobs["forking"])
    assert jobs["forking"].instances_left() == 0


@pytest.mark.skipif(bool(LACKS), reason=f"without a root of its own it would write to this computer: {LACKS}")
def test_a_container_that_writes_everywhere_and_fills_its_disk_fails_with_its_exit_code_and_has_seen_no_secret(
    jobs: dict[str, StartedJob],
) -> None:
    """It is root in the image. Docker shows it no more than this: docs/guides/containers.md says what only docker limits."""
    assert "the command exited with code 9" in failed(jobs["greedy"], "TrainingFailed")
    lines = logged(jobs["greedy"]).splitlines()
    assert "processes: 2 secrets: []" in lines
    assert "filled: ENOSPC" in lines
    assert "intruder" not in Path("/etc/passwd").read_text()
    for place in (Path("/"), jobs["greedy"].yard.work):
        assert not (place / "written-by-a-container").exists()
    assert jobs["greedy"].instances_left() == 0


def test_nodes_pull_with_the_keys_of_their_job_and_nothing_of_it_was_denied(
    built: Yard, jobs: dict[str, StartedJob]
) -> None:
    for job in jobs.values():
        job.wait(HANG_S)
    reads = [one for one in built.aws.recorder.of() if one.name in ("ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer")]
    role = names.job_role("trainyard", built.region)
    assert any(one.role.endswith(role) for one in reads)
    assert [one.name for one in reads if one.error in DENIALS] == []
