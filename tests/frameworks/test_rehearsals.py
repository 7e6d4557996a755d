"""Real frameworks on two nodes: one vanishes, AWS takes one back, then the other after a notice, and the fourth attempt ends the training.

`make rehearse-frameworks` runs them and prints a table; `-k deepspeed` one of them. No script knows of PROGRESS_FILE.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest

from contract.timing import Timing
from localaws.conditions import Conditions
from rehearsal.faults import parse_faults
from rehearsal.yard import StartedJob, Yard
from tests.frameworks.catalogue import (
    BATCH,
    EXTENSIONS,
    FRAMEWORKS,
    LIBRARIES,
    ROOT,
    SAVES_EVERY,
    SCRIPTS,
    STEPS,
    Framework,
)
from tests.rehearsal.jobs import left

pytestmark = [pytest.mark.rehearsal, pytest.mark.frameworks, pytest.mark.timeout(1200)]
SPEED = 10.0
LIMIT_S = 900.0
INTERVAL_S = 1.2
"""`checkpoint_minutes` of these jobs."""
UPLOAD_STEPS = 30
"""Steps of 0.2 s while a set is opened, answered by both ranks, sent and closed, by agents that share two cores with all else."""
REST_STEPS = 150
"""After so many an attempt stands still (examples/frameworks/samples.py): one that comes so far closed nothing while it trained."""
LOST_AT_MOST = SAVES_EVERY + round(INTERVAL_S / 0.2) + UPLOAD_STEPS
FAULTS = {
    "node-lost:rank=1,step=0,closed=20,job={}": "NodeLost",
    "spot-kill:rank=0,step=0,closed=20,attempt=2,job={}": "Interrupted",
    "spot-notice:rank=1,step=0,closed=20,attempt=3,job={}": "Interrupted",
}
"""What strikes each attempt, and how the attempt then ends."""
DISTURBED = range(1, len(FAULTS) + 1)
LAST = len(FAULTS) + 1
REQUEST: dict[str, Any] = {
    "instance_types": ["g5.xlarge", "g4dn.xlarge"],
    "nodes": 2,
    "max_hours": 1,
    "market": "spot",
    "checkpoint_minutes": INTERVAL_S / 60,
}
TORCHRUN = (
    f"PATH=$PATH:{LIBRARIES / 'bin'} torchrun --nnodes $NUM_NODES --node-rank $NODE_RANK --nproc-per-node 1 "
    "--master-addr $MASTER_ADDR --master-port $MASTER_PORT "
)
RESUMED = re.compile(r"resumes from .*?(\d+)?(?:\.ckpt)?$", re.MULTILINE)


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """Two nodes on few cores import libraries for longer than the divided allowances."""
    allowances = {"boot_allowance_s": 180.0, "meet_allowance_s": 180.0, "silence_s": 60.0}
    timing = asdict(Timing().divided(SPEED)) | allowances
    work = tmp_path_factory.mktemp("frameworks") / "work"
    with Yard(work, Conditions(speed=SPEED), settings={"timing": timing}, wanted=["workflow"]) as deployed:
        yield deployed


@pytest.fixture(scope="module")
def code(yard: Yard, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of the uploaded scripts, without the requirements: `build/frameworks` has them, and no node reaches an index."""
    folder = tmp_path_factory.mktemp("code")
    for script in SCRIPTS.glob("*.py"):
        shutil.copy(script, folder)
    return yard.upload(folder, "frameworks")


def request_for(framework: Framework, code: str) -> dict[str, Any]:
    """As a person writes it: the script's command, and nothing about checkpoints but how often."""
    variables = {"PYTHONPATH": str(LIBRARIES), "SLOW_ATTEMPTS": str(len(FAULTS)), **framework.environment}
    command = ["bash", "-c", TORCHRUN + framework.script]
    return {**REQUEST, "code": code, "command": command, "environment": variables}


def text_of(job: StartedJob, attempt: int, rank: int) -> str:
    """What the training wrote in that attempt."""
    return "\n".join(job.log(f"{job.name}/{attempt}/{rank}"))


def resumed_step(job: StartedJob, attempt: int, rank: int) -> int:
    """The step of the checkpoint that the script says it goes on from; 0 where it found none."""
    found = RESUMED.search(text_of(job, attempt, rank))
    assert found, text_of(job, attempt, rank)[-2000:]
    return int(found[1] or 0)


def trained_steps(job: StartedJob, attempt: int) -> int:
    """The step to which rank 0 came, by the samples that it had read when it said so last."""
    read = re.findall(r"read (\d+) samples", text_of(job, attempt, 0))
    return resumed_step(job, attempt, 0) + int(read[-1] if read else 0) // BATCH


def tell(line: str) -> None:
    """Into the table of the run."""
    with (ROOT / "build" / "frameworks.txt").open("a") as table:
        table.write(f"{line}\n")


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=[one.name for one in FRAMEWORKS])
def test_a_framework_goes_on_from_the_newest_whole_checkpoint_of_its_own_layout(
    yard: Yard, code: str, framework: Framework
) -> None:
    if framework.layout == "deepspeed" and not EXTENSIONS.is_dir():
        pytest.skip("DeepSpeed compiles a part of itself, and no C++ compiler is installed")
    name = framework.name
    with yard.faults(parse_faults([fault.format(name) for fault in FAULTS])):
        job = yard.start(request_for(framework, code), name)
        execution = job.wait(LIMIT_S)
        job.settle()
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    output = json.loads(execution["output"])
    assert (output["attempts"], [one["error"] for one in job.recovered()]) == (LAST, list(FAULTS.values()))
    closed = {attempt: max(one.closed_step for one in job.reports(attempt).values()) for attempt in DISTURBED}
    starts = {attempt: {resumed_step(job, attempt, rank) for rank in (0, 1)} for attempt in (*DISTURBED, LAST)}
    ends = {attempt: trained_steps(job, attempt) for attempt in DISTURBED}
    lost = {attempt: ends[attempt] - min(starts[attempt + 1]) for attempt in DISTURBED}
    tell(f"{name}: closed {closed}, went on from {starts}, steps trained again {lost}")
    assert starts[1] == {0}
    for attempt in range(2, LAST + 1):
        reports = job.reports(attempt)
        (start,) = starts[attempt]
        assert {one.restored_step for one in reports.values()} == {start}
        assert start >= closed[attempt - 1] > 0
        assert start % SAVES_EVERY == 0
        assert ends[attempt - 1] - min(starts[attempt - 1]) < REST_STEPS
        assert lost[attempt - 1] <= LOST_AT_MOST
        assert {one.progress for one in reports.values()} == {None}
    assert job.reports(LAST)[0].layout == framework.layout
    assert f"ended at step {STEPS}" in text_of(job, LAST, 0)
    assert left(job) == []
