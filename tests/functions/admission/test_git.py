"""Code from git: fetched from git's own server, by a process of its own where that matters; the table of refusals has what is wrong
with a commit too."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from aws.s3 import HomeBucket
from contract.archives import Refused
from contract.errors import InvalidRequest
from contract.jobs import Code, Job
from contract.unpacking import unpack
from git_code import fetch_child, fetching
from git_code.commit import MIB, MOST_BYTES, FetchTrouble, GitCommit, NotFetched, list_fetch_problems, read_git
from git_code.tree import EARLIEST, TooMuch, files, write
from localaws.git_host import GitHosts, Instead, blob, commit, git, tree
from tests.archives import tarred
from tests.fakes.faults import Kind
from tests.fakes.git import ASK_CHILD, HOST, PRIVATE, REPOSITORIES, TOKEN, head
from tests.functions.admission.account import Account, start
from tools.refusals.jobs import LEAST
from tools.refusals.jobs.git import FOLDER, HEADS

GOOD = {"git": f"https://{HOST}/owner/good.git", "ref": HEADS["good"]}
FROM_GIT = {**LEAST, "code": GOOD}
COMMIT = GitCommit(GOOD["git"], GOOD["ref"])
LESS = "from git_code import fetch_child as child; child.{name} = {value}; child.main()"
"""The child's program, with less of something."""
KEY = f"jobs/job-1/code/{HEADS['good']}.tar.gz"


@pytest.fixture(autouse=True)
def hosts(git_hosts_here: GitHosts) -> GitHosts:
    return git_hosts_here


