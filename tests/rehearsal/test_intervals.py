"""A rehearsal divides the interval of checkpoints like every duration, and says which faults may come before the first checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rehearsal.deployment import ROOT
from rehearsal.faults import parse_faults
from rehearsal.intervals import LEAST_MINUTES, describe_interval, divide_interval, list_early
from rehearsal.job_command import arguments

EXAMPLE = ROOT / "examples" / "ddp_digits"


def write(folder: Path, **fields: object) -> str:
    """Writes a request of the example with these fields; returns its file."""
    request: dict[str, Any] = json.loads((EXAMPLE / "spot.json").read_text())
    del request["checkpoint_minutes"]
    file = folder / "mine.json"
    file.write_text(json.dumps(request | fields))
    return str(file)


@pytest.mark.parametrize(
    ("fields", "speed", "minutes"),
    [({"checkpoint_minutes": 1}, "10", 0.1), ({}, "10", 1.0), ({"checkpoint_minutes": 5}, "1", 5.0)],
    ids=["the request's", "the default", "at the pace of an account"],
)
@pytest.mark.usefixtures("checked_here")
def test_the_job_that_is_started_has_the_interval_of_the_rehearsal(
    tmp_path: Path, fields: dict[str, object], speed: str, minutes: float
) -> None:
    found = arguments(["--job", write(tmp_path, **fields), "--code", str(EXAMPLE), f"--speed={speed}"])
    assert found.request["checkpoint_minutes"] == pytest.approx(minutes)


@pytest.mark.parametrize("speed", ["10", "0.5"])
@pytest.mark.usefixtures("checked_here")
def test_an_interval_that_an_account_refuses_is_refused_whatever_it_is_divided_by(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], speed: str
) -> None:
    file = write(tmp_path, checkpoint_minutes=720, max_hours=24)
    with pytest.raises(SystemExit):
        arguments(["--job", file, "--code", str(EXAMPLE), f"--speed={speed}"])
    assert "checkpoint_minutes: a job of 24 h on spot that commits every 720 min" in capsys.readouterr().err


@pytest.mark.parametrize("minutes", [0.01, LEAST_MINUTES, 0.05, 10, 1440])
@pytest.mark.parametrize("speed", [0.001, 0.5, 1, 10, 1e6])
def test_a_division_never_lengthens_an_interval_and_leaves_time_for_a_file_to_rest(
    minutes: float, speed: float
) -> None:
    divided = divide_interval(minutes, speed)
    assert min(minutes, LEAST_MINUTES) <= divided <= minutes
    assert minutes <= LEAST_MINUTES or speed <= 1 or divided < minutes


def test_both_intervals_are_told() -> None:
    assert describe_interval(1, 0.1).startswith("checkpoints are due every 6 s of the rehearsal")
    assert "of the request is 1 (60 s)" in describe_interval(1, 0.1)
    assert "divided" not in describe_interval(1, 1)


@pytest.mark.parametrize(
    "fault",
    [
        "spot-kill:rank=0,step=100",
        "node-lost",
        "node-lost:step=0",
        "agent-crash",
        "freeze:at=20",
        "no-network:at=training",
    ],
)
def test_a_fault_that_may_come_before_the_first_checkpoint_says_how_it_waits_for_one(fault: str) -> None:
    (line,) = list_early(parse_faults([fault]))
    assert line.startswith(fault.partition(":")[0])
    assert "closed=0" in line


@pytest.mark.parametrize(
    "fault",
    [
        "spot-kill:closed=0",
        "spot-kill:step=100,closed=80",
        "spot-notice",
        "spot-rebalance:step=3",
        "no-network",
        "freeze:at=preparing",
        "slow-boot",
        "events-dropped",
        "spot-price-moves",
    ],
)
def test_nothing_is_said_of_a_fault_that_waits_for_a_checkpoint_lets_one_be_made_or_comes_before_the_training(
    fault: str,
) -> None:
    assert list_early(parse_faults([fault])) == []
