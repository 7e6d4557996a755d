"""Tests that files of no framework are not taken for a checkpoint of one, and that a request which names a layout has that one alone."""

from __future__ import annotations

import pickle
from random import Random

import pytest

from agent.layouts import Recognised, recognise
from contract.jobs import CheckpointLayout
from tests.node.layouts import contents
from tests.node.layouts.disk import Disk

TORCH = contents.torch_saved(Random(1))
TENSORS = contents.safetensors_saved(Random(1))
STATE = contents.trainer_state(3)
METADATA = contents.dcp_metadata({"__0_0.distcp": [len(TORCH)]})


def folder_of(files: dict[str, bytes]) -> Disk:
    disk = Disk()
    for path, data in files.items():
        disk.put(path, data)
    return disk


def read(files: dict[str, bytes], layout: str = "auto", later_s: float = 300.0) -> Recognised:
    return recognise(folder_of(files).listing(later_s), layout)


PLAIN = {
    "nothing at all": {},
    "one file that is saved in place": {"model.pt": TORCH},
    "a folder called as the Trainer does, without its marker": {"checkpoint-3/model.pt": TORCH, "checkpoint-3/config.json": b"{}"},
    "that with a model in safetensors": {"checkpoint-3/model.safetensors": TENSORS, "checkpoint-3/config.json": b"{}"},
    "a file called as the Trainer's folder": {"checkpoint-3": TORCH},
    "a marker of the Trainer without its step": {"checkpoint-3/trainer_state.json": b'{\n  "epoch": 1\n}\n'},
    "a marker of the Trainer that is empty": {"checkpoint-3/trainer_state.json": b"", "checkpoint-3/model.pt": TORCH},
    "a marker of the Trainer beside the folders": {"trainer_state.json": STATE, "checkpoint-3/model.pt": TORCH},
    "`latest` about something else": {"latest": b"see the wiki", "step-3/model.pt": TORCH},
    "`latest` that names a folder without states": {"latest": b"step-3", "step-3/model.pt": TORCH},
    "a number in a file called as Megatron's": {"latest_checkpointed_iteration.txt": b"3", "3/model.pt": TORCH},
    "a folder called as Megatron's": {"iter_0000003/model.pt": TORCH},
    "a `.metadata` that is text": {"step-3/.metadata": b"written by me", "step-3/model.pt": TORCH},
    "a `.metadata` that is another pickle": {"step-3/.metadata": pickle.dumps({"epoch": 3}), "step-3/model.pt": TORCH},
    "a `.metadata` that is a folder": {"step-3/.metadata/x": b"x", "step-3/model.pt": TORCH},
    "an archive called .ckpt that is not Lightning's": {"sd-v1.ckpt": TORCH},
    "a folder called .ckpt": {"model.ckpt/weights.pt": TORCH},
    "numbered folders": {"100/model.pt": TORCH, "200/model.pt": TORCH},
    "an item of OCDBT alone": {"100/manifest.ocdbt": b"x"},
    "a file `checkpoint` that names nothing": {"checkpoint": b"about my checkpoints", "ckpt-3.index": b"x"},
    "a file in HDF5": {"data.h5": contents.hdf5_saved(Random(1))},
    "a model in safetensors with its index": {
        "step-3/model-00001-of-00001.safetensors": TENSORS,
        "step-3/model.safetensors.index.json": contents.index_of(["model-00001-of-00001.safetensors"]),
    },
    "random states that are something else's": {"step-3/random_states.pkl": TORCH},
}  # fmt: skip


@pytest.mark.parametrize("files", PLAIN.values(), ids=PLAIN)
def test_plain_files_are_of_no_layout(files: dict[str, bytes]) -> None:
    assert read(files) == Recognised()


