"""Sets of a job with roles: whose files make a checkpoint, and who may leave."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent.retention import history
from agent.saver import SAVED, Saver
from contract import keys
from contract.codec import decode
from contract.commits import CheckpointSet, Part, SetPlan
from contract.jobs import Scope
from contract.keys import LAST_SET, BytesPrefix
from contract.roles import Role, RoleEnd
from tests.node.fakes import FakeS3
from tests.node.folders import BUCKET, EVERY_S, Clock, Rank, artifacts, closed, pass_time, to_boundary
from tests.node.layout_worlds import save

# Whose files make a checkpoint


def of_roles(
    root: Path,
    s3: FakeS3,
    *ends: RoleEnd,
    scope: Scope = Scope.AUTO,
    wanted: bool | None = None,
    attempt: int = 1,
) -> list[Rank]:
    """A rank of each role, whose `checkpoints` are `wanted`."""
    roles = tuple(Role(name=f"r{rank}", count=1, ends=one, checkpoints=wanted) for rank, one in enumerate(ends))
    clock, nodes = Clock(), len(ends)
    return [Rank(root, s3, rank, attempt, nodes=nodes, scope=scope, clock=clock, roles=roles) for rank in range(nodes)]


def never_began(rank: Rank) -> None:
    """What the agent does at the end where no command of the rank was started."""
    kept: Any = artifacts(rank)
    reporter: Any = SimpleNamespace(change=lambda **_: None, set_closed=lambda _: None)
    assert Saver(rank.checkpoints, kept, reporter, every_s=EVERY_S, note=rank.notes.append).finish() == SAVED


def set_of_key(key: str) -> int:
    found = keys.set_of(key)
    return found.number if found else 0


def set_of(s3: FakeS3) -> CheckpointSet:
    return decode(CheckpointSet, s3.objects[BUCKET, closed(s3)[-1]])


def test_a_role_without_checkpoints_keeps_no_set_of_shards_open(tmp_path: Path, s3: FakeS3) -> None:
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.JOB, RoleEnd.SERVED, scope=Scope.SHARDS)
    to_boundary(every, [])
    for rank in every[:2]:
        rank.save(10, **{f"shard-{rank.rank}": "x"})
    pass_time(every, EVERY_S)
    assert [bool(one) for one in set_of(s3).parts] == [True, True, False]


def test_a_role_with_checkpoints_does(tmp_path: Path, s3: FakeS3) -> None:
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.JOB, RoleEnd.SERVED, scope=Scope.SHARDS, wanted=True)
    to_boundary(every, [])
    for rank in every[:2]:
        rank.save(10, **{f"shard-{rank.rank}": "x"})
    pass_time(every, EVERY_S)
    assert closed(s3) == []


def test_an_evaluator_that_has_ended_keeps_no_later_set_open(tmp_path: Path, s3: FakeS3) -> None:
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.ALONE)
    every[1].checkpoints.finish()
    to_boundary(every, [])
    every[0].save(10, model="M")
    pass_time(every[:1], EVERY_S)
    assert (set_of(s3).step, [bool(one) for one in set_of(s3).parts]) == (10, [True, False])


def test_a_worker_that_has_ended_still_does(tmp_path: Path, s3: FakeS3) -> None:
    """Its part may be missing: what it trained is in no later set."""
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.JOB)
    every[1].checkpoints.finish()
    to_boundary(every, [])
    every[0].save(10, model="M")
    pass_time(every[:1], EVERY_S)
    assert closed(s3) == []


def test_an_evaluator_whose_command_never_began_keeps_no_set_open(tmp_path: Path, s3: FakeS3) -> None:
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.ALONE)
    never_began(every[1])
    to_boundary(every, [])
    every[0].save(10, model="M")
    pass_time(every[:1], EVERY_S)
    every[0].save(20, model="N").checkpoints.finish()
    assert sorted(set_of_key(key) for key in closed(s3)) == [1, LAST_SET]


def test_who_never_began_and_is_the_last_to_answer_closes_the_last_set(tmp_path: Path, s3: FakeS3) -> None:
    """All are ordered to stop while the server still loads its image."""
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.SERVED)
    every[0].save(20, model="N").checkpoints.finish()
    assert closed(s3) == []
    never_began(every[1])
    assert (set_of(s3).step, [bool(one) for one in set_of(s3).parts]) == (20, [True, False])


@pytest.mark.parametrize("is_restored", [False, True])
def test_a_server_that_never_began_does_not_say_that_it_has_nothing_where_s3_has_its_files(
    tmp_path: Path, s3: FakeS3, *, is_restored: bool
) -> None:
    first = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.SERVED)
    for rank in first:
        rank.write(f"shard-{rank.rank}", "x")
        rank.at(10, checkpoint=10).checkpoints.finish(ended_well=True)
    again = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.SERVED, attempt=2)
    again[0].restore()
    if is_restored:
        again[1].restore()
    never_began(again[1])
    again[0].save(20, **{"shard-0": "y"}).checkpoints.finish()
    assert len(closed(s3)) == 1


def test_a_server_that_never_began_and_has_restored_nothing_of_its_own_leaves(tmp_path: Path, s3: FakeS3) -> None:
    first = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.SERVED)
    first[0].save(10, model="M")
    for rank in first:
        rank.checkpoints.finish(ended_well=True)
    again = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.SERVED, attempt=2)
    for rank in again:
        rank.restore()
    never_began(again[1])
    again[0].save(20, model="N").checkpoints.finish()
    assert set_of(s3).step == 20


def test_a_worker_that_never_began_says_nothing(tmp_path: Path, s3: FakeS3) -> None:
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.JOB)
    every[0].save(20, model="N").checkpoints.finish()
    never_began(every[1])
    assert closed(s3) == []


# What can be spared keeps nothing open


SPARE = pytest.mark.parametrize(
    ("ends", "wanted"), [(RoleEnd.ALONE, None), (RoleEnd.ALONE, False), (RoleEnd.SERVED, False), (RoleEnd.FREELY, None)]
)


def steps_of(s3: FakeS3) -> list[int]:
    return [decode(CheckpointSet, s3.objects[BUCKET, key]).step for key in closed(s3)]


@SPARE
@pytest.mark.parametrize("scope", [Scope.AUTO, Scope.SHARDS])
@pytest.mark.parametrize("ahead", [-5, 5, None])
def test_what_an_evaluator_writes_and_names_ends_no_training(
    tmp_path: Path, s3: FakeS3, ends: RoleEnd, *, wanted: bool | None, scope: Scope, ahead: int | None
) -> None:
    """Half a minute after each save: it names a checkpoint before or after it, or none."""
    every = of_roles(tmp_path, s3, RoleEnd.JOB, ends, scope=scope, wanted=wanted)
    to_boundary(every, [])
    for number in range(1, 9):
        every[0].save(10 * number, model=str(number)).clock.now += 30.0
        every[1].write("scores", str(number))
        if ahead is not None:
            every[1].at(10 * number + ahead, checkpoint=10 * number + ahead)
        pass_time(every, EVERY_S)
    assert steps_of(s3)[-1] >= 70


def test_an_evaluator_that_names_checkpoints_opens_no_set(tmp_path: Path, s3: FakeS3) -> None:
    """What it names says nothing of what others have: they save once in many intervals."""
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.ALONE)
    to_boundary(every, [])
    every[0].save(10, model="M")
    for number in range(11, 16):
        pass_time(every, EVERY_S)
        every[1].save(number, scores=str(number))
    every[0].save(20, model="N")
    pass_time(every, 2 * EVERY_S)
    plans = [decode(SetPlan, body) for (_, key), body in s3.objects.items() if key.endswith("/plan.json")]
    assert ({plan.rank for plan in plans}, steps_of(s3)[-1]) == ({0}, 20)


@SPARE
def test_files_of_two_that_name_none_are_closed_without_those_that_can_be_spared(
    tmp_path: Path, s3: FakeS3, ends: RoleEnd, *, wanted: bool | None
) -> None:
    every = of_roles(tmp_path, s3, RoleEnd.JOB, ends, wanted=wanted)
    to_boundary(every, [])
    for number in range(1, 6):
        for rank in every:
            rank.write(f"file-{rank.rank}", str(number))
        pass_time(every, EVERY_S)
    assert [bool(one) for one in set_of(s3).parts] == [True, False]


def test_an_evaluator_that_names_a_checkpoint_late_undoes_no_closed_set(tmp_path: Path, s3: FakeS3) -> None:
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.ALONE)
    to_boundary(every, [])
    every[0].save(10, model="M")
    pass_time(every, EVERY_S)
    assert steps_of(s3) == [10]
    every[1].save(10, scores="0.5")
    pass_time(every, 30.0)
    assert history(key for _, key in s3.objects).closed == {(1, 1)}


def test_an_evaluator_whose_files_the_request_wants_in_every_set_keeps_them_open(tmp_path: Path, s3: FakeS3) -> None:
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.ALONE, scope=Scope.SHARDS, wanted=True)
    to_boundary(every, [])
    every[0].save(10, model="M")
    every[1].save(5, scores="0.5")
    pass_time(every, 3 * EVERY_S)
    assert closed(s3) == []


def test_what_an_evaluator_names_is_not_what_others_end_with(tmp_path: Path, s3: FakeS3) -> None:
    """It is stopped first; theirs is in a layout that shows which checkpoint is whole."""
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.ALONE)
    save("transformers", every[:1], 25)
    pass_time(every, 60.0)
    every[1].save(20, scores="0.5").checkpoints.finish()
    every[0].checkpoints.finish()
    assert (set_of(s3).step, bool(set_of(s3).parts[0])) == (25, True)


# The last set of a job that is done


@pytest.mark.parametrize("ends", [RoleEnd.ALONE, RoleEnd.SERVED, RoleEnd.FREELY])
def test_the_last_set_waits_for_no_node_that_is_lost_once_the_job_is_done(
    tmp_path: Path, s3: FakeS3, ends: RoleEnd
) -> None:
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.JOB, ends)
    every[0].save(300, model="final").checkpoints.finish(ended_well=True)
    assert closed(s3) == []
    every[1].checkpoints.finish(ended_well=True)
    assert (set_of(s3).step, [bool(one) for one in set_of(s3).parts]) == (300, [True, False, False])


@pytest.mark.parametrize("ended_well", [False, True])
@pytest.mark.parametrize("ends", [RoleEnd.ALONE, RoleEnd.SERVED])
def test_ranks_that_commit_nothing_are_no_part_of_a_last_set(
    tmp_path: Path, s3: FakeS3, ends: RoleEnd, *, ended_well: bool
) -> None:
    """With the scope rank0 others answer no set, whatever their role."""
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.JOB, ends, scope=Scope.RANK0)
    every[2].save(100, scores="0.5").checkpoints.finish(ended_well=True)
    every[0].save(300, model="final").checkpoints.finish(ended_well=ended_well)
    assert (set_of(s3).step, [bool(one) for one in set_of(s3).parts]) == (300, [True])


def test_a_server_that_is_the_first_rank_commits_for_all_with_the_scope_rank0(tmp_path: Path, s3: FakeS3) -> None:
    every = of_roles(tmp_path, s3, RoleEnd.SERVED, RoleEnd.JOB, scope=Scope.RANK0)
    every[1].checkpoints.finish(ended_well=True)
    every[0].save(300, model="final").checkpoints.finish()
    assert (set_of(s3).step, [bool(one) for one in set_of(s3).parts]) == (300, [True])


@pytest.mark.parametrize("is_well", [[True, False], [False, True]])
def test_the_last_set_of_a_job_that_is_not_done_waits_for_all(tmp_path: Path, s3: FakeS3, is_well: list[bool]) -> None:
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.JOB, RoleEnd.ALONE)
    every[0].save(300, model="final")
    for rank, ended_well in enumerate(is_well):
        every[rank].checkpoints.finish(ended_well=ended_well)
    assert closed(s3) == []


def test_the_last_set_waits_for_a_server_whose_files_are_in_s3(tmp_path: Path, s3: FakeS3) -> None:
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.SERVED)
    to_boundary(every)
    for rank in every:
        rank.save(10, **{f"shard-{rank.rank}": "x"})
    pass_time(every, EVERY_S)
    assert len(closed(s3)) == 1
    every[0].save(300, **{"shard-0": "final"}).checkpoints.finish(ended_well=True)
    assert len(closed(s3)) == 1
    assert '"checkpoints": false' in every[0].notes[-1]


SAYS = 'with "checkpoints": false in their role it is closed without them'


@pytest.mark.parametrize("is_half", [False, True])
def test_the_node_that_ends_last_says_what_servers_at_another_step_cost(
    tmp_path: Path, s3: FakeS3, *, is_half: bool
) -> None:
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.SERVED)
    to_boundary(every)
    for rank in every:
        rank.save(10, **{f"shard-{rank.rank}": "x"})
    pass_time(every, EVERY_S)
    every[0].save(300, **{"shard-0": "final"}).checkpoints.finish(ended_well=True)
    assert "If they are lost, or end with another step" in every[0].notes[-1]
    every[1].save(290, **{"shard-1": "y"})
    if is_half:
        every[1].clock.now += 1.0
        every[1].write("shard-1", "z")
    every[1].checkpoints.finish()
    assert set_of(s3).step == 10
    assert "without rank 1 (r1 0)" in every[1].notes[-1]
    assert SAYS in every[1].notes[-1]


def test_it_does_not_where_those_that_end_the_job_do_not_agree(tmp_path: Path, s3: FakeS3) -> None:
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.JOB, RoleEnd.SERVED)
    for rank, step in zip(every, (300, 280, 290), strict=True):
        rank.save(step, **{f"shard-{rank.rank}": "x"}).checkpoints.finish()
    assert "the newest checkpoints differ" in every[2].notes[-1]
    assert SAYS not in every[2].notes[-1]


def test_the_last_set_waits_for_no_server_whose_files_are_no_part_of_it(tmp_path: Path, s3: FakeS3) -> None:
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.SERVED, wanted=False)
    to_boundary(every)
    every[0].save(10, model="M")
    every[1].write("requests", "10")
    every[1].checkpoints.tick()
    pass_time(every, EVERY_S)
    every[0].save(300, model="final").checkpoints.finish(ended_well=True)
    assert (set_of(s3).step, [bool(one) for one in set_of(s3).parts]) == (300, [True, False])


def test_files_that_come_after_the_last_set_was_closed_are_added_to_it(tmp_path: Path, s3: FakeS3) -> None:
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.ALONE, RoleEnd.ALONE)
    every[0].save(300, model="final").checkpoints.finish(ended_well=True)
    for rank in every[1:]:
        rank.write(f"scores-{rank.rank}", "0.9")
        rank.checkpoints.finish(ended_well=True)
    assert [bool(one) for one in set_of(s3).parts] == [True, True, True]


def test_files_of_another_step_do_not_undo_a_last_set_that_is_closed(tmp_path: Path, s3: FakeS3) -> None:
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.ALONE)
    every[0].save(300, model="final").checkpoints.finish(ended_well=True)
    every[1].save(100, scores="0.5").checkpoints.finish()
    assert (set_of(s3).step, [bool(one) for one in set_of(s3).parts]) == (300, [True, False])


@pytest.mark.parametrize(
    ("ends", "wanted"), [(RoleEnd.ALONE, None), (RoleEnd.ALONE, True), (RoleEnd.SERVED, False), (RoleEnd.FREELY, True)]
)
def test_who_ended_long_ago_and_can_be_spared_keeps_no_last_set_open(
    tmp_path: Path, s3: FakeS3, ends: RoleEnd, *, wanted: bool | None
) -> None:
    every = of_roles(tmp_path, s3, RoleEnd.JOB, ends, wanted=wanted)
    every[1].save(100, scores="0.5").checkpoints.finish()
    every[0].save(300, model="final").checkpoints.finish(ended_well=True)
    assert (set_of(s3).step, [bool(one) for one in set_of(s3).parts]) == (300, [True, False])


@pytest.mark.parametrize(
    ("ends", "wanted"),
    [(RoleEnd.ALONE, None), (RoleEnd.ALONE, False), (RoleEnd.SERVED, False), (RoleEnd.FREELY, None), (RoleEnd.FREELY, True)],
)  # fmt: skip
@pytest.mark.parametrize("scope", [Scope.AUTO, Scope.SHARDS])
def test_who_ended_before_others_were_ordered_to_stop_keeps_no_last_set_of_theirs_open(
    tmp_path: Path, s3: FakeS3, ends: RoleEnd, *, wanted: bool | None, scope: Scope
) -> None:
    every = of_roles(tmp_path, s3, RoleEnd.JOB, ends, scope=scope, wanted=wanted)
    to_boundary(every, [])
    every[1].save(5, scores="0.5").checkpoints.finish(ended_well=True)
    for step in (10, 20):
        every[0].save(step, model=str(step))
        pass_time(every[:1], EVERY_S)
    every[0].save(25, model="last").checkpoints.finish()
    assert (set_of(s3).step, [bool(one) for one in set_of(s3).parts]) == (25, [True, False])


def test_an_evaluator_that_stops_at_another_step_keeps_no_last_set_open(tmp_path: Path, s3: FakeS3) -> None:
    """All are ordered to stop."""
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.ALONE)
    every[0].save(25, model="last").checkpoints.finish()
    every[1].save(20, scores="0.5").checkpoints.finish()
    assert (set_of(s3).step, [bool(one) for one in set_of(s3).parts]) == (25, [True, False])


@pytest.mark.parametrize("has_sets", [False, True])
def test_a_server_that_stops_at_another_step_does(tmp_path: Path, s3: FakeS3, *, has_sets: bool) -> None:
    """It may have half of the checkpoint: it was there when the newest one was closed."""
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.SERVED)
    to_boundary(every, [])
    for rank in every if has_sets else ():
        rank.save(10, **{f"shard-{rank.rank}": "x"})
    pass_time(every, EVERY_S)
    for rank, step in zip(every, (25, 20), strict=True):
        rank.save(step, **{f"shard-{rank.rank}": "y"}).checkpoints.finish()
    assert [set_of_key(key) for key in closed(s3)] == ([1] if has_sets else [])


def test_an_evaluator_with_half_a_file_keeps_no_last_set_open(tmp_path: Path, s3: FakeS3) -> None:
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.ALONE)
    every[1].save(100, scores="0.5").clock.now += 1.0
    every[1].write("scores", "newer than its name")
    every[1].checkpoints.finish()
    every[0].save(300, model="final").checkpoints.finish(ended_well=True)
    assert history(key for _, key in s3.objects).closed == {(1, LAST_SET)}


@pytest.mark.parametrize("wanted", [None, True])
@pytest.mark.parametrize("scope", [Scope.AUTO, Scope.SHARDS])
@pytest.mark.parametrize("ended_well", [False, True])
def test_no_set_is_closed_without_the_files_of_a_server_that_has_died(
    tmp_path: Path, s3: FakeS3, *, wanted: bool | None, scope: Scope, ended_well: bool
) -> None:
    """Until the attempt ends by that the others train on: what they save is half a checkpoint."""
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.SERVED, scope=scope, wanted=wanted)
    to_boundary(every, [])
    for rank in every:
        rank.save(10, **{f"shard-{rank.rank}": "x"})
    pass_time(every, EVERY_S)
    assert steps_of(s3) == [10]
    every[1].save(15, **{"shard-1": "y"}).checkpoints.finish(ended_well=ended_well)
    for step in (20, 30):
        every[0].save(step, **{"shard-0": str(step)})
        pass_time(every[:1], EVERY_S)
    every[0].checkpoints.finish()
    assert steps_of(s3) == [10]


def test_a_server_that_has_died_and_had_no_files_keeps_no_last_set_open(tmp_path: Path, s3: FakeS3) -> None:
    every = of_roles(tmp_path, s3, RoleEnd.JOB, RoleEnd.SERVED)
    every[1].checkpoints.finish()
    every[0].save(25, model="last").checkpoints.finish()
    assert (set_of(s3).step, [bool(one) for one in set_of(s3).parts]) == (25, [True, False])


@pytest.mark.parametrize("ends", [RoleEnd.ALONE, RoleEnd.FREELY])
def test_a_role_with_checkpoints_that_has_ended_keeps_no_set_open(tmp_path: Path, s3: FakeS3, ends: RoleEnd) -> None:
    every = of_roles(tmp_path, s3, RoleEnd.JOB, ends, scope=Scope.SHARDS, wanted=True)
    every[1].checkpoints.finish()
    for step in range(1, 6):
        to_boundary(every[:1])
        every[0].save(step * 10, model=str(step))
        pass_time(every[:1], EVERY_S)
    assert set_of(s3).step == 50


def test_who_has_left_has_nothing_of_sets_that_it_did_not_answer() -> None:
    prefix = BytesPrefix("job-1")
    keys = [prefix.part(1, 1, 0), prefix.part(1, 1, 1), prefix.part(1, 2, 0), prefix.part(1, LAST_SET, 1, "none")]
    known = history(keys)
    assert known.answered(1, 2, (1,)) == {
        1: {0: Part.FILES, 1: Part.FILES},
        2: {0: Part.FILES, 1: Part.NOTHING},
    }
    assert known.answered(1, 2) == {1: {0: Part.FILES, 1: Part.FILES}}
    assert known.answered(2, 2, (1,)) == {}
