"""The alarm about jobs near their cap: one for all jobs, in percent of each job's own max_cost_usd."""

from __future__ import annotations

from typing import Any

import pytest

from contract import metrics, names
from contract.money import NEAR_CAP_PERCENT
from tests.stacks.synth import every
from tools.synthesis import Synthesised


@pytest.fixture(scope="module")
def alarm(deployment: Synthesised) -> dict[str, Any]:
    (found,) = (
        one for _, one in every(deployment, "AWS::CloudWatch::Alarm") if one["AlarmName"] == "trainyard-cost-near-cap"
    )
    return found


def test_it_reads_what_the_attendant_writes(alarm: dict[str, Any]) -> None:
    assert (alarm["Namespace"], alarm["MetricName"]) == (names.METRICS, metrics.COST_SHARE)
    assert alarm["Dimensions"] == [{"Name": metrics.DEPLOYMENT, "Value": "trainyard"}]
    assert alarm["Unit"] == metrics.UNITS[metrics.COST_SHARE]


def test_it_begins_where_the_attendant_names_the_job(alarm: dict[str, Any]) -> None:
    assert alarm["Threshold"] == NEAR_CAP_PERCENT < 100
    assert (alarm["EvaluationPeriods"], alarm["Period"]) == (1, 300)


def test_a_deployment_without_a_job_with_a_cap_does_not_ring_it(alarm: dict[str, Any]) -> None:
    assert alarm["TreatMissingData"] == "notBreaching"
