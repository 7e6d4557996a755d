"""What Step Functions is told of a task: a job's own output must never make the telling fail."""

from __future__ import annotations

from types import SimpleNamespace
from unittest import mock

import pytest

import aws.states
from aws.states import failure

MOST = 32_768
"""Of a cause, whatever Step Functions counts."""


@pytest.mark.parametrize("letter", ["x", "\u00e9", "\u4e2d", "\U0001f600"])
def test_a_cause_is_short_enough_however_step_functions_counts_its_letters(letter: str) -> None:
    told = mock.Mock()
    with mock.patch.object(aws.states, "client", return_value=SimpleNamespace(send_task_failure=told)):
        assert failure("a token", "TrainingFailed", "." + letter * 40_000)
    cause = told.call_args.kwargs["cause"]
    assert len(cause.encode()) <= MOST
    assert cause.startswith("." + letter * 7_000)
    assert set(cause[1:]) == {letter}
