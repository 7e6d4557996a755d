"""A context that is a commit of a git repository: fetched from a host on this computer, kept, and ordered by its version."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from contract import keys
from contract.codec import decode
from contract.errors import HostAway, InvalidRequest
from contract.images import BuildOrder
from git_code import fetching
from localaws.git_host import GitHosts, Instead, blob, commit, tree
from tests.fakes.faults import Kind
from tests.fakes.git import ASK_CHILD, HOST, PRIVATE, TOKEN, head
from tests.functions.image_build.account import ENVIRONMENT, Account, check
from tools.refusals.images import DIGEST, LEAST, REGIONS
from tools.refusals.jobs.git import HEADS

URL = f"https://{HOST}/owner/image.git"
BUCKET = "yard-home"


def put(at: Path, **files: bytes) -> str:
    """A commit of these files; returns its hash."""
    return commit(at, tree(at, *(("100644", name.encode(), blob(at, body)) for name, body in sorted(files.items()))))


@pytest.fixture(autouse=True)
def repository(git_hosts_here: GitHosts) -> Iterator[Path]:
    """A repository with a Dockerfile at its root."""
    at = git_hosts_here.repository(f"{HOST}/owner/image.git")
    put(at, Dockerfile=b"FROM scratch\nCOPY . /code\n", train=b"print(1)\n")
    yield at
    shutil.rmtree(at)


def request_for(ref: str, url: str = URL, **changes: Any) -> dict[str, Any]:
    return {**LEAST, "context": {"git": url, "ref": ref}, **changes}


def ordered(request: dict[str, Any]) -> BuildOrder:
    return decode(BuildOrder, check(request)["order"])


def refused(request: dict[str, Any]) -> str:
    with pytest.raises(InvalidRequest) as problem:
        check(request)
    return str(problem.value)


def fetches(hosts: GitHosts) -> int:
    return sum(one.endswith("info/refs") for one in hosts.asked)


# What is ordered


def test_a_commit_is_kept_as_a_context_and_the_order_names_the_version_that_was_written(
    there: Account, git_hosts: GitHosts
) -> None:
    ref = head(git_hosts, "image")
    order = ordered(request_for(ref))
    assert order.context is not None
    assert (order.context.bucket, order.context.key) == (BUCKET, keys.fetched_context(URL, ref))
    newest = there.s3.buckets[BUCKET].newest(order.context.key)
    assert newest is not None
    assert (order.context.version, order.context.etag) == (newest.id, newest.etag)
    assert newest.content_type == "application/gzip"
    assert there.changes == ["s3:PutObject"]
    assert fetches(git_hosts) == 1


def test_a_commit_is_an_archive_that_the_check_of_archives_takes(there: Account, git_hosts: GitHosts) -> None:
    order = ordered(request_for(head(git_hosts, "image")))
    assert order.context is not None
    body = there.s3.read(BUCKET, order.context.key)
    assert body is not None
    there.put("uploads/same.tar.gz", body)
    assert check({**LEAST, "context": f"s3://{BUCKET}/uploads/same.tar.gz"})["how"] == "built"


def test_a_repeat_of_the_check_writes_the_same_bytes_under_the_same_key(there: Account, git_hosts: GitHosts) -> None:
    """A retry of the step, or another build of the commit, changes nothing under a build that runs."""
    request = request_for(head(git_hosts, "image"))
    first = ordered(request)
    time.sleep(1.1)  # gzip and tar count time in seconds
    second = ordered(request)
    assert first.context is not None
    assert second.context is not None
    assert (first.context.key, first.context.etag) == (second.context.key, second.context.etag)
    assert {one.body for one in there.s3.buckets[BUCKET].objects[first.context.key]} == {
        there.s3.read(BUCKET, first.context.key)
    }


def test_the_same_commit_of_another_repository_has_a_key_of_its_own(there: Account, git_hosts: GitHosts) -> None:
    ref = head(git_hosts, "image")
    other = git_hosts.repository(f"{HOST}/owner/fork.git")
    try:
        assert put(other, Dockerfile=b"FROM scratch\nCOPY . /code\n", train=b"print(1)\n") == ref
        contexts = [ordered(request_for(ref, url)).context for url in (URL, f"https://{HOST}/owner/fork.git")]
    finally:
        shutil.rmtree(other)
    assert len({one.key for one in contexts if one}) == 2
    assert there.changes == ["s3:PutObject"] * 2


def test_a_slash_at_the_end_of_an_address_is_the_same_repository(there: Account, git_hosts: GitHosts) -> None:
    ref = head(git_hosts, "image")
    contexts = [ordered(request_for(ref, url)).context for url in (URL, f"{URL}/")]
    assert len({one.key for one in contexts if one}) == 1
    assert len(there.changes) == 2


def test_a_private_repository_is_read_with_the_token_of_its_host(
    there: Account, git_hosts: GitHosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in replace(ENVIRONMENT, git_hosts={PRIVATE: "git-token"}).write().items():
        monkeypatch.setenv(name, value)
    there.directory.secrets["eu-central-1", "git-token"] = "arn:aws:secretsmanager:eu-central-1:1:secret:git-token-a"
    there.directory.values["eu-central-1", "git-token"] = TOKEN
    url = f"https://{PRIVATE}/owner/good.git"
    assert "has no Dockerfile at its root" in refused(request_for(head(git_hosts, "good", PRIVATE), url))
    there.directory.values["eu-central-1", "git-token"] = "another"
    assert "does not exist, or may not be read" in refused(request_for(head(git_hosts, "good", PRIVATE), url))
    assert there.changes == []


@pytest.mark.parametrize("regions", [REGIONS, REGIONS[:1]], ids=["everywhere", "in one region"])
def test_nothing_is_written_where_the_image_stands_already(
    there: Account, git_hosts: GitHosts, regions: tuple[str, ...]
) -> None:
    there.stand("v1", dict.fromkeys(regions, DIGEST))
    plan = check(request_for(head(git_hosts, "image"), if_absent=True))
    assert plan["how"] == ("unchanged" if regions == REGIONS else "completed")
    assert there.changes == []


# What is refused


@pytest.mark.parametrize(
    ("name", "ref", "says"),
    [
        ("image", "main", "ref: main is not the whole hash of a commit"),
        ("image", "1" * 40, f"has no commit {'1' * 40}"),
        ("good", HEADS["good"], "has no Dockerfile at its root"),
        ("submodule", HEADS["submodule"], "has the submodule 'third'"),
        ("lfs", HEADS["lfs"], "in git-LFS"),
        ("none", "1" * 40, "does not exist, or may not be read"),
        ("empty", HEADS["empty"], "is an empty archive"),
        ("out", HEADS["out"], "a link to '../../etc/passwd', out of its folder"),
        ("many", HEADS["many"], "is too large (more than 20,000 files and folders)"),
    ],
)
def test_a_commit_that_cannot_be_built_is_refused_and_nothing_is_written(
    there: Account, name: str, ref: str, says: str
) -> None:
    assert says in refused(request_for(ref, f"https://{HOST}/owner/{name}.git"))
    assert there.changes == []


def test_a_host_that_the_settings_do_not_list_is_asked_nothing(there: Account, git_hosts: GitHosts) -> None:
    said = refused(request_for(HEADS["good"], f"https://{PRIVATE}/owner/good.git"))
    assert f"context: {PRIVATE} is not a host that code may be fetched from; allowed: {HOST} (git_hosts" in said
    assert git_hosts.asked == []
    assert there.changes == []


def test_a_redirect_is_refused_and_not_waited_for(there: Account, git_hosts: GitHosts) -> None:
    git_hosts.instead = lambda _: Instead(301, location=f"https://{PRIVATE}/owner/good.git")
    assert "no redirect is followed" in refused(request_for("1" * 40))
    assert there.changes == []


def test_the_same_child_fetches_for_builds_as_for_jobs_within_its_limits(
    there: Account, git_hosts: GitHosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "ask_child", ASK_CHILD)
    program = "from git_code import fetch_child as child; child.MOST_PACK = 10; child.main()"
    monkeypatch.setattr(fetching, "PROGRAM", program)
    assert "is too large (more than 10 bytes, as git sends them)" in refused(request_for(head(git_hosts, "image")))
    assert there.changes == []


# A host that is away


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_host_that_is_away_is_an_error_that_the_machine_waits_for(
    there: Account, git_hosts: GitHosts, status: int
) -> None:
    ref = head(git_hosts, "image")
    git_hosts.instead = lambda _: Instead(status)
    with pytest.raises(HostAway) as problem:
        check(request_for(ref))
    assert str(problem.value).startswith(f"context: {URL} cannot be reached (")
    assert there.changes == []
    git_hosts.instead = lambda _: None
    assert check(request_for(ref))["how"] == "built"


def test_what_is_wrong_beside_a_host_that_is_away_is_refused_at_once(there: Account, git_hosts: GitHosts) -> None:
    git_hosts.instead = lambda _: Instead(503)
    said = refused(request_for("1" * 40, tag="-v", repository="imagse"))
    assert ("tag: -v is not a tag" in said, "repository: imagse is not a repository" in said) == (True, True)
    assert "cannot be reached" not in said
    assert there.changes == []


def test_trouble_of_s3_is_not_said_to_be_the_contexts(there: Account, git_hosts: GitHosts) -> None:
    there.faults.add(Kind.DENIED, "s3:PutObject", times=1)
    with pytest.raises(ClientError, match="AccessDenied"):
        check(request_for(head(git_hosts, "image")))
