"""Many jobs beside each other, and one of many nodes, while a region is silent: every attempt is looked at in time."""

from __future__ import annotations

import pytest

from attendant.rounds import OVERDUE_S
from tests.builders import NOW
from tests.fakes.fleet import BATCH, NAMES, SIDE_BY_SIDE, Fleet
from tests.fakes.functions import CLOCK_S

SILENT = NAMES[1]
TICKS_S = 170.0
"""Two ticks of the clock, each with the time that its looks may take."""


@pytest.mark.at_length
def test_a_silent_region_delays_no_look_and_ends_no_job() -> None:
    """Slices of more jobs than this one are looked at by other invocations, so this is what one of them does."""
    fleet = Fleet([4] * 130, now=NOW, silent=SILENT)
    with fleet.installed():
        fleet.clock.run(TICKS_S)
        assert len(fleet.ticks) == 2
        assert max(fleet.late().values()) <= 30.0
        assert fleet.unbeaten() <= OVERDUE_S
        waits = fleet.aws.states.waits
        assert [job for job, token in fleet.tokens.items() if waits[token].error] == []
    assert fleet.problems == []
    assert len(fleet.aws.looks) == 2 * 130


def test_a_session_service_that_does_not_answer_delays_no_look_and_ends_no_job() -> None:
    fleet = Fleet([4] * 130, now=NOW)
    fleet.aws.keyless = True
    with fleet.installed():
        fleet.clock.run(TICKS_S)
        assert max(fleet.late().values()) <= 30.0
        assert fleet.unbeaten() <= OVERDUE_S
    assert len(fleet.aws.looks) == 2 * 130


@pytest.mark.at_length
def test_every_job_is_looked_at_though_the_account_runs_few_functions_at_once() -> None:
    fleet = Fleet([1] * 250, now=NOW, silent=SILENT, limit=2)
    with fleet.installed():
        fleet.clock.run(TICKS_S)
        assert max(fleet.late().values()) <= OVERDUE_S
    assert fleet.dropped == 0


def test_many_nodes_that_end_at_once_cause_few_looks() -> None:
    fleet = Fleet([512], now=NOW)
    with fleet.installed():
        fleet.ends("job-0000", after_s=10.0)
        fleet.clock.run(50.0)
        assert fleet.aws.states.waits[fleet.tokens["job-0000"]].output is not None
    assert len(fleet.aws.looks) <= 3 * 4 * SIDE_BY_SIDE
    assert fleet.aws.reports_read <= 512 * len(fleet.aws.looks) < 512 * 512 / 10
    assert BATCH < 512


def test_jobs_that_end_wait_for_nobodys_region() -> None:
    """While a region is silent, and jobs end in all of them: a verdict comes within a second of the stream's own delay."""
    fleet = Fleet([4] * 40, now=NOW, silent=SILENT, warm=20)
    with fleet.installed():
        for number, job in enumerate(fleet.jobs):
            fleet.ends(job.id, after_s=5.0 + number)
        fleet.clock.run(CLOCK_S - 1.0)
        assert fleet.ticks == []
        assert max(fleet.verdicts().values()) <= 1.0
