"""Tests of what each marker stands for: a file that it needs is missing, torn or younger, and the checkpoint is not whole."""

from __future__ import annotations

from random import Random

import pytest

from agent.layouts import Recognised, recognise
from agent.layouts.candidates import GIVEN_UP_S
from tests.node.layouts import contents
from tests.node.layouts.disk import Disk

TORCH = contents.torch_saved(Random(1))
TENSORS = contents.safetensors_saved(Random(1))
SHARD = "__0_0.distcp"
METADATA = contents.dcp_metadata({SHARD: [len(TORCH)]})
INDEX = contents.index_of(["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"])
LONG_STATE = contents.trainer_state(3).replace(
    b'"log_history": [', b'"log_history": [\n' + b'    {\n      "loss": 1\n    },\n' * 24_000
)

TRAINED = {
    "checkpoint-3/model.safetensors": TENSORS, "checkpoint-3/pytorch_model_fsdp_0/__0_0.distcp": TORCH,
    "checkpoint-3/pytorch_model_fsdp_0/.metadata": METADATA, "checkpoint-3/rng_state_0.pth": TORCH,
    "checkpoint-3/trainer_state.json": LONG_STATE,
}  # fmt: skip
SPED = {
    "checkpoint-3/global_step3/mp_rank_00_model_states.pt": TORCH, "checkpoint-3/latest": b"global_step3",
    "checkpoint-3/rng_state_0.pth": TORCH,
    "checkpoint-3/trainer_state.json": contents.trainer_state(3),
}  # fmt: skip
SAVED = {
    "a/model.safetensors": TENSORS, "a/optimizer.bin": TORCH, "a/optimizer_0/__0_0.distcp": TORCH, "a/optimizer_0/.metadata": METADATA,
    "a/random_states_1.pkl": TORCH, "a/random_states_0.pkl": TORCH,
}  # fmt: skip
FSDP = {"step=3.ckpt/__0_0.distcp": TORCH, "step=3.ckpt/.metadata": METADATA, "step=3.ckpt/meta.pt": TORCH}
ZERO = {
    "global_step3/mp_rank_00_model_states.pt": TORCH, "global_step3/zero_pp_rank_0_mp_rank_00_optim_states.pt": TORCH,
    "global_step3/zero_pp_rank_1_mp_rank_00_optim_states.pt": TORCH, "latest": b"global_step3",
}  # fmt: skip
PLAIN = {
    "iter_0000003/mp_rank_00/distrib_optim.pt": TORCH, "iter_0000003/mp_rank_00/model_optim_rng.pt": TORCH,
    "latest_checkpointed_iteration.txt": b"3",
}  # fmt: skip
SHARDED = {
    "iter_0000003/common.pt": TORCH, f"iter_0000003/{SHARD}": TORCH, "iter_0000003/.metadata": METADATA,
    "iter_0000003/metadata.json": b"{}", "latest_checkpointed_iteration.txt": b"3",
}  # fmt: skip
DCP = {f"step-3/{SHARD}": TORCH, "step-3/.metadata": METADATA}
PAIR = {
    f"step-3/model/{SHARD}": TORCH,
    "step-3/model/.metadata": METADATA,
    f"step-3/optim/{SHARD}": TORCH,
    "step-3/optim/.metadata": METADATA,
}
FLOW = {
    "ckpt-3.data-00000-of-00002": b"x", "ckpt-3.data-00001-of-00002": b"x", "ckpt-3.index": b"x",
    "checkpoint": b'model_checkpoint_path: "ckpt-3"\n',
}  # fmt: skip
BACKUP = {"b/latest.weights.h5": contents.hdf5_saved(Random(1)), "b/training_metadata.json": b'{"epoch": 3}'}
MODEL = {
    "step-3/model-00001-of-00002.safetensors": TENSORS, "step-3/model-00002-of-00002.safetensors": TENSORS,
    "step-3/model.safetensors.index.json": INDEX,
}  # fmt: skip
ALL = {
    "transformers": TRAINED, "transformers with DeepSpeed": SPED, "accelerate": SAVED, "lightning": FSDP, "deepspeed": ZERO,
    "megatron": PLAIN, "megatron torch_dist": SHARDED, "dcp": DCP, "dcp of two": PAIR, "tensorflow": FLOW, "keras": BACKUP,
    "safetensors": MODEL,
}  # fmt: skip
LATE = {
    "checkpoint-3/rng_state_0.pth", "a/random_states_1.pkl", "global_step3/zero_pp_rank_1_mp_rank_00_optim_states.pt",
    "a/optimizer_0/__0_0.distcp", "a/optimizer_0/.metadata", "checkpoint-3/pytorch_model_fsdp_0/__0_0.distcp",
    "checkpoint-3/pytorch_model_fsdp_0/.metadata", "checkpoint-3/global_step3/mp_rank_00_model_states.pt", "checkpoint-3/latest",
    "step-3/optim/.metadata", "step-3/model/.metadata", "step=3.ckpt/__0_0.distcp", "step=3.ckpt/meta.pt",
}  # fmt: skip
"""Files that another process may write after the marker, and markers of inner layouts."""
UNTOLD = {".index", ".data-00000-of-00002", ".data-00001-of-00002"}
"""Endings of formats that do not tell whether all is there."""


