"""What requirements installed comes back in a later attempt of the same job, as it was; in doubt pip installs it again."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from agent import requirements
from agent.environments import Installed, name_of
from agent.keys import KeysExpired
from agent.store import Store
from contract.keys import ENVIRONMENTS
from tests.node.fakes import FakeS3, refusal
from tests.node.folders import BUCKET
from tests.node.wheels import run, wheel

NAME = "n" * 64
SITE = "lib/python/site-packages"


class Node:
    """A machine with a new environment, at the same path on every one."""

    def __init__(self, root: Path, s3: FakeS3, job: str = "job-1", name: str = NAME) -> None:
        self.python, self.notes = requirements.make(root / "env"), list[str]()
        self.kept = Installed(Store(s3, BUCKET), job, name, self.python.folder, note=self.notes.append)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        file = self.python.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def keep(self) -> None:
        self.kept.keep(12.0)
        for thread in threading.enumerate():
            if thread.name == "environment":
                thread.join(60)

    def restore(self) -> bool:
        return self.kept.restore()

    def has(self, path: str) -> str | None:
        file = self.python.folder / path
        return file.read_text() if file.exists() else None


@pytest.fixture
def first(tmp_path: Path, s3: FakeS3) -> Node:
    """An attempt that installed two packages and kept them."""
    node = Node(tmp_path, s3)
    node.write(f"{SITE}/one/__init__.py", "ONE = 1")
    node.write(f"{SITE}/large.so", "x" * 3_000_000)
    node.write("bin/tool", "#!/bin/sh\n", 0o755)
    node.keep()
    assert node.notes == ["kept the environment for later attempts: 3 files"]
    return node


@pytest.mark.usefixtures("first")
def test_what_was_installed_comes_back_with_its_modes(tmp_path: Path, s3: FakeS3) -> None:
    node = Node(tmp_path, s3)
    assert node.has("bin/tool") is None
    assert node.restore()
    assert (node.has(f"{SITE}/one/__init__.py"), len(node.has(f"{SITE}/large.so") or "")) == ("ONE = 1", 3_000_000)
    assert (node.python.folder / "bin" / "tool").stat().st_mode & 0o777 == 0o755
    assert "its installation took 12.0 s" in node.notes[0]


@pytest.mark.usefixtures("first")
@pytest.mark.parametrize("changes", [{"job": "job-2"}, {"name": "m" * 64}], ids=["job", "requirements"])
def test_nothing_comes_back_of_another_job_or_of_other_requirements(
    tmp_path: Path, s3: FakeS3, changes: dict[str, str]
) -> None:
    node = Node(tmp_path, s3, **changes)
    before = sorted(node.python.folder.rglob("*"))
    assert not node.restore()
    assert sorted(node.python.folder.rglob("*")) == before
    assert node.notes == []


@pytest.mark.usefixtures("first")
@pytest.mark.parametrize("damage", ["a byte", "an object", "the document"])
def test_a_damaged_one_is_not_used(tmp_path: Path, s3: FakeS3, damage: str) -> None:
    at = max((at for at in s3.objects if ENVIRONMENTS in at[1]), key=lambda at: len(s3.objects[at]))
    if damage == "a byte":
        s3.objects[at] = b"y" + s3.objects[at][1:]
    elif damage == "an object":
        del s3.objects[at]
    else:
        document = next(at for at in s3.objects if at[1].endswith("files.json"))
        s3.objects[document] = s3.objects[document][:-9]
    node = Node(tmp_path, s3)
    assert not node.restore()
    assert "is installed anew" in node.notes[0]


@pytest.mark.usefixtures("first")
@pytest.mark.parametrize("call", ["get", "read"])
def test_where_s3_does_not_answer_pip_installs_it(tmp_path: Path, s3: FakeS3, call: str) -> None:
    s3.fault = lambda made, _key: refusal("SlowDown") if made == call else None
    node = Node(tmp_path, s3)
    assert not node.restore()
    assert "SlowDown" in node.notes[0]


@pytest.mark.usefixtures("first")
def test_keys_that_expired_are_waited_for(tmp_path: Path, s3: FakeS3) -> None:
    s3.fault = lambda _call, _key: KeysExpired("expired")
    with pytest.raises(KeysExpired):
        Node(tmp_path, s3).restore()


@pytest.mark.parametrize("path", ["../out", "/etc/out", "lib/../../out"])
def test_a_document_that_names_a_path_elsewhere_is_not_used(tmp_path: Path, s3: FakeS3, first: Node, path: str) -> None:
    document = next(at for at in s3.objects if at[1].endswith("files.json"))
    s3.objects[document] = s3.objects[document].replace(b"bin/tool", path.encode())
    node = Node(tmp_path, s3)
    assert not node.restore()
    assert not (tmp_path / "out").exists()
    assert first.has("../out") is None


def test_an_environment_with_links_is_not_kept(tmp_path: Path, s3: FakeS3) -> None:
    node = Node(tmp_path, s3)
    node.write(f"{SITE}/one.py", "ONE = 1")
    (node.python.folder / "bin" / "other").symlink_to("/bin/sh")
    node.keep()
    assert "is not kept" in node.notes[0]
    assert s3.objects == {}


def test_an_environment_of_which_an_object_did_not_arrive_is_not_listed(tmp_path: Path, s3: FakeS3) -> None:
    s3.fault = lambda call, _key: refusal("SlowDown") if call == "put" else None
    node = Node(tmp_path, s3)
    node.write(f"{SITE}/one.py", "ONE = 1")
    node.keep()
    assert "is not kept for later attempts: An error occurred (SlowDown)" in node.notes[0]
    assert not any(key.endswith("files.json") for _, key in s3.objects)


def test_the_name_is_of_the_code_and_of_the_requirements() -> None:
    names = {name_of(code, text) for code in ("a.tar", "b.tar") for text in (b"numpy", b"numpy==2")}
    assert len(names) == 4
    assert name_of("a.tar", b"numpy") in names


def test_what_a_real_pip_installed_is_imported_after_it_came_back(tmp_path: Path, s3: FakeS3) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "requirements.txt").write_text(f"{wheel(tmp_path, 'greeter', 'hello')}\n")
    node = Node(tmp_path, s3)
    assert requirements.install(node.python, code, node.python.variables(os.environ), run)
    node.keep()
    assert node.notes[-1].startswith("kept the environment")
    again = Node(tmp_path, s3)
    ask = [str(again.python.program), "-c", "import greeter; print(greeter.SAYS)"]
    assert run(ask, tmp_path, {})[0] == 1
    assert again.restore()
    assert run(ask, tmp_path, {}) == (0, ["hello"])
