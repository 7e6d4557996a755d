"""`artifacts` downloads what a job kept, whole, into the folder that a person names, and nowhere else."""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from contract import keys
from contract.commits import digest_parts
from tests.builders import JOB, PLACE
from tests.command_line.account import BYTES_BUCKET, HOME_BUCKET, YARD, Account, run
from tests.fakes.s3 import Bucket

NAME = "digits"
ADMITTED = replace(JOB, id=NAME, places={PLACE.region: PLACE})


def keep(there: Account, files: dict[str, bytes], *, attempt: int = 1, rank: int = 0, **changes: Any) -> None:
    """Writes files of a rank, and the control plane's list of them, in which each entry has the `changes`."""
    entries = []
    for path, body in files.items():
        key = keys.BytesPrefix(NAME).artifact(rank, path)
        there.s3.write(BYTES_BUCKET, key, body)
        entry = {
            "rank": rank,
            "path": path,
            "size": len(body),
            "sha256": sha256(body).hexdigest(),
            "at": f"s3://{BYTES_BUCKET}/{key}",
        }
        entries.append({**entry, **changes})
    there.admit(ADMITTED)
    there.put(keys.JobPrefix(NAME).artifacts(attempt), json.dumps({"job": NAME, "artifacts": entries}).encode())


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_list_names_each_file_and_nothing_is_written(there: Account) -> None:
    keep(there, {"model.pt": b"123", "logs/a.txt": b""})
    ran = run("artifacts", NAME, *YARD)
    assert ran.code == 0
    here = PLACE.region
    assert [line.split() for line in ran.out.splitlines()[1:3]] == [
        ["0", "model.pt", "3", here],
        ["0", "logs/a.txt", "0", here],
    ]
    assert ran.out.endswith("to download them: trainyard artifacts digits --to DIR\n")


def test_files_are_downloaded_by_rank_whole_and_under_their_own_names(there: Account, tmp_path: Path) -> None:
    keep(there, {"model.pt": b"123", "logs/ü b.txt": b"x"})
    assert run("artifacts", NAME, "--to", tmp_path / "out", *YARD).code == 0
    assert files_in(tmp_path / "out") == {"rank-0000/model.pt": b"123", "rank-0000/logs/ü b.txt": b"x"}


def test_the_newest_list_counts(there: Account, tmp_path: Path) -> None:
    keep(there, {"old.pt": b"1"}, attempt=2)
    keep(there, {"new.pt": b"2"}, attempt=10)
    run("artifacts", NAME, "--to", tmp_path, *YARD)
    assert files_in(tmp_path) == {"rank-0000/new.pt": b"2"}


def test_files_of_one_rank_alone(there: Account, tmp_path: Path) -> None:
    keep(there, {"a": b"1"}, rank=3)
    assert run("artifacts", NAME, "--rank", 3, "--to", tmp_path, *YARD).code == 0
    assert files_in(tmp_path) == {"rank-0003/a": b"1"}
    ran = run("artifacts", NAME, "--rank", 0, *YARD)
    assert (ran.code, ran.out) == (0, "")
    assert "there are no artifacts of rank 0:" in ran.err


@pytest.mark.parametrize(
    "path",
    ["../x", "/etc/passwd", "a/../../x", "..", ".", "", "a\0b", "x/" * 101 + "x", "y" * 1025],
    ids=["up", "absolute", "up later", "parent", "itself", "empty", "NUL", "deep", "long"],
)
def test_a_path_that_leads_elsewhere_is_refused_and_nothing_is_written(
    there: Account, tmp_path: Path, path: str
) -> None:
    keep(there, {"good": b"1"})
    entry = {"rank": 0, "path": path, "size": 1, "sha256": "", "at": f"s3://{BYTES_BUCKET}/k"}
    there.put(keys.JobPrefix(NAME).artifacts(2), json.dumps({"artifacts": [entry]}).encode())
    ran = run("artifacts", NAME, "--to", tmp_path / "out", *YARD)
    assert ran.code == 2
    assert ran.err.startswith("artifacts: rank 0 ")
    assert list(tmp_path.rglob("*")) == []


