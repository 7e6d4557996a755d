"""Bytes of one save in each format that trainers have their weights in."""

from __future__ import annotations

import io
import json
import pickle
import random
import struct
import zipfile
from collections.abc import Callable

from tests.node.layouts import contents


def as_npz(chance: random.Random) -> bytes:
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w") as archive:
        archive.writestr("weights.npy", as_npy(chance))
    return into.getvalue()


def as_npy(chance: random.Random) -> bytes:
    count = chance.randint(50, 400)
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({count},), }}"
    head += " " * (64 - (len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + chance.randbytes(8 * count)


def as_lightgbm(chance: random.Random) -> bytes:
    trees = "".join(
        f"Tree={n}\nleaf_value={chance.random()} {chance.random()}\n\n" for n in range(chance.randint(3, 9))
    )
    return f"tree\nversion=v4\nnum_class=1\n\n{trees}end of trees\n\nparameters:\nend of parameters\n".encode()


def as_xgboost(chance: random.Random) -> bytes:
    leaves = [chance.random() for _ in range(chance.randint(20, 200))]
    return json.dumps({"learner": {"gradient_booster": leaves}, "version": [3, 0, 0]}).encode()


def as_lines(chance: random.Random) -> bytes:
    return "".join(f"{chance.random()} {chance.random()}\n" for _ in range(chance.randint(20, 200))).encode()


FORMATS: dict[str, tuple[str, Callable[[random.Random], bytes], bool]] = {
    "torch": (".pt", contents.torch_saved, True),
    "safetensors": (".safetensors", contents.safetensors_saved, True),
    "hdf5": (".h5", contents.hdf5_saved, True),
    "npz": (".npz", as_npz, True),
    "npy": (".npy", as_npy, True),
    "pickle": (".pkl", lambda chance: pickle.dumps([chance.randbytes(900), chance.random()]), False),
    "raw": (".bin", lambda chance: b"\x01" + chance.randbytes(chance.randint(500, 3000)), False),
    "raw without an ending": ("", lambda chance: b"\x00" + chance.randbytes(chance.randint(500, 3000)), False),
    "lightgbm": (".txt", as_lightgbm, False),
    "xgboost": (".json", as_xgboost, True),
    "lines": (".weights", as_lines, False),
}
"""By name: an ending, bytes of one save, and whether the format shows that all of it is there."""
