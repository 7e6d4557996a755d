"""Bytes as the frameworks write them, small: archives of torch.save, safetensors, HDF5, the metadata of torch.distributed.checkpoint."""

from __future__ import annotations

import io
import json
import pickle
import struct
import sys
import zipfile
from random import Random
from types import ModuleType
from typing import Any
from unittest.mock import patch

MODULES: dict[str, tuple[str, ...]] = {
    "torch": (),
    "torch.distributed": (),
    "torch.distributed.checkpoint": (),
    "torch.distributed.checkpoint.metadata": ("Metadata", "MetadataIndex"),
    "torch.distributed.checkpoint.filesystem": ("_StorageInfo",),
}


def torch_saved(random: Random, head: dict[str, Any] | None = None) -> bytes:
    """An archive as torch.save writes it: entries stored as they are, the pickle first."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as writer:
        writer.writestr("archive/data.pkl", pickle.dumps({**(head or {}), "n": random.random()}, protocol=2))
        for number in range(random.randint(1, 3)):
            writer.writestr(f"archive/data/{number}", random.randbytes(random.randint(1, 3000)))
        writer.writestr("archive/version", "3\n")
    return archive.getvalue()


def lightning_saved(random: Random, step: int) -> bytes:
    head = {"epoch": step // 10, "global_step": step, "pytorch-lightning_version": "2.6.6", "state_dict": {}}
    return torch_saved(random, head)


def safetensors_saved(random: Random) -> bytes:
    size = random.randint(1, 900) * 4
    header = json.dumps({"w": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}).encode()
    return struct.pack("<Q", len(header)) + header + random.randbytes(size)


def hdf5_saved(random: Random) -> bytes:
    """A superblock of version 0 and its bytes: HDF5 writes where the file ends when it closes it."""
    size = random.randint(100, 3000)
    block = b"\x89HDF\r\n\x1a\n" + bytes((0, 0, 0, 0, 0, 8, 8, 0)) + struct.pack("<HHI", 4, 16, 0)
    block += struct.pack("<QQQQ", 0, 2**64 - 1, size, 2**64 - 1)
    return block + random.randbytes(size - len(block))


def keras_saved(random: Random) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as writer:
        writer.writestr("metadata.json", json.dumps({"keras_version": "3.15.1"}))
        writer.writestr("config.json", "{}")
        writer.writestr("model.weights.h5", hdf5_saved(random))
    return archive.getvalue()


def trainer_state(step: int) -> bytes:
    state = {
        "best_metric": None,
        "epoch": 1.5,
        "global_step": step,
        "log_history": [{"loss": 0.1, "step": step}],
        "max_steps": 100,
    }
    return (json.dumps(state, indent=2, sort_keys=True) + "\n").encode()


def index_of(shards: list[str]) -> bytes:
    weights = {f"layer.{number}": shard for number, shard in enumerate(shards)}
    return (
        json.dumps({"metadata": {"total_size": 9}, "weight_map": weights}, indent=2, sort_keys=True) + "\n"
    ).encode()


def dcp_metadata(shards: dict[str, list[int]], protocol: int = 4) -> bytes:
    """The pickle of a Metadata that lists, by shard, the lengths of its pieces, one behind the other."""
    with patch.dict(sys.modules, {name: _module(name, names) for name, names in MODULES.items()}):
        metadata = sys.modules["torch.distributed.checkpoint.metadata"]
        info = sys.modules["torch.distributed.checkpoint.filesystem"]._StorageInfo
        whole = metadata.Metadata()
        whole.state_dict_metadata, whole.storage_data = {}, {}
        for shard, lengths in shards.items():
            for number, length in enumerate(lengths):
                index, place = metadata.MetadataIndex(), info()
                index.fqn, index.offset, index.index = f"{shard}.weight{number}", (number, 0), None
                place.relative_path, place.offset, place.length = shard, sum(lengths[:number]), length
                whole.storage_data[index] = place
        return pickle.dumps(whole, protocol=protocol)


def _module(name: str, names: tuple[str, ...]) -> ModuleType:
    module = ModuleType(name)
    for one in names:
        setattr(module, one, type(one, (), {"__module__": name}))
    return module