def test_a_path_that_steers_a_terminal_is_shown_without_that(there: Account) -> None:
    keep(there, {"\x1b[2J\u202ex": b"1"})
    assert not {"\x1b", "\u202e"} & set(run("artifacts", NAME, *YARD).out)


def test_two_files_of_one_name_are_refused(there: Account, tmp_path: Path) -> None:
    entry = {"rank": 0, "path": "a", "size": 1, "sha256": "", "at": f"s3://{BYTES_BUCKET}/k"}
    there.admit(ADMITTED)
    there.put(keys.JobPrefix(NAME).artifacts(1), json.dumps({"artifacts": [entry, {**entry, "path": "./a"}]}).encode())
    assert run("artifacts", NAME, "--to", tmp_path, *YARD).code == 2


def test_a_link_in_the_folder_leads_no_file_out_of_it(there: Account, tmp_path: Path) -> None:
    keep(there, {"sub/model.pt": b"123"})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "out" / "rank-0000").mkdir(parents=True)
    (tmp_path / "out" / "rank-0000" / "sub").symlink_to(elsewhere)
    ran = run("artifacts", NAME, "--to", tmp_path / "out", "--force", *YARD)
    assert ran.code == 2
    assert "is a link to elsewhere" in ran.err
    assert list(elsewhere.iterdir()) == []


def test_a_link_in_place_of_a_file_is_replaced_and_never_written_through(there: Account, tmp_path: Path) -> None:
    keep(there, {"model.pt": b"123"})
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    (tmp_path / "out" / "rank-0000").mkdir(parents=True)
    (tmp_path / "out" / "rank-0000" / "model.pt").symlink_to(victim)
    assert run("artifacts", NAME, "--to", tmp_path / "out", *YARD).code == 2
    assert run("artifacts", NAME, "--to", tmp_path / "out", "--force", *YARD).code == 0
    assert victim.read_bytes() == b"mine"
    assert files_in(tmp_path / "out") == {"rank-0000/model.pt": b"123"}


def test_another_file_in_the_way_is_kept_without_force_and_no_other_is_written(there: Account, tmp_path: Path) -> None:
    keep(there, {"a.pt": b"1", "model.pt": b"123"})
    (tmp_path / "rank-0000").mkdir()
    (tmp_path / "rank-0000" / "model.pt").write_bytes(b"mine")
    ran = run("artifacts", NAME, "--to", tmp_path, *YARD)
    assert (ran.code, files_in(tmp_path)) == (2, {"rank-0000/model.pt": b"mine"})
    assert "another folder, or --force" in ran.err
    assert run("artifacts", NAME, "--to", tmp_path, "--force", *YARD).code == 0
    assert files_in(tmp_path) == {"rank-0000/a.pt": b"1", "rank-0000/model.pt": b"123"}


def test_what_is_there_already_is_not_downloaded_again(there: Account, tmp_path: Path) -> None:
    keep(there, {"model.pt": b"123"})
    run("artifacts", NAME, "--to", tmp_path, *YARD)
    before = len([call for call in there.calls if call.params.get("Bucket") == BYTES_BUCKET])
    ran = run("artifacts", NAME, "--to", tmp_path, *YARD)
    assert (ran.code, ran.out) == (0, "1 file was there already\n")
    assert len([call for call in there.calls if call.params.get("Bucket") == BYTES_BUCKET]) == before


@pytest.mark.parametrize("change", [{"sha256": "0" * 64}, {"size": 2}], ids=str)
def test_bytes_that_are_not_those_of_the_list_leave_no_file(
    there: Account, tmp_path: Path, change: dict[str, Any]
) -> None:
    keep(there, {"model.pt": b"123"}, **change)
    ran = run("artifacts", NAME, "--to", tmp_path / "out", *YARD)
    assert ran.code == 2
    assert "is not what the job's list says" in ran.err
    assert files_in(tmp_path / "out") == {}


