"""Tests that a file which is cut anywhere is not taken for whole, by the few bytes that are read of it."""

from __future__ import annotations

import io
import json
import pickle
import struct
import tarfile
import zipfile
from collections.abc import Callable
from random import Random

import pytest

from agent.layouts.formats import MOST_DOCUMENT, is_cut_json, is_whole
from agent.layouts.pickles import TORCH, find_end, is_all_there
from tests.node.layouts import contents


def judge(data: bytes, name: str) -> bool | None:
    return is_whole(lambda offset, most: data[offset : offset + most], len(data), name)


def numpy_saved(random: Random) -> bytes:
    """What numpy.save writes of a matrix of doubles."""
    rows = random.randint(1, 50)
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, 3), }}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + random.randbytes(rows * 24)


def tar_saved(random: Random) -> bytes:
    """What tarfile writes of files with zeros in them, to its last record."""
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w") as archive:
        for number in range(3):
            entry = tarfile.TarInfo(f"weights-{number}")
            entry.size = random.randint(1, 900)
            archive.addfile(entry, io.BytesIO(bytes(entry.size)))
    return into.getvalue().rstrip(b"\0").ljust(archive.offset, b"\0")[: archive.offset]


WRITERS: list[tuple[str, Callable[[Random], bytes]]] = [
    ("model.pt", contents.torch_saved),
    ("rng_state.pth", contents.torch_saved),
    ("last.ckpt", lambda random: contents.lightning_saved(random, 7)),
    ("pytorch_model.bin", contents.torch_saved),
    ("states.npz", contents.torch_saved),
    ("model.keras", contents.keras_saved),
    ("model.safetensors", contents.safetensors_saved),
    ("latest.weights.h5", contents.hdf5_saved),
    ("mean.npy", numpy_saved),
    ("weights.tar", tar_saved),
    ("trainer_state.json", lambda random: contents.trainer_state(random.randint(1, 10**6))),
]
ARCHIVES = [one for one in WRITERS if one[0].endswith((".pt", ".pth", ".ckpt", ".bin", ".npz", ".keras"))]


@pytest.mark.parametrize(("name", "write"), WRITERS, ids=lambda one: one if isinstance(one, str) else "")
def test_a_file_that_is_all_there_is_whole(name: str, write: Callable[[Random], bytes]) -> None:
    for seed in range(20):
        assert judge(write(Random(seed)), name) is True


@pytest.mark.parametrize(("name", "write"), WRITERS, ids=lambda one: one if isinstance(one, str) else "")
def test_a_file_that_is_cut_anywhere_is_not_whole(name: str, write: Callable[[Random], bytes]) -> None:
    for seed in range(3):
        data = write(Random(seed)).rstrip(b"\n") if name.endswith(".json") else write(Random(seed))
        assert [cut for cut in range(len(data)) if judge(data[:cut], name) is not False] == []


@pytest.mark.parametrize(("name", "write"), ARCHIVES, ids=lambda one: one if isinstance(one, str) else "")
def test_an_archive_whose_length_is_allocated_first_is_not_whole_before_its_last_byte(
    name: str, write: Callable[[Random], bytes]
) -> None:
    for seed in range(3):
        data = write(Random(seed))
        end = len(data.rstrip(b"\0"))
        assert [cut for cut in range(end) if judge(data[:cut] + bytes(len(data) - cut), name) is not False] == []


@pytest.mark.parametrize(("name", "write"), WRITERS, ids=lambda one: one if isinstance(one, str) else "")
def test_a_file_that_goes_on_behind_its_end_is_not_whole(name: str, write: Callable[[Random], bytes]) -> None:
    if not name.endswith(".json"):
        assert judge(write(Random(1)) + b"next", name) is False


def test_an_archive_with_records_of_64_bits_is_whole_and_not_without_its_last_byte() -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as writer, writer.open("archive/data.pkl", "w", force_zip64=True) as entry:
        entry.write(b"weights")
    plain = archive.getvalue()
    at = plain.rfind(b"PK\x05\x06")
    length, offset = struct.unpack_from("<II", plain, at + 12)
    record = b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, 1, 1, length, offset)
    locator = b"PK\x06\x07" + struct.pack("<IQI", 0, at, 1)
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, length, 0xFFFFFFFF, 0)
    data = plain[:at] + record + locator + end
    assert judge(data, "model.pt") is True
    assert [cut for cut in range(len(data)) if judge(data[:cut], "model.pt") is not False] == []
    assert judge(data[:at] + b"x" + data[at:], "model.pt") is False


def test_an_archive_whose_directory_is_not_written_yet_is_not_whole() -> None:
    data = contents.torch_saved(Random(1))
    at = data.index(b"PK\x01\x02")
    assert judge(data[:at] + bytes(len(data) - at - 22) + data[-22:], "model.pt") is False


def test_an_archive_in_an_archive_does_not_make_the_outer_one_whole() -> None:
    inner = contents.torch_saved(Random(1))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as writer:
        writer.writestr("archive/data.pkl", inner)
    data = archive.getvalue()
    assert judge(data[: data.index(inner) + len(inner)], "model.pt") is False


