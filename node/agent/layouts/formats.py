"""Decides from a few bytes at both ends of a file whether all of it is there, where its format tells.

zip (torch.save, NumPy's .npz, .keras, Lightning's .ckpt): APPNOTE.TXT of PKWARE, 4.3.14 to 4.3.16; torch/serialization.py 2.13 writes the
directory of the archive last. safetensors: README of its repository, "Format". HDF5: "File Format Specification", II.A. NumPy:
numpy/lib/format.py. tar: POSIX, pax, "ustar Interchange Format". LightGBM: `SaveModelToString` in src/boosting/gbdt_model_text.cpp.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable
from pathlib import PurePosixPath

At = Callable[[int, int], bytes]
"""Returns at most so many bytes of a file from an offset on."""
ZIP, HDF5, NUMPY = b"PK\x03\x04", b"\x89HDF\r\n\x1a\n", b"\x93NUMPY"
PARQUET, ARROW, LIGHTGBM = b"PAR1", b"ARROW1", b"tree\nversion="
TAIL = 4096
"""Bytes of the end in which a zip's last record is looked for: torch.save, NumPy and Keras write no comment behind it."""
MOST_HEADER, LARGE_HEADER = 100_000_000, 32 * 1024 * 1024
"""Bytes of a safetensors header at most, by its own specification; and up to which it is read."""
MOST_JSON = 256 * 1024
"""Bytes of a header or a small document in JSON, which is read at once."""
MOST_DOCUMENT = 16 * 1024 * 1024
"""Bytes of a JSON document up to which all of it is read: a history of losses as a whole training has it."""
PICKLES = frozenset({".pt", ".pth", ".ckpt", ".bin", ".pkl"})
"""Endings that torch.save's files have: a zip today, a bare pickle before 1.6 and by `_use_new_zipfile_serialization=False`."""
MODEL = re.compile(r"(?:(?:pytorch_|adapter_)?model|optimizer|scheduler|sampler|scaler|training_args)(?![a-z])")
"""Files that frameworks write with torch.save under a name that ends in .bin; others may be empty, or begin with zeros."""
MOST_MODEL = 16 * 1024 * 1024
"""Bytes of a model as text up to which its end is looked for."""
MOST_ENTRIES, BLOCK, MOST_PADDING = 10_000, 512, 1024 * 1024
"""Entries of a tar up to which its end is looked for, the bytes that each begins at a multiple of, and those of zeros behind its end."""
OFFSETS = re.compile(rb'"data_offsets"\s*:\s*\[\s*\d{1,18}\s*,\s*(\d{1,18})\s*\]')
BEGUN = re.compile(r"-?(I(n(f(i(n(it?)?)?)?)?)?)?|t(ru?)?|f(a(ls?)?)?|n(ul?)?|Na?|\.?[eE]?[+-]?")
"""What a word or a number in JSON may begin with, and not end."""
NUMPY_TYPE = re.compile(rb"'descr': '[<>|=][biufcSV](\d{1,6})'")
NUMPY_SHAPE = re.compile(rb"'shape': \(([\d\s,]{0,1024})\)")


def is_whole(read: At, size: int, name: str = "") -> bool | None:
    """Decides whether a file of `size` bytes is all there; None where its format does not tell. By its `name` a file is also judged that
    has nothing yet, or zeros where its format begins."""
    suffix = PurePosixPath(name).suffix
    head = read(0, 16)
    if suffix == ".distcp":
        return _is_shard(read, size, head)
    if suffix == ".safetensors":
        return _is_safetensors(read, size)
    if suffix == ".json":
        return _is_json(read, size)
    if head.startswith(HDF5):
        return _is_hdf5(read, size)
    if head.startswith(NUMPY):
        return _is_numpy(read, size)
    if head.startswith(ZIP):
        return _is_zip(read, size)
    if head.startswith((PARQUET, ARROW)):
        return read(max(0, size - 6), 6).endswith(PARQUET if head.startswith(PARQUET) else ARROW) and size > 12
    if head.startswith(LIGHTGBM):
        return _is_lightgbm(read, size)
    if suffix == ".tar" or read(257, 5) == b"ustar":
        return _is_tar(read, size)
    begun = head.rstrip(b"\0")
    if begun and ZIP.startswith(begun):
        return False
    if suffix in PICKLES:
        return None if begun or (suffix == ".bin" and not MODEL.match(PurePosixPath(name).name)) else False
    return False if suffix in {".keras", ".npz", ".npy", ".h5", ".hdf5"} else None


def _is_zip(read: At, size: int) -> bool:
    """Whether the directory at the archive's end is there, and begins and ends where its last record says."""
    start = max(0, size - TAIL)
    tail = read(start, TAIL)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < 22:
        return False
    length, offset, comment = struct.unpack_from("<IIH", tail, at + 12)
    end = start + at
    if end + 22 + comment != size:
        return False
    if offset == 0xFFFFFFFF or length == 0xFFFFFFFF or tail[at - 20 : at - 16] == b"PK\x06\x07":
        end, offset, length = _find_zip64(read, tail, start, at)
    return end >= 0 and offset + length == end and (length == 0 or read(offset, 4) == b"PK\x01\x02")