def digest_of_parts(body: bytes, part: int = 4) -> str:
    """The digest that a node writes of a large file that it sent in parts of so many bytes."""
    parts = [body[start : start + part] for start in range(0, len(body), part)]
    return digest_parts(len(body), part, map(zlib.crc32, parts))


@pytest.mark.parametrize("body", [b"12345678", b"123456789", b"123", b"1"], ids=str)
def test_a_large_file_is_checked_by_its_parts(there: Account, tmp_path: Path, body: bytes) -> None:
    keep(there, {"model.pt": body}, sha256="", crc32=digest_of_parts(body))
    ran = run("artifacts", NAME, "--to", tmp_path, *YARD)
    assert (ran.code, files_in(tmp_path)) == (0, {"rank-0000/model.pt": body})
    assert "whole" not in ran.out
    before = len(fetched(there))
    assert run("artifacts", NAME, "--to", tmp_path, *YARD).code == 0
    assert len(fetched(there)) == before


@pytest.mark.parametrize("body", [b"123456780", b"123406789", b"567812349"], ids=str)
def test_other_bytes_in_place_of_a_large_file_leave_no_file(there: Account, tmp_path: Path, body: bytes) -> None:
    keep(there, {"model.pt": body}, sha256="", crc32=digest_of_parts(b"123456789"))
    ran = run("artifacts", NAME, "--to", tmp_path / "out", *YARD)
    assert (ran.code, files_in(tmp_path / "out")) == (2, {})
    assert "is not what the job's list says" in ran.err


def test_another_file_of_the_size_and_time_of_a_large_one_is_kept_without_force(there: Account, tmp_path: Path) -> None:
    keep(there, {"model.pt": b"123456789"}, sha256="", crc32=digest_of_parts(b"123456789"))
    run("artifacts", NAME, "--to", tmp_path, *YARD)
    file = tmp_path / "rank-0000" / "model.pt"
    at = file.stat().st_mtime
    file.write_bytes(b"123456780")
    os.utime(file, (at, at))
    assert run("artifacts", NAME, "--to", tmp_path, *YARD).code == 2
    assert file.read_bytes() == b"123456780"


@pytest.mark.parametrize("crc32", ["4", "0-" + "0" * 64, "-1", "4-", "x-" + "0" * 64, "4-" + "g" * 64], ids=str)
def test_a_digest_of_another_version_is_not_taken_for_none(there: Account, tmp_path: Path, crc32: str) -> None:
    keep(there, {"model.pt": b"123"}, sha256="", crc32=crc32)
    ran = run("artifacts", NAME, "--to", tmp_path / "out", *YARD)
    assert "1 entry written by another version, and left out: artifacts[0].crc32 is no digest" in ran.err
    assert files_in(tmp_path / "out") == {}


def test_a_list_without_a_digest_names_the_first_file_that_it_lacks_it_of(there: Account) -> None:
    keep(there, {"a.pt": b"1", "b.pt": b"2"}, sha256="")
    there.end(there.begin(NAME))
    ran = run("artifacts", NAME, *YARD)
    assert "no digest of 2 files, first of a.pt: nothing has checked that they are whole" in ran.out
    assert "did not end well" not in ran.out


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("RUNNING", "The job has not ended: nothing"),
        ("SUCCEEDED", "The job succeeded, but its list of artifacts is gone: nothing"),
        ("FAILED", "The job did not end well: nothing"),
        ("", "There is no list of the job's artifacts: nothing"),
    ],
)
def test_without_a_list_the_status_of_the_job_says_why_nothing_is_checked(
    there: Account, status: str, words: str
) -> None:
    there.admit(ADMITTED)
    there.s3.write(BYTES_BUCKET, keys.BytesPrefix(NAME).artifact(0, "a.pt"), b"1")
    if status:
        execution = there.begin(NAME)
        if status != "RUNNING":
            there.end(execution, status)
    assert words in run("artifacts", NAME, *YARD).out


