"""Code as people's systems and editors save and pack it: Admit says what no node would unpack or run, in the node's words."""

from __future__ import annotations

import io
import re
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from contract import archives
from contract.unpacking import unpack
from refusals.archive import MOST_KEPT, Listing, listing
from refusals.script import Runner, archive_problems, code_problems, wanted_files
from tests.archives import (
    WINDOWS,
    flipped,
    header,
    link,
    packed,
    program,
    raw_header,
    tarred,
    with_method,
    zip_entry,
    zip_with,
    zipped,
)

CODE = "s3://yard-home/uploads/a.tar.gz"


def list_archive(body: bytes, name: str = "a.tar.gz", *kept: str) -> Listing:
    return listing(io.BytesIO(body), name, lambda: False, kept)


@pytest.mark.parametrize("beside", ["__MACOSX/digits/._train.py", ".DS_Store", "._digits", "Thumbs.db", "desktop.ini"])
def test_what_a_system_adds_does_not_hide_that_a_folder_was_packed(beside: str) -> None:
    (problem,) = archive_problems(
        CODE, ["python", "train.py"], list_archive(zipped("digits/train.py", beside), "a.zip")
    )
    assert (
        "(it is at digits/train.py: pack the folder's contents, as `tar -C digits -czf code.tar.gz .` does)" in problem
    )


@pytest.mark.parametrize("beside", ["README.md", "data/DS_Store", "__macosx/a", "other/train.py"])
def test_a_file_of_a_person_beside_a_folder_means_that_the_folder_was_not_packed_alone(beside: str) -> None:
    (problem,) = archive_problems(CODE, ["python", "train.py"], list_archive(packed("digits/train.py", beside)))
    assert "pack the folder's contents" not in problem
    assert "(did you mean digits/train.py?)" in problem


def test_no_file_of_a_system_is_proposed() -> None:
    (problem,) = archive_problems(CODE, ["python", "train.py"], list_archive(packed("__MACOSX/train.py", "._train.py")))
    assert "did you mean" not in problem


@pytest.mark.parametrize(
    ("there", "hint"),
    [
        ("cafe\u0301.py", "whose name looks the same and is of other characters"),
        ("src\\café.py", "it has src\\café.py, whose name has a backslash"),
    ],
)
def test_a_name_that_only_looks_like_the_command_is_told(there: str, hint: str) -> None:
    wanted = "src/café.py" if "src" in there else "café.py"
    (problem,) = archive_problems(CODE, ["python", wanted], list_archive(packed(there)))
    assert hint in problem


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (tarred(("a", "x"), ("a/b", "x")), "a.tar.gz"),
        (tarred(("a/b", "x"), ("a", "x")), "a.tar.gz"),
        (zipped("a/", "a"), "a.zip"),
        (with_method(zipped("a"), 9), "a.zip"),
        (zip_with((zip_entry("..\\a", system=WINDOWS), "")), "a.zip"),
        (zipped("a"), "a.tar.gz"),
        (tarred(("a", "x")) + b"more", "a.tar.gz"),
        (raw_header("a", 11 * 1024**3), "a.tar"),
    ],
    ids=["file, folder", "folder, file", "zip of both", "Deflate64", "up on Windows", "a zip", "more behind", "11 GiB"],
)
def test_admission_refuses_what_every_node_refuses_in_the_same_words(tmp_path: Path, body: bytes, name: str) -> None:
    (tmp_path / name).write_bytes(body)
    with pytest.raises(archives.Refused) as refused:
        unpack(tmp_path / name, tmp_path / "code")
    found = list_archive(body, name)
    assert (found.refused, found.allowed) == (str(refused.value), refused.value.allowed)


def test_what_replaces_a_link_or_lies_behind_one_is_left_to_the_node() -> None:
    """A folder, a file and a link of one name are judged by the node's disk, which follows its links."""
    for members in (
        (link("a", "b"), ("a", "x"), ("b/c", "x")),
        (link("a", "b"), ("a/c", "x"), header("a", type=tarfile.DIRTYPE)),
        (link("a", "b"), header("a/c", type=tarfile.DIRTYPE), link("a", "d"), ("a/c", "x")),
    ):
        assert list_archive(tarred(*members)).refused == ""


