"""Tests from which checkpoint a framework goes on: by its number, by time, or by what a file says."""

from __future__ import annotations

from random import Random

import pytest

from agent.layouts import Recognised, recognise
from tests.node.layouts import contents
from tests.node.layouts.disk import Disk

TORCH = contents.torch_saved(Random(1))


def read(disk: Disk, later_s: float = 300.0) -> Recognised:
    return recognise(disk.listing(later_s))


def trained(disk: Disk, *folders: str) -> Recognised:
    """Saves with the Trainer into folders one after the other."""
    for folder in folders:
        disk.now += 100
        disk.put(f"{folder}/rng_state.pth", TORCH)
        disk.put(f"{folder}/trainer_state.json", contents.trainer_state(7))
    return read(disk)


@pytest.mark.parametrize(
    ("folders", "newest"),
    [
        (("checkpoint-9", "checkpoint-10"), "checkpoint-10"),
        (("checkpoint-100", "checkpoint-50"), "checkpoint-100"),
        (("checkpoint-8", "checkpoint-007"), "checkpoint-8"),
        (("checkpoint-7", "checkpoint-007"), "checkpoint-007"),
        (("checkpoint-007", "checkpoint-7"), "checkpoint-7"),
        (("checkpoint-٩", "checkpoint-8"), "checkpoint-٩"),
        ((f"checkpoint-{10**30}", "checkpoint-8"), f"checkpoint-{10**30}"),
        (("a/checkpoint-20", "b/checkpoint-10"), "b/checkpoint-10"),
        (("checkpoint-3", "checkpoint-3b", "checkpoint--4", "checkpoint-"), "checkpoint-3"),
    ],
)
def test_the_trainer_goes_on_from_the_highest_number_of_a_run(folders: tuple[str, ...], newest: str) -> None:
    found = trained(Disk(), *folders)
    assert found.newest is not None
    assert found.newest.name == newest


def test_the_step_of_the_trainer_is_that_in_its_marker() -> None:
    found = trained(Disk(), "checkpoint-9")
    assert found.newest is not None
    assert found.newest.step == 7


def test_a_step_that_no_training_has_is_unknown() -> None:
    disk = Disk()
    disk.put(f"step-{10**20}/__0_0.distcp", TORCH)
    disk.put(f"step-{10**20}/.metadata", contents.dcp_metadata({"__0_0.distcp": [len(TORCH)]}))
    found = read(disk)
    assert found.newest is not None
    assert found.newest.step == -1


def test_the_time_of_a_checkpoint_is_when_its_last_file_came() -> None:
    disk = Disk()
    found = trained(disk, "checkpoint-9")
    assert found.newest is not None
    assert found.newest.at == disk.files["checkpoint-9/trainer_state.json"].ctime


def test_lightning_goes_on_from_the_youngest_and_has_the_step_of_its_file() -> None:
    disk = Disk()
    for name, step in (("epoch=9-step=900.ckpt", 900), ("last.ckpt", 950)):
        disk.put(name, contents.lightning_saved(Random(step), step))
    found = read(disk)
    assert found.newest is not None
    assert (found.newest.name, found.newest.step) == ("last.ckpt", 950)


def test_a_link_of_lightning_belongs_to_the_file_that_it_leads_to() -> None:
    disk = Disk()
    disk.put("epoch=9-step=900.ckpt", contents.lightning_saved(Random(1), 900))
    list(disk.link("last.ckpt", "epoch=9-step=900.ckpt"))
    found = read(disk)
    assert found.newest is not None
    assert found.newest.files == {"epoch=9-step=900.ckpt", "last.ckpt"}


@pytest.mark.parametrize("target", ["gone.ckpt", "last.ckpt", "../../etc/passwd", "/etc/passwd", ".", ""])
def test_a_link_of_lightning_to_what_is_not_there_blocks(target: str) -> None:
    disk = Disk()
    disk.put("epoch=9-step=900.ckpt", contents.lightning_saved(Random(1), 900))
    list(disk.link("last.ckpt", target))
    if target:
        assert read(disk, 100.0).newest is None
        assert "last.ckpt" in read(disk, 100.0).why