@pytest.mark.parametrize("place", ["out", "out/rank-0000", "out/rank-0000/sub"])
@pytest.mark.parametrize("what", ["file", "loop", "nowhere"])
def test_what_is_in_the_place_of_a_folder_is_named_and_nothing_is_written(
    there: Account, tmp_path: Path, place: str, what: str
) -> None:
    keep(there, {"a.pt": b"1", "sub/deep/model.pt": b"123"})
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    if what == "file":
        path.write_bytes(b"mine")
    else:
        path.symlink_to(path if what == "loop" else tmp_path / "gone")
    before = sorted(tmp_path.rglob("*"))
    ran = run("artifacts", NAME, "--to", tmp_path / "out", "--force", *YARD)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert str(path) in ran.err
    assert "allowed: a folder, or a place where one can be made" in ran.err
    assert sorted(tmp_path.rglob("*")) == before


def test_a_job_that_failed_has_what_lies_in_all_of_its_regions(there: Account, tmp_path: Path) -> None:
    abroad = replace(PLACE, region="eu-west-1", bucket="yard-bytes-123456789012-eu-west-1")
    there.s3.buckets[abroad.bucket] = Bucket(region="eu-west-1")
    there.admit(replace(ADMITTED, places={PLACE.region: PLACE, "eu-west-1": abroad}))
    for bucket, body in ((BYTES_BUCKET, b"home"), (abroad.bucket, b"abroad")):
        there.s3.write(bucket, keys.BytesPrefix(NAME).artifact(0, "a.pt"), body)
    ran = run("artifacts", NAME, "--to", tmp_path, *YARD)
    assert files_in(tmp_path) == {"eu-central-1/rank-0000/a.pt": b"home", "eu-west-1/rank-0000/a.pt": b"abroad"}
    assert "nothing has checked that these files are whole" in ran.out


def test_a_second_download_of_a_job_that_failed_fetches_what_is_new(there: Account, tmp_path: Path) -> None:
    there.admit(ADMITTED)
    for name in ("a.pt", "b.pt"):
        there.s3.write(BYTES_BUCKET, keys.BytesPrefix(NAME).artifact(0, name), name.encode())
    assert run("artifacts", NAME, "--to", tmp_path, *YARD).code == 0
    (tmp_path / "rank-0000" / "b.pt").unlink()
    before = len(fetched(there))
    ran = run("artifacts", NAME, "--to", tmp_path, *YARD)
    assert (ran.code, ran.err) == (0, "")
    assert fetched(there)[before:] == [keys.BytesPrefix(NAME).artifact(0, "b.pt")]
    assert files_in(tmp_path) == {"rank-0000/a.pt": b"a.pt", "rank-0000/b.pt": b"b.pt"}


@pytest.mark.parametrize("change", ["of the job", "of the person"])
def test_a_file_that_was_changed_since_its_download_is_kept_without_force(
    there: Account, tmp_path: Path, change: str
) -> None:
    key, file = keys.BytesPrefix(NAME).artifact(0, "a.pt"), tmp_path / "rank-0000" / "a.pt"
    there.admit(ADMITTED)
    there.s3.write(BYTES_BUCKET, key, b"old")
    run("artifacts", NAME, "--to", tmp_path, *YARD)
    if change == "of the job":
        there.clock.now += 10
        there.s3.write(BYTES_BUCKET, key, b"new")
    else:
        file.write_bytes(b"own")
    kept = file.read_bytes()
    ran = run("artifacts", NAME, "--to", tmp_path, *YARD)
    assert (ran.code, file.read_bytes()) == (2, kept)
    assert "is not the job's file as it is now; allowed: another folder, or --force" in ran.err
    assert run("artifacts", NAME, "--to", tmp_path, "--force", *YARD).code == 0
    assert file.read_bytes() == there.s3.read(BYTES_BUCKET, key)


