"""Links of a checkpoint come back as links, the content of an artifact's link is kept, and no link leads out of its folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.engine.wanted import Unusable, check
from agent.snapshot import MOST_LINKED
from agent.symlinks import MOST_TARGET, Source, stays_inside
from contract.commits import CommittedFile, CommittedFolder, CommittedLink
from tests.node.fakes import FakeS3
from tests.node.folders import Rank, artifacts, closed, kept, ranks

DIGEST = "0" * 64
INSIDE = "/opt/ml/checkpoints"
"""Where a container has CHECKPOINT_DIR."""


def link(rank: Rank, path: str, target: str) -> None:
    place = rank.path / path
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place.with_name(f"{place.name}.tmp")
    beside.symlink_to(target)
    beside.rename(place)
    now = rank.clock.now
    os.utime(place, (now, now), follow_symlinks=False)


def links_of(rank: Rank) -> dict[str, str]:
    """The links of a folder, with their targets."""
    found = (path for path in rank.path.rglob("*") if path.is_symlink())
    return {str(path.relative_to(rank.path)): os.readlink(path) for path in found}  # noqa: PTH115


# Links of checkpoints


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("last.ckpt", "step-5/model"),
        ("latest", "step-5"),
        ("deep/er/last", "../../step-5/model"),
        ("latest", "./step-5/"),
        ("lost", "step-4"),  # rotated away: a link to nothing harms nobody
    ],
)
def test_a_link_to_a_place_in_the_folder_comes_back_as_a_link(
    tmp_path: Path, s3: FakeS3, path: str, target: str
) -> None:
    first = Rank(tmp_path, s3)
    first.write("step-5/model", "of 5")
    link(first, path, target)
    assert first.commit(5) is not None
    again = Rank(tmp_path, s3, attempt=2)
    assert again.restore() == 5
    assert links_of(again) == {path: target}
    assert s3.sent("last") == []


def test_a_link_to_a_link_comes_back_as_it_was(tmp_path: Path, s3: FakeS3) -> None:
    first = Rank(tmp_path, s3)
    first.write("step-5/model", "of 5")
    link(first, "best", "step-5")
    link(first, "last", "best/model")
    assert first.commit(5) is not None
    again = Rank(tmp_path, s3, attempt=2)
    again.restore()
    assert links_of(again) == {"best": "step-5", "last": "best/model"}
    assert (again.path / "last").read_text() == "of 5"


@pytest.mark.parametrize("shown", ["here", "in a container"])
def test_an_absolute_link_into_the_folder_comes_back_as_a_relative_one(tmp_path: Path, s3: FakeS3, shown: str) -> None:
    """The next machine, or the next container, may have the folder elsewhere."""
    first = Rank(tmp_path, s3, shown={INSIDE: ""})
    first.write("step-5/model", "of 5")
    link(first, "runs/last", f"{first.path if shown == 'here' else INSIDE}/step-5/model")
    assert first.commit(5) is not None
    again = Rank(tmp_path, s3, attempt=2)
    again.restore()
    assert links_of(again) == {"runs/last": "../step-5/model"}
    assert (again.path / "runs" / "last").read_text() == "of 5"


@pytest.mark.parametrize(
    "target",
    ["/etc/passwd", "/", "..", "../../..", "step-5/../../x", "self", "round", "out/../x", f"{INSIDE}/step-5"],
)
def test_a_link_that_leads_elsewhere_is_left_out_and_said(tmp_path: Path, s3: FakeS3, target: str) -> None:
    first = Rank(tmp_path, s3)
    first.write("step-5/model", "of 5")
    link(first, "out", "..")
    link(first, "round", "self")
    link(first, "self", target)
    assert first.commit(5) is not None
    again = Rank(tmp_path, s3, attempt=2)
    again.restore()
    assert (again.content, links_of(again)) == ({"step-5/model": "of 5"}, {})
    assert any("'self' is left out: it is a link" in note for note in first.notes)


def test_a_link_whose_target_is_not_utf8_spoils_no_commit(tmp_path: Path, s3: FakeS3) -> None:
    first = Rank(tmp_path, s3)
    os.symlink(b"caf\xe9", os.fsencode(first.path) + b"/note")  # noqa: PTH211
    now = first.clock.now
    os.utime(first.path / "note", (now, now), follow_symlinks=False)
    assert first.commit(5, model="of 5") is not None
    again = Rank(tmp_path, s3, attempt=2)
    assert (again.restore(), links_of(again)) == (5, {})


def test_a_link_through_one_that_is_left_out_is_left_out(tmp_path: Path, s3: FakeS3) -> None:
    first = Rank(tmp_path, s3)
    first.write("real/x/model", "of 5")
    (first.path / "current.tmp").symlink_to("real/x")
    link(first, "all", "current.tmp/../../real")
    assert first.commit(5) is not None
    again = Rank(tmp_path, s3, attempt=2)
    assert (again.restore(), links_of(again)) == (5, {})
    assert any("'all' is left out" in note for note in first.notes)


def test_a_link_that_moved_on_after_the_name_belongs_to_the_next_checkpoint(tmp_path: Path, s3: FakeS3) -> None:
    """Its file is there, and the link to it; the name of their checkpoint is not."""
    first = Rank(tmp_path, s3)
    first.write("step-5", "of 5")
    link(first, "last", "step-5")
    first.clock.now += 700.0
    first.at(5, checkpoint=5).clock.now += 1.0
    link(first, "last", "step-6")
    first.checkpoints.tick()
    assert closed(s3) == []


def test_a_link_of_another_rank_is_not_committed_again(tmp_path: Path, s3: FakeS3) -> None:
    first = ranks(tmp_path, s3, 2)
    first[0].write("step-5", "of 5")
    link(first[0], "last", "step-5")
    first[0].save(5)
    for rank in first:
        rank.checkpoints.finish()
    reader = Rank(tmp_path, s3, rank=1, attempt=2, nodes=2)
    assert reader.restore() == 5
    assert links_of(reader) == {"last": "step-5"}
    assert (reader.folder.list_own(), reader.folder.is_saving) == ([], False)


# Content of links


@pytest.mark.parametrize("relative", [True, False])
def test_the_content_of_an_artifact_that_is_a_link_to_a_checkpoint_is_kept(folder: Rank, relative: bool) -> None:
    made = artifacts(folder)
    best = folder.write("best.pt", "best")
    (folder.path.parent / "artifacts" / "model.pt").symlink_to("../checkpoints/best.pt" if relative else best)
    assert kept(folder, made) == {"model.pt": "best"}


def test_the_content_of_a_folder_that_is_a_link_is_kept_with_its_links(folder: Rank) -> None:
    """As a hub's cache has it: a folder of links to files elsewhere."""
    made = artifacts(folder)
    folder.write("blobs/1", "weights")
    folder.write("snapshot/config", "{}")
    link(folder, "snapshot/weights", "../blobs/1")
    (folder.path.parent / "artifacts" / "model").symlink_to(folder.path / "snapshot")
    assert kept(folder, made) == {"model/config": "{}", "model/weights": "weights"}


