"""What a loss costs, and what an error of the code: trainers in lockstep, every rank, at any step, with and without EC2's word.

`make rehearse-losses` runs all of it and prints the table; `-k "2-nodes"` or `-k freeze` a part.
"""

from __future__ import annotations

import json
import random
import shlex
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from contract.timing import Timing
from localaws.conditions import Conditions
from rehearsal.faults import parse_faults
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import ENDLESS, TWO, left, stored, train

pytestmark = [pytest.mark.rehearsal, pytest.mark.losses, pytest.mark.timeout(1200)]
ROOT = Path(__file__).parents[2]
SPEED = 10.0
LIMIT_S = 400.0
AT_ONCE = 8
"""Nodes that run at the same time, on however few cores."""
LOSSES = {
    "told": "node-lost:step={step}",
    "vanished": "node-lost:step={step},running=600",
    "crashed": "agent-crash:at={step}",
    "cut": "no-network:at={step}",
    "frozen": "freeze:at={step}",
    "told-unheard": "node-lost:step={step}",
    "crashed-unheard": "agent-crash:at={step}",
}
"""Kind of a loss to its fault. Of the unheard ones no event tells: the clock alone sees them."""


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """Twenty nodes on few cores boot for longer, and are silent for longer, than the divided allowances."""
    timing = asdict(Timing().divided(SPEED)) | {"boot_allowance_s": 180.0, "meet_allowance_s": 180.0, "silence_s": 30.0}
    with Yard(
        tmp_path_factory.mktemp("losses") / "work",
        Conditions(speed=SPEED),
        settings={"limits": {"recoveries": 1, "max_nodes": 4}, "timing": timing},
    ) as deployed:
        yield deployed


def in_waves(yard: Yard, requests: dict[str, dict[str, Any]]) -> Iterator[tuple[StartedJob, dict[str, Any]]]:
    """Each job with its end, a few at a time."""
    waiting, running = list(requests), list[StartedJob]()
    while waiting or running:
        while waiting and sum(requests[job.name]["nodes"] for job in running) < AT_ONCE:
            name = waiting.pop(0)
            running.append(yard.start(requests[name], name))
        job = running.pop(0)
        yield job, job.wait(LIMIT_S)
        job.settle()


def tell(line: str) -> None:
    """Into the table of the run."""
    with (ROOT / "build" / "losses.txt").open("a") as table:
        table.write(f"{line}\n")


def states(job: StartedJob, since: float) -> str:
    """Each state that was entered after a moment, with how many seconds later."""
    entered = [event for event in job.history() if "stateEnteredEventDetails" in event]
    later = [(event["stateEnteredEventDetails"]["name"], event["timestamp"].timestamp() - since) for event in entered]
    return "".join(f", {name} after {seconds:.0f} s" for name, seconds in later if seconds > 0)


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("nodes", [2, 4], ids=["2-nodes", "4-nodes"])
def test_whatever_rank_is_lost_in_whatever_way_the_job_goes_on(yard: Yard, kind: str, nodes: int) -> None:
    chance = random.Random(f"{kind}{nodes}")
    code = yard.upload(ROOT / "tests/rehearsal/trainer", "trainer")
    names = {rank: f"{kind}-{nodes}-{rank}" for rank in range(nodes)}
    steps = {rank: chance.randint(2, 25) for rank in names}
    faults = [LOSSES[kind].format(step=steps[rank]) + f",rank={rank},job={name}" for rank, name in names.items()]
    faults += ["events-dropped"] if kind.endswith("unheard") else []
    request = {**TWO, **ENDLESS, "nodes": nodes, "code": code, "command": train(20, 0.2), "checkpoint_minutes": 0.02}
    wrong = []
    with yard.faults(parse_faults(faults)):
        for job, execution in in_waves(yard, dict.fromkeys(names.values(), request)):
            attempts = json.loads(execution.get("output") or "{}").get("attempts")
            why = json.loads(stored(yard, f"jobs/{job.name}/report.json"))
            recovered = [one["error"] for one in why["recovered"]]
            tell(
                f"{job.name}: {execution['status']} {execution.get('error', '')} attempts={attempts} recovered={recovered}"
            )
            if (execution["status"], attempts, recovered, left(job)) != ("SUCCEEDED", 2, ["NodeLost"], []):
                wrong.append(f"{job.name}: {execution['status']} {execution.get('cause', '')} {why['recovered']}")
    assert wrong == []


