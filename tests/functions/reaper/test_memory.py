"""The reaper's faults that have to do with its memory and its words: marks, the list of regions, messages, prices."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from aws.state import State
from contract import items, metrics
from contract.items import ItemKey
from tests.builders import PLACE
from tests.fakes.faults import Kind, Mishap
from tests.fakes.reaping import HOUR, alive, put
from tests.fakes.state import TABLE, kept, store
from tests.functions.reaper.reaped import PASSING, Yard, counted, reaped


@pytest.fixture
def yard() -> Iterator[Yard]:
    with reaped() as one:
        yield one


# Marks


def test_two_passes_at_once_end_what_one_would(yard: Yard) -> None:
    """The second one runs whole within the first one, at each of its calls."""
    machines = [yard.instance() for _ in range(12)]
    yard.over()
    yard.run()
    yard.fake.clock.run(300)
    yard.reaping.run(mishaps=[Mishap("dynamodb:PutItem", meanwhile=yard.run_beside)])
    assert [alive(one) for one in machines].count(False) == 5, "the limit holds for both together"


@pytest.mark.parametrize("nth", range(1, 20))
def test_two_passes_at_once_stay_within_the_limit_wherever_they_meet(yard: Yard, nth: int) -> None:
    machines = [yard.instance() for _ in range(12)]
    yard.over()
    yard.run()
    yard.fake.clock.run(300)
    yard.reaping.run(mishaps=[Mishap("*", nth=nth, meanwhile=yard.run_beside)])
    assert [alive(one) for one in machines].count(False) == 5


def test_what_a_pass_of_a_moment_ago_ended_counts_though_this_one_does_not_look_for_its_kind(yard: Yard) -> None:
    """Untagged instances are looked for every half hour only."""
    untagged = [put(yard.ec2, {}, launched_at=yard.now - 110 * HOUR) for _ in range(4)]
    yard.run()
    machines = [yard.instance() for _ in range(6)]
    yard.over()
    yard.fake.clock.run(1500)
    yard.reaping.run()
    yard.reaping.later()
    assert [alive(one) for one in untagged + machines].count(False) == 5
    yard.reaping.run()
    assert [alive(one) for one in untagged + machines].count(False) == 5


def test_a_pass_that_loses_the_race_for_the_marks_ends_nothing_before_its_deadline(yard: Yard) -> None:
    over = yard.instance()
    yard.over()
    yard.run()
    late = yard.instance(deadline=-HOUR)
    yard.fake.clock.run(300)

    def others_write() -> None:
        store(yard.fake, items.marks(PLACE.region), b'{"written_by": "another pass"}')

    yard.reaping.run(mishaps=[Mishap("dynamodb:PutItem", meanwhile=others_write)])
    assert alive(over)
    assert not alive(late)
    assert yard.marks() == {}, "the marks are left to the other pass"


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"sections": 3}', b'{"sections": {"instances": {"reported": []}}}']
)
def test_marks_that_cannot_be_read_are_no_marks_and_are_written_anew(yard: Yard, body: bytes) -> None:
    over, late = yard.instance(), yard.instance(deadline=-HOUR)
    yard.over()
    yard.run()
    store(yard.fake, items.marks(PLACE.region), body)
    yard.reaping.later()
    assert not alive(late)
    assert alive(over), "this was a first look again"
    yard.reaping.later()
    assert not alive(over)


@pytest.mark.parametrize("operation", ["GetItem", "PutItem"])
@pytest.mark.parametrize("kind", PASSING)
def test_without_marks_deadlines_hold_and_nothing_else_ends(yard: Yard, operation: str, kind: Kind) -> None:
    over = yard.instance()
    yard.over()
    yard.run()
    late = yard.instance(deadline=-HOUR)
    yard.fake.faults.add(kind, f"dynamodb:{operation}", times=100)
    outcome = yard.reaping.later()
    yard.fake.faults.waiting.clear()
    assert not alive(late)
    if (operation, kind) != ("PutItem", Kind.LOST):  # whose effect the next look finds
        assert outcome.error == "Unfinished"
        assert counted(yard, metrics.FAILED_REGIONS) >= 1
        assert alive(over)


def test_without_the_list_of_regions_those_of_the_settings_are_looked_at(yard: Yard) -> None:
    late = yard.instance(deadline=-HOUR)
    yard.fake.faults.add(Kind.DENIED, "dynamodb:Query")
    outcome = yard.run()
    assert "the list of regions" in outcome.cause
    assert not alive(late)


def test_a_region_that_does_not_exist_fails_and_the_others_do_not(yard: Yard) -> None:
    for name in ("mars-north-1", "not a region"):
        store(yard.fake, items.region(name), b"{}")
    late = yard.instance(deadline=-HOUR)
    assert yard.run().error == "Unfinished"
    assert not alive(late)


# Words


@pytest.mark.parametrize("kind", PASSING)
def test_a_message_that_cannot_be_sent_stops_no_kill_and_shows_as_an_error(yard: Yard, kind: Kind) -> None:
    late = yard.instance(deadline=-HOUR)
    yard.fake.faults.add(kind, "sns:Publish", times=100)
    assert yard.run().error != ""
    assert not alive(late)
    assert counted(yard, metrics.ENDED) == 1


@pytest.mark.parametrize("kind", PASSING)
def test_a_price_list_that_does_not_answer_stops_no_message(yard: Yard, kind: Kind) -> None:
    yard.instance(deadline=-HOUR)
    yard.fake.faults.add(kind, "pricing:GetProducts", times=100)
    assert yard.run().error == ""
    assert "at an unknown price" in yard.fake.topics.messages[0][1]


def test_a_table_restored_to_a_time_before_all_marks_and_launches_loses_no_machine(yard: Yard) -> None:
    over, late = yard.instance(), yard.instance(deadline=HOUR)
    yard.over()
    yard.run()
    for one in kept(yard.fake):
        State(TABLE).delete(ItemKey(one[items.PARTITION]["S"], one[items.SORT]["S"]))
    yard.reaping.later()
    assert alive(over), "this was a first look again"
    yard.reaping.later()
    assert not alive(over)
    yard.fake.clock.run(HOUR)
    yard.reaping.later()
    assert not alive(late)
