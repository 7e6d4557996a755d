"""How old a job's newest checkpoint is: counted from its nodes' words alone, for jobs that train, however late or often somebody looks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from attendant.ages import OLD, SLOW, CheckpointAge, checkpoint_age, figures, warnings
from attendant.facts import AttemptFacts
from attendant.policy import Action, judge
from attendant.rounds import AGAIN_S
from aws.facts import Seen
from aws.heard import heard as heard_of
from contract import metrics
from contract.codec import compact, decode
from contract.environments import CheckpointLimits
from contract.orders import Order, OrderKind
from contract.reports import Exit, NodeReport, Phase
from contract.workbench import Workbench
from tests.builders import JOB, NOW
from tests.functions.attendant.attempts import FOUR, GIVEN, IDS, TRAINING, heard

LIMITS = CheckpointLimits(oldest=3.0, longest_commit=1.0)
EVERY_S = JOB.checkpoint_minutes * 60
HOURS = NOW + 4 * 3600
AGE = CheckpointAge(job="job-1", attempt=1, every_s=EVERY_S, age_s=100.0, step=120, commit_s=20.0)


def nodes(*fields: dict[str, Any]) -> AttemptFacts:
    """An attempt in which each rank reports these, five seconds ago."""
    return replace(TRAINING, nodes={rank: heard(rank, **one) for rank, one in enumerate(fields)})


def age(facts: AttemptFacts, now: float = HOURS) -> CheckpointAge:
    found = checkpoint_age(facts, now=now)
    assert found is not None
    return found


# Which attempts are counted


def test_a_workbench_is_not_counted_because_a_person_saves_when_they_like() -> None:
    facts = nodes({"phase_s": 9000.0}, {"phase_s": 9000.0})
    bench = replace(facts, job=replace(facts.job, workbench=Workbench(idle_minutes=60)))
    assert checkpoint_age(facts, now=HOURS) is not None
    assert checkpoint_age(bench, now=HOURS) is None


def test_a_job_that_has_just_begun_is_as_old_as_its_training() -> None:
    found = age(nodes({"phase_s": 10.0}, {"phase_s": 12.0}))
    assert (found.age_s, found.step, found.commit_s) == (15.0, -1, 0.0)


def test_a_job_that_saves_nothing_is_counted_from_the_node_that_began_last() -> None:
    assert age(nodes({"phase_s": 9000.0}, {"phase_s": 7000.0})).age_s == 7005.0


@pytest.mark.parametrize("phase", [one for one in Phase if one is not Phase.TRAINING])
def test_an_attempt_with_a_node_that_does_not_train_is_not_counted(phase: Phase) -> None:
    """A recovery restores, prepares and waits; a job that ended saves."""
    assert checkpoint_age(nodes({"closed_step": 5, "closed_s": 9000.0}, {"phase": phase}), now=HOURS) is None


def test_an_attempt_in_which_a_node_has_not_reported_is_not_counted() -> None:
    assert checkpoint_age(replace(TRAINING, nodes={0: heard(0, phase_s=9000.0)}), now=HOURS) is None


def test_an_attempt_in_which_nobody_has_reported_is_not_counted() -> None:
    assert checkpoint_age(replace(TRAINING, nodes={}), now=HOURS) is None


def test_an_attempt_that_was_ordered_to_stop_is_not_counted() -> None:
    facts = nodes({"phase_s": 9000.0}, {"phase_s": 9000.0})
    assert checkpoint_age(replace(facts, order=GIVEN), now=HOURS) is None


def test_an_attempt_in_which_a_node_orders_itself_to_stop_is_not_counted() -> None:
    own = Order(kind=OrderKind.CHECKPOINT_AND_STOP, error="Interrupted", reason="spot", by=0, author="rank 1")
    assert checkpoint_age(nodes({}, {"order": own}), now=HOURS) is None


def test_an_attempt_whose_command_has_failed_is_not_counted() -> None:
    assert checkpoint_age(nodes({}, {"outcome": Exit(code=1, error="TrainingFailed")}), now=HOURS) is None


def test_a_verdict_that_ends_the_attempt_has_no_age() -> None:
    facts = nodes({"phase": Phase.ENDED, "exit": Exit(code=0)}, {"phase": Phase.ENDED, "exit": Exit(code=0)})
    verdict = judge(facts, now=NOW + 60)
    assert (verdict.action, verdict.checkpoint) == (Action.SUCCEED, None)


def test_a_heartbeat_of_an_attempt_that_trains_has_the_age() -> None:
    verdict = judge(nodes({"phase_s": 30.0}, {"phase_s": 30.0}), now=NOW + 60)
    assert verdict.action is Action.HEARTBEAT
    assert verdict.checkpoint is not None
    assert verdict.checkpoint.age_s == 35.0


def test_the_report_of_an_old_attempt_is_not_heard() -> None:
    """A node that reports for attempt 1 says nothing of attempt 2, however new its set."""
    old = NodeReport(
        job="job-1", attempt=1, rank=0, instance="i-0", phase=Phase.TRAINING, sent_at=NOW, closed_step=900, closed_s=1.0
    )
    assert heard_of([Seen(instance="i-0", report=old, age_s=1.0)], job="job-1", attempt=2, ids=IDS) == {}


# From when on


def test_the_age_is_what_the_node_measured_and_what_its_report_is_old() -> None:
    found = age(nodes({"closed_step": 120, "closed_s": 300.0}, {"closed_step": 120, "closed_s": 290.0}))
    assert (found.age_s, found.step, found.age_percent) == (305.0, 120, pytest.approx(50.8, abs=0.1))


def test_a_node_that_learns_of_the_newest_set_later_makes_it_no_younger() -> None:
    assert age(nodes({"closed_step": 120, "closed_s": 900.0}, {"closed_step": 120, "closed_s": 2.0})).age_s == 905.0


def test_a_node_that_knows_only_an_older_set_makes_the_newest_no_older_and_no_younger() -> None:
    assert age(nodes({"closed_step": 120, "closed_s": 40.0}, {"closed_step": 60, "closed_s": 900.0})).age_s == 45.0
    assert age(nodes({"closed_step": 120, "closed_s": 40.0}, {"closed_step": 60, "closed_s": 1.0})).age_s == 45.0


def test_where_rank_0_alone_saves_the_other_ranks_know_no_set_and_do_not_count() -> None:
    found = age(replace(FOUR, nodes={**FOUR.nodes, 0: heard(0, closed_step=7, closed_s=60.0)}))
    assert (found.age_s, found.step) == (65.0, 7)


def test_a_set_without_a_step_is_a_set() -> None:
    assert age(nodes({"closed_step": 0, "closed_s": 60.0}, {"phase_s": 9000.0})).age_s == 65.0


def test_training_that_went_on_long_before_the_newest_set_does_not_count() -> None:
    assert age(nodes({"phase_s": 9000.0, "closed_step": 5, "closed_s": 1.0}, {"phase_s": 9000.0})).age_s == 6.0


@pytest.mark.parametrize("moved_s", [-86_400.0, -3600.0, 3600.0, 1e9])
def test_a_node_whose_clock_jumps_changes_nothing(moved_s: float) -> None:
    fields = {"closed_step": 5, "closed_s": 300.0, "timeline": {"started": NOW}}
    right = age(nodes(fields, fields))
    wrong = {**fields, "sent_at": NOW + moved_s, "timeline": {"started": NOW + moved_s}}
    assert age(nodes(wrong, wrong)) == right


def test_a_second_look_at_the_same_reports_sees_the_same_and_a_late_one_what_has_passed() -> None:
    reports = nodes({"closed_step": 5, "closed_s": 300.0}, {})
    assert age(reports) == age(reports)
    late = replace(reports, nodes={rank: replace(one, age_s=one.age_s + 600) for rank, one in reports.nodes.items()})
    assert age(late).age_s == age(reports).age_s + 600


@pytest.mark.parametrize("told_s", [1e300, 4 * 3600.0])
def test_no_node_makes_its_set_older_than_the_attempt(told_s: float) -> None:
    """A value that CloudWatch rejects would take those of all jobs with it."""
    found = age(nodes({"closed_step": 5, "closed_s": told_s, "commit_s": told_s}, {}), now=NOW + 100)
    assert (found.age_s, found.commit_s) == (100.0, 100.0)


def test_no_node_makes_its_set_younger_than_nothing() -> None:
    found = age(nodes({"closed_step": 5, "closed_s": -1e300, "commit_s": -5.0}, {"commit_s": -1e300}))
    assert (found.age_s, found.commit_s) == (0.0, 0.0)


# Agents of the version before


def test_the_report_of_an_agent_that_measures_nothing_is_read_as_before() -> None:
    new = NodeReport(job="j", attempt=1, rank=0, instance="i-0", phase=Phase.TRAINING, sent_at=NOW, closed_step=40)
    assert b'"closed_s"' not in compact(new)
    assert decode(NodeReport, compact(new)) == new
    assert new.closed_s is None


def test_an_agent_that_measures_nothing_is_not_taken_for_one_whose_set_is_new_or_old() -> None:
    assert checkpoint_age(nodes({"closed_step": 40}, {"closed_step": 40}), now=HOURS) is None


def test_of_such_an_agent_the_time_before_its_first_set_is_known() -> None:
    assert age(nodes({"phase_s": 9000.0}, {"phase_s": 9000.0})).age_s == 9005.0


# Metrics


def test_where_nothing_trains_there_is_no_value() -> None:
    assert figures([]) == {}


def test_of_all_jobs_the_worst_is_counted_by_its_own_interval() -> None:
    slow = replace(AGE, every_s=3600.0, age_s=3600.0, commit_s=30.0)
    assert figures([AGE, replace(AGE, age_s=1200.0), slow]) == {
        metrics.CHECKPOINT_AGE: 200.0,
        metrics.COMMIT_SECONDS: 30.0,
        metrics.COMMIT_SHARE: pytest.approx(20 / 6),
    }


# Lines for people


def looks(*ages_s: float, every_s: float = EVERY_S, pause_s: float = 60.0) -> list[float]:
    """The ages at which OLD is told, where a pass comes each minute."""
    told = [(one, warnings(replace(AGE, age_s=one, every_s=every_s), LIMITS, (pause_s,))) for one in ages_s]
    return [one for one, warns in told if OLD in warns]


def test_a_checkpoint_that_becomes_too_old_is_told_once_and_then_once_in_a_while() -> None:
    minutes = [float(one) for one in range(0, 6000, 60)]
    first, *further = looks(*[one + 7 for one in minutes])
    assert 3 * EVERY_S < first <= 3 * EVERY_S + 60
    assert all(abs(one - 3 * EVERY_S - n * AGAIN_S) <= 65 for n, one in enumerate(further, 1))
    assert len(further) == 4


@pytest.mark.parametrize("age_s", [0.0, 599.0, 3 * EVERY_S - 1, 3 * EVERY_S])
def test_a_checkpoint_that_is_not_too_old_is_not_told(age_s: float) -> None:
    assert looks(age_s) == []


def test_it_is_not_told_at_each_look() -> None:
    assert looks(*[3 * EVERY_S + 120.0 + 60 * n for n in range(10)]) == []


def test_a_long_interval_is_told_once_an_interval() -> None:
    hour = 3600.0
    told = looks(*[60.0 * n + 7 for n in range(60 * 6)], every_s=hour)
    assert [round(one / hour, 1) for one in told] == [3.0, 4.0, 5.0]


def test_a_look_that_comes_after_a_long_pause_tells_what_those_before_missed() -> None:
    assert looks(3 * EVERY_S + 500.0, pause_s=1200.0) == [3 * EVERY_S + 500.0]


def test_the_first_look_of_a_deployment_tells() -> None:
    assert OLD in warnings(replace(AGE, age_s=9000.0), LIMITS, ())


def test_ages_that_are_a_second_off_leave_no_line_out() -> None:
    assert looks(3 * EVERY_S - 0.5, 3 * EVERY_S + 61.0) == [3 * EVERY_S + 61.0]


def test_a_slow_commit_is_told_when_its_set_is_closed_and_not_at_the_looks_after() -> None:
    slow = replace(AGE, commit_s=EVERY_S + 1)
    assert warnings(replace(slow, age_s=30.0), LIMITS, (60.0,)) == [SLOW]
    assert warnings(replace(slow, age_s=90.0), LIMITS, (60.0,)) == []


@pytest.mark.parametrize("commit_s", [0.0, 10.0, EVERY_S])
def test_a_commit_within_the_interval_is_not_told(commit_s: float) -> None:
    assert warnings(replace(AGE, age_s=30.0, commit_s=commit_s), LIMITS, (60.0,)) == []