@pytest.fixture
def own_process(hosts: GitHosts, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    monkeypatch.setattr(fetching, "ask_child", ASK_CHILD)


def stored(there: Account, key: str = KEY) -> bytes:
    body = there.s3.read("yard-home", key)
    assert body is not None
    return body


def refused(request: dict[str, Any] = FROM_GIT) -> str:
    with pytest.raises(InvalidRequest) as problem:
        start(request)
    return str(problem.value)


def fetches(hosts: GitHosts) -> int:
    return sum(one.endswith("info/refs") for one in hosts.asked)


def answering(hosts: GitHosts, instead: Instead) -> None:
    hosts.instead = lambda _: instead


# What a job gets


def test_the_repositories_are_those_of_which_the_table_of_refusals_speaks(hosts: GitHosts) -> None:
    assert {name: head(hosts, name) for name in REPOSITORIES} == HEADS
    assert git(hosts.folder / HOST / "owner" / "good.git", "rev-parse", "refs/heads/main^{tree}") == FOLDER


@pytest.mark.usefixtures("own_process")
def test_a_commit_is_fetched_once_into_the_jobs_prefix_and_the_job_says_which(there: Account, hosts: GitHosts) -> None:
    start(FROM_GIT)
    job = there.job("job-1")
    assert job is not None
    assert job.code == Code(key=KEY, source=GOOD["git"], source_version=GOOD["ref"], size=len(stored(there)))
    assert fetches(hosts) == 1
    assert there.changes == ["s3:PutObject", "s3:PutObject", "dynamodb:PutItem"]
    assert [one["Key"] for one in there.find_params("s3:PutObject")] == [KEY, "jobs/job-1/job.json"]


def test_a_node_unpacks_what_the_commit_has_with_links_and_executable_bits(there: Account, tmp_path: Path) -> None:
    start(FROM_GIT)
    archive, folder = tmp_path / "code.tar.gz", tmp_path / "code"
    archive.write_bytes(stored(there))
    unpack(archive, folder)
    assert {str(one.relative_to(folder)) for one in folder.rglob("*")} == {
        *("latest.py", "run.sh", "src", "src/model.py", "train.py", "überfluß \u202e.txt")
    }
    assert (folder / "latest.py").readlink() == Path("train.py")
    assert (folder / "run.sh").stat().st_mode & 0o111 == 0o111
    assert (folder / "train.py").stat().st_mode & 0o111 == 0
    assert (folder / "train.py").stat().st_mtime == 1_768_464_000.0  # when it was committed


def test_an_image_may_have_its_code_from_git_too(there: Account) -> None:
    start({**FROM_GIT, "image": "images:v1"})
    job = there.job("job-1")
    assert job is not None
    assert job.code is not None
    assert job.container is not None


def test_a_program_of_a_commit_is_judged_as_one_of_an_archive_whether_or_not_it_was_fetched_before(
    there: Account,
) -> None:
    request = {**FROM_GIT, "command": ["./train.py"]}
    assert "which is not executable" in refused(request)
    there.put(KEY, tarred(("train.py", "print()")))
    assert "which is not executable" in refused(request)


def test_the_same_commit_is_the_same_bytes(there: Account) -> None:
    start(FROM_GIT, "job-1")
    time.sleep(1.1)  # gzip and tar count time in seconds
    start(FROM_GIT, "job-2")
    assert stored(there) == stored(there, KEY.replace("job-1", "job-2"))


@pytest.mark.usefixtures("there")
def test_a_second_run_of_admit_asks_the_host_nothing(hosts: GitHosts) -> None:
    assert start(FROM_GIT) == start(FROM_GIT)
    assert fetches(hosts) == 1


def test_a_run_that_ended_before_the_job_was_written_has_fetched_for_the_next_one(
    there: Account, hosts: GitHosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(_: HomeBucket, job: Job) -> None:
        raise TimeoutError(job.id)

    with monkeypatch.context() as patch:
        patch.setattr(HomeBucket, "create_job", ended)
        with pytest.raises(TimeoutError):
            start(FROM_GIT)
    answering(hosts, Instead(500))
    start(FROM_GIT)
    job = there.job("job-1")
    assert job is not None
    assert job.code is not None
    assert (fetches(hosts), job.code.size) == (1, len(stored(there)))


def test_a_dry_run_looks_at_the_commit_and_writes_nothing(there: Account, hosts: GitHosts) -> None:
    assert start({**FROM_GIT, "dry_run": True})["dry_run"]
    assert (fetches(hosts), there.changes) == (1, [])


@pytest.mark.usefixtures("there")
def test_nothing_is_fetched_for_a_name_that_another_job_has(hosts: GitHosts) -> None:
    with pytest.raises(InvalidRequest, match="another execution"):
        start(FROM_GIT, "taken")
    assert hosts.asked == []


def test_a_wrong_field_beside_it_does_not_keep_the_commit_from_being_looked_at(there: Account) -> None:
    said = refused({**FROM_GIT, "nodes": 0, "code": {**GOOD, "ref": "1" * 40}})
    assert "nodes: 0 is too small" in said
    assert f"has no commit {'1' * 40}" in said
    assert there.changes == []


# Whom it asks, and as whom


@pytest.mark.usefixtures("own_process")
def test_a_private_repository_is_read_with_the_token_of_its_host(there: Account) -> None:
    there.directory.secrets["eu-central-1", "git-token"] = (
        "arn:aws:secretsmanager:eu-central-1:1:secret:git-token-a1b2c3"
    )
    there.directory.values["eu-central-1", "git-token"] = f"{TOKEN}\n"
    start({**FROM_GIT, "code": {**GOOD, "git": f"https://{PRIVATE}/owner/good.git"}})
    assert there.s3.read("yard-home", KEY) is not None


@pytest.mark.parametrize(("text", "said"), [("another", "answers 401: Repository not found."), ("", "it has no text")])
def test_a_token_that_may_not_read_is_told_with_the_hosts_words_and_never_shown(
    there: Account, text: str, said: str
) -> None:
    there.directory.secrets["eu-central-1", "git-token"] = (
        "arn:aws:secretsmanager:eu-central-1:1:secret:git-token-a1b2c3"
    )
    there.directory.values["eu-central-1", "git-token"] = text
    told = refused({**FROM_GIT, "code": {**GOOD, "git": f"https://{PRIVATE}/owner/good.git"}})
    assert said in told
    assert "git-token" in told
    assert "another" not in told.replace("at another", "")


def test_trouble_of_secrets_manager_is_no_refusal(there: Account) -> None:
    there.faults.add(Kind.ERROR, "secretsmanager:GetSecretValue", times=20)
    with pytest.raises(ClientError):
        start({**FROM_GIT, "code": {**GOOD, "git": f"https://{PRIVATE}/owner/good.git"}})


def test_a_host_that_the_settings_do_not_list_is_asked_nothing(hosts: GitHosts, there: Account) -> None:
    hosts.names = (*hosts.names, "internal.example.com")
    try:
        refused({**FROM_GIT, "code": {**GOOD, "git": "https://internal.example.com/owner/good.git"}})
    finally:
        hosts.names = hosts.names[:-1]
    assert hosts.asked == []
    assert there.find_params("secretsmanager:GetSecretValue") == []


@pytest.mark.parametrize("to", [f"https://{PRIVATE}/owner/good.git/info/refs", f"https://{HOST}/other.git/info/refs"])
def test_no_redirect_is_followed_to_whichever_host(hosts: GitHosts, there: Account, to: str) -> None:
    answering(hosts, Instead(301, location=to))
    assert f"redirects to another address ({to}), and no redirect is followed" in refused()
    assert [one for one in hosts.asked if not one.startswith(f"{HOST}/owner/good.git")] == []
    assert there.changes == []


@pytest.mark.usefixtures("own_process")
def test_a_certificate_that_nobody_signed_ends_the_fetch(monkeypatch: pytest.MonkeyPatch, there: Account) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", os.devnull)
    assert "cannot be reached" in refused()
    assert there.changes == []


# What a host may answer instead


def test_a_host_that_is_away_is_told_as_such() -> None:
    found = fetching.run_child(replace(COMMIT, url="https://gone.example.com/owner/good.git"), "", Path("/nowhere"))
    assert found is not None
    assert found.trouble is FetchTrouble.AWAY
    assert "502" in found.said


@pytest.mark.parametrize(
    ("instead", "said"),
    [
        (Instead(403, b"You are rate limited"), "answers 403: You are rate limited"),
        (Instead(404, b"<html>", kind="text/html"), "answers 404 to a request"),
        (Instead(500, b"oops"), "cannot be reached (it answers 500: oops)"),
        (Instead(200, b"<html>", kind="text/html"), "cannot be read as a git repository"),
        (
            Instead(200, b"zzzz", kind="application/x-git-upload-pack-advertisement"),
            "cannot be read as a git repository",
        ),
    ],
)
def test_an_answer_that_is_not_gits_is_a_refusal_in_the_hosts_words(
    hosts: GitHosts, there: Account, instead: Instead, said: str
) -> None:
    answering(hosts, instead)
    assert said in refused()
    assert there.changes == []


def test_a_host_that_is_busy_for_a_moment_is_asked_again(hosts: GitHosts, there: Account) -> None:
    answers = [Instead(503), Instead(429)]
    hosts.instead = lambda _: answers.pop() if answers else None
    start(FROM_GIT)
    assert there.s3.read("yard-home", KEY) is not None


@pytest.mark.usefixtures("own_process")
def test_a_host_that_does_not_end_ends_at_the_limit(hosts: GitHosts, tmp_path: Path) -> None:
    over = threading.Event()

    def hang(_: str) -> None:
        over.wait()

    hosts.instead = hang
    try:
        assert fetching.run_child(COMMIT, "", tmp_path / "a.tar.gz", limit_s=1.0) == NotFetched(FetchTrouble.LATE)
    finally:
        over.set()


# What a commit may hold


@pytest.fixture
def large(hosts: GitHosts) -> Iterator[Path]:
    at = hosts.repository(f"{HOST}/owner/large.git")
    yield at
    subprocess.run(["rm", "-r", str(at)], check=True)


def _large(at: Path, shell: str) -> dict[str, Any]:
    """A commit of one file, which a shell's pipe writes."""
    done = subprocess.run(f"{shell} | git hash-object -w --stdin", shell=True, cwd=at, capture_output=True, check=True)
    ref = commit(at, tree(at, ("100644", b"train.py", done.stdout.decode().strip())))
    return {**LEAST, "code": {"git": f"https://{HOST}/owner/large.git", "ref": ref}}


@pytest.mark.usefixtures("own_process")
def test_a_file_that_packs_small_ends_at_the_childs_memory(
    large: Path, there: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "PROGRAM", LESS.format(name="MOST_MEMORY", value=150 * MIB))
    assert "is too large (it takes more memory than the fetch has)" in refused(
        _large(large, "head -c 100000000 /dev/zero")
    )
    assert there.changes == []


@pytest.mark.usefixtures("own_process")
def test_a_pack_above_the_limit_is_not_read_to_its_end(
    large: Path, there: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "PROGRAM", LESS.format(name="MOST_PACK", value=MIB))
    said = refused(_large(large, "head -c 2000000 /dev/urandom"))
    assert "is too large (more than 1,048,576 bytes, as git sends them)" in said
    assert there.changes == []


def test_files_above_the_limit_together_are_refused(tmp_path: Path) -> None:
    two = files(b"root", lambda _: iter([(b"a", 0o100644, b"1"), (b"b", 0o100644, b"1")]))
    with pytest.raises(TooMuch, match="more than 15 bytes"):
        write(two, lambda _: b"12345678", io.BytesIO(), committed=0, most=15)
    write(two, lambda _: b"12345678", io.BytesIO(), committed=0, most=16)
    assert MOST_BYTES < fetch_child.MOST_DISK
    assert list(tmp_path.iterdir()) == []


def test_the_commit_may_claim_any_time() -> None:
    found = files(b"root", lambda _: iter([(b"a", 0o100644, b"1")]))
    for claimed in (-5, 0, 2**62):
        sink = io.BytesIO()
        write(found, lambda _: b"x", sink, committed=claimed)
        with tarfile.open(fileobj=io.BytesIO(sink.getvalue())) as archive:
            assert EARLIEST <= archive.getmembers()[0].mtime <= 2**32


@pytest.mark.parametrize("name", [b"", b".", b"..", b".git", b".GiT", b"a/b", b"a\0b"])
def test_a_name_that_leads_elsewhere_is_refused(name: bytes) -> None:
    with pytest.raises(Refused, match="a name that git does not allow"):
        files(b"root", lambda _: iter([(name, 0o100644, b"1")]))


def test_a_large_file_that_begins_like_a_pointer_is_a_file() -> None:
    found, sink = files(b"root", lambda _: iter([(b"a", 0o100644, b"1")])), io.BytesIO()
    write(found, lambda _: b"version https://git-lfs.github.com/spec/v1" + b"x" * 1024, sink, committed=0)
    assert sink.getvalue()


def test_what_was_fetched_before_a_push_by_force_is_what_runs(there: Account, hosts: GitHosts) -> None:
    at = hosts.repository(f"{HOST}/owner/moving.git")
    first = commit(at, tree(at, ("100644", b"train.py", blob(at, b"first"))))
    request = {**LEAST, "code": {"git": f"https://{HOST}/owner/moving.git", "ref": first}}
    told = start(request)
    commit(at, tree(at, ("100644", b"train.py", blob(at, b"second"))))
    git(at, "reflog", "expire", "--expire=now", "--all")
    git(at, "gc", "--quiet", "--prune=now")
    assert start(request) == told
    with tarfile.open(fileobj=io.BytesIO(stored(there, f"jobs/job-1/code/{first}.tar.gz"))) as archive:
        member = archive.extractfile("train.py")
        assert member is not None
        assert member.read() == b"first"
    with pytest.raises(InvalidRequest, match="has no commit"):
        start(request, "job-2")


# What a request may name


@pytest.mark.parametrize(
    "url",
    [
        "http://git.example.com/owner/good.git",
        "https://git.example.com",
        "https://git.example.com/",
        "https://localhost/owner/good.git",
        "https://git.example.com/owner/../good.git",
        "https://git.example.com/owner/.git",
        "https://git.example.com/-owner/good.git",
        "https://git.example.com/owner/good.git?x=1",
        "https://git.example.com/owner/good.git#x",
        "https://git.example.com/owner/good.git\n",
        "https://git.example.com/" + "o" * 300,
    ],
)
def test_an_address_with_more_than_a_host_and_a_path_is_none(url: str) -> None:
    with pytest.raises(ValueError, match="is not the https address of a repository"):
        read_git({"git": url, "ref": "1" * 40})


@pytest.mark.parametrize(
    "ref", ["main", "v1.0", "1" * 39, "1" * 41, "A" * 40, "g" * 40, "1" * 64, "", "HEAD", "1" * 40 + "\n"]
)
def test_a_commit_has_one_name(ref: str) -> None:
    with pytest.raises(ValueError, match="is not the whole hash of a commit"):
        read_git({"git": GOOD["git"], "ref": ref})


@pytest.mark.parametrize("trouble", FetchTrouble)
def test_every_trouble_has_words_that_name_the_repository_and_what_is_allowed(trouble: FetchTrouble) -> None:
    (line,) = list_fetch_problems(
        COMMIT, NotFetched(trouble, "said \u202eby the host" + "!" * 1000), {HOST: "a-secret"}
    )
    assert line.startswith(f"code: {GOOD['git']}")
    assert "; allowed: " in line
    assert line.isprintable()
    assert len(line) < 1000
