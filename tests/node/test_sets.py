"""Several ranks and their sets: each is of one checkpoint, or it is not closed."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.sets.answering import LAG_S
from agent.sets.closing import NeverWhole
from agent.sets.outcomes import FEW
from contract.codec import decode, encode
from contract.commits import CheckpointSet, Commit, CommittedFile, Part, SetPlan
from contract.jobs import Scope
from contract.keys import BytesPrefix
from tests.node.fakes import FakeS3, refusal
from tests.node.folders import (
    BUCKET,
    EVERY_S,
    Rank,
    closed,
    pass_time,
    ranks,
    restored,
    to_boundary,
)


def test_ranks_that_name_their_checkpoints_commit_the_same_one(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    for step in range(0, 1500, 15):
        for rank in every:
            rank.save(step, **{f"shard-{rank.rank}": f"{rank.rank} of {step}"})
            pass_time(every, 7 if rank.rank == 0 else 8)
    sets = [decode(CheckpointSet, s3.objects[BUCKET, key]) for key in closed(s3)]
    assert len(sets) == 2
    again = restored(tmp_path, s3, 2)
    newest = max(one.step for one in sets)
    assert again[0].content == again[1].content == {"shard-0": f"0 of {newest}", "shard-1": f"1 of {newest}"}


def test_a_checkpoint_that_one_rank_names_before_the_boundary_and_another_after_it_is_committed(
    tmp_path: Path, s3: FakeS3
) -> None:
    every = ranks(tmp_path, s3, 2)
    to_boundary(every)
    every[0].clock.now -= 1.0
    every[0].save(10, a="0")
    pass_time(every, 2)
    every[1].save(10, b="1")
    pass_time(every, 10)
    assert [decode(CheckpointSet, s3.objects[BUCKET, key]).step for key in closed(s3)] == [10]


def test_files_of_rank_0_alone_are_a_set_once_the_others_say_that_they_have_none(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 4)
    to_boundary(every, [])
    every[0].save(10, model="M")
    pass_time(every, EVERY_S / 2 + LAG_S / 2)
    assert closed(s3) == []
    pass_time(every, LAG_S + 15)
    (key,) = closed(s3)
    assert [bool(part) for part in decode(CheckpointSet, s3.objects[BUCKET, key]).parts] == [True, False, False, False]


def test_a_rank_that_is_slow_with_its_first_files_is_not_taken_for_one_without_any(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    to_boundary(every, [])
    every[0].save(10, a="0")
    (every[1].path / "b.tmp").write_text("half")
    pass_time(every, EVERY_S / 2 + 2 * LAG_S)
    assert closed(s3) == []
    every[1].save(10, b="1")
    pass_time(every, 5)
    assert len(closed(s3)) == 1
    assert {one.rank: one.content for one in restored(tmp_path, s3, 2)}[0] == {"a": "0", "b": "1"}


def test_a_set_without_a_rank_that_names_its_checkpoint_later_is_taken_back(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    to_boundary(every, [])
    every[0].save(10, a="0")
    pass_time(every, EVERY_S / 2 + 2 * LAG_S)
    assert len(closed(s3)) == 1
    every[1].save(10, b="1")
    pass_time(every, 1)
    assert closed(s3) == []


def test_a_rank_that_names_a_later_checkpoint_for_its_first_takes_no_answer_back(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    to_boundary(every, [])
    every[0].save(10, a="0")
    pass_time(every, EVERY_S / 2 + 2 * LAG_S)
    every[1].save(20, b="1")
    pass_time(every, 1)
    assert len(closed(s3)) == 1


def test_a_rank_that_is_lost_keeps_the_others_from_opening_sets_for_no_longer_than_their_patience(
    tmp_path: Path, s3: FakeS3
) -> None:
    first = ranks(tmp_path, s3, 2)[0]
    for step in (10, 20, 30):
        first.save(step, model=f"of {step}")
        pass_time([first], 2 * EVERY_S)
    assert {key.rsplit("/", 2)[1] for _, key in s3.objects if "/r0000." in key} >= {"n000001", "n000002"}


def test_an_answer_is_taken_back_although_s3_refused_it_at_first(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    to_boundary(every, [])
    every[0].save(10, a="0")
    pass_time(every, EVERY_S / 2 + 2 * LAG_S)
    every[1].save(10, b="1")
    s3.fault = lambda call, key: refusal("SlowDown") if call == "put" and key.endswith(".missed") else None
    with pytest.raises(Exception, match="SlowDown"):
        every[1].checkpoints.tick()
    assert len(closed(s3)) == 1
    s3.fault = lambda _call, _key: None
    every[1].checkpoints.tick()
    assert closed(s3) == []


def test_a_rank_that_has_gone_on_misses_the_set_and_the_next_one_is_closed(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    to_boundary(every)
    every[0].save(10, a="0 of 10")
    every[1].save(20, b="1 of 20")
    pass_time(every, 5)
    assert closed(s3) == []
    assert any("n000001/r0001.missed" in key for _, key in s3.objects)
    pass_time(every, EVERY_S)
    for one in every:
        one.save(30, **{f"s{one.rank}": f"{one.rank} of 30"})
    pass_time(every, 5)
    assert [decode(CheckpointSet, s3.objects[BUCKET, key]).step for key in closed(s3)] == [30]


def test_shards_of_a_trainer_in_which_rank_0_names_for_all_are_committed_with_it(tmp_path: Path, s3: FakeS3) -> None:
    """Rank 0 names a checkpoint after a barrier; the others' files are complete by then."""
    every = ranks(tmp_path, s3, 2)
    for step in range(0, 1400, 20):
        every[0].write("s0", f"0 of {step}")
        every[1].write("s1", f"1 of {step}")
        pass_time(every, 1)
        every[0].at(step, checkpoint=step)
        pass_time(every, 19)
    newest = max(decode(CheckpointSet, s3.objects[BUCKET, key]).step for key in closed(s3))
    assert restored(tmp_path, s3, 2)[1].content == {"s0": f"0 of {newest}", "s1": f"1 of {newest}"}


