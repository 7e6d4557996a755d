"""An assembly is used again only where nothing that it was made from has changed: any file of the tree, a mode, a package, a setting."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from localaws import shelf
from rehearsal import assembly
from rehearsal.assembly import digest, inputs, kept
from rehearsal.deployment import ROOT, context

VALUES = {"trainyard": {"deployment": "trainyard"}}
FILES = (
    "app.py",
    "cdk.json",
    "stacks/parts/queue.py",
    "lambda/reaper/policy.py",
    "build/layer/python/boto3/__init__.py",
    "new/x",
)
WATCHED = """
import json, os, sys
opened = set()
def hear(event, given):
    if event in ("open", "os.listdir", "os.scandir") and isinstance(given[0], (str, os.PathLike)):
        opened.add(os.path.abspath(os.fspath(given[0])))
sys.addaudithook(hear)
sys.argv = ["app.py"]
sys.path.insert(0, os.getcwd())
import runpy
runpy.run_path("app.py", run_name="__main__")
json.dump(sorted(opened), open(os.environ["OPENED"], "w"))
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (*FILES, "tests/test_x.py", "rehearsal/out/x", "docs/x.md", ".git/HEAD", "build/ami/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.write_text("other"),
        lambda file: file.unlink(),
        lambda file: file.chmod(0o700),
        lambda file: file.rename(file.with_name("renamed")),
        lambda file: file.with_name("beside.txt").write_text(""),
        lambda file: (file.unlink(), file.symlink_to("elsewhere")),
    ],
    ids=["written", "deleted", "mode", "renamed", "another", "link"],
)
def test_whatever_changes_in_the_tree_changes_the_digest(
    tree: Path, name: str, change: Callable[[Path], object]
) -> None:
    before = digest(VALUES, tree)
    change(tree / name)
    assert digest(VALUES, tree) != before


def test_a_file_that_looks_like_two_has_a_digest_of_its_own(tree: Path) -> None:
    one, two = tree / "stacks/x", tree / "stacks/y"
    one.write_text("1")
    two.write_text("2")
    before = digest(VALUES, tree)
    one.write_text(f"1stacks/y\0{two.lstat().st_mode}\0{two.lstat().st_size}\0{2}")
    two.unlink()
    assert digest(VALUES, tree) != before


def test_a_setting_changes_the_digest(tree: Path) -> None:
    assert digest(VALUES, tree) != digest({"trainyard": {"deployment": "other"}}, tree)