def _find_zip64(read: At, tail: bytes, start: int, at: int) -> tuple[int, int, int]:
    """Returns where the directory of a large archive must end, where it begins and how long it is; -1 where there is none."""
    if at < 20 or tail[at - 20 : at - 16] != b"PK\x06\x07":
        return -1, 0, 0
    place = struct.unpack_from("<Q", tail, at - 12)[0]
    record = read(place, 56) if place < start + at else b""
    if len(record) < 56 or not record.startswith(b"PK\x06\x06"):
        return -1, 0, 0
    length, offset = struct.unpack_from("<QQ", record, 40)
    return place, offset, length


def _is_shard(read: At, size: int, head: bytes) -> bool | None:
    """A file of torch.distributed.checkpoint is a row of archives, each of one tensor: it can be cut between two of them, and then only
    the sizes in its metadata tell. A process that has nothing to save writes an empty one."""
    if not size:
        return None
    if not head.strip(b"\0"):
        return False
    if not head.startswith(ZIP):
        return None
    tail = read(max(0, size - 22), 22)
    return None if tail.startswith(b"PK\x05\x06") else False


def _is_safetensors(read: At, size: int) -> bool | None:
    """Whether the file ends where the last of its tensors does. One whose length is allocated first looks whole from its header on."""
    prefix = read(0, 8)
    if len(prefix) < 8:
        return False
    length = struct.unpack("<Q", prefix)[0]
    if not 2 <= length <= min(MOST_HEADER, size - 8):
        return False
    if length > LARGE_HEADER:
        return None
    header = read(8, length)
    if len(header) < length or not header.startswith(b"{") or not header.rstrip().endswith(b"}"):
        return False
    last = max((int(found[1]) for found in OFFSETS.finditer(header)), default=0)
    return bool(8 + length + last == size)


def _is_hdf5(read: At, size: int) -> bool:
    """Whether the file ends where its superblock says."""
    block = read(0, 64)
    version = block[8] if len(block) > 8 else 255
    if version <= 1 and len(block) >= 64:
        wide, at = block[13], 24 + (4 if version == 1 else 0) + 16
    elif version in (2, 3) and len(block) >= 48:
        wide, at = block[9], 12 + 16
    else:
        return False
    if wide != 8 or len(block) < at + 8:
        return False
    return bool(struct.unpack_from("<Q", block, at)[0] == size)


def _is_numpy(read: At, size: int) -> bool | None:
    """Whether the file has as many bytes as its shape and type say. Behind one array there may be another, and more to come."""
    head = read(0, 12)
    if len(head) < 12 or head[6] not in (1, 2, 3):
        return False
    wide = 2 if head[6] == 1 else 4
    length = int.from_bytes(head[8 : 8 + wide], "little")
    if not 0 < length <= MOST_JSON or 8 + wide + length > size:
        return False
    header = read(8 + wide, length)
    kind, shape = NUMPY_TYPE.search(header), NUMPY_SHAPE.search(header)
    if kind is None or shape is None:
        return None
    items = math.prod(int(part) for part in shape[1].split(b",") if part.strip())
    end = 8 + wide + length + items * int(kind[1])
    return None if end < size and NUMPY.startswith(read(end, len(NUMPY))) else end == size


def _is_tar(read: At, size: int) -> bool | None:
    """Whether two blocks of zeros end the archive, where its entries do."""
    at = 0
    for _ in range(MOST_ENTRIES):
        head = read(at, BLOCK)
        if len(head) < BLOCK:
            return False
        if not head.strip(b"\0"):
            rest = read(at, MOST_PADDING + 1)
            return 2 * BLOCK <= len(rest) <= MOST_PADDING and not rest.strip(b"\0")
        try:
            length = int(head[124:136].split(b"\0")[0].strip() or b"0", 8)
        except ValueError:  # a size in binary, of more than 8 GiB
            return None
        at += BLOCK + -(-length // BLOCK) * BLOCK
        if at > size:
            return False
    return None


def _is_lightgbm(read: At, size: int) -> bool | None:
    """A model of LightGBM is cut off before the end of its trees; what follows has no mark of its end."""
    return False if size <= MOST_MODEL and b"\nend of trees" not in read(0, size) else None


def is_cut_json(document: bytes) -> bool:
    """Whether a document that is not JSON may become one by what is still to come. Comments and what Python prints do not."""
    try:
        text = document.decode()
        json.loads(text)
    except UnicodeDecodeError as problem:
        return problem.end >= len(document)
    except json.JSONDecodeError as problem:
        rest = text[problem.pos :].rstrip()
        return not rest or problem.msg.startswith("Unterminated") or BEGUN.fullmatch(rest) is not None
    except RecursionError:
        return True
    return False


def _is_json(read: At, size: int) -> bool | None:
    """A large document is judged by its ends alone: written with an indent, only its last line begins with a brace that closes. Lines of
    JSON have such a name too."""
    if size > MOST_DOCUMENT:
        head, tail = read(0, 1), read(size - 8, 8)
        return None if head not in (b"{", b"[") else (tail.rstrip().endswith((b"\n}", b"\n]")) or None)
    document = read(0, size)
    try:
        json.loads(document)
    except (ValueError, RecursionError):
        return None if _is_lines(document) else False
    return True


def _is_lines(document: bytes) -> bool:
    """Whether a document has a JSON value on each line (JSON Lines). Such a file has no mark of its end."""
    first, _, more = document.strip().partition(b"\n")
    try:
        return bool(more) and first[:1] in b"{[" and json.loads(first) is not None
    except (ValueError, RecursionError):
        return False
