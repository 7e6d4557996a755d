"""What a rank answers, and when sets are hopeless: decided on facts alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from agent.layouts import Recognised, Shards, Whole
from agent.position import Position
from agent.progress import Named
from agent.sets.answering import CLOCKS_S, LAG_S, Answer, AnsweringRank, answer
from agent.sets.outcomes import FEW, LEAST_S, is_hopeless, judge_parts
from agent.sets.recognising import Saved
from agent.snapshot import FileState
from contract.commits import Commit, CommittedFile, Part, SetPlan
from contract.jobs import Scope
from tests.node.folders import BEGAN, job

BOTH, MISSED = {0: Part.FILES, 1: Part.FILES}, {0: Part.FILES, 1: Part.MISSED}


@pytest.mark.parametrize(
    ("parts", "count", "since_s", "hopeless"),
    [
        (BOTH, FEW - 1, 1e6, False),
        (BOTH, FEW, 0.0, True),
        (MISSED, 2 * FEW - 1, 1e6, False),
        (MISSED, 2 * FEW, LEAST_S - 1, False),
        (MISSED, 2 * FEW, LEAST_S, True),
        ({0: Part.NOTHING, 1: Part.NOTHING}, 100, 1e6, False),
    ],
)
def test_bad_luck_is_told_from_a_trainer_whose_ranks_never_save_the_same(
    parts: dict[int, Part], count: int, since_s: float, hopeless: bool
) -> None:
    answered = dict.fromkeys(range(count), parts)
    assert is_hopeless(answered, any_closed=False, since_s=since_s) is hopeless
    assert not is_hopeless(answered, any_closed=True, since_s=since_s)


def offered(plan: SetPlan, changes: Mapping[str, float], **facts: Any) -> AnsweringRank:
    """Rank 1, with files that changed then."""
    own = [FileState(path, 1, 0, 0, inode, 0o644) for inode, path in enumerate(changes)]
    recognised = facts.pop("recognised", Recognised())
    saved = Saved(own, changes, BEGAN + 60.0, facts.pop("word", None), recognised, None)
    place = Position(job(2, facts.pop("scope", Scope.AUTO)), 1, 1)
    every: dict[str, Any] = {"shards": None, "waited_s": 0.0, **facts}
    return AnsweringRank(plan=plan, place=place, saved=saved, **every)


def answered(plan: SetPlan, named: Named | None, *changed_s: float, waited_s: float) -> Part | None:
    own = {f"file-{number}": at for number, at in enumerate(changed_s)}
    return answer(offered(plan, own, word=named, waited_s=waited_s)).part


PLAN = SetPlan(number=1, step=10, names=1, named_at=BEGAN, opened_at=BEGAN, rank=0)


@pytest.mark.parametrize(
    ("names", "waited_s", "part"),
    [(1, 0.0, None), (1, LAG_S, None), (1, LAG_S + 1, Part.NOTHING), (2, 0.0, Part.NOTHING)],
)
def test_an_empty_folder_is_an_answer_only_once_the_first_files_would_be_there(
    names: int, waited_s: float, part: Part | None
) -> None:
    assert answered(replace(PLAN, names=names), None, waited_s=waited_s) is part


@pytest.mark.parametrize(("later_s", "part"), [(-1.0, Part.FILES), (0.0, Part.FILES), (1.0, Part.MISSED)])
def test_a_file_that_is_newer_than_the_word_of_its_checkpoint_is_not_committed_with_it(
    later_s: float, part: Part | None
) -> None:
    file = BEGAN + later_s
    assert answered(PLAN, Named(10, BEGAN, 3), file, waited_s=0.0) is part
    assert answered(replace(PLAN, names=2), None, file, waited_s=0.0) is part


def answered_in_place(name: str, changed_s: float, *, clock_is_right: bool) -> Answer:
    plan, shard = replace(PLAN, layout="dcp", name=name), f"{name}/shard"
    return answer(offered(plan, {shard: changed_s}, shards=Shards(frozenset({shard})), clock_is_right=clock_is_right))


def test_with_a_wrong_clock_shards_in_a_folder_that_is_used_again_are_missed_with_what_to_do() -> None:
    found = answered_in_place("state", BEGAN, clock_is_right=False)
    assert found.part is Part.MISSED
    assert "a folder with the step at the end of its name needs no clock" in found.reason


def test_a_folder_with_the_step_in_its_name_needs_no_clock() -> None:
    assert answered_in_place("step-10", BEGAN + 300.0, clock_is_right=False).part is Part.FILES


@pytest.mark.parametrize(("later_s", "part"), [(CLOCKS_S - 1.0, Part.FILES), (CLOCKS_S + 1.0, Part.MISSED)])
def test_a_shard_with_the_step_in_its_folder_may_be_newer_by_what_clocks_differ(later_s: float, part: Part) -> None:
    assert answered_in_place("step-10", BEGAN + later_s, clock_is_right=True).part is part


@pytest.mark.parametrize(("later_s", "part"), [(0.0, Part.FILES), (1.0, Part.MISSED)])
def test_a_shard_that_is_newer_than_the_marker_is_of_the_next_save_where_a_folder_is_used_again(
    later_s: float, part: Part | None
) -> None:
    assert answered_in_place("state", BEGAN + later_s, clock_is_right=True).part is part


def part_of(rank: int, *paths: str, place: str = "") -> Commit:
    files = tuple(CommittedFile(path=path, size=1, key=path) for path in paths)
    return Commit(job="job-1", attempt=1, rank=rank, step=10, created_at=BEGAN, final=False, files=files, place=place)


def test_parts_without_any_file_are_no_checkpoint() -> None:
    assert judge_parts(PLAN, [part_of(0)], Scope.AUTO, 2) == "no rank has any file"


def test_parts_of_different_places_are_no_checkpoint() -> None:
    parts = [part_of(0, "step-10/a", place="dcp step-10"), part_of(1, "step-20/b", place="dcp step-20")]
    assert "the newest checkpoints differ: dcp step-10, dcp step-20" in judge_parts(PLAN, parts, Scope.AUTO, 2)


def test_parts_without_the_files_of_the_rank_that_has_the_marker_are_no_checkpoint() -> None:
    parts = [part_of(0, "beside"), part_of(1, "global_step10/shard")]
    assert "rank 0 has nothing of global_step10 any more" in judge_parts(IN_PLACE, parts, Scope.AUTO, 2)


IN_PLACE, NO_SHARDS = replace(PLAN, layout="deepspeed", name="global_step10"), Shards(frozenset())


@pytest.mark.parametrize(
    ("scope", "waited_s", "part"),
    [
        (Scope.AUTO, LAG_S, None),
        (Scope.AUTO, LAG_S + 1, Part.NOTHING),
        (Scope.SHARDS, LAG_S + 1, None),
        (Scope.SHARDS, 1e6, Part.MISSED),
    ],
)
def test_a_rank_without_shards_is_waited_for_as_long_as_it_may_have_some(
    scope: Scope, waited_s: float, part: Part | None
) -> None:
    assert answer(offered(IN_PLACE, {}, shards=NO_SHARDS, scope=scope, waited_s=waited_s)).part is part


def test_the_rank_that_opened_a_set_misses_it_where_its_checkpoint_is_gone() -> None:
    found = answer(offered(replace(IN_PLACE, rank=1), {"beside": BEGAN}, shards=NO_SHARDS))
    assert (found.part, "has removed it" in found.reason) == (Part.MISSED, True)


@pytest.mark.parametrize(("marker", "part"), [("latest", Part.MISSED), ("global_step20/done", Part.FILES)])
def test_a_rank_whose_pointer_names_another_checkpoint_by_now_misses_the_set(marker: str, part: Part) -> None:
    shard, newest = "global_step10/shard", Whole("deepspeed", 20, "global_step20", BEGAN, frozenset({marker}))
    rank = offered(
        IN_PLACE, {shard: BEGAN}, shards=Shards(frozenset({shard})), recognised=Recognised("deepspeed", newest)
    )
    assert answer(rank).part is part


def test_a_trainer_that_names_its_checkpoints_adds_its_files_to_a_set_that_nothing_names() -> None:
    for step in (9, 10, 11):
        plan = replace(PLAN, step=10, names=0, named_at=0.0)
        assert answer(offered(plan, {"a": BEGAN}, word=Named(step, BEGAN, 2))).part is Part.FILES
        assert answer(offered(plan, {"a": BEGAN + 1.0}, word=Named(step, BEGAN, 2))).part is Part.MISSED


@pytest.mark.parametrize(("opener", "part"), [(1, Part.FILES), (0, Part.MISSED)])
def test_once_its_trainer_has_ended_a_rank_needs_no_clock_for_the_checkpoint_that_it_found_itself(
    opener: int, part: Part
) -> None:
    plan, shards = replace(IN_PLACE, name="last.ckpt", rank=opener, named_at=0.0), Shards(frozenset({"last.ckpt"}))
    rank = offered(plan, {"last.ckpt": BEGAN}, shards=shards, waited_s=math.inf, clock_is_right=False)
    assert answer(rank).part is part