SURE = {
    "transformers": {"checkpoint-3/rng_state.pth": TORCH, "checkpoint-3/trainer_state.json": STATE},
    "accelerate": {"mine/model.safetensors": TENSORS, "mine/random_states_0.pkl": TORCH},
    "lightning": {"last.ckpt": contents.lightning_saved(Random(1), 3)},
    "deepspeed": {"global_step3/mp_rank_00_model_states.pt": TORCH, "latest": b"global_step3"},
    "megatron": {"iter_0000003/mp_rank_00/model_optim_rng.pt": TORCH, "latest_checkpointed_iteration.txt": b"3"},
    "orbax": {"3/_CHECKPOINT_METADATA": b"{}", "3/default/manifest.ocdbt": b"x"},
    "dcp": {"step-3/__0_0.distcp": TORCH, "step-3/.metadata": METADATA},
    "tensorflow": {"ckpt-3.index": b"x", "ckpt-3.data-00000-of-00001": b"x", "checkpoint": b'model_checkpoint_path: "ckpt-3"\n'},
    "keras": {"model.keras": contents.keras_saved(Random(1))},
    "safetensors": {"step-3/model.safetensors": TENSORS},
}  # fmt: skip


@pytest.mark.parametrize("layout", [one for one in SURE if one != "safetensors"])
def test_a_layout_is_recognised_without_a_word(layout: str) -> None:
    found = read(SURE[layout])
    assert found.layout == layout
    assert found.newest is not None
    assert found.newest.files == set(SURE[layout])
    assert not found.unfinished


@pytest.mark.parametrize("layout", SURE)
def test_a_layout_is_recognised_where_the_request_names_it(layout: str) -> None:
    found = read(SURE[layout], layout)
    assert (found.layout, found.newest is not None) == (layout, True)


@pytest.mark.parametrize("layout", SURE)
def test_another_layout_than_the_named_one_is_not_looked_for(layout: str) -> None:
    for other in sorted(set(SURE) - {layout}):
        found = read(SURE[layout], other)
        assert found.newest is None or {layout, other} <= {"transformers", "accelerate", "safetensors"}, other


@pytest.mark.parametrize("layout", SURE)
def test_nothing_is_recognised_where_the_request_says_none(layout: str) -> None:
    assert read(SURE[layout], "none") == Recognised()


@pytest.mark.parametrize("layout", SURE)
def test_what_another_version_of_the_request_names_is_not_recognised(layout: str) -> None:
    assert read(SURE[layout], "pickle") == Recognised()


def test_every_layout_of_a_request_is_one_that_can_be_recognised() -> None:
    assert {one.value for one in CheckpointLayout} == {"auto", "none", *SURE}


@pytest.mark.parametrize(
    ("path", "layout"),
    [
        ("checkpoint-3/rng_state_8.pth", "transformers"), ("run/checkpoint_3/random_states_8.pkl", "accelerate"),
        ("step-3/__8_0.distcp", "dcp"), ("global_step3/zero_pp_rank_8_mp_rank_00_optim_states.pt", "deepspeed"),
        ("iter_0000003/mp_rank_01/model_optim_rng.pt", "megatron"), ("iter_0000003/__8_0.distcp", "megatron"),
        ("checkpoint-3/training_args.bin", "transformers"), ("3.orbax-checkpoint-tmp/default/d/1", "orbax"),
        ("tmp-checkpoint-3/training_args.bin", "transformers"),
    ],
)  # fmt: skip
def test_what_has_no_marker_yet_or_has_it_on_another_rank_is_unfinished(path: str, layout: str) -> None:
    found = read({path: TORCH})
    assert (found.layout, found.newest, found.unfinished) == (layout, None, {path})
    assert found.why


def test_files_beside_the_checkpoints_are_neither_theirs_nor_unfinished() -> None:
    found = read({"runs/events.out.tfevents.1": b"x", "README.md": b"x", **SURE["transformers"]})
    assert found.newest is not None
    assert found.newest.files == set(SURE["transformers"])
    assert not found.unfinished


def test_the_outer_layout_counts_where_one_has_others_inside() -> None:
    inner = {
        "checkpoint-3/pytorch_model_fsdp_0/__0_0.distcp": TORCH,
        "checkpoint-3/pytorch_model_fsdp_0/.metadata": METADATA,
    }
    found = read({**inner, "checkpoint-3/rng_state_0.pth": TORCH, "checkpoint-3/trainer_state.json": STATE})
    assert found.layout == "transformers"
    assert found.newest is not None
    assert (found.newest.name, found.newest.step) == ("checkpoint-3", 3)
    assert found.newest.needs == {"checkpoint-3/pytorch_model_fsdp_0/__0_0.distcp"}
