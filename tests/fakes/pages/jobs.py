"""Facts of jobs: one that ended well, that failed, that was interrupted, that is capped, runs, waits, was refused, and one that is huge."""

from __future__ import annotations

import math
from dataclasses import replace

from aws.checkpoints import ClosedSet
from aws.facts import Status
from aws.state import AttemptEnd
from contract import errors
from contract.curves import Curve, Point
from contract.health import UnhealthyNode
from contract.intents import Intent, LaunchAnswer, LaunchOutcome, Step
from contract.jobs import Job, Market, Rung
from contract.reports import Exit, NodeReport, Phase, Progress
from pages.facts import JobFacts
from tests.builders import INTENT, JOB, NOW, PLACE, rung

HOUR = 3600.0
SPOT = tuple(
    replace(rung(zone, kind), market=Market.SPOT, usd=0.42, most_usd=1.21)
    for zone, kind in (
        ("eu-central-1a", "g5.2xlarge"),
        ("eu-central-1b", "g5.2xlarge"),
        ("eu-central-1c", "g5.xlarge"),
    )
)
TRAINED: Job = replace(
    JOB,
    id="digits-ddp-12",
    execution="arn:aws:states:eu-central-1:123456789012:execution:yard-train:digits-ddp-12",
    command=("torchrun", "--nproc-per-node", "4", "train.py", "--epochs", "90", "--lr", "0.1"),
    ladder=SPOT,
    max_cost_usd=25.0,
    places={"eu-central-1": PLACE},
)
RUNS = Status(name="RUNNING", started_at=NOW)
SUCCEEDED = Status(name="SUCCEEDED", started_at=NOW, ended_at=NOW + 3 * HOUR)


def failed(error: type[Exception], cause: str, after: float = 2 * HOUR) -> Status:
    return Status(name="FAILED", started_at=NOW, ended_at=NOW + after, error=error.__name__, cause=cause)


def walk(
    attempt: int, began: float, place: int = 0, *, launched: bool = True, rungs: tuple[Rung, ...] = SPOT
) -> Intent:
    """Returns a walk that launched at the rung of this place, and found no capacity before; or launched nowhere."""
    steps = []
    for number, one in enumerate(rungs):
        answer = None
        if number < place or not launched:
            answer = LaunchAnswer(
                outcome=LaunchOutcome.NO_CAPACITY,
                at=began + 4 + number,
                code="InsufficientInstanceCapacity",
                message=f"We currently do not have sufficient {one.instance_type} capacity in {one.zone}.",
            )
        elif number == place:
            answer = LaunchAnswer(outcome=LaunchOutcome.LAUNCHED, at=began + 6 + number, instances=("i-0", "i-1"))
        steps.append(Step(rung=one, request={"InstanceType": one.instance_type}, answer=answer))
    return replace(INTENT, attempt=attempt, started_at=began, patience_until=began + 1800, steps=tuple(steps))


def node(
    rank: int, began: float, *, attempt: int = 1, step: int = 0, restored: int = -1, **changes: object
) -> NodeReport:
    """Returns the report of a node that trains, and began to boot then."""
    late = 7.0 * rank
    report = NodeReport(
        job=TRAINED.id,
        attempt=attempt,
        rank=rank,
        instance=f"i-0{attempt:02d}{rank:014x}",
        phase=Phase.TRAINING,
        sent_at=began + 900,
        phase_s=754.0,
        progress=Progress(step=step, metric=0.9),
        restored_step=restored,
        timeline={
            "booted": began + 95 + late,
            "prepared": began + 210 + late,
            "addressed": began + 220 + late,
            "started": began + 260,
            "first_step": began + 290,
        },
    )
    return replace(report, **changes)  # type: ignore[arg-type]


def end_of(report: NodeReport, at: float) -> NodeReport:
    """Returns the last report of a node that ended well."""
    return replace(
        report,
        phase=Phase.ENDED,
        exit=Exit(code=0),
        timeline=report.timeline | {"failed": at - 40, "ended": at},
        note="done",
    )


def curve(*parts: tuple[int, float, float, int, int], points: int = 60) -> Curve:
    """Returns the points of attempts, each as (attempt, from, to, first step, last step)."""
    found = []
    for attempt, since, until, first, last in parts:
        for number in range(points):
            share = number / (points - 1)
            step = round(first + share * (last - first))
            metric = 0.97 - 0.85 * math.exp(-step / 700) + 0.012 * math.sin(step / 23)
            found.append(Point(attempt=attempt, step=step, at=since + share * (until - since), metric=metric))
    return Curve(points=tuple(found))


