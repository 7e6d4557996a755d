"""What an upload of code has: what git would track, and nothing that leads elsewhere or is too large."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from trainyard import packing
from trainyard.offline import PackedCode
from trainyard.packing import IgnoredFiles, Packed, pack, show_bytes
from trainyard.stops import CannotProceed

TREE = (
    "train.py",
    "data/big.bin",
    "data/keep.txt",
    "logs/a.log",
    "logs/deep/b.log",
    "src/model.py",
    "src/build/x.o",
    "src/out",
    "build/y.o",
    "a b.txt",
    "#note",
    "!bang",
    "secret.env",
    "sub/.gitignore",
    "sub/one.tmp",
    "sub/two.txt",
    "tmp1/x",
    "Tmp2/x",
    "foo/bar/baz.txt",
    "abc/x.py",
    "doc/frotz/a",
    "cache",
)
RULES = {
    "plain names": "*.bin\nsecret.env\n",
    "a name anchored to the top": "/build\n",
    "a folder alone": "build/\ncache/\n",
    "taken back": "data/*\n!data/keep.txt\n",
    "taken back below an ignored folder": "data/\n!data/keep.txt\n",
    "stars": "**/*.log\nsrc/**/x.o\n",
    "everything but": "*\n!*.py\n!src/\n",
    "escapes": "\\#note\n\\!bang\na\\ b.txt\n",
    "spaces behind": "train.py   \n",
    "a comment and an empty line": "# build\n\n",
    "classes and single letters": "tmp[0-9]\n?bc\n",
    "a slash in the middle": "doc/frotz\nfoo/*.txt\n",
    "two stars in the middle": "foo/**/baz.txt\n",
    "lines of Windows": "*.bin\r\nlogs/\r\n",
    "a byte order mark": "\ufeff*.bin\nlogs/\n",
    "a byte order mark of a second line": "*.bin\n\ufefflogs/\n",
    "nothing": "",
}


BELOW = {
    "every folder taken back below an ignored one": ("*/\n", "!**/\n"),
    "every folder taken back below a name": ("sub\n", "!**/\n"),
    "everything taken back below an ignored folder": ("*\n!*.py\n", "!**\n"),
    "every folder below": ("*.bin\n", "**/\n"),
    "a folder's own rules against itself": ("!*/\n", "*/\n**/\n"),
    "the folder's own name": ("", "sub\n/sub\n"),
}
"""Rules of the top and those of `sub/`, which has files of its own and a folder."""


def plant(folder: Path, rules: str, below: str = "*.tmp\n") -> None:
    for name in TREE:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / ".gitignore").write_bytes(rules.encode())
    (folder / "sub" / ".gitignore").write_text(below)


def names_in(packed: Packed) -> set[str]:
    """Files and links of the archive."""
    with tarfile.open(packed.path) as archive:
        return {entry.name for entry in archive if not entry.isdir()}


def ask_git(folder: Path) -> set[str]:
    """What git would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--others", "--exclude-standard"], cwd=folder, check=True, capture_output=True
    )
    return {os.fsdecode(name) for name in listed.stdout.split(b"\0") if name}


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_an_upload_has_what_git_would_add(tmp_path: Path, rules: str) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    plant(folder, rules)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    assert names_in(pack(folder, tmp_path / "code.tar.gz")) == ask_git(folder)


@pytest.mark.parametrize(("rules", "below"), BELOW.values(), ids=BELOW)
def test_rules_of_a_folder_are_about_what_lies_in_it(tmp_path: Path, rules: str, below: str) -> None:
    folder = tmp_path / "code"
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "sub" / "deep" / "x.txt").write_text("")
    plant(folder, rules, below)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    assert names_in(pack(folder, tmp_path / "code.tar.gz")) == ask_git(folder)


def test_a_folder_without_files_is_not_laid_to_gitignore(tmp_path: Path) -> None:
    (folder := tmp_path / "code").mkdir()
    with pytest.raises(CannotProceed, match="has no file; allowed: a folder with code"):
        pack(folder, tmp_path / "code.tar.gz")


