"""Tests of checkpoints that take the place of the only one, keep files of their own, or whose trainer marks them in no usual way."""

from __future__ import annotations

from random import Random

import pytest

from agent.layouts import Recognised, find_shards, recognise
from agent.layouts.listing import MOST_ROWS
from tests.node.layouts import contents, savers
from tests.node.layouts.disk import Disk
from tests.node.layouts.processes import Saver

TORCH = contents.torch_saved(Random(1))
AT_ONCE_S, RESTED_S, LONG_S = 0.02, 11.0, 121.0


def newest_name(disk: Disk, later_s: float) -> str:
    found = recognise(disk.listing(later_s)).newest
    return found.name if found else ""


def put_trainer(disk: Disk, step: int, *ranks: int, card: bool = False) -> None:
    """Saves as the Trainer does with several processes, those of `ranks` in this folder."""
    for rank in ranks:
        disk.put(f"checkpoint-{step}/rng_state_{rank}.pth", TORCH)
    disk.put(f"checkpoint-{step}/trainer_state.json", contents.trainer_state(step))
    if card:
        disk.put(f"checkpoint-{step}/README.md", b"the best one")


def put_states(disk: Disk, step: int, *ranks: int) -> None:
    """Saves as DeepSpeed does with ZeRO, the processes of `ranks` in this folder."""
    for rank in ranks:
        if rank == 0:
            disk.put(f"global_step{step}/mp_rank_00_model_states.pt", TORCH)
        disk.put(f"global_step{step}/zero_pp_rank_{rank}_mp_rank_00_optim_states.pt", TORCH)


@pytest.mark.parametrize(
    "saver", [savers.trainer(processes=2, keep=1), savers.accelerator(keep=1)], ids=lambda saver: saver.name
)
def test_a_checkpoint_in_place_of_the_only_one_is_whole_as_soon_as_it_has_what_that_one_had(saver: Saver) -> None:
    disk, wholes = Disk(Random(3)), list[str]()
    for step in (10, 20, 30):
        save = saver.save(disk, step)
        for _ in save.steps:
            assert newest_name(disk, AT_ONCE_S) in ("", *wholes[-1:], save.name)
        assert newest_name(disk, RESTED_S if step == 10 else AT_ONCE_S) == save.name
        wholes.append(save.name)
        disk.now += 100


def test_a_checkpoint_that_lacks_what_the_removed_one_had_is_not_whole() -> None:
    disk = Disk()
    put_trainer(disk, 10, 0, 1)
    assert newest_name(disk, RESTED_S) == "checkpoint-10"
    list(disk.remove_tree("checkpoint-10"))
    put_trainer(disk, 20, 0)
    assert newest_name(disk, 60) == ""
    assert newest_name(disk, LONG_S) == "checkpoint-20"


def test_files_of_an_earlier_save_under_the_same_name_prove_nothing() -> None:
    disk = Disk()
    for _ in range(2):
        disk.put("state/model.safetensors", contents.safetensors_saved(Random(1)))
        disk.put("state/random_states_0.pkl", TORCH)
        assert newest_name(disk, AT_ONCE_S) == ""
        assert newest_name(disk, RESTED_S) == "state"
        disk.now += 100


def test_nor_do_those_in_a_numbered_folder_that_is_used_again() -> None:
    disk = Disk()
    for number in (1, 2):
        for rank in (0, 1):
            disk.put(f"state-{number}/random_states_{rank}.pkl", TORCH)
        assert newest_name(disk, RESTED_S) == f"state-{number}"
        disk.now += 100
    list(disk.remove_tree("state-2"))
    disk.now += 100
    assert newest_name(disk, AT_ONCE_S) == "state-1"
    disk.put("state-1/random_states_0.pkl", TORCH)
    assert newest_name(disk, AT_ONCE_S) == ""
    disk.put("state-1/random_states_1.pkl", TORCH)
    assert newest_name(disk, RESTED_S) == "state-1"


def test_shards_in_place_of_the_only_ones_are_whole_as_soon_as_they_have_what_those_had() -> None:
    disk = Disk()
    disk.put("checkpoint-10/rng_state_1.pth", TORCH)
    disk.put("checkpoint-10/rng_state_2.pth", TORCH)
    assert not find_shards(disk.listing(RESTED_S), "transformers", "checkpoint-10").reason
    list(disk.remove_tree("checkpoint-10"))
    disk.put("checkpoint-20/rng_state_1.pth", TORCH)
    assert "lacks a file" in find_shards(disk.listing(RESTED_S), "transformers", "checkpoint-20").reason
    disk.put("checkpoint-20/rng_state_2.pth", TORCH)
    assert not find_shards(disk.listing(AT_ONCE_S), "transformers", "checkpoint-20").reason


