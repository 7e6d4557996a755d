"""Whether a rehearsed job is what was asked for: the world that its trainer saw, for a launcher and without one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rehearsal.summary import Summary, shortcomings

WELL = Summary(
    status="SUCCEEDED",
    job="digits",
    attempts=1,
    world_size=2,
    metric=0.95,
    artifacts=[f"jobs/digits/artifacts/rank-000{rank}/summary.json" for rank in (0, 1)],
    log_streams=["digits/1/0", "digits/1/1"],
    instances_left=0,
    state_path=["Done"],
    transitions=9,
    history_events=30,
    overhead_s=1.0,
    wall_s=2.0,
    execution_s=1.0,
    boot_s=0.5,
    import_s=None,
)
WORLDS = [(2, 0), (4, 0), (8, 4), (2, 1)]
"""Of two nodes, with as many processes a node as the launcher starts; 0 without one."""
WRONG = [(1, 0), (3, 0), (2, 4), (4, 4), (4, 1)]


@pytest.mark.parametrize(("world", "processes"), WORLDS)
def test_the_world_of_all_processes_is_the_one_that_was_asked_for(world: int, processes: int) -> None:
    summary = replace(WELL, world_size=world, processes_per_node=processes)
    assert shortcomings(summary, nodes=2, metric_at_least=0.9) == []


@pytest.mark.parametrize(("world", "processes"), WRONG)
def test_another_world_is_named_with_what_was_expected(world: int, processes: int) -> None:
    summary = replace(WELL, world_size=world, processes_per_node=processes)
    (line,) = shortcomings(summary, nodes=2, metric_at_least=None)
    wanted = str(2 * processes) if processes else "2, or a multiple of it"
    assert line == f"the trainer saw a world of {world}; expected: {wanted}"


def test_a_trainer_that_tells_no_world_is_no_fault_without_a_wanted_metric() -> None:
    assert shortcomings(replace(WELL, world_size=0), nodes=2, metric_at_least=None) == []


def test_a_trainer_that_tells_no_world_is_a_fault_beside_a_wanted_metric() -> None:
    summary = replace(WELL, world_size=0, processes_per_node=2)
    assert shortcomings(summary, nodes=2, metric_at_least=0.9) == ["the trainer reported no world of 4"]
