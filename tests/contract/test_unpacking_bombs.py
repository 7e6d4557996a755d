"""Archives that lie about themselves, or that are corrupt: each ends with a reason, in bounded memory, with nothing outside."""

from __future__ import annotations

import gzip
import io
import random
import struct
import tarfile
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from contract.archives import MOST_DEPTH, Refused
from contract.unpacking import unpack
from tests.archives import FILE, header, link, raw_header, tar_of, zip_entry, zip_of

LITTLE = 48 * 1024**2
"""Bytes of memory that no archive may pass: its own few MiB, and an honest reader's."""


@contextmanager
def in_little_memory() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < LITTLE
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
def test_a_tar_header_that_wants_a_gigabyte_of_memory_is_refused(tmp_path: Path, kind: bytes) -> None:
    file = tmp_path / "code.tar.gz"
    with gzip.open(file, "wb", compresslevel=1) as packed:
        packed.write(raw_header("bomb", 1024**3, kind))
        for _ in range(100):
            packed.write(bytes(1024**2))
    assert file.stat().st_size < 1024**2
    with in_little_memory(), pytest.raises(Refused, match="larger than that of any valid archive"):
        unpack(file, tmp_path / "code")


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE])
def test_a_tar_entry_of_negative_size_is_refused(tmp_path: Path, kind: bytes) -> None:
    buffer = bytearray(raw_header("evil", 0, kind))
    buffer[124:136] = b"\xff" * 4 + struct.pack(">q", -512)
    buffer[148:156] = b" " * 8
    buffer[148:156] = f"{sum(buffer):06o}\0 ".encode()
    file = tmp_path / "code.tar"
    file.write_bytes(bytes(buffer) + bytes(100 * 1024**2))
    with in_little_memory(), pytest.raises(Refused):
        unpack(file, tmp_path / "code")


def test_a_sparse_file_counts_with_the_size_that_it_would_take(tmp_path: Path) -> None:
    headers = {"GNU.sparse.size": str(10**12), "GNU.sparse.numblocks": "0", "GNU.sparse.map": "0,0"}
    with pytest.raises(Refused, match=r"'sparse' it would take 1,000,000,000,000 bytes"):
        unpack(tar_of(tmp_path, header("sparse", pax_headers=headers)), tmp_path / "code")


def test_a_zip_link_whose_target_is_a_bomb_is_refused_in_little_memory(tmp_path: Path) -> None:
    file = zip_of(tmp_path, (zip_entry("evil", 0o120777), bytes(200 * 1024**2)))
    with in_little_memory(), pytest.raises(Refused):
        unpack(file, tmp_path / "code")


@pytest.mark.parametrize("said", [10, 10**12])
def test_a_zip_that_lies_about_a_size_is_refused(tmp_path: Path, said: int) -> None:
    file = zip_of(tmp_path, ("lie", bytes(5_000_000)))
    raw = bytearray(file.read_bytes())
    central = raw.index(b"PK\x01\x02")
    raw[central + 24 : central + 28] = struct.pack("<I", min(said, 2**32 - 2))
    file.write_bytes(bytes(raw))
    with in_little_memory(), pytest.raises(Refused, match=r"lie|Bad CRC|bytes"):
        unpack(file, tmp_path / "code", most_bytes=10_000_000)


def test_a_list_of_entries_larger_than_any_honest_one_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contract.unpacking.MOST_DIRECTORY", 70_000)
    file = zip_of(tmp_path, *((f"{n:0100d}", b"") for n in range(1000)))
    with pytest.raises(Refused, match="larger than that of any valid archive"):
        unpack(file, tmp_path / "code")


def test_an_encrypted_zip_is_refused_by_its_entry(tmp_path: Path) -> None:
    file = zip_of(tmp_path, ("secret.py", b"print()"))
    raw = bytearray(file.read_bytes())
    raw[6] |= 1
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    file.write_bytes(bytes(raw))
    with pytest.raises(Refused, match=r"the entry 'secret\.py', which is encrypted"):
        unpack(file, tmp_path / "code")


@pytest.mark.parametrize("name", ["code.tar", "code.tar.gz", "code.zip"])
def test_an_archive_of_nothing_is_refused(tmp_path: Path, name: str) -> None:
    if name.endswith(".zip"):
        zip_of(tmp_path)
    else:
        with tarfile.open(tmp_path / name, "w:gz" if name.endswith("gz") else "w"):
            pass
    with pytest.raises(Refused, match="is empty"):
        unpack(tmp_path / name, tmp_path / "code")


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("a/" * (MOST_DEPTH + 1) + "evil", "100 parts"),
        ("a/" * 3000 + "evil", "100 parts"),
        ("e" * 1025, "at most 1,024 bytes"),
        ("e" * 300, "cannot be written: File name too long"),
    ],
)
def test_a_path_too_deep_or_too_long_is_refused_with_the_limit(tmp_path: Path, name: str, limit: str) -> None:
    with pytest.raises(Refused, match=limit) as problem:
        unpack(tar_of(tmp_path, (name, b"x")), tmp_path / "code")
    assert f"entry '{name[:3]}" in str(problem.value)
    assert len(str(problem.value)) < 600