def test_a_card_that_only_the_best_checkpoint_has_is_not_waited_for() -> None:
    """It is removed only once a better one comes, and those after it are removed within the time in which a file is given up."""
    disk = Disk()
    put_trainer(disk, 20, 0, 1, card=True)
    assert newest_name(disk, RESTED_S) == "checkpoint-20"
    disk.now += 60
    put_trainer(disk, 40, 0, 1)
    assert newest_name(disk, AT_ONCE_S) == "checkpoint-40"
    disk.now += 60
    put_trainer(disk, 60, 0)
    assert newest_name(disk, AT_ONCE_S) == "checkpoint-40"


def test_a_checkpoint_that_says_that_it_is_incomplete_is_not_whole() -> None:
    disk = Disk()
    put_trainer(disk, 10, 0)
    disk.now += 100
    disk.put("checkpoint-20/checkpoint-is-incomplete.txt", b"in progress")
    put_trainer(disk, 20, 0)
    found = recognise(disk.listing(LONG_S))
    assert (found.newest and found.newest.name, found.why) == (
        "checkpoint-10",
        "checkpoint-20/checkpoint-is-incomplete.txt is there",
    )
    disk.now += 1
    list(disk.remove("checkpoint-20/checkpoint-is-incomplete.txt"))
    assert newest_name(disk, AT_ONCE_S) == "checkpoint-20"


def test_the_newest_checkpoint_is_not_whole_once_a_file_that_the_one_before_had_was_removed() -> None:
    disk = Disk()
    for step in (10, 20):
        disk.put(f"checkpoint-{step}/model.safetensors", contents.safetensors_saved(Random(step)))
        put_trainer(disk, step, 0)
        disk.now += 100
    list(disk.remove("checkpoint-20/model.safetensors"))
    assert newest_name(disk, AT_ONCE_S) == "checkpoint-10"


def test_names_that_are_never_alike_fill_no_memory() -> None:
    disk = Disk()
    for number in range(3 * MOST_ROWS):
        name = "".join(chr(97 + int(digit)) for digit in str(number))
        disk.put(f"{name}/random_states_0.pkl", TORCH)
        assert newest_name(disk, RESTED_S) == name
        disk.now += 100
        list(disk.remove_tree(name))
    assert len(disk.judgements.rows) == MOST_ROWS
    assert name in disk.judgements.rows


def read_numbered(disk: Disk, later_s: float) -> Recognised:
    found = recognise(disk.listing(later_s))
    assert found.layout == "deepspeed"
    return found


def test_deepspeed_without_latest_goes_on_from_the_highest_number() -> None:
    disk = Disk()
    put_states(disk, 9, 0, 1)
    assert read_numbered(disk, 60).newest is None
    assert newest_name(disk, LONG_S) == "global_step9"
    disk.now += 30
    put_states(disk, 10, 0)
    assert newest_name(disk, AT_ONCE_S) == "global_step9"
    put_states(disk, 10, 1)
    assert newest_name(disk, AT_ONCE_S) == "global_step10"


def test_states_that_are_torn_are_not_whole_without_latest_either() -> None:
    disk = Disk()
    put_states(disk, 9, 0)
    put_states(disk, 10, 0)
    disk.put("global_step10/mp_rank_00_model_states.pt", TORCH[:-7])
    assert newest_name(disk, LONG_S) == "global_step9"


@pytest.mark.parametrize("ranks", [(1,), (1, 2)])
def test_only_the_node_of_rank_0_goes_by_the_number(ranks: tuple[int, ...]) -> None:
    """`latest` never is on another one."""
    disk = Disk()
    for step in (9, 10):
        put_states(disk, step, *ranks)
    assert read_numbered(disk, LONG_S).newest is None


def test_deepspeed_with_latest_goes_by_it_while_it_is_empty() -> None:
    disk = Disk()
    for step in (9, 10):
        put_states(disk, step, 0)
    disk.put("latest", b"")
    assert read_numbered(disk, LONG_S).newest is None
