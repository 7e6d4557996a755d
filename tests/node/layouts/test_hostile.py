"""Tests that markers which a hostile job writes cost bounded time and bytes, never raise, and lead nowhere."""

from __future__ import annotations

import pickle
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random

import pytest

from agent.layouts import FolderListing, Recognised, recognise
from agent.layouts.listing import Judgements
from agent.layouts.pickles import MOST_PICKLE, find_number, read_shards
from agent.snapshot import FileState
from contract.jobs import CheckpointLayout
from tests.node.layouts import contents
from tests.node.layouts.disk import Disk

TORCH = contents.torch_saved(Random(1))
SIGN = b"torch.distributed.checkpoint.metadata"
LAYOUTS = [one.value for one in CheckpointLayout]
MARKERS = (
    "step-3/.metadata", "checkpoint-3/trainer_state.json", "latest", "latest_checkpointed_iteration.txt", "checkpoint", "last.ckpt",
    "3/_CHECKPOINT_METADATA", "model.keras", "latest.weights.h5", "training_metadata.json", "m/model.safetensors.index.json",
    "m/model.safetensors", "mine/random_states_0.pkl", "step-3/__0_0.distcp",
)  # fmt: skip
BESIDE = (
    "checkpoint-3/rng_state.pth", "global_step3/mp_rank_00_model_states.pt", "iter_0000003/mp_rank_00/model_optim_rng.pt", "ckpt-3.index",
    "ckpt-3.data-00000-of-00001",
)  # fmt: skip


def texts(text: bytes) -> bytes:
    return b"\x8c" + bytes((len(text),)) + text


BOMBS = {
    "nothing": b"",
    "zeros": bytes(300_000),
    "nested lists": b"[" * 200_000,
    "nested objects": b'{"a":' * 50_000,
    "many small objects": b"[" + b"{}," * 80_000 + b"{}]",
    "a long number": b'{\n  "global_step": ' + b"9" * 200_000 + b"\n}\n",
    "a deep pickle": b"\x80\x04" + SIGN + b"(" * 200_000 + b".",
    "a pickle that would run a command": pickle.dumps(SIGN) + b"cos\nsystem\n(S'touch pwned'\ntR.",
    "a pickle with a text of 2^62 bytes": b"\x80\x04" + texts(SIGN) + b"\x8d" + struct.pack("<Q", 2**62) + b".",
    "a pickle with a number of 2^31 bytes": b"\x80\x04" + texts(SIGN) + b"\x8b\xff\xff\xff\x7f.",
    "a pickle with a number of many digits": b"\x80\x04" + texts(SIGN) + b"I" + b"9" * 100_000 + b"\n.",
    "a pickle with a text that is no UTF-8": b"\x80\x04" + texts(SIGN) + b"\x8c\x02\xff\xfe.",
    "a pickle that gets what was never put": b"\x80\x04" + texts(SIGN) + b"h\xffj\xff\xff\xff\xff.",
    "names that leave the folder": b"../../../etc/passwd",
    "an absolute name": b"/etc/passwd",
    "a prefix that leaves the folder": b'model_checkpoint_path: "../../x"\n',
    "an archive that ends at 2^64": b"PK\x03\x04PK\x06\x06" + b"\xff" * 52 + b"PK\x06\x07" + b"\xff" * 16 + b"PK\x05\x06" + b"\xff" * 18,
    "lines": b"\n" * 100_000,
}  # fmt: skip


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    began = time.process_time()
    yield
    assert time.process_time() - began < seconds


def read_nothing(_path: str, _offset: int, _most: int) -> bytes:
    return b""


def read(disk: Disk, layout: str = "auto") -> Recognised:
    return recognise(disk.listing(300), layout)


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_marker_of_any_bytes_costs_little_and_raises_nothing(bomb: bytes) -> None:
    disk = Disk()
    for path in BESIDE:
        disk.put(path, TORCH)
    for path in MARKERS:
        disk.put(path, bomb)
    with bounded(3):
        for layout in LAYOUTS:
            found = read(disk, layout)
            if found.newest is not None:
                assert found.newest.files <= disk.files.keys()
                assert not any(".." in path for path in found.newest.needs)


def test_a_gigabyte_of_zeros_is_not_read() -> None:
    disk = Disk()
    for path in (*MARKERS, *BESIDE):
        disk.put(path, b"x")
    listing = disk.listing(300)
    large = {path: state._replace(size=2**30) for path, state in listing.files.items()}
    read = list[int]()

    def zeros(_path: str, _offset: int, most: int) -> bytes:
        read.append(most)
        assert most <= MOST_PICKLE + 1
        return bytes(min(most, 1 << 20))

    with bounded(3):
        for layout in LAYOUTS:
            recognise(replace(listing, files=large, read=zeros), layout)
    assert sum(read) < 2**26


