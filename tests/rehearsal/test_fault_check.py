"""Faults that cannot strike what is rehearsed are refused before it; of those that struck nothing, the reason is said after it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contract import tags
from contract.reports import NodeReport, Phase, Progress
from rehearsal import node_faults
from rehearsal.deployment import ROOT
from rehearsal.fault_check import (
    RequestFacts,
    list_fault_problems,
    list_grid_fault_problems,
    list_missing_lines,
    names_clusters,
)
from rehearsal.faults import FAULTS, parse_faults
from rehearsal.idle_faults import OVER, explain_idle
from rehearsal.job_command import arguments
from rehearsal.node_faults import NodeFaults, Strike
from rehearsal.options import LEAST_WAIT_S, bound_wait

ONE = RequestFacts(nodes=1, markets=("on-demand",), health="quick")
SPOT = RequestFacts(nodes=2, markets=("spot-then-on-demand",), health="deep", reserved=True)
EXAMPLE = ROOT / "examples" / "ddp_digits"


def marks(nodes: int, rank: int, attempt: int = 1) -> dict[str, str]:
    return {tags.JOB: "job-1", tags.NODES: str(nodes), tags.ATTEMPT: str(attempt), "rank": str(rank)}


@pytest.mark.parametrize("name", [name for name, kind in FAULTS.items() if "rank" in kind.keys])
@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_every_fault_of_nodes_strikes_by_default_a_rank_that_the_job_has(name: str, nodes: int) -> None:
    (fault,) = parse_faults([name])
    struck = [rank for rank in range(nodes) if fault.meets(marks(nodes, rank))]
    assert struck in ([0], [min(1, nodes - 1)], list(range(nodes)))


def test_a_rank_that_is_named_is_never_another_one() -> None:
    (fault,) = parse_faults(["node-lost:rank=1"])
    assert not fault.meets(marks(1, 0))


CANNOT = [
    ("node-lost:rank=1", ONE, "rank is 1, and the job has rank 0 alone; allowed: 0, or all"),
    ("spot-kill:rank=2", SPOT, "rank is 2, and the job has the ranks 0 to 1; allowed: 0 to 1, or all"),
    ("slow-boot:rank=7", SPOT, "rank is 7"),
    ("spot-kill", ONE, "strikes spot nodes, and the request's market is on-demand; allowed: beside a market of spot"),
    ("spot-notice", ONE, "strikes spot nodes"),
    ("spot-rebalance:step=0", ONE, "strikes spot nodes"),
    ("block-ends", ONE, "the request names no reservation; allowed: beside reservation"),
    ("reservation-full", ONE, "the request names no reservation"),
    ("slow-link", ONE, "the request's health is quick; allowed: beside health deep"),
    ("child-killed", SPOT, "strikes lines of a grid, and this is a job; allowed: beside --manifest"),
    ("spot-interrupted", SPOT, "strikes lines of a grid"),
    ("quota-reached", SPOT, "strikes lines of a grid"),
    ("slow-boot:job=mine", SPOT, "job is 'mine', and a rehearsal names what it starts itself; allowed: without job"),
]


@pytest.mark.parametrize(("text", "facts", "said"), CANNOT, ids=[one[0] for one in CANNOT])
def test_a_fault_that_cannot_strike_the_job_is_refused(text: str, facts: RequestFacts, said: str) -> None:
    (found,) = list_fault_problems(parse_faults([text]), facts)
    assert found.startswith(f"--fault {text.partition(':')[0]}: ")
    assert said in found


@pytest.mark.parametrize("facts", [ONE, SPOT, replace(SPOT, markets=("on-demand", "spot"))])
def test_faults_that_can_strike_the_job_are_not_refused(facts: RequestFacts) -> None:
    texts = ["node-lost", "slow-boot:rank=all", "node-lost:rank=0,attempts=9", "events-dropped", "spot-price-moves"]
    texts += ["spot-kill", "spot-notice:attempt=9", "slow-link", "block-ends"] if facts.reserved else []
    assert list_fault_problems(parse_faults(texts), facts) == []


@pytest.mark.parametrize("text", ["spot-kill:attempt=0", "capacity-away:attempt=0"])
def test_there_is_no_attempt_0(text: str) -> None:
    with pytest.raises(ValueError, match="attempt is '0'; allowed: a whole number from 1"):
        parse_faults([text])


@pytest.mark.parametrize("text", ["node-lost:rank=1", "spot-kill", "child-killed"])
@pytest.mark.usefixtures("checked_here")
def test_the_command_line_of_a_job_of_one_node_refuses_it_before_anything_is_deployed(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "job.json"
    request = json.loads((EXAMPLE / "job.json").read_text())
    job.write_text(json.dumps({**request, "nodes": 1, "market": "on-demand"}))
    with pytest.raises(SystemExit) as ended:
        arguments(["--job", str(job), "--code", str(EXAMPLE), "--fault", text])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"--fault {text.partition(':')[0]}: ")
    assert arguments(["--job", str(job), "--code", str(EXAMPLE), "--fault", "node-lost"]).faults


def test_a_fault_of_nodes_is_refused_where_no_line_of_a_grid_has_nodes() -> None:
    faults = parse_faults(["node-lost", "child-killed"])
    (found,) = list_grid_fault_problems(faults, clusters=False)
    assert found.startswith("--fault node-lost: strikes nodes of jobs, and no line has the backend ec2")
    assert list_grid_fault_problems(faults, clusters=True) == []
    assert names_clusters({"template": {"defaults": {"backend": "ec2"}}})
    assert not names_clusters({"template": {"defaults": {"backend": "sagemaker", "image": "ec22:v1"}}})


def test_a_line_that_the_grid_lacks_is_said_with_those_that_it_has() -> None:
    faults = parse_faults(["child-killed:line=12", "create-response-lost", "task-retired:line=all", "slow-boot"])
    said = "the fault child-killed struck nothing: line is 12, and the grid has the lines 0 to 11"
    assert list_missing_lines(faults, 12) == [said]
    assert list_missing_lines(faults, 13) == []


def machine(nodes: int, rank: int, attempt: int = 1, *, is_spot: bool = True, kind: str = "t3.medium") -> Any:
    request = {"InstanceType": kind}
    return SimpleNamespace(marks=marks(nodes, rank, attempt), is_spot=is_spot, request=request, user_data=b"#!\n1\n2\n")


def report(rank: int = 0, *, attempt: int = 1, phase: Phase = Phase.ENDED, step: int | None = None) -> NodeReport:
    return NodeReport(
        job="job-1",
        attempt=attempt,
        rank=rank,
        instance="i",
        phase=phase,
        sent_at=0.0,
        progress=None if step is None else Progress(step=step),
    )


TWO = [machine(2, 0), machine(2, 1)]
WHY: list[tuple[str, list[Any], list[NodeReport], str]] = [
    ("spot-kill", [], [], "the job had no node"),
    ("spot-kill:attempt=3", TWO, [report(step=9)], "the job had 1 attempt, and it waits for attempt 3"),
    ("spot-kill:rank=5", TWO, [report(step=9)], "the job has no rank 5"),
    (
        "spot-kill",
        [machine(2, 1, is_spot=False)],
        [report(step=9)],
        "rank 1 is not a spot node: the request needs a market",
    ),
    ("spot-kill:rank=all", [machine(1, 0, is_spot=False)], [report(step=9)], "no node is a spot node"),
    ("bad-gpu", [machine(1, 0)], [report(step=9)], "rank 0 is not of a type with GPUs"),
    ("spot-kill:step=100", TWO, [report(step=12)], "rank 0 reported step 12 at most, and it waits for step 100"),
    ("node-lost", TWO, [report()], "rank 0 reported no step, and it waits for step 5"),
    ("node-lost:step=0,closed=20", TWO, [report(step=30)], "it waits for a checkpoint of step 20, and there was none"),
    (
        "node-lost:step=0,closed=20",
        TWO,
        [replace(report(step=30), closed_step=10)],
        "it waits for a checkpoint of step 20, and the newest is of step 10",
    ),
    ("freeze:at=saving", TWO, [report(phase=Phase.TRAINING)], "no node came as far as saving"),
    ("freeze:at=training", TWO, [report(phase=Phase.PREPARING)], "no node came as far as training"),
    ("agent-crash:at=agent", TWO, [report()], OVER),
    ("spot-kill", TWO, [report(step=9)], OVER),
]


@pytest.mark.parametrize(
    ("text", "machines", "reports", "why"), WHY, ids=[f"{one[0]}-{n}" for n, one in enumerate(WHY)]
)
def test_a_fault_that_struck_nothing_says_why(
    text: str, machines: list[Any], reports: list[NodeReport], why: str
) -> None:
    (fault,) = parse_faults([text])
    assert explain_idle(fault, machines, reports).startswith(why)


def test_a_fault_whose_attempts_others_have_struck_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_faults, "reports", lambda: [report(step=50)])
    faults, asked = NodeFaults(), parse_faults(["spot-notice", "spot-kill"])
    faults.strikes.append(Strike(asked[0], "job-1", 1, 1, 0.0))
    (found,) = faults.list_idle(asked, "job-1", TWO)
    assert found == "spot-kill struck no node: another interruption has struck each attempt of the job"


def test_a_line_beyond_the_user_data_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_faults, "reports", list)
    asked, faults = parse_faults(["user-data-fails:line=400"]), NodeFaults()
    conditions: Any = SimpleNamespace(fault=lambda name, _: asked[0] if name == "user-data-fails" else None)
    faults.birth(TWO[0], conditions)
    (found,) = faults.list_idle(asked, "job-1", TWO)
    assert found == "user-data-fails struck no node: the user data has 3 lines, and it waits for line 400"
    assert NodeFaults().list_idle(asked, "job-1", TWO) == []


@pytest.mark.parametrize(
    ("speed", "seconds"), [(1.0, 3600.0), (10.0, 360.0), (30.0, LEAST_WAIT_S), (1000.0, LEAST_WAIT_S)]
)
def test_a_rehearsal_waits_minutes_for_processes_at_any_speed(speed: float, seconds: float) -> None:
    assert bound_wait(3600.0, speed) == seconds