def test_a_link_among_artifacts_is_a_file_of_its_own(folder: Rank) -> None:
    made = artifacts(folder)
    there = folder.path.parent / "artifacts"
    (there / "model-3.pt").write_text("3")
    (there / "model.pt").symlink_to("model-3.pt")
    assert kept(folder, made) == {"model-3.pt": "3", "model.pt": "3"}


@pytest.mark.parametrize("target", [".", "..", "inner", "../checkpoints", "missing", "/etc/passwd", "pipe"])
def test_a_link_of_artifacts_that_leads_round_or_elsewhere_is_left_out_and_said(folder: Rank, target: str) -> None:
    made = artifacts(folder)
    there = folder.path.parent / "artifacts"
    (there / "inner").mkdir()
    (there / "inner" / "a").write_text("a")
    os.mkfifo(there / "pipe")
    (folder.path / "up").symlink_to("../artifacts/inner/link")
    (there / "inner" / "link").symlink_to(f"../{target}" if not target.startswith("/") else target)
    files = kept(folder, made)
    assert files.pop("inner/a") == "a"
    assert all(text == "a" for text in files.values())
    assert any("is left out" in note for note in folder.notes)


def test_links_in_links_do_not_multiply_without_end(folder: Rank) -> None:
    made = artifacts(folder)
    for level in range(12):
        for name in range(4):
            link(folder, f"{level}/{name}", f"../{level + 1}")
    folder.write("12/a", "a")
    (folder.path.parent / "artifacts" / "all").symlink_to(folder.path / "0")
    assert len(kept(folder, made)) <= MOST_LINKED
    assert any("files are kept that links lead to" in note for note in folder.notes)


def test_a_folder_that_becomes_a_link_before_the_file_is_opened_is_not_followed(tmp_path: Path) -> None:
    """The code of a job can do that at any moment, and the agent may read what the job may not."""
    secret = tmp_path / "secrets"
    secret.mkdir()
    (secret / "keys").write_text("secret")
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "sub").symlink_to(secret)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        Source(str(tmp_path / "job"), "sub/keys").open()


# What a commit may say


def file(path: str) -> CommittedFile:
    return CommittedFile(path=path, size=1, sha256=DIGEST, key="k")


@pytest.mark.parametrize(
    "target",
    ["/etc", "..", "../x", "a/../../x", "", "\0", "x" * MOST_TARGET, "dot/../x", "dot/dot/../../x", "self", "one"],
)
def test_a_commit_whose_link_leads_out_or_round_is_not_restored(target: str) -> None:
    links = [("dot", "."), ("one", "two"), ("two", "one"), ("self", target)]
    with pytest.raises(Unusable, match="leads out of the folder"):
        check([file("a")], [CommittedLink(path=path, target=to) for path, to in links])


@pytest.mark.parametrize("path", ["a", "last", "last/x", "d"])
def test_a_commit_with_a_file_in_the_place_of_a_link_or_behind_it_is_not_restored(path: str) -> None:
    links, folders = [CommittedLink(path="last", target="d")], [CommittedFolder(path="d")]
    with pytest.raises(Unusable, match="path"):
        check([file("a"), file(path)], links, folders)


@pytest.mark.parametrize("path", ["../d", "/d", "last/d", "a", "a/d", ".", "d/../.."])
def test_a_commit_with_a_folder_out_of_the_folder_or_behind_a_link_is_not_restored(path: str) -> None:
    with pytest.raises(Unusable, match="path"):
        check([file("a")], [CommittedLink(path="last", target="b")], [CommittedFolder(path=path)])


@pytest.mark.parametrize("mtime_us", [-1, 2**60])
def test_a_commit_with_a_time_that_no_file_has_is_not_restored(mtime_us: int) -> None:
    with pytest.raises(Unusable, match="time"):
        check([], (), [CommittedFolder(path="d", mtime_us=mtime_us)])


def test_a_link_through_another_link_is_judged_by_where_that_leads() -> None:
    assert stays_inside("a", {"a": "b/../c", "b": "d/e"})
    assert not stays_inside("a", {"a": "b/../c", "b": "."})
