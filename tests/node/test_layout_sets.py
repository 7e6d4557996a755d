"""Sets of trainers that name nothing, and write as their framework does: the newest whole checkpoint is closed, and half of one never."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.checkpoints import LATE_S
from agent.sets.closing import NeverWhole
from contract.jobs import Scope
from tests.node.fakes import FakeS3
from tests.node.folders import EVERY_S, closed, pass_time, ranks
from tests.node.layout_worlds import (
    FOLDERS,
    LAYOUTS,
    as_torch,
    list_deepspeed,
    metadata,
    newest_closed,
    put,
    read_bytes,
    remove,
    restored,
    save,
    written,
)

EACH = pytest.mark.parametrize("layout", list(LAYOUTS))


@EACH
def test_a_checkpoint_that_no_rank_names_is_closed_with_every_ranks_files(
    tmp_path: Path, s3: FakeS3, layout: str
) -> None:
    every = ranks(tmp_path, s3, 2)
    save(layout, every, 20)
    whole = written(every, 20, layout)
    pass_time(every, EVERY_S + 120)
    assert newest_closed(every) == 20
    for again in restored(tmp_path, every):
        assert whole.items() <= read_bytes(again).items()
    assert f"checkpoints: recognised the layout {layout}" in every[0].notes


@EACH
@pytest.mark.parametrize("cut", range(6))
def test_of_a_checkpoint_that_is_still_written_nothing_is_in_a_set(
    tmp_path: Path, s3: FakeS3, layout: str, cut: int
) -> None:
    every = ranks(tmp_path, s3, 2)
    save(layout, every, 20)
    pass_time(every, EVERY_S + 120)
    before = written(every, 20, layout)
    save(layout, every, 40, upto=min(cut, len(LAYOUTS[layout](2, 40)) - 1))
    half = written(every, 40, layout)
    pass_time(every, 2 * EVERY_S)
    for rank in every:
        rank.checkpoints.finish()
    for again in restored(tmp_path, every):
        found = read_bytes(again)
        assert before.items() <= found.items()
        inside = {path for path in found if path.startswith(FOLDERS[layout].format(40))}
        assert not inside or (layout == "transformers" and inside == half.keys()), inside


@EACH
def test_the_newest_checkpoint_is_in_the_last_set_although_nothing_names_it(
    tmp_path: Path, s3: FakeS3, layout: str
) -> None:
    """A notice comes just after it was saved; the rank without the marker ends last."""
    every = ranks(tmp_path, s3, 2)
    save(layout, every, 20)
    pass_time(every, EVERY_S + 120)
    save(layout, every, 40)
    whole = written(every, 40, layout)
    every[0].clock.now += 12.0
    for rank in every:
        rank.checkpoints.finish()
    again = restored(tmp_path, every)
    assert [one.checkpoints.state.restored for one in again] == [40, 40]
    assert all(whole.items() <= read_bytes(one).items() for one in again)


@EACH
def test_a_restored_checkpoint_is_not_committed_again_and_the_next_one_is(
    tmp_path: Path, s3: FakeS3, layout: str
) -> None:
    every = ranks(tmp_path, s3, 2)
    save(layout, every, 20)
    pass_time(every, EVERY_S + 120)
    again = restored(tmp_path, every)
    before = len(closed(s3))
    pass_time(again, 2 * EVERY_S)
    assert len(closed(s3)) == before
    save(layout, again, 40)
    pass_time(again, EVERY_S)
    assert newest_closed(again) == 40
    third = restored(tmp_path, again, attempt=3)
    assert all(written(again, 40, layout).items() <= read_bytes(one).items() for one in third)


def test_a_rank_that_has_not_written_its_part_yet_is_waited_for(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    save("transformers", every, 20)
    pass_time(every, EVERY_S + 120)
    save("transformers", every, 40, upto=5)
    pass_time(every, EVERY_S)
    assert newest_closed(every) == 20
    put(every[1], "checkpoint-40/rng_state_1.pth", as_torch("chance of 40"))
    pass_time(every, 60)
    assert newest_closed(every) == 40


def test_a_part_that_comes_after_its_rank_had_said_that_it_has_none_opens_the_set_again(
    tmp_path: Path, s3: FakeS3
) -> None:
    every = ranks(tmp_path, s3, 2)
    save("transformers", every, 20, upto=5)
    pass_time(every, EVERY_S + 60)
    assert len(closed(s3)) == 1
    put(every[1], "checkpoint-20/rng_state_1.pth", as_torch("chance of 20"))
    pass_time(every, 30)
    assert closed(s3) == []
    pass_time(every, EVERY_S + 60)
    assert len(closed(s3)) == 1
    assert "checkpoint-20/rng_state_1.pth" in read_bytes(restored(tmp_path, every)[0])


def test_a_part_that_comes_after_its_set_was_found_unfit_is_in_the_next_set(tmp_path: Path, s3: FakeS3) -> None:
    """Rank 0 sends for a while, and is the last one that answers."""
    every, states = ranks(tmp_path, s3, 2), list_deepspeed(2, 20)
    for one in (one for one in states if one.rank == 0):
        put(every[0], one.path, one.content)
    sending = iter(range(40))

    def wait(call: str, key: str) -> None:
        if call in ("put", "upload") and "/rank-0000/" in key:
            for _ in sending:
                pass_time(every[1:], 1)

    s3.fault = wait
    while every[0].checkpoints.state.settled < 1:
        pass_time(every, 1)
    assert any("rank 1 has no states" in note for note in every[0].notes)
    for one in (one for one in states if one.rank == 1):
        put(every[1], one.path, one.content)
    pass_time(every, EVERY_S + 60)
    assert newest_closed(every) == 20


def test_a_part_that_comes_minutes_later_is_something_else(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    save("transformers", every, 20, upto=5)
    pass_time(every, EVERY_S + 2 * LATE_S)
    put(every[1], "checkpoint-20/rng_state_1.pth", as_torch("chance of 20"))
    pass_time(every, 30)
    assert len(closed(s3)) == 1


def test_a_rank_with_the_shard_of_the_save_before_is_waited_for_where_a_folder_is_used_again(
    tmp_path: Path, s3: FakeS3
) -> None:
    every, names = ranks(tmp_path, s3, 2), ("__0_0.distcp", "__1_0.distcp")
    for rank in (1, 0):
        put(every[rank], f"state/{names[rank]}", f"shard {rank} of 20")
    put(every[0], "state/.metadata", metadata(*names))
    pass_time(every, EVERY_S + 120)
    assert len(closed(s3)) == 1
    put(every[0], f"state/{names[0]}", "shard 0 of 40")
    put(every[0], "state/.metadata", metadata(*names))
    pass_time(every, 2 * EVERY_S)
    assert len(closed(s3)) == 1


def test_in_the_last_set_all_ranks_have_the_checkpoint_of_the_one_that_ended_first(tmp_path: Path, s3: FakeS3) -> None:
    """Each has markers of its own, and one of them has come further."""
    every = ranks(tmp_path, s3, 2)
    for rank in every:
        save("transformers", [rank], 20)
    save("transformers", [every[1]], 40)
    every[0].clock.now += 60.0
    for rank in every:
        rank.checkpoints.finish()
    assert newest_closed(every) == 20


def test_shards_of_which_no_rank_has_the_marker_are_in_no_last_set(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    save("dcp", every, 20, upto=2)
    every[0].clock.now += 60.0
    for rank in every:
        rank.checkpoints.finish()
    assert closed(s3) == []
    assert any("no rank says which checkpoint is whole" in note for note in every[1].notes)


def test_a_marker_that_lists_a_shard_which_no_rank_has_closes_nothing_and_says_which(
    tmp_path: Path, s3: FakeS3
) -> None:
    every = ranks(tmp_path, s3, 2)
    with pytest.raises(NeverWhole, match=r"step-\d+ \(dcp\) lists files that no rank has: step-\d+/__7_0.distcp"):  # noqa: PT012
        for step in (20, 40, 60):
            save("dcp", every, step)
            put(every[0], f"step-{step}/.metadata", metadata("__0_0.distcp", "__1_0.distcp", "__7_0.distcp"))
            pass_time(every, EVERY_S + 60)
    assert closed(s3) == []


def test_with_scope_rank0_shards_of_others_are_refused_with_what_to_do(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2, scope=Scope.RANK0)
    with pytest.raises(NeverWhole, match=r"checkpoint_scope is rank0: .* are committed with checkpoint_scope: auto"):  # noqa: PT012
        for step in (20, 40, 60):
            save("dcp", every, step)
            pass_time(every, EVERY_S + 60)


@pytest.mark.parametrize("scope", [Scope.AUTO, Scope.SHARDS])
def test_a_refusal_proposes_only_what_the_request_allows(tmp_path: Path, s3: FakeS3, scope: Scope) -> None:
    every = ranks(tmp_path, s3, 2, scope=scope)
    with pytest.raises(NeverWhole) as refusal:  # noqa: PT012
        for step in (20, 40, 60):
            for rank in every:
                rank.write(f"part-{rank.rank}", f"of {step}")
            pass_time(every, EVERY_S + 60)
    assert ("checkpoint_scope: rank0" in str(refusal.value)) == (scope is Scope.AUTO)


def test_the_word_of_the_trainer_wins_over_a_layout(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    save("transformers", every, 20)
    pass_time(every, 5)
    every[0].at(7, checkpoint=7)
    every[1].at(7, checkpoint=7)
    pass_time(every, 2 * EVERY_S)
    assert newest_closed(every) == 7


def test_old_checkpoints_may_be_removed_while_the_newest_is_sent(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    for step in (20, 40, 60):
        save("transformers", every, step)
        remove("transformers", every, step - 20)
        pass_time(every, EVERY_S)
    pass_time(every, 120)
    assert newest_closed(every) == 60
    assert {path.split("/")[0] for path in read_bytes(restored(tmp_path, every)[0])} == {"checkpoint-60"}


def test_what_lies_beside_the_checkpoints_is_taken_along_once_it_rests(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    save("transformers", every, 20)
    put(every[0], "all_results.json", "{}")
    pass_time(every, EVERY_S + 120)
    assert "all_results.json" in read_bytes(restored(tmp_path, every)[1])


def test_a_file_beside_the_checkpoints_that_never_rests_holds_up_no_set(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    save("transformers", every, 20)
    for second in range(int(EVERY_S) + 120):
        put(every[0], "status", f"{second}")
        pass_time(every, 1)
    assert newest_closed(every) == 20
    assert "status" not in read_bytes(restored(tmp_path, every)[0])
