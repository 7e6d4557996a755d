"""A search of whose end nothing tells, and whose grid Step Functions did not stop: the reaper ends it."""

from __future__ import annotations

import pytest

from localaws.testing.waiting import until
from rehearsal.search import SearchJob
from rehearsal.yard import Yard
from tests.rehearsal.mailbox import Mailbox

pytestmark = [pytest.mark.rehearsal, pytest.mark.at_length, pytest.mark.turn("looks back")]


def test_the_reaper_ends_the_round_of_a_search_that_is_over(
    yard: Yard, stopped_searches: dict[str, SearchJob], mailbox: Mailbox
) -> None:
    (round_,) = stopped_searches["unheard-search"].rounds()
    until(lambda: not round_.runs())
    assert round_.describe()["cause"] == "The search of this round is over."
    stops = [call for call in list(yard.aws.recorder.calls) if call.name == "states:StopExecution" and not call.error]
    assert {"Reaper" in call.role for call in stops if call.parameters["executionArn"] == round_.arn} == {True}
    until(lambda: not [one for one in round_.trainings() if one.runs])
    assert until(lambda: mailbox.about("ended", round_.arn))