@pytest.mark.parametrize("target", ["gone.ckpt", "last.ckpt", "../../etc/passwd", "last-v1.ckpt"])
def test_a_link_of_lightning_that_leads_nowhere_blocks_for_two_minutes_at_most(target: str) -> None:
    disk = Disk()
    disk.put("epoch=9-step=900.ckpt", contents.lightning_saved(Random(1), 900))
    list(disk.link("last.ckpt", target))
    list(disk.link("last-v1.ckpt", "last.ckpt"))
    found = read(disk, 125.0)
    assert found.newest is not None
    assert (found.newest.name, found.why) == ("epoch=9-step=900.ckpt", "")


def test_a_link_of_lightning_to_a_torn_checkpoint_blocks_however_long() -> None:
    disk = Disk()
    whole = contents.lightning_saved(Random(1), 900)
    disk.put("epoch=9-step=900.ckpt", whole)
    disk.put("epoch=10-step=1000.ckpt", whole[:-9])
    list(disk.link("last.ckpt", "epoch=10-step=1000.ckpt"))
    assert read(disk, 3000.0).newest is None


def test_a_torn_last_checkpoint_blocks_because_the_training_would_go_on_from_it() -> None:
    disk = Disk()
    whole = contents.lightning_saved(Random(1), 900)
    disk.put("epoch=9-step=900.ckpt", whole)
    disk.put("last.ckpt", whole[:-9])
    found = read(disk)
    assert (found.newest, found.why) == (None, "last.ckpt is not all there")
    assert found.unfinished == {"last.ckpt"}


def test_a_torn_checkpoint_with_a_name_of_its_own_does_not_hide_the_one_before() -> None:
    disk = Disk()
    whole = contents.lightning_saved(Random(1), 900)
    disk.put("epoch=9-step=900.ckpt", whole)
    disk.put("epoch=10-step=1000.ckpt", whole[:-9])
    found = read(disk)
    assert found.newest is not None
    assert (found.newest.name, found.unfinished) == ("epoch=9-step=900.ckpt", {"epoch=10-step=1000.ckpt"})
    assert "step=1000" in found.why


@pytest.mark.parametrize(
    ("marker", "newest"),
    [
        (b"global_step20", "global_step20"), (b"global_step10\n", "global_step10"), (b"global_step30", None), (b"", None),
        (b"../global_step20", None), (b"..", None), (b"global_step20\nglobal_step10", None), (b"\xff\xfe", None), (b"x" * 5000, None),
    ],
)  # fmt: skip
def test_deepspeed_goes_on_from_what_its_file_names(marker: bytes, newest: str | None) -> None:
    disk = Disk()
    for step in (10, 20):
        disk.put(f"global_step{step}/mp_rank_00_model_states.pt", TORCH)
    disk.put("latest", marker)
    found = read(disk)
    assert (found.newest.name if found.newest else None) == newest


@pytest.mark.parametrize(
    ("marker", "newest"),
    [
        (b"20", "iter_0000020"), (b"0000010\n", "iter_0000010"), (b"release", "release"), (b"30", None), (b"", None), (b"-1", None),
        (b"../20", None), ("٢٠".encode(), None), (b"9" * 60, None), (b"20 10", None),
    ],
)  # fmt: skip
def test_megatron_goes_on_from_the_number_in_its_file(marker: bytes, newest: str | None) -> None:
    disk = Disk()
    for folder in ("iter_0000010", "iter_0000020", "release"):
        disk.put(f"{folder}/mp_rank_00/model_optim_rng.pt", TORCH)
    disk.put("latest_checkpointed_iteration.txt", marker)
    found = read(disk)
    assert (found.newest.name if found.newest else None) == newest


@pytest.mark.parametrize("path", ["/data/run/ckpt-2", "ckpt-2", "./ckpt-2"])
def test_tensorflow_goes_on_from_the_prefix_that_its_file_names_by_any_path(path: str) -> None:
    disk = Disk()
    for number in (1, 2, 3):
        disk.put(f"ckpt-{number}.data-00000-of-00001")
        disk.put(f"ckpt-{number}.index")
    disk.put("checkpoint", f'model_checkpoint_path: "{path}"\n'.encode())
    found = read(disk)
    assert found.newest is not None
    assert (found.newest.name, found.newest.step) == ("ckpt-2", 2)