def test_of_a_folder_in_an_ignored_one_no_file_is_taken_back(tmp_path: Path) -> None:
    plant(tmp_path, "src/\n!src/build/\n!src/build/*\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    with pytest.raises(CannotProceed, match="has no file that"):
        pack(tmp_path / "src" / "build", tmp_path / "code.tar.gz")


def test_a_link_to_a_folder_is_none_as_git_sees_it(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    plant(folder, "*.bin\nlinked/\n")
    (folder / "linked").symlink_to("src")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    assert "linked" in (found := names_in(pack(folder, tmp_path / "code.tar.gz")))
    assert found == ask_git(folder)


def test_a_folder_in_place_of_a_gitignore_has_no_rules(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    (folder / ".gitignore").mkdir(parents=True)
    (folder / "train.py").write_text("")
    assert names_in(pack(folder, tmp_path / "code.tar.gz")) == {"train.py"}


def test_a_file_that_shrinks_while_it_is_packed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "log.txt").write_bytes(b"x" * 100_000)
    describe = packing._describe_entry

    def shrink(written: tarfile.TarFile, path: Path, name: str) -> tarfile.TarInfo:
        entry = describe(written, path, name)
        path.write_bytes(b"x" * 50_000)
        return entry

    monkeypatch.setattr(packing, "_describe_entry", shrink)
    with pytest.raises(CannotProceed, match=r"log\.txt became shorter while it was packed; allowed: a folder in which"):
        pack(folder, tmp_path / "code.tar.gz")


def test_rules_of_the_repository_above_and_of_its_exclude_file_count(tmp_path: Path) -> None:
    plant(tmp_path, "*.bin\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".git" / "info" / "exclude").write_text("keep.txt\n")
    with pytest.raises(CannotProceed, match="has no file that"):
        pack(tmp_path / "data", tmp_path / "code.tar.gz")
    assert names_in(pack(tmp_path / "src", tmp_path / "code.tar.gz")) == {"model.py", "build/x.o", "out"}


def git(folder: Path, *words: str) -> None:
    person = ["-c", "user.name=ada", "-c", "user.email=ada@example.com", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *person, *words], cwd=folder, check=True, capture_output=True)


@pytest.mark.parametrize("kind", ["worktree", "worktree of relative paths", "submodule"])
def test_a_repository_whose_git_is_a_file_has_its_exclude_file_too(tmp_path: Path, kind: str) -> None:
    first = tmp_path / "first"
    first.mkdir()
    git(first, "init", "-q")
    git(first, "commit", "-q", "--allow-empty", "-m", "x")
    if kind == "submodule":
        folder, exclude = first / "code", first / ".git" / "modules" / "code" / "info" / "exclude"
        git(first, "submodule", "add", "-q", str(first), "code")
    else:
        folder, exclude = tmp_path / "code", first / ".git" / "info" / "exclude"
        git(first, "worktree", "add", "-q", str(folder))
    if kind == "worktree of relative paths":
        (folder / ".git").write_text("gitdir: ../first/.git/worktrees/code\n")
    plant(folder, "*.bin\n")
    exclude.write_text("secret.env\n")
    assert "secret.env" not in (found := names_in(pack(folder, tmp_path / "code.tar.gz")))
    assert found - {".git"} == ask_git(folder)


@pytest.mark.parametrize("text", [b"", b"gitdir: \n", b"gitdir: none", b"\0\xff", b"gitdir: .git"], ids=repr)
def test_a_file_in_place_of_a_repository_that_leads_nowhere_ends_no_command(tmp_path: Path, text: bytes) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    plant(folder, "*.bin\n")
    (folder / ".git").write_bytes(text)
    assert {"train.py", ".git"} & names_in(pack(folder, tmp_path / "code.tar.gz")) == {"train.py"}


def test_rules_count_without_a_repository_too(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    plant(folder, "*\n!*.py\n!src/\n")
    assert names_in(pack(folder, tmp_path / "code.tar.gz")) == {"train.py", "src/model.py"}


def test_the_repository_itself_and_what_tools_leave_are_never_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    for name in (
        ".git/config",
        "__pycache__/a.pyc",
        ".venv/bin/python",
        "node_modules/x.js",
        "pkg/__pycache__/b.pyc",
        "pkg/a.py",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("token")
    assert names_in(pack(folder, tmp_path / "code.tar.gz")) == {"pkg/a.py"}


def test_nothing_of_the_computer_is_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    with tarfile.open(pack(folder, tmp_path / "code.tar.gz").path) as archive:
        (entry,) = archive
    assert (entry.name, entry.uid, entry.gid, entry.uname, entry.gname, entry.mode & 0o777) == (
        "run.sh",
        0,
        0,
        "",
        "",
        0o755,
    )


def test_a_link_stays_a_link_and_what_it_leads_to_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text("")
    (folder / "passwd").symlink_to("/etc/passwd")
    (folder / "loop").symlink_to(".")
    packed = pack(folder, tmp_path / "code.tar.gz")
    assert names_in(packed) == {"train.py", "passwd", "loop"}
    assert (
        "a link to '/etc/passwd', out of its folder"
        in PackedCode.look_inside(packed.path, ["train.py"]).listing.refused
    )


def test_pipes_are_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text("")
    os.mkfifo(folder / "pipe")
    assert names_in(pack(folder, tmp_path / "code.tar.gz")) == {"train.py"}


def test_a_folder_without_files_and_one_that_is_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    for name, reason in (("empty", "has no file"), ("file", "is a file"), ("none", "there is no such folder")):
        with pytest.raises(CannotProceed, match=reason):
            pack(tmp_path / name, tmp_path / "code.tar.gz")


def test_more_than_admit_takes_is_refused_with_what_is_largest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    for name in ("a.bin", "b.bin", "c.bin"):
        (folder / name).write_bytes(os.urandom(200_000))
    monkeypatch.setattr(packing, "MOST_CODE", 300_000)
    with pytest.raises(CannotProceed, match=r"more than 293\.0 kB, the largest files are .*a\.bin \(195\.3 kB\)"):
        pack(folder, tmp_path / "code.tar.gz")


def test_a_summary_says_how_much_and_what_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    plant(folder, "data/\nlogs/\n*.env\n")
    told = pack(folder, tmp_path / "code.tar.gz").describe()
    assert told.startswith("17 files, ")
    assert told.endswith("left out by .gitignore: 4")


def test_a_link_in_place_of_a_gitignore_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (tmp_path / "rules").write_text("*.py\n")
    (folder / ".gitignore").symlink_to(tmp_path / "rules")
    (folder / "train.py").write_text("")
    assert not IgnoredFiles(folder).covers(folder / "train.py", is_folder=False)


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 kB"), (3 * 1024**3, "3.0 GB")]
)
def test_bytes_are_told_as_people_read_them(count: int, words: str) -> None:
    assert show_bytes(count) == words