def test_a_file_beneath_what_was_a_link_lands_inside(tmp_path: Path) -> None:
    """A link to a folder, replaced by a file, and a folder through a link that stays inside."""
    members = (("real/keep", b"1"), link("door", "real"), ("door/new", b"2"), ("door", b"3"))
    unpack(tar_of(tmp_path, *members), tmp_path / "code")
    code = tmp_path / "code"
    assert (code / "real/new").read_bytes() == b"2"
    assert (code / "door").read_bytes() == b"3"
    assert not (code / "door").is_symlink()


def test_a_file_that_is_to_replace_a_folder_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="has 'a' both as a file and as a folder"):
        unpack(tar_of(tmp_path, ("a/b", b"1"), ("a", b"2")), tmp_path / "code")


def test_a_hard_link_does_not_let_a_later_entry_write_into_another_file(tmp_path: Path) -> None:
    members = (FILE, link("same", "train.py", hard=True), ("same", b"changed"))
    unpack(tar_of(tmp_path, *members), tmp_path / "code")
    assert (tmp_path / "code/train.py").read_bytes() == b"print()"


def test_a_name_that_is_not_utf8_is_unpacked_byte_by_byte(tmp_path: Path) -> None:
    name = b"caf\xe9.py".decode("utf-8", "surrogateescape")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", errors="surrogateescape", format=tarfile.GNU_FORMAT) as tar:
        tar.addfile(tarfile.TarInfo(name))
    (tmp_path / "code.tar").write_bytes(buffer.getvalue())
    unpack(tmp_path / "code.tar", tmp_path / "code")
    assert [path.name for path in (tmp_path / "code").iterdir()] == [name]


def test_odd_names_are_names(tmp_path: Path) -> None:
    names = ["$(touch x)", "`id`", "a b", "-rf", "{% $x %}", "quote'\"", "new\nline", "\u202ertl", "\x1b[31m"]
    unpack(tar_of(tmp_path, *((name, b"") for name in names)), tmp_path / "code")
    assert {path.name for path in (tmp_path / "code").iterdir()} == set(names)


@pytest.mark.parametrize("kind", ["code.tar.gz", "code.tar", "code.zip"])
def test_an_archive_with_any_byte_changed_is_unpacked_inside_or_refused(tmp_path: Path, kind: str) -> None:
    members = [(header(f"folder/file-{n}", mode=0o755), bytes([n]) * 400) for n in range(4)]
    source = tmp_path / "source"
    source.mkdir()
    whole = tar_of(source, *members, link("folder/link", "file-1")).read_bytes()
    if kind == "code.tar":
        whole = gzip.decompress(whole)
    if kind == "code.zip":
        whole = zip_of(source, *((f"folder/file-{n}", bytes([n]) * 400) for n in range(4))).read_bytes()
    chance, refused = random.Random(7), list[str]()
    for attempt in range(150):
        raw = bytearray(whole)
        for _ in range(chance.choice((1, 1, 3))):
            raw[chance.randrange(min(len(raw), 5000))] = chance.randrange(256)
        box = tmp_path / f"box-{attempt}"
        box.mkdir()
        (box / kind).write_bytes(bytes(raw))
        try:
            unpack(box / kind, box / "code")
        except Refused as problem:
            refused.append(str(problem))
        assert {path.name for path in box.iterdir()} == {kind, "code"}
    assert len(refused) > 20
    assert max(map(len, refused)) < 1000


def test_a_tar_that_cannot_be_read_from_some_entry_on_is_refused_and_not_half_unpacked(tmp_path: Path) -> None:
    raw = bytearray(gzip.decompress(tar_of(tmp_path, FILE, ("lost.py", b"print()")).read_bytes()))
    raw[1024 + 10] ^= 0xFF  # in the second entry's header, whose checksum no longer fits
    (tmp_path / "code.tar").write_bytes(bytes(raw))
    with pytest.raises(Refused, match="neither an entry nor its end"):
        unpack(tmp_path / "code.tar", tmp_path / "code")


def test_a_tar_without_its_closing_blocks_is_whole(tmp_path: Path) -> None:
    raw = gzip.decompress(tar_of(tmp_path, FILE).read_bytes())
    (tmp_path / "code.tar").write_bytes(raw[:1024])
    unpack(tmp_path / "code.tar", tmp_path / "code")
    assert (tmp_path / "code/train.py").read_bytes() == b"print()"