@pytest.mark.parametrize("place", [-1, -6])
def test_a_damaged_gzip_is_refused_by_its_checksum(place: int) -> None:
    assert re.match("CRC check failed|Incorrect length", list_archive(flipped(packed("train.py"), place)).broken)


def test_the_checksums_of_a_zip_are_checked_up_to_some_megabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = zipped("train.py", "a.py")
    damaged = flipped(sound, sound.index(b"PK\x01\x02") + 16)
    assert list_archive(damaged, "a.zip").broken == "Bad CRC-32 for file 'train.py'"
    monkeypatch.setattr("refusals.archive.MOST_CHECKED", 3)
    assert list_archive(damaged, "a.zip").broken == ""


def test_a_zip_whose_content_takes_much_memory_to_read_is_not_read() -> None:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_LZMA) as whole:
        whole.writestr("run.sh", "echo\n")
    assert list_archive(body.getvalue(), "a.zip", "run.sh").kept == {}


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar", "a.zip"])
def test_the_first_bytes_of_the_files_in_question_are_kept_and_of_no_other(name: str) -> None:
    big = "x" * (MOST_KEPT + 5)
    body = {"a.zip": zip_with(("./run.sh", big), ("b", "y")), "a.tar": tarred(("./run.sh", big), ("b", "y"), mode="w")}
    found = list_archive(body.get(name, tarred(("./run.sh", big), ("b", "y"))), name, "run.sh", "none")
    assert {path: file.content for path, file in found.kept.items()} == {"run.sh": big[:MOST_KEPT].encode()}
    assert found.names == {"run.sh", "b"}


@pytest.mark.parametrize("after", [("run.sh", "#!/bin/sh\n"), link("run.sh", "b"), link("run.sh", "b", hard=True)])
def test_a_file_that_a_later_entry_replaces_is_not_judged(after: Any) -> None:
    found = list_archive(tarred(("b", "x"), program("run.sh", "echo\n"), after), "a.tar.gz", "run.sh")
    kept = found.kept.get("run.sh")
    assert kept is None or kept.content == b"#!/bin/sh\n"


CRLF, BARE = "#!/bin/sh\r\n", "exit 0\n"


@pytest.mark.parametrize(
    ("by", "content", "mode", "refused"),
    [
        (Runner.LINUX, CRLF, 0o755, "carriage return"),
        (Runner.LINUX, BARE, 0o755, "does not begin with #!"),
        (Runner.LINUX, "#!/bin/sh\n", 0o644, "is not executable"),
        (Runner.SHELL, CRLF, 0o755, "carriage return"),
        (Runner.SHELL, BARE, 0o755, ""),
        (Runner.SHELL, BARE, 0o644, "is not executable"),
        (Runner.TOOLKIT, CRLF, 0o644, "carriage return"),
        (Runner.TOOLKIT, BARE, 0o644, ""),
        (Runner.READER, CRLF, 0o644, ""),
        (Runner.READER, BARE, 0o644, ""),
        (Runner.READER, "echo".encode("utf-16"), 0o644, "is in UTF-16"),
    ],
)
def test_a_file_is_judged_by_who_runs_it(by: Runner, content: str | bytes, mode: int, refused: str) -> None:
    found = list_archive(tarred((header("run.sh", mode=mode), content)), "a.tar.gz", "run.sh")
    problems = code_problems(CODE, "run.sh", found, "command", by=by)
    assert [refused in problem for problem in problems] == ([True] if refused else [])


@pytest.mark.parametrize(
    "command", [["bash", "run.sh"], ["python", "run.sh"], ["./other.sh"], ["bash", "-c", "./run.sh"]]
)
def test_a_script_that_is_read_or_only_may_be_run_needs_no_first_line(command: list[str]) -> None:
    body = tarred(("run.sh", BARE), program("other.sh", "#!/bin/sh\n"))
    assert archive_problems(CODE, command, list_archive(body, "a.tar.gz", *wanted_files(command))) == []
