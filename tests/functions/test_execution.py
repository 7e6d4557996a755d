"""Whole executions on the fake: what Lambda's own troubles may cost is time, and never an instance that is left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from aws.state import State
from contract import items
from contract.items import ItemKey
from contract.keys import JobPrefix
from contract.reports import Exit
from localaws.services.dynamodb_values import write_image
from tests.builders import NODE_ROLE
from tests.fakes.faults import Mishap
from tests.fakes.state import TABLE, kept, stored_item
from tests.properties.world import Node, World

NINE_MINUTES = 540.0
"""Shorter than Terminate's patience of ten."""


@pytest.fixture
def world() -> Iterator[World]:
    """A job whose nodes train."""
    made = World()
    made.run(200)
    assert made.execution.state == "Train"
    assert len(made.living()) == 2
    yield made
    made.close()


def end(world: World, code: int = 0) -> None:
    for node in world.living():
        world.leave(node, Exit(code=code))


def run_on(world: World, minutes: int) -> None:
    for _ in range(minutes):
        world.run(60)


def test_nodes_that_end_well_end_their_job_and_are_ended(world: World) -> None:
    end(world)
    run_on(world, 2)
    assert (world.execution.state, world.ours()) == ("Done", [])


def test_a_terminate_that_is_throttled_for_nine_minutes_still_ends_every_node(world: World) -> None:
    world.execution.throttle("terminator", NINE_MINUTES)
    end(world)
    run_on(world, 8)
    assert (world.execution.state, len(world.ours())) == ("Terminate", 2)
    run_on(world, 3)
    assert (world.execution.state, world.ours()) == ("Done", [])


@pytest.mark.parametrize("nth", [1, 3, 6])
def test_a_terminate_that_is_killed_again_and_again_for_nine_minutes_still_ends_every_node(
    world: World, nth: int
) -> None:
    world.doomed["terminator"] = (world.aws.clock.now + NINE_MINUTES, nth)
    end(world, code=1)
    run_on(world, 8)
    assert world.execution.state == "Terminate"
    run_on(world, 3)
    assert (world.execution.state, world.ours()) == ("Failed", [])


def test_a_terminate_whose_answer_is_lost_is_asked_again(world: World) -> None:
    world.arm("terminator", Mishap("ec2:TerminateInstances", meanwhile=world.execution.give_up))
    end(world)
    run_on(world, 3)
    assert len([name for _, name, _ in world.functions.log if name == "terminator"]) > 1
    assert (world.execution.state, world.ours()) == ("Done", [])


def test_a_terminate_that_never_gets_through_fails_the_job_after_its_patience(world: World) -> None:
    world.execution.throttle("terminator", 3600.0)
    end(world)
    run_on(world, 12)
    assert (world.execution.state, len(world.ours())) == ("Failed", 2)


def test_a_launch_that_is_throttled_for_four_minutes_is_made_all_the_same() -> None:
    world = World()
    world.execution.throttle("launcher", 240.0)
    run_on(world, 8)
    assert world.execution.state == "Train"
    world.close()


def test_a_launcher_that_is_killed_until_the_machine_gives_up_leaves_nothing() -> None:
    world = World()
    world.doomed["launcher"] = (world.aws.clock.now + 3600.0, 5)
    run_on(world, 60)
    assert (world.execution.state, world.ours()) == ("Failed", [])
    world.close()


def test_an_attendant_that_does_not_get_through_for_half_an_hour_fails_no_job(world: World) -> None:
    world.execution.throttle("attendant", 1800.0)
    world.attendant_dead = True
    run_on(world, 31)
    world.attendant_dead = False
    assert world.execution.state == "Train"
    end(world)
    run_on(world, 4)
    assert (world.execution.state, world.ours()) == ("Done", [])


def test_minutes_without_s3_for_everybody_cost_no_attempt(world: World) -> None:
    """Nobody looks and nobody can report; the first look comes before the first report."""
    world.attendant_dead = True
    for node in world.living():
        node.silent = True
    world.run(900)
    world.attendant_dead = False
    world.tick()
    assert world.execution.state == "Train"
    for node in world.living():
        node.silent = False
    run_on(world, 6)
    assert (world.execution.state, world.execution.attempt) == ("Train", 1)


def test_a_node_that_stays_silent_after_minutes_without_s3_is_lost(world: World) -> None:
    world.attendant_dead = True
    world.living()[1].silent = True
    world.run(900)
    world.attendant_dead = False
    run_on(world, 6)
    assert world.execution.attempt == 2