def test_a_shard_is_torn_within_a_piece_and_unknown_at_the_end_of_one() -> None:
    pieces = [contents.torch_saved(Random(seed)) for seed in range(3)]
    data, ends = b"".join(pieces), {len(pieces[0]), len(pieces[0] + pieces[1])}
    assert judge(data, "__0_0.distcp") is None
    assert {cut for cut in range(4, len(data)) if judge(data[:cut], "__0_0.distcp") is not False} == ends
    assert judge(b"", "__7_0.distcp") is None, "a process that has nothing to save writes an empty shard"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("train.log", b"step 1\n"), ("notes.txt", b""), ("data.raw", bytes(100)),
        ("legacy.pt", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."),
        ("weights.bin", b"\x01\x02 raw numbers"), ("objects.npy", b"\x93NUMPY\x01\x00\x30\x00{'descr': '|O', 'shape': (3,), }".ljust(58)),
    ],
)  # fmt: skip
def test_a_format_that_does_not_tell_is_unknown(name: str, data: bytes) -> None:
    assert judge(data, name) is None


@pytest.mark.parametrize(
    "name", ["model.pt", "last.ckpt", "model.keras", "model.safetensors", "w.h5", "x.npy", "x.npz", "state.json"]
)
def test_an_empty_file_and_one_of_zeros_are_not_whole(name: str) -> None:
    assert judge(b"", name) is False
    assert judge(bytes(5000), name) is False


def test_a_history_of_a_whole_training_is_read_and_a_larger_document_is_judged_by_its_ends() -> None:
    row = b'{"loss": 1},'
    for rows, unknown in ((200_000, False), (MOST_DOCUMENT // len(row) + 1, None)):
        history = b'{\n  "log_history": [' + row * rows + b'{"loss": 1}\n  ]\n}\n'
        assert judge(history, "trainer_state.json") is True
        assert judge(history[:-3], "trainer_state.json") is unknown


def test_a_gigabyte_is_judged_by_a_few_kilobytes() -> None:
    reads = list[int]()

    def read(offset: int, most: int) -> bytes:
        reads.append(most)
        return b"PK\x03\x04".ljust(min(most, 64), b"\0") if offset == 0 else bytes(most)

    assert is_whole(read, 2**30, "model.pt") is False
    assert sum(reads) < 16 * 1024


@pytest.mark.parametrize(
    "head",
    [
        struct.pack("<Q", 2**63) + b"{", struct.pack("<Q", 0) + b"{}", b"\x89HDF\r\n\x1a\n\xff" + bytes(90), b"\x89HDF\r\n\x1a\n\x02\x08",
        b"\x93NUMPY\x03\x00\xff\xff\xff\xff{'shape': (" + b"9" * 200, b"PK\x05\x06" + b"\xff" * 18, b"PK\x03\x04PK\x06\x07" + b"\xff" * 40,
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["model.safetensors", "model.h5", "model.npy", "model.pt", "x.distcp"])
def test_lengths_that_lie_are_not_whole_and_do_no_harm(head: bytes, name: str) -> None:
    assert judge(head, name) is not True


MODEL = b"tree\nversion=v4\n\nTree=0\nleaf_value=0.1\n\nend of trees\n\nparameters:\nend of parameters\n"


def test_a_model_of_lightgbm_is_cut_before_the_end_of_its_trees_and_unknown_behind_it() -> None:
    end = MODEL.index(b"end of trees") + len(b"end of trees")
    assert [cut for cut in range(13, end) if judge(MODEL[:cut], "model.txt") is not False] == []
    assert [cut for cut in range(end, len(MODEL)) if judge(MODEL[:cut], "model.txt") is not None] == []


def test_a_bare_pickle_is_all_there_at_its_last_byte_alone() -> None:
    for protocol in (2, 4, 5):
        document = pickle.dumps({"weights": bytes(300), "step": 7, "dots": "...."}, protocol=protocol)
        assert is_all_there(document)
        assert [cut for cut in range(len(document)) if is_all_there(document[:cut])] == []
        assert not is_all_there(document * 2), "as torch.save writes without an archive"


def test_a_document_that_is_cut_anywhere_may_become_json() -> None:
    text = {"a": [1, -2.5e-3, True, False, None, float("inf")], "b": {"c": 'x"\\y', "d": "\u00e9"}, "e": []}
    document = json.dumps(text, indent=1, ensure_ascii=False).encode()
    assert [cut for cut in range(len(document)) if not is_cut_json(document[:cut])] == []


@pytest.mark.parametrize(
    "text", ['{"a": 1,}', "{'a': 1}", '{"a": 1 // one\n}', '{"a": 1}\n// end', "nothing", '{"a": 1}', "[1 2]", "{a: 1}"]
)
def test_what_nothing_more_makes_json_is_not_cut(text: str) -> None:
    assert not is_cut_json(text.encode())


@pytest.mark.parametrize("magic", [b"PAR1", b"ARROW1"])
def test_a_table_that_ends_with_its_magic_is_whole(magic: bytes) -> None:
    table = magic + bytes(range(200)) + magic
    assert judge(table, "table") is True
    assert [cut for cut in range(len(magic), len(table)) if judge(table[:cut], "table") is not False] == []


def test_the_number_that_torch_begins_with_is_no_whole_file() -> None:
    for protocol in range(2, 6):
        number = pickle.dumps(TORCH, protocol)
        assert find_end(number) == -1, "its states are still to come"
        assert find_end(pickle.dumps({"a": TORCH}, protocol)) > len(number)


def test_behind_an_array_another_one_may_come() -> None:
    one = numpy_saved(Random(1))
    for several in (one * 2, one + one[:7], one + one[:-1]):
        assert is_whole(lambda offset, size, data=several: data[offset : offset + size], len(several), "x.npy") is None
    longer = one + b"x" * 20
    assert is_whole(lambda offset, size: longer[offset : offset + size], len(longer), "x.npy") is False