def test_a_shard_that_is_newer_than_the_named_checkpoint_is_in_no_set(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2, scope=Scope.SHARDS)
    to_boundary(every, [])
    every[1].write("s1", "1 of 10")
    every[0].save(10, s0="0 of 10")
    every[0].checkpoints.tick()
    every[0].clock.now += 1.0
    every[1].write("s1", "1 of 20")
    pass_time(every, 10)
    assert closed(s3) == []
    assert any("is newer than checkpoint 10" in note for note in every[1].notes)


@pytest.mark.parametrize("wrong", [0, 1])
def test_with_a_wrong_clock_nobody_knows_which_shards_belong_together(tmp_path: Path, s3: FakeS3, wrong: int) -> None:
    every = ranks(tmp_path, s3, 2, scope=Scope.SHARDS)
    every[wrong].machine_s = 300.0 if wrong == 0 else -300.0
    to_boundary(every, [])
    every[1].write("s1", "1")
    every[0].save(10, s0="0")
    pass_time(every, 10)
    assert closed(s3) == []
    assert any("each rank names its checkpoints in PROGRESS_FILE" in note for note in every[1].notes)


def test_a_wrong_clock_does_not_matter_where_every_rank_names_its_checkpoints(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    every[1].machine_s = 300.0
    to_boundary(every)
    for one in every:
        one.save(10, **{f"s{one.rank}": "x"})
    pass_time(every, 5)
    assert len(closed(s3)) == 1


def test_files_of_several_ranks_that_nobody_names_are_refused_with_what_to_do(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    with pytest.raises(NeverWhole, match="checkpoint_scope: rank0"):  # noqa: PT012
        for number in range(5):
            for one in every:
                one.write("model.pt", f"{number}")
            pass_time(every, EVERY_S)
    assert closed(s3) == []


def test_files_of_one_rank_that_nobody_names_are_a_set(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    every[0].write("model.pt", "M")
    pass_time(every, EVERY_S + 60)
    assert len(closed(s3)) == 1
    assert restored(tmp_path, s3, 2)[1].content == {"model.pt": "M"}


def test_a_trainer_that_has_just_begun_to_name_is_waited_for_no_longer_than_half_an_interval(
    tmp_path: Path, s3: FakeS3
) -> None:
    every = ranks(tmp_path, s3, 2)
    to_boundary(every, [])
    for one in every:
        one.save(10, **{f"s{one.rank}": "x"})
    pass_time(every, EVERY_S / 2 - 5)
    assert closed(s3) == []
    pass_time(every, 10)
    assert len(closed(s3)) == 1


def test_a_rank_other_than_0_may_be_the_only_one_that_writes(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    every[1].write("model.pt", "M")
    pass_time(every, 2 * EVERY_S + 60)
    assert len(closed(s3)) == 1


def test_with_scope_rank0_the_others_are_not_asked(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2, scope=Scope.RANK0)
    to_boundary(every)
    for one in every:
        one.save(10, model=f"of {one.rank}")
    every[0].checkpoints.tick()
    calls = len(s3.calls)
    every[1].checkpoints.tick()
    assert len(s3.calls) == calls
    assert len(closed(s3)) == 1
    assert restored(tmp_path, s3, 2)[1].content == {"model": "of 0"}


def test_with_scope_shards_a_rank_without_files_keeps_the_set_open(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2, scope=Scope.SHARDS)
    to_boundary(every, [])
    every[0].save(10, a="0")
    pass_time(every, 3 * LAG_S)
    assert closed(s3) == []
    assert any("nothing is in CHECKPOINT_DIR of rank 1" in note for one in every for note in one.notes)


def test_checkpoints_that_are_never_the_same_are_refused_after_some_sets(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    with pytest.raises(NeverWhole, match="Rank 1 said: its trainer had finished checkpoint"):  # noqa: PT012
        for step in range(0, 5000, 10):
            every[0].save(step, a=str(step))
            every[1].save(step + 5, b=str(step))
            pass_time(every, 10)


def test_sets_that_every_rank_missed_are_refused_with_what_one_of_them_said(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    opened_at = every[0].clock.now
    with pytest.raises(NeverWhole, match="Rank 0 said: its clock is wrong"):  # noqa: PT012
        for number in range(1, 2 * FEW + 1):
            plan = SetPlan(number=number, step=number, names=1, named_at=0.0, opened_at=opened_at, rank=0)
            for one in every:
                one.clock.now += EVERY_S
                one.checkpoints._committer.miss(plan, "its clock is wrong")
                one.checkpoints.state.take_answer(plan, "", due=plan.opened_at)
            every[1].checkpoints._settle()


def test_sets_that_were_all_taken_back_once_they_were_closed_are_refused_with_what_their_rank_said(
    tmp_path: Path, s3: FakeS3
) -> None:
    every, made = ranks(tmp_path, s3, 2), CommittedFile(path="a", size=1, sha256="0", key="a")
    opened_at = every[0].clock.now
    for number in range(1, 2 * FEW + 1):
        plan = SetPlan(number=number, step=number, names=1, named_at=0.0, opened_at=opened_at, rank=0)
        mine = Commit(job="job-1", attempt=1, rank=0, step=number, created_at=0.0, final=False, files=(made,))
        for one, part, document in ((every[0], Part.FILES, encode(mine)), (every[1], Part.NOTHING, b"{}")):
            one.clock.now += EVERY_S
            one.checkpoints._committer.say(plan, part, document)
            one.checkpoints.state.take_answer(plan, "", due=opened_at)
        every[0].checkpoints._settle()
        assert len(closed(s3)) == 1
        every[1].checkpoints._committer.take_back(plan, "its files came later")
    with pytest.raises(NeverWhole, match="Rank 1 said: its files came later"):
        every[0].checkpoints._settle()


def test_a_miss_that_nobody_can_read_is_a_miss_and_the_next_set_is_closed(tmp_path: Path, s3: FakeS3) -> None:
    """Code of the job can write any document."""
    every = ranks(tmp_path, s3, 2)
    to_boundary(every)
    for one in every:
        one.save(10, **{f"s{one.rank}": "of 10"})
    every[0].checkpoints.tick()
    s3.objects[BUCKET, BytesPrefix("job-1").part(1, 1, 1, Part.MISSED.value)] = b"garbled"
    pass_time(every, 5)
    assert closed(s3) == []
    pass_time(every, EVERY_S)
    for one in every:
        one.save(20, **{f"s{one.rank}": "of 20"})
    pass_time(every, 30)
    assert [decode(CheckpointSet, s3.objects[BUCKET, key]).step for key in closed(s3)] == [20]


def test_sets_that_only_their_opener_missed_say_nothing_against_the_job(tmp_path: Path, s3: FakeS3) -> None:
    """Its trainer had gone on, as one does that saves every few seconds."""
    every = ranks(tmp_path, s3, 2)
    opened_at = every[0].clock.now
    for number in range(1, 3 * FEW):
        plan = SetPlan(
            number=number, step=number, names=1, named_at=0.0, opened_at=opened_at, rank=0, layout="transformers"
        )
        every[0].clock.now += EVERY_S
        every[0].checkpoints._committer.miss(plan, "its trainer had gone on")
        every[1].checkpoints._committer.say(plan, Part.NOTHING, b"{}")
        every[1].checkpoints.state.take_answer(plan, "", due=plan.opened_at)
        every[1].checkpoints._settle()
    assert every[1].checkpoints.state.settled == 3 * FEW - 1


def test_a_set_whose_last_rank_died_before_it_closed_it_is_closed_by_the_next_look(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    to_boundary(every)
    s3.fault = lambda call, key: refusal("SlowDown") if call == "put" and key.endswith("closed.json") else None
    for one in every:
        one.save(10, **{f"s{one.rank}": "x"})
    every[0].checkpoints.tick()
    with pytest.raises(Exception, match="SlowDown"):
        every[1].checkpoints.tick()
    assert closed(s3) == []
    s3.fault = lambda _call, _key: None
    every[1].checkpoints.tick()
    assert len(closed(s3)) == 1


def test_two_ranks_that_close_a_set_at_once_write_the_same(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    to_boundary(every)
    for one in every:
        one.save(10, **{f"s{one.rank}": "x"})
    pass_time(every, 3)
    first = s3.objects[BUCKET, closed(s3)[0]]
    del s3.objects[BUCKET, closed(s3)[0]]
    every[0].checkpoints.state.unsettled = True
    every[0].checkpoints.tick()
    again = decode(CheckpointSet, s3.objects[BUCKET, closed(s3)[0]])
    assert (again.parts, again.step) == (decode(CheckpointSet, first).parts, 10)


def test_a_pass_with_nothing_new_makes_no_request(tmp_path: Path, s3: FakeS3) -> None:
    one = Rank(tmp_path, s3)
    one.commit(5, a="A")
    s3.calls.clear()
    pass_time([one], 2 * EVERY_S)
    assert s3.calls == []