@pytest.mark.parametrize("writes", ["rank0", "every", "barrier"])
@pytest.mark.parametrize("nodes", [2, 4], ids=["2-nodes", "4-nodes"])
def test_every_kind_of_trainer_goes_on_from_one_whole_checkpoint(yard: Yard, nodes: int, writes: str) -> None:
    """The trainer itself fails where it finds files of different steps, or not all of them."""
    code, chance = yard.upload(ROOT / "tests/rehearsal/trainer", "trainer"), random.Random(f"{writes}{nodes}")
    names = {rank: f"{writes}-{nodes}-{rank}" for rank in range(nodes)}
    losses = [LOSSES[chance.choice(["told", "vanished", "crashed"])] for _ in names]
    faults = [
        loss.format(step=chance.randint(40, 55)) + f",rank={rank},job={names[rank]}"
        for rank, loss in zip(names, losses, strict=True)
    ]
    environment = {"WRITES": writes, "SAVES_EVERY": "5"} | ENDLESS["environment"]
    request = {**TWO, "nodes": nodes, "code": code, "command": train(25, 0.2), "checkpoint_minutes": 0.05}
    request |= {"environment": environment, "checkpoint_scope": "shards" if writes == "barrier" else "auto"}
    wrong = []
    with yard.faults(parse_faults(faults)):
        for job, execution in in_waves(yard, dict.fromkeys(names.values(), request)):
            again = job.reports(2)
            starts = {(report.restored, report.restored_step) for report in again.values()}
            tell(f"{job.name}: {execution['status']} {execution.get('error', '')} went on from {sorted(starts)}")
            if execution["status"] != "SUCCEEDED" or len(starts) != 1 or max(step for _, step in starts) < 5:
                wrong.append(f"{job.name}: {execution['status']} {execution.get('cause', '')} {starts}")
    assert wrong == []


@pytest.mark.parametrize("breaks_s", ["never", "0.01"], ids=["hang", "break"])
@pytest.mark.parametrize("nodes", [2, 4], ids=["2-nodes", "4-nodes"])
def test_code_that_fails_by_itself_on_one_rank_ends_the_job_within_a_minute(
    yard: Yard, nodes: int, breaks_s: str
) -> None:
    """Whether its peers hang or break, and on whichever rank."""
    code = yard.upload(ROOT / "tests/rehearsal/trainer", "trainer")
    requests: dict[str, dict[str, Any]] = {
        f"own-{breaks_s.replace('.', '')}-{nodes}-{number}": {
            **TWO,
            "nodes": nodes,
            "code": code,
            "command": train(40, 0.2),
            "environment": {"FAIL_AT": str(3 + number), "FAIL_RANK": str(number % nodes), "BREAKS_S": breaks_s},
        }
        for number in range(5)
    }
    wrong = []
    for job, execution in in_waves(yard, requests):
        reports = job.reports(1)
        rank = int(requests[job.name]["environment"]["FAIL_RANK"])
        failed_at = reports[rank].timeline["failed"]
        took_s = execution["stopDate"].timestamp() - failed_at
        end = f"{execution['status']} {execution.get('error', '')}"
        tell(f"{job.name}: {end} after {took_s:.0f} s{states(job, failed_at)}")
        cause = execution.get("cause", "")
        # Peers that break 10 ms later may be seen first by their agents: then the cause shows their error, and names this one after it.
        told = (f"rank {rank}: the command exited with code 1", "the code's own mistake")
        wanted = told if breaks_s == "never" else ("the command exited with code 1",)
        right = execution.get("error") == "TrainingFailed" and all(one in cause for one in wanted)
        if not right or took_s > 60:
            wrong.append(f"{job.name} after {took_s:.0f} s: {execution['status']} {execution.get('error', '')} {cause}")
    assert wrong == []


@pytest.mark.parametrize("kind", ["told", "vanished", "crashed", "cut", "frozen"])
@pytest.mark.parametrize("rank", [0, 1])
def test_pytorch_goes_on_after_a_loss(yard: Yard, rank: int, kind: str) -> None:
    """The example as it is shipped: gloo breaks within milliseconds, and its peers exit with 1."""
    request = json.loads((ROOT / "examples/ddp_digits/job.json").read_text())
    request |= {"code": yard.upload(ROOT / "examples/ddp_digits", "digits"), "nodes": 2, "checkpoint_minutes": 0.02}
    once = shlex.join([*request["command"], "--seconds-per-epoch", "1"])
    request["command"] = ["bash", "-c", f'exec {once} $(test "$ATTEMPT" != 1 || echo --epochs 1000000)']
    name = f"digits-{kind}-{rank}"
    began = time.monotonic()
    with yard.faults(parse_faults([LOSSES[kind].format(step=60) + f",rank={rank},job={name}"])):
        execution = yard.start(request, name).wait(LIMIT_S)
    tell(f"{name}: {execution['status']} {execution.get('error', '')} after {time.monotonic() - began:.0f} s")
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    assert json.loads(execution["output"])["attempts"] == 2