def put(files: dict[str, bytes]) -> Disk:
    disk = Disk()
    for path, data in files.items():
        disk.now += 1
        disk.put(path, data)
    return disk


def read(disk: Disk, case: str, later_s: float = 1000.0) -> Recognised:
    """Long after the last write."""
    return recognise(disk.listing(later_s), "safetensors" if case == "safetensors" else "auto")


CASES = [(case, path) for case, files in ALL.items() for path in files]
MARKER_OF_ALL = {case: list(files)[-1] for case, files in ALL.items()}


@pytest.mark.parametrize("case", ALL)
def test_it_is_whole_with_all_of_it(case: str) -> None:
    found = read(put(ALL[case]), case)
    assert found.newest is not None, found.why
    assert found.newest.files == set(ALL[case])
    assert found.layout == case.split()[0]


@pytest.mark.parametrize(("case", "path"), [one for one in CASES if not one[1].endswith(tuple(UNTOLD))])
def test_it_is_not_whole_where_any_of_its_files_is_torn(case: str, path: str) -> None:
    files = ALL[case]
    found = read(put({**files, path: files[path][: len(files[path]) // 2]}), case)
    assert found.newest is None
    assert path in ("latest", "checkpoint") or found.why or not found.layout


@pytest.mark.parametrize(
    ("case", "path"), [one for one in CASES if one[1] not in LATE and one[1] != MARKER_OF_ALL[one[0]]]
)
def test_it_is_not_whole_where_a_file_is_younger_than_the_marker_that_comes_after_it(case: str, path: str) -> None:
    disk = put(ALL[case])
    disk.now += 1
    disk.put(path, ALL[case][path])
    assert read(disk, case).newest is None


@pytest.mark.parametrize("case", ALL)
def test_it_is_not_whole_without_its_marker(case: str) -> None:
    files = {path: data for path, data in ALL[case].items() if path != MARKER_OF_ALL[case]}
    if case == "dcp of two":
        files.pop("step-3/model/.metadata")
    assert read(put(files), case, GIVEN_UP_S - 1).newest is None


@pytest.mark.parametrize(
    ("case", "path"),
    [
        ("safetensors", "step-3/model-00001-of-00002.safetensors"), ("tensorflow", "ckpt-3.data-00000-of-00002"),
        ("tensorflow", "ckpt-3.index"),
        ("megatron torch_dist", "iter_0000003/.metadata"), ("megatron torch_dist", "iter_0000003/metadata.json"),
        ("lightning", "step=3.ckpt/.metadata"), ("transformers with DeepSpeed", "checkpoint-3/latest"), ("keras", "b/latest.weights.h5"),
        ("transformers", "checkpoint-3/pytorch_model_fsdp_0/.metadata"), ("dcp of two", "step-3/model/.metadata"),
        ("accelerate", "a/optimizer_0/.metadata"),
    ],
)  # fmt: skip
def test_it_is_not_whole_without_a_file_that_its_marker_stands_for(case: str, path: str) -> None:
    files = {one: data for one, data in ALL[case].items() if one != path}
    assert read(put(files), case).newest is None


def test_a_shard_that_is_as_long_as_a_piece_of_it_is_shorter_than_its_metadata_says() -> None:
    metadata = contents.dcp_metadata({SHARD: [len(TORCH), len(TORCH)]})
    found = read(put({f"step-3/{SHARD}": TORCH, "step-3/.metadata": metadata}), "dcp")
    assert (found.newest, found.why) == (None, f"step-3/{SHARD} is shorter than .metadata says")


def test_a_shard_of_another_rank_is_needed_and_not_missed_here() -> None:
    metadata = contents.dcp_metadata({SHARD: [len(TORCH)], "__1_0.distcp": [9]})
    found = read(put({f"step-3/{SHARD}": TORCH, "step-3/.metadata": metadata}), "dcp")
    assert found.newest is not None
    assert found.newest.needs == {f"step-3/{SHARD}", "step-3/__1_0.distcp"}


def test_a_file_of_a_whole_checkpoint_is_not_unfinished_because_it_lies_in_another_one() -> None:
    found = read(put({**DCP, f"step-3/other-4/{SHARD}": TORCH}), "dcp")
    assert found.newest is not None
    assert found.newest.name == "step-3"
    assert not found.newest.files & found.unfinished


def test_what_is_left_of_a_budget_is_not_whole_before_the_next_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.layouts.view.MOST_CHECKS", 2)
    assert read(put(ZERO), "deepspeed").newest is None
