"""Archives of strangers: what is unpacked, and what is refused with the entry's name."""

from __future__ import annotations

import stat
import tarfile
from pathlib import Path

import pytest

from contract.archives import Refused
from contract.unpacking import unpack
from tests.archives import FILE, UNSAFE_TARS, Entry, header, link, tar_of, zip_entry, zip_of


@pytest.mark.parametrize("members", UNSAFE_TARS.values(), ids=UNSAFE_TARS.keys())
def test_an_unsafe_tar_is_refused(tmp_path: Path, members: list[Entry | tarfile.TarInfo]) -> None:
    (tmp_path / "outside").write_text("untouched")
    with pytest.raises(Refused, match=r"evil|'\.'"):
        unpack(tar_of(tmp_path, *members), tmp_path / "code")
    assert (tmp_path / "outside").read_text() == "untouched"
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize(
    ("name", "mode", "content"),
    [
        ("/etc/evil", stat.S_IFREG, b"x"),
        ("../evil", stat.S_IFREG, b"x"),
        ("evil", stat.S_IFLNK, b"../outside"),
        ("evil", stat.S_IFCHR, b""),
    ],
)
def test_an_unsafe_zip_is_refused(tmp_path: Path, name: str, mode: int, content: bytes) -> None:
    with pytest.raises(Refused, match="evil"):
        unpack(zip_of(tmp_path, (zip_entry(name, mode | 0o644), content)), tmp_path / "code")


def test_a_bomb_is_refused_before_it_goes_off(tmp_path: Path) -> None:
    file = zip_of(tmp_path, ("small", b"x"), ("bomb", bytes(2_000_000)))
    assert file.stat().st_size < 10_000
    with pytest.raises(Refused, match="too large: with 'bomb' it would take 2,000,001 bytes, more than 1,000,000"):
        unpack(file, tmp_path / "code", most_bytes=1_000_000)
    assert not (tmp_path / "code/bomb").exists()


def test_too_many_entries_are_refused(tmp_path: Path) -> None:
    members = [(f"file-{n}", b"") for n in range(6)]
    with pytest.raises(Refused, match="too many entries: 'file-5' is one more than 5"):
        unpack(tar_of(tmp_path, *members), tmp_path / "code", most_entries=5)


@pytest.mark.parametrize("name", ["code.tar.gz", "code.tar", "code.zip"])
@pytest.mark.parametrize("content", [b"", b"no archive at all", b"\x1f\x8b\x08 torn"])
def test_what_is_no_archive_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Refused, match=r"cannot be unpacked|is packed with gzip"):
        unpack(tmp_path / name, tmp_path / "code")


def test_a_torn_archive_is_refused(tmp_path: Path) -> None:
    file = tar_of(tmp_path, ("large", bytes(range(256)) * 4000))
    file.write_bytes(file.read_bytes()[:-200])
    with pytest.raises(Refused, match="cannot be unpacked"):
        unpack(file, tmp_path / "code")


def test_links_that_stay_inside_are_kept_and_programs_stay_programs(tmp_path: Path) -> None:
    members = (
        FILE,
        (header("bin/run", mode=0o4755), b"#!"),
        link("bin/main.py", "../train.py"),
        link("same", "train.py", hard=True),
    )
    unpack(tar_of(tmp_path, *members), tmp_path / "code")
    code = tmp_path / "code"
    assert (code / "bin/main.py").read_bytes() == (code / "same").read_bytes() == b"print()"
    assert stat.S_IMODE((code / "bin/run").stat().st_mode) == 0o755


def test_a_zip_made_anywhere_is_unpacked(tmp_path: Path) -> None:
    unpack(zip_of(tmp_path, ("folder/", ""), ("folder/ünï code.py", "print()")), tmp_path / "code")
    assert (tmp_path / "code/folder/ünï code.py").read_text() == "print()"


def test_a_file_that_replaces_a_link_does_not_write_through_it(tmp_path: Path) -> None:
    members = (FILE, link("other", "train.py"), ("other", b"new"))
    unpack(tar_of(tmp_path, *members), tmp_path / "code")
    assert (tmp_path / "code/train.py").read_bytes() == b"print()"


def test_an_entry_behind_links_that_lead_out_together_is_refused_before_it_is_written(tmp_path: Path) -> None:
    """Each link is harmless when it is made; the second one makes the first lead out."""
    members = (link("out", "here/.."), link("here", "."), ("out/evil", b"x"))
    with pytest.raises(Refused, match="'out/evil', which points out of its folder through a link"):
        unpack(tar_of(tmp_path, *members), tmp_path / "code")
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("bits", [0o4755, 0o2755, 0o1777], ids=["setuid", "setgid", "sticky"])
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_nothing_special_of_a_mode_survives(tmp_path: Path, kind: str, bits: int) -> None:
    if kind == "tar":
        file = tar_of(tmp_path, (header("run", mode=bits), b"#!"))
    else:
        file = zip_of(tmp_path, (zip_entry("run", stat.S_IFREG | bits), b"#!"))
    unpack(file, tmp_path / "code")
    assert stat.S_IMODE((tmp_path / "code/run").stat().st_mode) == bits & 0o777


def test_a_file_keeps_the_time_of_its_last_change(tmp_path: Path) -> None:
    """Tools that build from sources make anew what is older than its source."""
    unpack(tar_of(tmp_path, (header("configure", mtime=1_600_000_000), b"")), tmp_path / "code")
    assert (tmp_path / "code/configure").stat().st_mtime == 1_600_000_000


@pytest.mark.parametrize("time", [float("nan"), float("inf"), 1e300])
def test_an_impossible_time_is_refused_with_a_reason(tmp_path: Path, time: float) -> None:
    file = tar_of(tmp_path, header("train.py", pax_headers={"mtime": str(time)}))
    with pytest.raises(Refused, match="cannot be unpacked"):
        unpack(file, tmp_path / "code")