def test_peers_that_die_of_a_lost_node_cost_an_attempt_and_the_report_keeps_why(world: World) -> None:
    first, second = world.living()
    world.break_down(second.machine)
    world.leave(first, Exit(code=1, tail=("RuntimeError: Connection reset by peer",)))
    run_on(world, 5)
    assert (world.execution.state, world.execution.attempt) == ("Train", 2)
    end(world)
    run_on(world, 5)
    assert world.execution.state == "Done"
    written = world.aws.s3.read(world.job.home_bucket, JobPrefix(world.job.id).result)
    assert written is not None
    report = json.loads(written)
    assert report["error"] is None
    (recovered,) = report["recovered"]
    assert (recovered["attempt"], recovered["error"]) == (1, "NodeLost")
    assert "rank 1" in recovered["cause"]
    assert "Rank 0 exited with code 1 after it." in recovered["cause"]
    assert "\n  rank 0: RuntimeError: Connection reset by peer" in recovered["cause"]


def error_of(world: World, *nodes: Node) -> dict[str, Any]:
    """What the table's stream tells of these nodes' reports."""
    written = [stored_item(world.aws, items.node_report(NODE_ROLE, node.machine.id)) for node in nodes]
    images = [write_image(one) for one in written if one]
    changes = [{"Keys": {name: one[name] for name in (items.PARTITION, items.SORT)}, "NewImage": one} for one in images]
    return {"Records": [{"eventSource": "aws:dynamodb", "dynamodb": one} for one in changes]}


def handed_over(world: World) -> list[dict[str, Any]]:
    """What the attendant asked of invocations of its own."""
    return [json.loads(call.params["Payload"]) for call in world.aws.calls if call.name == "lambda:Invoke"]


def test_an_error_is_waited_for_by_an_invocation_of_its_own_until_the_others_were_heard(world: World) -> None:
    """It leaves the verdict neither to the clock, which looks up to a minute later, nor holds up the stream, behind which others wait."""
    first, second = world.living()
    world.attendant_dead = True
    since = world.aws.clock.now
    world.leave(second, Exit(code=3))
    outcome = world.invoke("attendant", error_of(world, second))
    assert outcome.value == {"await": 1}
    assert world.aws.clock.now - since < world.job.timing.report_every_s / 2
    (asked,) = handed_over(world)
    world.aws.clock.at(since + 20, lambda: world.report(first))
    assert world.invoke("attendant", asked).value == {"fail": 1}
    assert 20 < world.aws.clock.now - since < 35


def test_of_many_errors_at_once_one_invocation_waits_for_the_others_to_be_heard(world: World) -> None:
    """A thousand nodes that die of one host wake looks; those that each waited would read millions of reports."""
    first, second = world.living()
    second.silent = True
    world.leave(first, Exit(code=1))
    for _ in range(3):
        world.invoke("attendant", error_of(world, second))
    assert handed_over(world) == []
    world.invoke("attendant", error_of(world, *[first] * 3))
    assert handed_over(world) == [{"action": "await", "job": world.job.id}]


@pytest.mark.parametrize(
    "image", [None, {}, {"doc": {"S": "{"}}, {"doc": {"B": "no base64!"}}, {"doc": {"B": "eJw="}}, {"doc": None}]
)
def test_a_record_of_the_stream_that_says_nothing_wakes_nobody_and_keeps_no_other_from_it(
    world: World, image: dict[str, Any] | None
) -> None:
    first, _ = world.living()
    world.attendant_dead = True
    world.leave(first, Exit(code=1))
    strange = {"dynamodb": {} if image is None else {"NewImage": image}}
    event = error_of(world, first)
    outcome = world.invoke("attendant", {"Records": [strange, *event["Records"], strange]})
    assert (outcome.error, outcome.value) == ("", {"await": 1})


@pytest.mark.parametrize(
    ("forgotten", "state"),
    [(("launch#", "waiting", "closed#"), "Train"), (("job#", "launch#", "waiting", "closed#"), "Failed")],
    ids=["before the launch", "before the admission"],
)
def test_a_table_restored_to_a_time_before_it_knew_of_them_leaves_no_machine_running(
    world: World, forgotten: tuple[str, ...], state: str
) -> None:
    before = [node.machine for node in world.living()]
    for one in kept(world.aws):
        if one[items.PARTITION]["S"].startswith(forgotten):
            State(TABLE).delete(ItemKey(one[items.PARTITION]["S"], one[items.SORT]["S"]))
    run_on(world, 30)
    assert world.execution.state == state
    assert [one.id for one in world.ours() if one in before] == []