def success() -> JobFacts:
    began, over = NOW + 20, NOW + 3 * HOUR - 60
    nodes = {rank: end_of(node(rank, began, step=2700), over) for rank in range(2)}
    return JobFacts(
        name=TRAINED.id,
        deployment="yard",
        now=NOW + 3 * HOUR + 30,
        status=SUCCEEDED,
        job=TRAINED,
        report={"job": TRAINED.id, "attempts": 1, "error": None, "cause": None, "ended_at": over + 20},
        walks=(walk(1, NOW + 5, place=1),),
        ends={1: AttemptEnd(at=over + 20)},
        reports={1: nodes},
        curve=curve((1, began + 290, over - 60, 0, 2700)),
        closed=tuple(ClosedSet(1, one, 300 * one, began + 290 + one * 1130) for one in range(1, 10)),
    )


def failure() -> JobFacts:
    began, over = NOW + 14, NOW + 1000
    tail = (
        *(f"epoch {one}: loss 2.{30 - one}01, 812 images/s" for one in range(1, 9)),
        "Traceback (most recent call last):",
        '  File "/work/code/train.py", line 118, in <module>',
        "    main()",
        '  File "/work/code/train.py", line 96, in main',
        "    loss = criterion(model(images), labels)",
        "RuntimeError: CUDA error: device-side assert triggered",
    )
    broke = Exit(code=1, error=errors.TrainingFailed.__name__, reason="the command ended with exit code 1", tail=tail)
    peer = replace(
        broke, code=143, error=errors.TrainingFailed.__name__, reason="stopped, as rank 1 had failed", tail=()
    )
    nodes = {
        0: node(0, began, step=240, phase=Phase.ENDED, exit=peer),
        1: node(1, began, step=241, phase=Phase.ENDED, exit=broke),
    }
    nodes = {
        rank: replace(one, timeline=one.timeline | {"failed": over - 60 - rank, "ended": over})
        for rank, one in nodes.items()
    }
    cause = (
        "Attempt 1: rank 1 (i-0100000000000001): the command ended with exit code 1. Its last lines:\n"
        + "\n".join(f"  {one}" for one in tail[-3:])
        + "\nCheckpoints until step 200 are kept."
    )
    return replace(
        success(),
        name="digits-broken",
        job=replace(TRAINED, id="digits-broken"),
        now=NOW + 1100,
        status=failed(errors.TrainingFailed, cause, 1040),
        report={"attempts": 1, "error": errors.TrainingFailed.__name__, "cause": cause, "ended_at": over + 20},
        walks=(walk(1, NOW + 5),),
        ends={1: AttemptEnd(at=over + 20, error=errors.TrainingFailed.__name__, cause=cause)},
        reports={1: nodes},
        curve=curve((1, began + 290, over - 70, 0, 241), points=12),
        closed=(ClosedSet(1, 1, 100, NOW + 560), ClosedSet(1, 2, 200, NOW + 840)),
    )


def interrupted() -> JobFacts:
    """Three interruptions, and an end all the same."""
    took = "rank 0 (i-0100000000000000): EC2 takes the spot instance back (notice at 14:02:11 UTC)"
    spans = (
        (NOW, 3000.0, 0, 410),
        (NOW + 3100, 4200.0, 380, 980),
        (NOW + 7420, 1500.0, 960, 1105),
        (NOW + 9000, 9000.0, 1080, 2700),
    )
    walks, reports, ends, parts, closed = [], {}, {}, [], list[ClosedSet]()
    for attempt, (began, lasts, first, last) in enumerate(spans, 1):
        over, is_last = began + lasts, attempt == len(spans)
        walks.append(walk(attempt, began, place=(attempt - 1) % 3))
        nodes = {rank: node(rank, began + 10, attempt=attempt, step=last, restored=first or -1) for rank in range(4)}
        reports[attempt] = {rank: end_of(one, over) for rank, one in nodes.items()} if is_last else nodes
        ends[attempt] = (
            AttemptEnd(at=over) if is_last else AttemptEnd(at=over, error=errors.Interrupted.__name__, cause=took)
        )
        parts.append((attempt, began + 300, over - 20, first, last))
        closed += [
            ClosedSet(attempt, number, step, began + 300 + (over - began - 320) * (step - first) / (last - first))
            for number, step in enumerate(range(first + 60, last, 120), 1)
        ]
        closed += [] if is_last else [ClosedSet(attempt, 99, spans[attempt][2], over - 240)]
    return replace(
        success(),
        name="digits-spot",
        job=replace(TRAINED, id="digits-spot", nodes=4),
        now=NOW + 18_100,
        status=replace(SUCCEEDED, ended_at=NOW + 18_030),
        report={"attempts": 4, "error": None, "cause": None, "ended_at": NOW + 18_010},
        walks=tuple(walks),
        ends=ends,
        reports=reports,
        curve=curve(*parts, points=50),
        closed=tuple(closed),
    )