def metadata_of(count: int) -> bytes:
    return contents.dcp_metadata({f"__{number}_0.distcp": [10] for number in range(count)})


def test_a_metadata_of_very_many_pieces_gives_the_names_alone() -> None:
    pieces = pickle.dumps([None] * 1_100_000)[2:-1]
    document = metadata_of(3)
    padded = document[:-1] + pieces + b"."
    with bounded(6):
        found = read_shards(padded)
    assert found is not None
    assert found.least == {"__0_0.distcp": 0, "__1_0.distcp": 0, "__2_0.distcp": 0}
    assert read_shards(padded[:-1]) is None


def test_a_metadata_lists_how_long_each_shard_is() -> None:
    for protocol in (2, 4, 5):
        found = read_shards(contents.dcp_metadata({"__0_0.distcp": [5, 7], "__1_0.distcp": [11]}, protocol))
        assert found is not None
        assert found.least == {"__0_0.distcp": 12, "__1_0.distcp": 11}


def test_a_metadata_that_is_cut_anywhere_lists_nothing() -> None:
    document = metadata_of(5)
    assert [cut for cut in range(len(document)) if read_shards(document[:cut]) is not None] == []


def test_a_number_is_found_only_behind_its_name() -> None:
    assert find_number(pickle.dumps({"epoch": 3, "global_step": 70, "x": "global_step"}, 2), "global_step") == 70
    assert find_number(pickle.dumps({"global_step": "70"}, 2), "global_step") == -1
    assert find_number(b"\x80\x02}(X\x0b\0\0\0global_step", "global_step") == -1
    assert find_number(b"no pickle", "global_step") == -1


def test_links_in_a_circle_end() -> None:
    disk = Disk()
    disk.put("epoch=1-step=10.ckpt", contents.lightning_saved(Random(1), 10))
    for path, target in (
        ("last.ckpt", "last-v1.ckpt"),
        ("last-v1.ckpt", "last.ckpt"),
        ("latest", "latest"),
        ("checkpoint", "./checkpoint"),
    ):
        list(disk.link(path, target))
    for layout in LAYOUTS:
        read(disk, layout)
    assert recognise(disk.listing(100)).newest is None


def test_very_many_folders_cost_bounded_time() -> None:
    disk = Disk()
    state = contents.trainer_state(1)
    for number in range(3000):
        disk.put(f"checkpoint-{number}/trainer_state.json", state)
        disk.put(f"step-{number}/.metadata", b"\x80" + SIGN + b".")
    with bounded(4):
        found = read(disk)
    assert found.newest is not None
    assert found.newest.name == "checkpoint-2999"


def test_what_was_read_is_not_read_again_and_forgotten_with_its_file() -> None:
    disk = Disk()
    disk.put("step-3/__0_0.distcp", TORCH)
    disk.put("step-3/.metadata", contents.dcp_metadata({"__0_0.distcp": [len(TORCH)]}))
    judgements = Judgements()
    recognise(replace(disk.listing(300), judgements=judgements))
    read = disk.bytes_read
    recognise(replace(disk.listing(300), judgements=judgements))
    assert disk.bytes_read - read < 16
    assert judgements.shards
    recognise(FolderListing({}, {}, disk.read, lambda state: state.changed_s, disk.now, judgements))
    assert not judgements.shards
    assert not judgements.formats


def test_a_file_that_goes_away_while_it_is_read_is_not_whole() -> None:
    disk = Disk()
    for path, data in (
        ("checkpoint-3/rng_state.pth", TORCH),
        ("checkpoint-3/trainer_state.json", contents.trainer_state(3)),
    ):
        disk.put(path, data)
    found = recognise(replace(disk.listing(300), read=read_nothing))
    assert found.newest is None


def test_a_file_that_could_not_be_read_once_is_read_again() -> None:
    disk = Disk()
    disk.put("model.keras", contents.keras_saved(Random(1)))
    judgements = Judgements()
    blind = replace(disk.listing(300), read=read_nothing, judgements=judgements)
    assert recognise(blind).newest is None
    assert recognise(replace(disk.listing(300), judgements=judgements)).newest is not None


def test_a_listing_whose_sizes_lie_is_judged_by_its_bytes() -> None:
    disk = Disk()
    disk.put("model.keras", contents.keras_saved(Random(1)))
    listing = disk.listing(300)
    state: FileState = listing.files["model.keras"]
    for size in (0, 1, state.size - 1, state.size + 1, 2**62):
        assert (
            recognise(
                replace(listing, files={"model.keras": state._replace(size=size)}, judgements=Judgements())
            ).newest
            is None
        )
