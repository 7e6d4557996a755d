"""Archives as other systems and programs make them: each means what its maker meant, or says how to pack it."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest

from contract.archives import Refused
from contract.entries import MOST_BEHIND, entries
from contract.unpacking import unpack
from tests.archives import (
    FILE,
    UNIX,
    WINDOWS,
    flipped,
    packed,
    tarred,
    with_method,
    without_utf8_flag,
    zip_entry,
    zip_with,
    zipped,
)

TAR = tarred(FILE, mode="w")


def unpacked(folder: Path, body: bytes, name: str) -> dict[str, bytes]:
    """The files of an archive once it is unpacked, by their paths. Nothing else may lie beside the folder of the code."""
    (folder / name).write_bytes(body)
    try:
        unpack(folder / name, folder / "code")
    finally:
        assert {path.name for path in folder.iterdir()} == {name, "code"}
    files = (path for path in (folder / "code").rglob("*") if path.is_file())
    return {path.relative_to(folder / "code").as_posix(): path.read_bytes() for path in files}


def names(body: bytes, name: str = "code.zip") -> list[str]:
    return [entry.name for entry in entries(io.BytesIO(body), name, 1024**2)]


@pytest.mark.parametrize("system", [WINDOWS, 10, 11, 14])
def test_backslashes_of_windows_stand_between_folders(tmp_path: Path, system: int) -> None:
    made = (zip_entry(name, system=system) for name in ("src\\", "src\\train.py", "src\\pkg/a.py"))
    found = unpacked(tmp_path, zip_with(*((entry, "") for entry in made)), "code.zip")
    assert found == {"src/train.py": b"", "src/pkg/a.py": b""}


def test_a_backslash_of_unix_is_a_letter(tmp_path: Path) -> None:
    assert unpacked(tmp_path, zip_with((zip_entry("a\\b", system=UNIX), "x")), "code.zip") == {"a\\b": b"x"}


def test_of_two_names_that_become_one_the_last_is_kept_as_tar_does(tmp_path: Path) -> None:
    twice = zip_with((zip_entry("a\\b", system=WINDOWS), "first"), (zip_entry("a/b", system=WINDOWS), "last"))
    assert unpacked(tmp_path, twice, "code.zip") == {"a/b": b"last"}


@pytest.mark.parametrize(
    "name",
    [
        "..\\evil",
        "a\\..\\..\\evil",
        "\\evil",
        "C:\\evil",
        "C:/evil",
        "c:evil",
        "\\\\server\\share\\evil",
        "\\\\?\\C:\\evil",
        "a/..\\evil",
    ],
)
def test_a_name_of_windows_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused, match="which points out of its folder"):
        unpacked(tmp_path, zip_with((zip_entry(name, system=WINDOWS), "x")), "code.zip")


@pytest.mark.parametrize("name", ["café.py", "学習/train.py", "cafe\u0301.py", "plain.py"])
def test_a_name_in_utf8_is_read_so_whether_or_not_its_zip_says_so(name: str) -> None:
    body = zip_with((zip_entry(name), "x"))
    assert names(body) == names(without_utf8_flag(body)) == [name]


def test_a_name_that_is_not_utf8_is_of_the_code_page_of_the_format() -> None:
    body = zip_with((zip_entry("xxxx.py"), "")).replace(b"xxxx.py", b"caf\x82.py")
    assert names(body) == ["café.py"]


@pytest.mark.parametrize(
    ("of", "found"), [(b"caf?.py", "日本.py"), (b"other.py", "caf?.py")], ids=["its own", "another's"]
)
def test_a_name_that_an_extra_field_has_in_utf8_counts_where_it_is_this_names(of: bytes, found: str) -> None:
    entry = zip_entry("caf?.py")
    said = b"\1" + struct.pack("<I", zlib.crc32(of)) + "日本.py".encode()
    entry.extra = struct.pack("<HH", 0x7075, len(said)) + said
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as whole:
        whole.writestr(entry, "")
    assert names(body.getvalue()) == [found]


@pytest.mark.parametrize("extra", [b"\x75\x70", b"\x75\x70\0\0", b"\x75\x70\5\0\1\0\0\0\0"])
def test_a_torn_extra_field_says_nothing(extra: bytes) -> None:
    entry = zip_entry("a.py")
    entry.extra = extra
    assert names(zip_with((entry, ""))) == ["a.py"]


@pytest.mark.parametrize("name", ["a.py\0evil", "\0", "a\\\0"])
def test_a_name_with_a_nul_is_refused(tmp_path: Path, name: str) -> None:
    body = zip_with((zip_entry(name.replace("\0", "?"), system=WINDOWS), ""))
    with pytest.raises(Refused):
        unpacked(tmp_path, body.replace(name.replace("\0", "?").encode(), name.encode()), "code.zip")


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_method_that_every_node_knows_is_read(tmp_path: Path, method: int) -> None:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", method) as whole:
        whole.writestr("train.py", b"x" * 1000)
    assert unpacked(tmp_path, body.getvalue(), "code.zip") == {"train.py": b"x" * 1000}


@pytest.mark.parametrize(
    ("method", "said"),
    [(9, "Deflate64"), (93, "Zstandard"), (95, "xz"), (98, "PPMd"), (6, "method 6"), (97, "method 97")],
)
def test_a_method_that_no_node_knows_is_refused_before_anything_is_unpacked(
    tmp_path: Path, method: int, said: str
) -> None:
    with pytest.raises(
        Refused, match=rf"^has the entry 'big.bin', packed with {said}, which Python 3.10 cannot read$"
    ) as no:
        unpacked(tmp_path, with_method(zipped("big.bin"), method), "code.zip")
    assert "tar -C FOLDER -czf" in no.value.allowed


@pytest.mark.parametrize(
    ("body", "name", "said"),
    [
        (lzma.compress(TAR), "code.tar.gz", "packed with xz"),
        (bz2.compress(TAR), "code.tgz", "packed with bzip2"),
        (b"\x28\xb5\x2f\xfd" + bytes(600), "code.tar.gz", "packed with Zstandard"),
        (b"7z\xbc\xaf\x27\x1c" + bytes(600), "code.tar", "a 7z archive"),
        (b"Rar!\x1a\x07\x01\0" + bytes(600), "code.zip", "a RAR archive"),
        (zipped("a.py"), "code.tar.gz", "a zip"),
        (zip_with(), "code.tar.gz", "a zip"),
        (tarred(FILE), "code.zip", "packed with gzip"),
        (TAR, "code.zip", "a tar"),
        (b"version https://git-lfs.github.com/spec/v1\noid x\n", "code.tar.gz", "the pointer of git-LFS to an archive"),
        (b"<!DOCTYPE html><html>", "code.zip", "a web page"),
    ],
)
def test_an_archive_of_another_form_is_called_what_it_is(tmp_path: Path, body: bytes, name: str, said: str) -> None:
    with pytest.raises(Refused, match=rf"^is {said}, whatever its name says$"):
        unpacked(tmp_path, body, name)


@pytest.mark.parametrize("first", ["BZh.py", "PK\x03\x04", "<html>", "7z\xbc", "LZIP"])
def test_a_tar_whose_first_name_looks_like_another_form_is_a_tar(tmp_path: Path, first: str) -> None:
    assert [*unpacked(tmp_path, tarred((first, "x"), mode="w"), "code.tar")] == [first]


def test_a_zip_behind_a_program_that_unpacks_it_is_a_zip(tmp_path: Path) -> None:
    assert [*unpacked(tmp_path, b"MZ" + bytes(500) + zipped("a.py"), "code.zip")] == ["a.py"]


@pytest.mark.parametrize("place", [-1, -5, -8], ids=["size", "checksum", "checksum's first byte"])
def test_a_gzip_that_fails_its_own_checksum_is_refused(tmp_path: Path, place: int) -> None:
    with pytest.raises(Refused, match=r"cannot be unpacked: (CRC check failed|Incorrect length)"):
        unpacked(tmp_path, flipped(packed("train.py"), place), "code.tar.gz")


def test_a_changed_byte_of_a_file_in_a_gzip_is_refused(tmp_path: Path) -> None:
    body = gzip.compress(TAR, 0)
    with pytest.raises(Refused, match="cannot be unpacked: CRC check failed"):
        unpacked(tmp_path, flipped(body, body.index(b"print()")), "code.tar.gz")


def test_a_changed_byte_of_a_file_in_a_zip_is_refused(tmp_path: Path) -> None:
    body = zip_with((zip_entry("train.py"), b"print()"))
    raw = flipped(body, body.rindex(b"PK\x01\x02") + 16)
    with pytest.raises(Refused, match=r"Bad CRC-32 for file 'train.py'"):
        unpacked(tmp_path, raw, "code.zip")


def test_bytes_behind_a_gzip_are_refused_as_tar_does(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"^has other bytes after its end$"):
        unpacked(tmp_path, tarred(FILE) + b"more", "code.tar.gz")


@pytest.mark.parametrize(
    "body",
    [
        tarred(FILE) + bytes(700),
        gzip.compress(TAR[:600]) + gzip.compress(TAR[600:]),
        gzip.compress(TAR + bytes(900_000)),
    ],
    ids=["zeros behind", "two members", "zeros in it"],
)
def test_a_gzip_may_end_in_zeros_and_have_members(tmp_path: Path, body: bytes) -> None:
    assert unpacked(tmp_path, body, "code.tar.gz") == dict([FILE])


def test_a_gzip_that_goes_on_for_ever_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0

    class Counted(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            nonlocal read
            data = super().read(size)
            read += len(data)
            return data

    monkeypatch.setattr("contract.entries.MOST_BEHIND", MOST_BEHIND // 64)
    body = gzip.compress(TAR + bytes(200 * MOST_BEHIND // 64), 1)
    assert [entry.name for entry in entries(Counted(body), "code.tar.gz", 0)] == ["train.py"]
    assert read < len(body) // 10


@pytest.mark.parametrize("kind", ["code.tar.gz", "code.zip"])
@pytest.mark.parametrize("order", [("a", "a/b"), ("a/b", "a"), ("a", "a/b/c"), ("a/b/", "a"), ("a", "a/")])
def test_a_name_that_is_a_file_and_a_folder_is_refused(tmp_path: Path, kind: str, order: tuple[str, str]) -> None:
    def entry(name: str) -> tuple[str | tarfile.TarInfo, bytes]:
        if not name.endswith("/"):
            return name, b"x"
        info = tarfile.TarInfo(name)
        info.type = tarfile.DIRTYPE
        return info, b""

    body = zip_with(*((name, "") for name in order)) if kind == "code.zip" else tarred(*map(entry, order))
    with pytest.raises(Refused, match=r"^has 'a' both as a file and as a folder$"):
        unpacked(tmp_path, body, kind)


def test_names_that_differ_in_their_case_are_two_files(tmp_path: Path) -> None:
    assert unpacked(tmp_path, tarred(("A.py", "1"), ("a.py", "2")), "code.tar.gz") == {"A.py": b"1", "a.py": b"2"}


def test_a_slash_at_its_end_makes_a_folder_whatever_the_mode_says(tmp_path: Path) -> None:
    body = zip_with((zip_entry("src/", 0o100644), ""), ("src/train.py", "x"))
    assert unpacked(tmp_path, body, "code.zip") == {"src/train.py": b"x"}