def capped() -> JobFacts:
    cause = "The money of the job is used up: $11.73 of max_cost_usd 12.00. Checkpoints until step 1,080 are kept."
    facts = interrupted()
    attempts = (1, 2, 3)
    return replace(
        facts,
        name="digits-capped",
        job=replace(TRAINED, id="digits-capped", nodes=4, max_cost_usd=12.0),
        now=NOW + 9000,
        status=failed(errors.BudgetExceeded, cause, 8950),
        report={"attempts": 3, "error": errors.BudgetExceeded.__name__, "cause": cause, "ended_at": NOW + 8940},
        walks=tuple(one for one in facts.walks if one.attempt in attempts),
        ends={
            one: facts.ends[one]
            if one < 3
            else AttemptEnd(at=NOW + 8940, error=errors.BudgetExceeded.__name__, cause=cause)
            for one in attempts
        },
        reports={one: facts.reports[one] for one in attempts},
        curve=Curve(points=tuple(one for one in (facts.curve or Curve()).points if one.attempt in attempts)),
        closed=tuple(one for one in facts.closed if one.attempt in attempts),
    )


def running() -> JobFacts:
    facts = interrupted()
    reports = {2: {rank: node(rank, NOW + 3110, attempt=2, step=705 + rank, restored=380) for rank in range(4)}}
    return replace(
        facts,
        name="digits-running",
        job=replace(TRAINED, id="digits-running", nodes=4),
        now=NOW + 5400,
        status=RUNS,
        report={"attempts": 1, "error": errors.Interrupted.__name__, "cause": "rank 0 was taken back"},
        walks=facts.walks[:2],
        ends={1: facts.ends[1]},
        reports={1: facts.reports[1], **reports},
        curve=curve((1, NOW + 300, NOW + 2980, 0, 410), (2, NOW + 3400, NOW + 5390, 380, 705), points=30),
        closed=tuple(one for one in facts.closed if one.attempt == 1 or (one.attempt == 2 and one.step < 700)),
    )


def waiting() -> JobFacts:
    return JobFacts(
        name="digits-waits",
        deployment="yard",
        now=NOW + 2 * HOUR,
        status=RUNS,
        job=replace(
            TRAINED, id="digits-waits", max_wait_hours=24.0, left_out=("us-east-1: it is not one of the job's regions",)
        ),
        waiting={
            "attempt": 1,
            "state": "waits for capacity",
            "waits_since": "2027-01-15 08:00:05 UTC",
            "waits_until": "2027-01-16 08:00:05 UTC",
            "next_try_at": "2027-01-15 10:04:40 UTC",
            "tries": 31,
            "trouble": None,
        },
        walks=(walk(1, NOW + 2 * HOUR - 90, launched=False),),
    )


def refused() -> JobFacts:
    cause = (
        "The request was refused for 3 reasons; nothing was started.\n"
        "- nodes: 64 is too large; allowed: a whole number from 1 to 16\n"
        '- instance_type: "p5.48xlarge" is not allowed here; allowed: g*, c7i.*\n'
        "- gpus: there is no such field (did you mean mpus?); allowed: code, command, nodes, instance_type"
    )
    return JobFacts(
        name="digits-refused",
        deployment="yard",
        now=NOW + 30,
        status=failed(errors.InvalidRequest, cause, 9),
        job=None,
    )


def huge() -> JobFacts:
    """512 nodes, 100 attempts, 1,000 checkpoints, and long output."""
    ends, walks, parts = {}, [], []
    lost = errors.NodeLost.__name__
    for attempt in range(1, 101):
        began = NOW + 3600.0 * attempt
        walks += [walk(attempt, began - 60 * again, launched=not again) for again in (2, 1, 0)]
        ends[attempt] = AttemptEnd(at=began + 3400, error=lost, cause=f"rank {attempt}: " + "it fell silent " * 100)
        parts.append((attempt, began + 300, began + 3300, 100 * attempt - 100, 100 * attempt + 20))
    tail = tuple(f"{number}: " + "x" * 5000 for number in range(500))
    broke = Exit(code=1, error=errors.TrainingFailed.__name__, reason="r" * 5000, tail=tail)
    nodes = {
        rank: node(
            rank,
            NOW + 360_000,
            attempt=100,
            step=10_000,
            restored=9900,
            note="n" * 3000,
            exit=broke if rank % 2 else None,
        )
        for rank in range(512)
    }
    return replace(
        success(),
        name="digits-huge",
        job=replace(TRAINED, id="digits-huge", nodes=512, left_out=tuple("z" * 1000 for _ in range(500))),
        now=NOW + 400_000,
        status=failed(errors.NodeLost, "line " * 20_000 + "\n" * 5000 + "z\n" * 10_000, 363_600),
        report=None,
        walks=tuple(walks),
        ends=ends,
        reports={100: nodes},
        curve=curve(*parts, points=2),
        closed=tuple(ClosedSet(one // 10, one, 10 * one) for one in range(1000)),
        unhealthy=tuple(
            UnhealthyNode(
                attempt=one,
                rank=one,
                instance=f"i-{one}",
                region="eu-central-1",
                zone="eu-central-1a",
                instance_type="g5.xlarge",
                why="w" * 9000,
            )
            for one in range(100)
        ),
        unread=tuple("u" * 9000 for _ in range(100)),
    )
