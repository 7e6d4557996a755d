"""Admit looks into the archive: what cannot run is refused before anything is paid, and what nobody can know is taken."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from contract import archives
from contract.errors import InvalidRequest
from contract.unpacking import unpack
from localaws.model import Refused
from refusals.archive import MOST_LISTED, Listing, listing
from refusals.commands import script
from refusals.script import archive_problems
from tests.archives import (
    UNSAFE_TARS,
    link,
    packed,
    tar_of,
    tarred,
    zipped,
)
from tests.fakes.wire import Call
from tests.functions.admission.account import Account, start
from tools.refusals.jobs import LEAST

CODE = "s3://yard-home/uploads/a.tar.gz"


def never() -> bool:
    return False


def list_archive(body: bytes, name: str = "a.tar.gz") -> Listing:
    return listing(io.BytesIO(body), name, never)


KNOWN: dict[tuple[str, ...], str] = {
    ("python", "train.py"): "train.py",
    ("python3", "-u", "-OO", "src/train.py", "-m", "x"): "src/train.py",
    ("/usr/bin/python3.11", "-W", "ignore", "-Xdev", "train.py"): "train.py",
    ("bash", "run.sh"): "run.sh",
    ("bash", "-euo", "pipefail", "run.sh", "-c"): "run.sh",
    ("sh", "-x", "scripts/run"): "scripts/run",
    ("./run.sh",): "./run.sh",
    ("bin/train", "--fast"): "bin/train",
    ("torchrun", "train.py"): "train.py",
    ("torchrun", "--standalone", "--nproc_per_node=4", "--nnodes", "2", "-r", "3", "train.py", "--x"): "train.py",
    ("python", "-m", "torch.distributed.run", "--nproc-per-node", "4", "train.py"): "train.py",
}
UNKNOWN: tuple[tuple[str, ...], ...] = (
    ("python", "-c", "print(1)"),
    ("python", "-m", "package"),
    ("python", "-um", "package"),
    ("python", "-"),
    ("python",),
    ("python", "--version"),
    ("python", "/opt/train.py"),
    ("python", "~/train.py"),
    ("bash", "-c", "python train.py"),
    ("bash", "-lc", "python train.py"),
    ("bash", "-s", "run.sh"),
    ("bash", "--rcfile", "x", "run.sh"),
    ("bash", "train"),
    ("bash",),
    ("torchrun", "-m", "package"),
    ("torchrun", "--no-python", "train.sh"),
    ("torchrun", "--an-option-of-tomorrow", "x", "train.py"),
    ("torchrun", "--nproc", "4", "train.py"),
    ("accelerate", "launch", "train.py"),
    ("deepspeed", "train.py"),
    ("nvidia-smi",),
    ("env", "A=b", "python", "train.py"),
    ("/usr/local/bin/train", "x"),
)


@pytest.mark.parametrize(("command", "file"), KNOWN.items())
def test_the_file_that_a_command_runs_is_known(command: Sequence[str], file: str) -> None:
    assert script(command) == file


@pytest.mark.parametrize("command", UNKNOWN, ids=" ".join)
def test_what_a_command_runs_is_not_guessed(command: Sequence[str]) -> None:
    assert script(command) is None
    assert archive_problems(CODE, command, Listing(names=frozenset({"other.py"}))) == []


@pytest.mark.parametrize("command", KNOWN, ids=" ".join)
def test_a_file_that_is_not_in_the_archive_is_refused(command: Sequence[str]) -> None:
    (problem,) = archive_problems(CODE, command, Listing(names=frozenset({"x"})))
    assert problem == (
        f"command: runs {KNOWN[tuple(command)]}, which is not in {CODE}; allowed: a file of the archive, "
        "by its path from the archive's root"
    )


@pytest.mark.parametrize("name", ["train.py", "./train.py", ".//train.py"])
@pytest.mark.parametrize("asked", ["train.py", "./train.py", "x/../train.py"])
def test_a_file_is_found_however_its_path_is_written(name: str, asked: str) -> None:
    for found in (
        list_archive(packed(name)),
        list_archive(tarred((name, "x"), mode="w"), "a.tar"),
        list_archive(zipped(name), "a.zip"),
    ):
        assert not found.lacks(asked)
        assert found.lacks("other.py")


def test_a_folder_may_be_run_as_python_does() -> None:
    assert archive_problems(CODE, ["python", "package"], list_archive(packed("package/__main__.py"))) == []


def test_what_lies_behind_a_link_is_not_known() -> None:
    found = list_archive(tarred(link("current", "v1"), ("v1/train.py", "x"), link("run.py", "v1/train.py")))
    assert not found.lacks("current/train.py")
    assert not found.lacks("run.py")
    assert found.lacks("train.py")


@pytest.mark.parametrize("path", ["/opt/x.py", "../x.py", "a/../../x.py", "."])
def test_what_lies_out_of_the_archive_is_not_known(path: str) -> None:
    assert not list_archive(packed("train.py")).lacks(path)


def test_a_folder_that_was_packed_instead_of_its_contents_is_told_how_to_pack() -> None:
    (problem,) = archive_problems(CODE, ["python", "train.py"], list_archive(packed("digits/train.py", "digits/a.py")))
    assert "it is at digits/train.py: pack the folder's contents, as `tar -C digits -czf code.tar.gz .` does" in problem


def test_a_slip_of_the_pen_is_told() -> None:
    (problem,) = archive_problems(CODE, ["python", "trian.py"], list_archive(packed("train.py", "a.py")))
    assert "(did you mean train.py?)" in problem


@pytest.mark.parametrize(
    ("body", "name"),
    [(tarred(), "a.tar.gz"), (tarred(mode="w"), "a.tar"), (zipped(), "a.zip"), (zipped("folder/"), "a.zip")],
    ids=["a tarball", "without compression", "a zip", "a folder alone"],  # an archive has the time of its making
)
def test_an_archive_without_a_file_is_refused(body: bytes, name: str) -> None:
    assert archive_problems(CODE, ["nvidia-smi"], list_archive(body, name)) == [
        f"code: {CODE} is an empty archive; allowed: an archive of what the command runs"
    ]


@pytest.mark.parametrize("body", [b"", b"no archive", b"\x1f\x8b\x08broken", b"\xff" * 5000])
@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar"])
def test_what_is_no_archive_is_refused(body: bytes, name: str) -> None:
    (problem,) = archive_problems(CODE, ["nvidia-smi"], list_archive(body, name))
    assert problem.startswith(f"code: {CODE} cannot be read (")


def test_an_archive_that_is_too_long_to_be_looked_through_is_taken() -> None:
    reads = iter([False] * 40)
    body = tarred(*((f"{n}.bin", b"\0" * 20_000) for n in range(100)), mode="w")
    found = listing(io.BytesIO(body), "a.tar", lambda: next(reads, True))
    assert 0 < len(found.names) < 100
    assert archive_problems(CODE, ["python", "train.py"], found) == []


def test_an_archive_of_which_nothing_was_seen_is_taken() -> None:
    found = listing(io.BytesIO(packed("a.py")), "a.tar.gz", lambda: True)
    assert archive_problems(CODE, ["python", "train.py"], found) == []


def test_an_archive_of_very_many_files_is_taken_and_not_kept_in_memory() -> None:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w") as whole:
        for number in range(MOST_LISTED + 10):
            whole.addfile(tarfile.TarInfo(str(number)))
    found = list_archive(body.getvalue(), "a.tar")
    assert len(found.names) == MOST_LISTED
    assert not found.whole
    assert not found.lacks("train.py")


@pytest.mark.parametrize("kind", ["a.tar", "a.tar.gz", "a.zip"])
def test_admit_refuses_a_command_whose_file_is_missing_and_takes_the_one_that_is_there(
    there: Account, kind: str
) -> None:
    body = {"a.tar": tarred(("main.py", "x"), mode="w"), "a.zip": zipped("main.py")}.get(kind, packed("main.py"))
    code = there.upload(kind, body)
    with pytest.raises(InvalidRequest, match=r"runs train\.py, which is not in"):
        start({**LEAST, "code": code})
    assert there.changes == []
    assert start({**LEAST, "code": code, "command": ["python", "main.py"]})["job"] == "job-1"


@pytest.mark.parametrize("code", ["PreconditionFailed", "AccessDenied", "NoSuchKey"])
def test_an_archive_that_changes_or_closes_while_it_is_looked_at_is_taken(
    there: Account, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = there.s3.answer

    def refused(call: Call) -> dict[str, Any]:
        if "Range" in call.params:
            raise Refused(code, "", 412)
        return honest(call)

    monkeypatch.setattr(there.s3, "answer", refused)
    assert start({**LEAST, "command": ["python", "not_there.py"]})["job"] == "job-1"


def test_admit_looks_at_the_bytes_that_it_names_in_the_job(there: Account) -> None:
    start(LEAST)
    (ranged,) = [asked for asked in there.find_params("s3:GetObject") if "Range" in asked]
    found, job = there.s3.buckets["yard-home"].newest("uploads/a.tar.gz"), there.job("job-1")
    assert found is not None
    assert job is not None
    assert (ranged["VersionId"], ranged["IfMatch"]) == (found.id, found.etag)
    assert job.code is not None
    assert job.code.source_version == found.id


def test_what_lies_behind_a_link_of_a_zip_is_unknown() -> None:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        folder = zipfile.ZipInfo("src")
        folder.create_system, folder.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        archive.writestr(folder, "real/src")
        archive.writestr("real/src/train.py", "pass")
    found = list_archive(body.getvalue(), "a.zip")
    assert archive_problems("s3://b/a.zip", ["python", "src/train.py"], found) == []
    assert archive_problems("s3://b/a.zip", ["python", "src2/train.py"], found) != []


def test_names_of_any_length_are_refused_and_not_kept() -> None:
    found = list_archive(tarred(("x" * 1_000_000, b"")))
    assert (found.names, found.whole, found.broken) == (frozenset(), False, "")
    assert "whose name has 1,000,000 bytes" in found.refused
    assert len(found.refused) < 400


ON_THE_NODES_DISK = {
    "a file through a link made inside",
    "a link that leads out only once another one exists",
}
"""What only unpacking tells for certain: admission takes it, and the node refuses it."""


@pytest.mark.parametrize("unsafe", UNSAFE_TARS)
def test_what_a_node_refuses_by_its_names_admission_refuses_in_the_same_words(tmp_path: Path, unsafe: str) -> None:
    file = tar_of(tmp_path, *UNSAFE_TARS[unsafe])
    with pytest.raises(archives.Refused) as refused:
        unpack(file, tmp_path / "code")
    found = list_archive(file.read_bytes())
    assert found.refused == ("" if unsafe in ON_THE_NODES_DISK else str(refused.value))


@pytest.mark.parametrize(
    ("name", "mode", "content"),
    [
        ("/etc/evil", stat.S_IFREG, "x"),
        ("a/../evil", stat.S_IFREG, "x"),
        ("evil", stat.S_IFLNK, "../outside"),
        ("evil", stat.S_IFLNK, "/etc/passwd"),
        ("evil", stat.S_IFLNK, ""),
    ],
)
def test_an_unsafe_zip_is_refused_in_the_nodes_words(tmp_path: Path, name: str, mode: int, content: str) -> None:
    file = tmp_path / "a.zip"
    with zipfile.ZipFile(file, "w") as whole:
        info = zipfile.ZipInfo(name)
        info.create_system, info.external_attr = 3, (mode | 0o644) << 16
        whole.writestr(info, content)
    with pytest.raises(archives.Refused) as refused:
        unpack(file, tmp_path / "code")
    assert list_archive(file.read_bytes(), "a.zip").refused == str(refused.value)


@pytest.mark.parametrize(
    "members",
    [
        (link("current", "v1"), ("v1/train.py", "x")),
        (link("a/b/up", "../.."), ("train.py", "x")),
        (link("a/b/over", "../c/../../train.py"), ("train.py", "x")),
        (("a/..b/train.py", "x"), link("..c", "a/..b")),
        (link("up", "."), link("out", "up/../x")),
    ],
    ids=["beside", "to the root", "up and down", "names with dots", "through another link"],
)
def test_a_link_that_stays_or_may_stay_in_the_archive_is_taken(
    members: tuple[tarfile.TarInfo | tuple[str, str], ...],
) -> None:
    assert list_archive(tarred(*members)).refused == ""


def test_admit_refuses_an_archive_that_no_node_unpacks(there: Account) -> None:
    code = there.upload("a.tar", tarred(("train.py", "x"), link("data", "/mnt/data"), mode="w"))
    with pytest.raises(
        InvalidRequest, match=r"a link to '/mnt/data', out of its folder; allowed: plain relative names"
    ):
        start({**LEAST, "code": code})
    assert there.changes == []