def test_an_installed_package_s_version_changes_the_digest(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / ".venv" / "site"
    (site / "aws_cdk_lib-2.1.0.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(site))
    before = digest(VALUES, tree)
    (site / "aws_cdk_lib-2.1.0.dist-info").rename(site / "aws_cdk_lib-2.2.0.dist-info")
    assert digest(VALUES, tree) != before


def test_the_umask_changes_the_digest(tree: Path) -> None:
    before, old = digest(VALUES, tree), os.umask(0o077)
    try:
        assert digest(VALUES, tree) != before
    finally:
        os.umask(old)


def test_byte_code_and_what_synth_reads_nothing_from_change_nothing(tree: Path) -> None:
    before = digest(VALUES, tree)
    for name in ("stacks/__pycache__/queue.cpython-311.pyc", "tests/test_x.py", "rehearsal/out/x", "build/ami/x"):
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text("new")
    assert digest(VALUES, tree) == before


@pytest.mark.at_length
def test_synth_opens_no_file_of_the_tree_that_the_digest_is_not_of(tmp_path: Path) -> None:
    """Python's part of synth, which reads everything but what it gives to node as an asset, from folders that it names."""
    known = {str(file) for file in inputs(ROOT)}
    folders = {str(parent) for file in known for parent in Path(file).parents}
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))} | {
        "CDK_CONTEXT_JSON": json.dumps(context(10.0)),
        "CDK_OUTDIR": str(tmp_path / "out"),
        "CDK_VALIDATION": "false",
        "OPENED": str(tmp_path / "opened.json"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    subprocess.run([sys.executable, "-c", WATCHED], cwd=ROOT, env=environment, check=True)
    opened = [Path(name) for name in json.loads((tmp_path / "opened.json").read_text())]
    ours = [path for path in opened if path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / ".venv")]
    assert {ROOT / "app.py", ROOT / "lambda" / "admission" / "handler.py"} <= set(ours), "the watch sees nothing"
    strange = [path for path in ours if str(path) not in known | folders and "__pycache__" not in path.parts]
    # Python looks for modules at the root and may find a folder there that it does not read.
    assert [path for path in strange if path.is_file()] == []
    assert {path for path in strange if path.is_dir()} <= {ROOT / name for name in assembly.NOT_READ}


# the shelf


def test_it_is_made_once_and_again_after_a_change(tree: Path, tmp_path: Path) -> None:
    made: list[Path] = []
    for expected in (True, False):
        with kept(VALUES, made.append, root=tree, shelved=tmp_path / ".shelf") as (_, new):
            assert new is expected
    (tree / "app.py").write_text("changed")
    with kept(VALUES, made.append, root=tree, shelved=tmp_path / ".shelf") as (_, new):
        assert new
    assert len(made) == 2


def test_a_tree_that_changes_while_it_is_synthesised_leaves_no_assembly(tree: Path, tmp_path: Path) -> None:
    def make(folder: Path) -> None:
        (folder / "manifest.json").write_text("{}")
        (tree / "app.py").write_text("changed meanwhile")

    with kept(VALUES, make, root=tree, shelved=tmp_path / ".shelf") as (folder, _):
        assert (folder / "manifest.json").is_file(), "this run goes on with what it made"
    assert not folder.exists()
    assert {path.suffix for path in (tmp_path / ".shelf").iterdir()} == {".lock", ".making"}


def test_what_failed_or_was_interrupted_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), shelf.kept(tmp_path, "a", fail):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"a.lock", "a.making"}


def test_what_a_killed_process_left_half_made_is_taken_away(tmp_path: Path) -> None:
    (tmp_path / "a.lock").touch()
    (tmp_path / "a.partial-x").mkdir()
    with shelf.kept(tmp_path, "b", lambda _: None):
        assert not (tmp_path / "a.partial-x").exists()


def test_the_same_folder_serves_two_at_once_in_one_process(tmp_path: Path) -> None:
    with shelf.kept(tmp_path, "a", lambda _: None) as (one, _), shelf.kept(tmp_path, "a", lambda _: None) as (two, new):
        assert one == two
        assert not new


def test_of_two_that_want_it_at_the_same_time_one_makes_it(tmp_path: Path) -> None:
    made, both = list[Path](), threading.Barrier(2)

    def want() -> None:
        both.wait()
        with shelf.kept(tmp_path, "a", made.append):
            both.wait()

    threads = [threading.Thread(target=want) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


def test_those_used_last_stay_and_none_that_is_used(tmp_path: Path) -> None:
    def make(folder: Path) -> None:
        (folder / "made").touch()

    with shelf.kept(tmp_path, "used", make):
        pass
    with shelf.kept(tmp_path, "used", make) as (used, _):
        for number in range(shelf.KEPT + 2):
            with shelf.kept(tmp_path, f"over-{number}", make):
                pass
        assert used.is_dir()
    assert not (tmp_path / "over-0").exists()
    assert all((tmp_path / f"over-{number}").is_dir() for number in range(2, shelf.KEPT + 2))


def test_a_folder_counts_as_used_before_it_is_made(tmp_path: Path) -> None:
    """Its lock may be years old. Whoever changes a lock holds none for a moment, in which others look what is old."""
    lock = tmp_path / "a.lock"
    lock.touch()
    os.utime(lock, (0, 0))
    ages: list[float] = []
    with shelf.kept(tmp_path, "a", lambda _: ages.append(lock.stat().st_mtime)):
        assert ages[0] > 0