def fetched(there: Account) -> list[str]:
    """Keys of the files that were downloaded."""
    return [
        call.params["Key"]
        for call in there.calls
        if call.name == "s3:GetObject" and call.params.get("Bucket") == BYTES_BUCKET
    ]


@pytest.mark.parametrize("names", [("out", "out/x"), ("out/x", "out"), ("a/b", "a/b/c/d")], ids=str)
def test_a_name_that_is_both_file_and_folder_is_named_and_nothing_is_written(
    there: Account, tmp_path: Path, names: tuple[str, str]
) -> None:
    there.admit(ADMITTED)
    for name in names:
        there.s3.write(BYTES_BUCKET, keys.BytesPrefix(NAME).artifact(0, name), b"x")
    ran = run("artifacts", NAME, "--to", tmp_path / "to", *YARD)
    assert (ran.code, ran.err.count("\n"), list(tmp_path.rglob("*"))) == (2, 1, [])
    assert "both as a file and as a folder" in ran.err
    assert "allowed: single files, by `aws s3 cp` from the addresses that --json prints without --to" in ran.err
    assert len(run("artifacts", NAME, "--json", *YARD).documents[0]["artifacts"]) == 2


@pytest.mark.parametrize("path", ["../x", "a/../../../x", ".."])
def test_a_key_that_leads_elsewhere_is_refused_too(there: Account, tmp_path: Path, path: str) -> None:
    there.admit(ADMITTED)
    there.s3.write(BYTES_BUCKET, f"{keys.BytesPrefix(NAME).artifacts}rank-0000/{path}", b"x")
    ran = run("artifacts", NAME, "--to", tmp_path / "to", *YARD)
    assert (ran.code, ran.err.count("\n"), list(tmp_path.rglob("*"))) == (2, 1, [])
    assert "points out of its folder" in ran.err


def test_entries_of_another_version_are_counted_and_the_others_listed(there: Account) -> None:
    keep(there, {"good": b"1"})
    listed = json.loads(there.s3.read(HOME_BUCKET, keys.JobPrefix(NAME).artifacts(1)) or b"")
    listed["artifacts"] += [{"rank": 0}, {"rank": "x", "path": "y", "size": 1, "at": ""}, None]
    there.put(keys.JobPrefix(NAME).artifacts(1), json.dumps(listed).encode())
    ran = run("artifacts", NAME, *YARD)
    assert (ran.code, ran.out.count("good")) == (0, 1)
    assert "3 entries written by another version, and left out: artifacts[1].path is missing" in ran.err


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"artifacts": 1}'], ids=str)
def test_a_list_that_is_none_is_one_line(there: Account, body: bytes) -> None:
    there.admit(ADMITTED)
    there.put(keys.JobPrefix(NAME).artifacts(1), body)
    ran = run("artifacts", NAME, *YARD)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "was it written by another version?" in ran.err


def test_json_has_where_each_file_is(there: Account, tmp_path: Path) -> None:
    keep(there, {"model.pt": b"123"})
    (found,) = run("artifacts", NAME, "--to", tmp_path, "--json", *YARD).documents
    (one,) = found["artifacts"]
    assert (one["path"], one["bytes"], one["file"]) == ("model.pt", 3, str(tmp_path / "rank-0000" / "model.pt"))


def test_a_job_that_was_refused_or_never_was_says_so(there: Account) -> None:
    there.end(there.begin(), "FAILED", error="InvalidRequest")
    assert "no artifacts" in run("artifacts", NAME, *YARD).err
    assert run("artifacts", "none", *YARD).code == 2


def test_a_person_who_may_not_read_them_reads_which_right_is_missing(there: Account, tmp_path: Path) -> None:
    keep(there, {"model.pt": b"123"})
    there.denied = {"s3:GetObject"}
    ran = run("artifacts", NAME, "--to", tmp_path / "out", *YARD)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "s3:GetObject" in ran.err
