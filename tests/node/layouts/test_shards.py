"""Tests that a rank without the marker answers for its shards only once they are whole."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from agent.layouts import Shards, find_shards, recognise
from tests.node.layouts import contents, savers
from tests.node.layouts.disk import Disk
from tests.node.layouts.processes import Steps, barrier, together

TORCH = contents.torch_saved(Random(1))
Job = Callable[[list[Disk], int], tuple[str, list[dict[str, bytes]], Steps]]
"""Saves the checkpoint of a step on several nodes of one process each: its name, what each node then has, and the operations."""


def zero(disks: list[Disk], step: int) -> tuple[str, list[dict[str, bytes]], Steps]:
    states, latest = savers.zero_files(disks[0].random, "", step, len(disks))
    own = [{path: data for path, data in states.items() if f"_pp_rank_{rank}_" in path} for rank in range(len(disks))]
    steps = (savers.zero_process(disk, "", step, rank, states, latest) for rank, disk in enumerate(disks))
    return f"global_step{step}", own, together(disks[0].random, *steps)


def dcp(disks: list[Disk], step: int) -> tuple[str, list[dict[str, bytes]], Steps]:
    shards, marker = savers.dcp_files(disks[0].random, f"step-{step}", len(disks))
    own = [{path: data for path, data in shards.items() if f"/__{rank}_" in path} for rank in range(len(disks))]
    steps = (savers.dcp_process(disk, f"step-{step}", rank, shards, marker) for rank, disk in enumerate(disks))
    return f"step-{step}", own, together(disks[0].random, *steps)


def trainer(disks: list[Disk], step: int) -> tuple[str, list[dict[str, bytes]], Steps]:
    """The Trainer with FSDP: the other ranks write their random state with no barrier after it."""
    folder = f"checkpoint-{step}"
    inner = f"{folder}/pytorch_model_fsdp_0"
    shards, marker = savers.dcp_files(disks[0].random, inner, len(disks))
    rng = [{f"{folder}/rng_state_{rank}.pth": contents.torch_saved(disks[0].random)} for rank in range(len(disks))]
    own = [
        {**rng[rank], **{path: data for path, data in shards.items() if f"/__{rank}_" in path}}
        for rank in range(len(disks))
    ]

    def process(rank: int) -> Steps:
        yield from savers.dcp_process(disks[rank], inner, rank, shards, marker)
        yield from savers.in_place(disks[rank], rng[rank].items())
        if rank == 0:
            yield from disks[0].write(f"{folder}/trainer_state.json", contents.trainer_state(step))

    return folder, own, together(disks[0].random, *map(process, range(len(disks))))


def megatron(disks: list[Disk], step: int) -> tuple[str, list[dict[str, bytes]], Steps]:
    folder = f"iter_{step:07}"
    own = [
        {f"{folder}/mp_rank_{rank:02}/model_optim_rng.pt": contents.torch_saved(disks[0].random)}
        for rank in range(len(disks))
    ]

    def process(rank: int) -> Steps:
        yield from disks[rank].make(f"{folder}/mp_rank_{rank:02}")
        yield from savers.in_place(disks[rank], own[rank].items())
        yield from barrier()
        if rank == 0:
            yield from disks[0].write("latest_checkpointed_iteration.txt", str(step).encode())

    return folder, own, together(disks[0].random, *map(process, range(len(disks))))


JOBS: dict[str, Job] = {"deepspeed": zero, "dcp": dcp, "transformers": trainer, "megatron": megatron}


@pytest.mark.parametrize("layout", JOBS)
def test_shards_that_a_rank_answers_with_are_whole_whenever_the_job_dies(layout: str) -> None:
    cuts = answers = 0
    for seed in range(6):
        disks = [Disk(Random(seed)), Disk(Random(seed + 100)), Disk(Random(seed + 200))]
        for step in (10, 20, 30):
            for disk in disks:
                disk.now += 100
            name, own, steps = JOBS[layout](disks, step)
            for _ in steps:
                now = max(disk.now for disk in disks)
                for disk in disks:
                    disk.now = now
                cuts += 1
                newest = recognise(disks[0].listing(0.02)).newest
                if newest is None or newest.name != name:
                    continue
                for disk, expected in zip(disks[1:], own[1:], strict=True):
                    found = find_shards(disk.listing(0.02), layout, name)
                    if not found.reason and (found.files or step > 10):
                        answers += 1
                        assert disk.content(found.files) == expected
            for disk, expected in zip(disks[1:], own[1:], strict=True):
                later = find_shards(disk.listing(11), layout, name)
                assert (later.reason, disk.content(later.files)) == ("", expected)
    assert cuts >= 100
    assert answers >= 20


def shards(disk: Disk, name: str, layout: str = "transformers", later_s: float = 1.0) -> Shards:
    return find_shards(disk.listing(later_s), layout, name)


def saved(*paths: str) -> Disk:
    disk = Disk()
    for path in paths:
        disk.put(path, TORCH)
    return disk


def test_a_rank_that_never_had_a_file_has_nothing_to_wait_for() -> None:
    assert shards(saved(), "checkpoint-20") == Shards(frozenset())


def test_a_rank_that_had_files_of_the_checkpoint_before_is_waited_for() -> None:
    found = shards(saved("checkpoint-10/rng_state_1.pth"), "checkpoint-20", later_s=500)
    assert found == Shards(frozenset(), "it has no file of checkpoint-20 yet")


def test_a_later_checkpoint_is_not_the_one_before() -> None:
    disk = saved("checkpoint-30/rng_state_1.pth", "checkpoint-30/rng_state_2.pth", "checkpoint-20/rng_state_1.pth")
    assert shards(disk, "checkpoint-20", later_s=11).reason == ""


def test_the_first_shards_have_to_rest_where_no_barrier_is_before_the_marker() -> None:
    disk = saved("checkpoint-10/rng_state_1.pth")
    assert shards(disk, "checkpoint-10", later_s=9).reason == "checkpoint-10 may not have all its files yet"
    assert shards(disk, "checkpoint-10", later_s=11).reason == ""


@pytest.mark.parametrize(
    ("layout", "path"), [("dcp", "step-10/__1_0.distcp"), ("megatron", "iter_0000010/mp_rank_01/model_optim_rng.pt")]
)
def test_the_first_shards_need_no_rest_where_the_marker_comes_after_a_barrier(layout: str, path: str) -> None:
    assert shards(saved(path), path.split("/")[0], layout).reason == ""


def test_a_torn_shard_is_not_whole_however_long_it_rests() -> None:
    disk = saved("checkpoint-10/rng_state_1.pth")
    disk.put("checkpoint-10/optimizer_1.pt", TORCH[:-5])
    assert shards(disk, "checkpoint-10", later_s=500).reason == "checkpoint-10/optimizer_1.pt is not all there"


def test_a_shard_that_the_checkpoint_before_had_is_waited_for_and_then_given_up() -> None:
    disk = saved("checkpoint-10/rng_state_1.pth", "checkpoint-10/rng_state_2.pth", "checkpoint-20/rng_state_1.pth")
    assert shards(disk, "checkpoint-20", later_s=60).reason == "checkpoint-20 has no rng_state_2.pth yet"
    assert shards(disk, "checkpoint-20", later_s=130).reason == ""


def test_the_step_in_the_name_of_a_shard_counts_as_that_of_the_checkpoint_before() -> None:
    disk = saved("step-10/rank1-10.pt", "step-20/rank1-20.pt")
    assert shards(disk, "step-20", "dcp").reason == ""


def test_shards_in_the_folder_itself_are_found() -> None:
    found = shards(saved("__1_0.distcp"), "", "dcp")
    assert found == Shards(frozenset({"__1_0.distcp"}))


def test_shards_of_a_folder_with_an_ending_have_those_of_the_one_before() -> None:
    disk = saved(
        "epoch=1-step=10.ckpt/__1_0.distcp", "epoch=1-step=10.ckpt/__2_0.distcp", "epoch=2-step=20.ckpt/__1_0.distcp"
    )
    assert shards(disk, "epoch=2-step=20.ckpt", "lightning").reason == "epoch=2-step=20.ckpt has no __2_0.distcp yet"


@pytest.mark.parametrize(
    "name", ["../other", "/etc", "..", ".", "checkpoint-10/../..", "x" * 5000, "checkpoint-" + "9" * 5000, "\0"]
)
def test_a_name_that_another_rank_makes_up_finds_nothing(name: str) -> None:
    assert not shards(saved("checkpoint-10/rng_state_1.pth"), name).files
