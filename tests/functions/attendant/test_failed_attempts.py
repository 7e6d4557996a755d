"""The attendant's log says with which error an attempt fails, in one line; the execution's cause has the whole story."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from attendant import acting
from contract.reports import Exit, Phase
from tests.builders import NOW
from tests.fakes import state
from tests.fakes.fleet import WORKING, Fleet

FAILS = "an attempt fails"


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the attendant logs of answers to Train at the level INFO."""
    found = list[dict[str, Any]]()
    monkeypatch.setattr(acting.logger, "info", lambda message, **more: found.append({"message": message, **more}))
    return found


def end(code: int) -> Fleet:
    """The only node of a job reports its end, and the clock wakes the attendant."""
    fleet = Fleet([1], now=NOW)
    with fleet.functions.installed():
        (instance,) = fleet.instances["job-0000"]
        report = replace(WORKING, job="job-0000", instance=instance, phase=Phase.ENDED, exit=Exit(code=code))
        state.report(fleet.aws, report)
        fleet.functions.invoke("attendant", {"source": "aws.events"})
    return fleet


def test_an_attempt_that_fails_has_a_line_with_its_job_and_its_error(lines: list[dict[str, Any]]) -> None:
    fleet = end(3)
    answer = fleet.aws.states.waits[fleet.tokens["job-0000"]].error
    assert answer is not None
    (line,) = [one for one in lines if one["message"] == FAILS]
    assert (line["job"], line["attempt"], line["error"], line["reason"]) == ("job-0000", 1, *answer)


def test_an_attempt_that_succeeds_has_none(lines: list[dict[str, Any]]) -> None:
    end(0)
    assert [one for one in lines if one["message"] == FAILS] == []