def test_a_checkpoint_that_is_written_over_by_a_later_save_is_not_whole() -> None:
    disk = Disk()
    trained(disk, "checkpoint-10", "checkpoint-20")
    disk.put("checkpoint-20/optimizer.pt", TORCH)
    found = read(disk)
    assert found.newest is not None
    assert found.newest.name == "checkpoint-10"
    assert found.why == "checkpoint-20/optimizer.pt was written after trainer_state.json"


def test_what_a_callback_adds_behind_the_marker_has_to_rest_and_belongs_to_the_checkpoint() -> None:
    disk = Disk()
    trained(disk, "checkpoint-10")
    disk.put("checkpoint-10/card/README.md", b"about")
    assert read(disk, 0.1).newest is None
    found = read(disk, 11)
    assert found.newest is not None
    assert "checkpoint-10/card/README.md" in found.newest.files


def test_the_first_checkpoint_of_several_processes_has_to_rest() -> None:
    disk = Disk()
    disk.put("checkpoint-10/rng_state_0.pth", TORCH)
    disk.put("checkpoint-10/trainer_state.json", contents.trainer_state(10))
    assert read(disk, 9).newest is None
    assert read(disk, 9).why == "checkpoint-10 may not have all its files yet"
    assert read(disk, 11).newest is not None


def test_a_checkpoint_without_a_file_that_the_one_before_had_is_waited_for_and_then_taken() -> None:
    disk = Disk()
    for step, ranks in ((10, (0, 1)), (20, (0,))):
        for rank in ranks:
            disk.put(f"checkpoint-{step}/rng_state_{rank}.pth", TORCH)
        disk.put(f"checkpoint-{step}/trainer_state.json", contents.trainer_state(step))
        disk.now += 60
    found = read(disk, 0)
    assert found.newest is not None
    assert (found.newest.name, found.why) == (
        "checkpoint-10",
        "checkpoint-20 lacks a file rng_state_#.pth that the one before had",
    )
    later = read(disk, 120)
    assert later.newest is not None
    assert later.newest.name == "checkpoint-20"


def test_an_old_checkpoint_from_which_a_person_removed_a_file_is_kept() -> None:
    disk = Disk()
    trained(disk, "checkpoint-10", "checkpoint-20")
    disk.now += 50
    list(disk.remove("checkpoint-10/rng_state.pth"))
    assert "checkpoint-10/trainer_state.json" not in read(disk, 0).unfinished


def test_the_newest_checkpoint_is_not_whole_while_it_is_being_deleted() -> None:
    disk = Disk()
    trained(disk, "checkpoint-10")
    disk.now += 50
    list(disk.remove("checkpoint-10/rng_state.pth"))
    assert (read(disk, 1).newest, read(disk, 1).why) == (None, "checkpoint-10 is being deleted")


def test_a_state_of_accelerate_in_the_folder_itself_has_its_shards_and_not_other_checkpoints() -> None:
    disk = Disk()
    shards = {
        "pytorch_model_fsdp_0/__0_0.distcp": TORCH,
        "pytorch_model_fsdp_0/.metadata": contents.dcp_metadata({"__0_0.distcp": [1]}),
    }
    for path, data in {
        **shards,
        "random_states_0.pkl": TORCH,
        "checkpoints/checkpoint_4/random_states_0.pkl": TORCH,
    }.items():
        disk.now += 100
        disk.put(path, data)
    list(disk.remove("checkpoints/checkpoint_4/random_states_0.pkl"))
    disk.put("checkpoints/checkpoint_4/random_states_1.pkl", TORCH)
    found = read(disk)
    assert found.newest is not None
    assert found.newest.files == {*shards, "random_states_0.pkl"}
    assert found.unfinished == {"checkpoints/checkpoint_4/random_states_1.pkl"}


def test_a_value_in_the_name_of_a_file_makes_no_other_file_of_it() -> None:
    disk = Disk()
    for step, loss in ((10, 0.5), (20, 0.25)):
        disk.now += 100
        for path in ("__0_0.distcp", "__1_0.distcp", f"loss={loss}.json"):
            disk.put(f"step-{step}/{path}", b"{}" if path.endswith(".json") else TORCH)
        disk.put(f"step-{step}/.metadata", contents.dcp_metadata({"__0_0.distcp": [1], "__1_0.distcp": [1]}))
    found = read(disk, 0)
    assert found.newest is not None
    assert found.newest.name == "step-20"
