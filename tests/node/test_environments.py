"""What requirements installed, and built beside the code, comes back in a later attempt of the same job, as it was; in doubt pip installs
it again."""

from __future__ import annotations

import os
import platform
import shutil
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from agent import requirements
from agent.credentials import CredentialsExpired
from agent.environments import Installed, describe_hardware, name_of
from agent.store import Store
from contract.keys import ENVIRONMENTS
from localaws.testing.waiting import HANG_S
from tests.node.fakes import FakeS3, refusal
from tests.node.folders import BUCKET
from tests.node.wheels import run, wheel, write_editable

NAME = "n" * 64
SITE = "lib/python/site-packages"


CODE = {"train.py": "import kernels", "kernels/version.py": "VERSION = 'none'"}


class Node:
    """A machine with the code unpacked and a new environment, at the same paths on every one."""

    hardware = "EPYC, A10G"

    def __init__(self, root: Path, s3: FakeS3, job: str = "job-1", name: str = NAME) -> None:
        self.root, self.python, self.notes = root, requirements.make(root / "env"), list[str]()
        shutil.rmtree(root / "code", ignore_errors=True)
        for path, text in CODE.items():
            self.write(f"../code/{path}", text)
        self._begin = partial(
            Installed, Store(s3, BUCKET), job, name, self.python.folder,
            note=self.notes.append, hardware=lambda: self.hardware,
        )  # fmt: skip
        self.begin()

    def begin(self) -> None:
        """Looks at what there is before anything is installed."""
        self.kept = self._begin()

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        file = self.python.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def keep(self) -> None:
        self.kept.keep(12.0)
        for thread in threading.enumerate():
            if thread.name == "environment":
                thread.join(HANG_S)

    def restore(self) -> bool:
        return self.kept.restore()

    def has(self, path: str) -> str | None:
        file = self.python.folder / path
        return file.read_text() if file.exists() else None

    def files(self) -> list[tuple[Path, int, bytes]]:
        """Of the environment and the code: every file with its mode and bytes."""
        found = [one for part in ("env", "code") for one in sorted((self.root / part).rglob("*")) if one.is_file()]
        return [(one, one.stat().st_mode, one.read_bytes()) for one in found]


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


@pytest.mark.parametrize("damage", ["a byte", "an object", "the document"])
def test_a_damaged_one_is_not_used_and_leaves_nothing(tmp_path: Path, s3: FakeS3, first: Node, damage: str) -> None:
    first.write("../code/kernels/_built.py", "ANSWER = 42")
    first.keep()
    at = max((at for at in s3.objects if ENVIRONMENTS in at[1]), key=lambda at: len(s3.objects[at]))
    if damage == "a byte":
        s3.objects[at] = b"y" + s3.objects[at][1:]
    elif damage == "an object":
        del s3.objects[at]
    else:
        document = next(at for at in s3.objects if at[1].endswith("files.json"))
        s3.objects[document] = s3.objects[document][:-9]
    node = Node(tmp_path, s3)
    before = node.files()
    assert not node.restore()
    assert "is installed again" in node.notes[0]
    assert node.files() == before
    assert not (tmp_path / "staging/environment").exists()


@pytest.mark.usefixtures("first")
@pytest.mark.parametrize("call", ["get", "read"])
def test_where_s3_does_not_answer_pip_installs_it(tmp_path: Path, s3: FakeS3, call: str) -> None:
    s3.fault = lambda made, _key: refusal("SlowDown") if made == call else None
    node = Node(tmp_path, s3)
    assert not node.restore()
    assert "SlowDown" in node.notes[0]


@pytest.mark.usefixtures("first")
def test_keys_that_expired_are_waited_for(tmp_path: Path, s3: FakeS3) -> None:
    s3.fault = lambda _call, _key: CredentialsExpired("expired")
    with pytest.raises(CredentialsExpired):
        Node(tmp_path, s3).restore()


@pytest.mark.parametrize("path", ["../out", "/etc/out", "env/../../out", "out", "checkpoints/out", "code/link/out"])
def test_a_document_that_names_a_path_elsewhere_is_not_used(tmp_path: Path, s3: FakeS3, first: Node, path: str) -> None:
    document = next(at for at in s3.objects if at[1].endswith("files.json"))
    s3.objects[document] = s3.objects[document].replace(b"env/bin/tool", path.encode())
    node = Node(tmp_path / "work", s3)
    (tmp_path / "work/code/link").symlink_to(tmp_path)
    before = node.files()
    assert not node.restore()
    assert (node.files(), list(tmp_path.rglob("out"))) == (before, [])
    assert "is installed again" in node.notes[0]
    assert first.has("../out") is None


def test_what_pip_built_beside_the_code_or_changed_there_comes_back_with_the_environment(
    tmp_path: Path, s3: FakeS3
) -> None:
    node = Node(tmp_path, s3)
    node.write(f"{SITE}/kernels.pth", str(tmp_path / "code"))
    node.write("../code/kernels/fast.so", "machine code", 0o755)
    node.write("../code/kernels/version.py", "VERSION = '1.0'")
    node.keep()
    assert node.notes == [
        "kept the environment for later attempts: 3 files, 2 of them built beside the code, for EPYC, A10G"
    ]
    wanted, again = node.files(), Node(tmp_path, s3)
    assert again.has("../code/kernels/version.py") == CODE["kernels/version.py"]
    assert again.restore()
    assert again.files() == wanted


def test_what_was_built_beside_the_code_is_used_on_the_same_hardware_alone(tmp_path: Path, s3: FakeS3) -> None:
    node = Node(tmp_path, s3)
    node.write("../code/kernels/fast.so", "machine code")
    node.keep()
    again = Node(tmp_path, s3)
    again.hardware = "EPYC, L4"
    assert not again.restore()
    assert again.notes[0].endswith("is installed again: it was built for EPYC, A10G, and this node has EPYC, L4")
    assert again.has("../code/kernels/fast.so") is None


@pytest.mark.usefixtures("first")
def test_what_was_only_installed_is_used_on_any_hardware(tmp_path: Path, s3: FakeS3) -> None:
    node = Node(tmp_path, s3)
    node.hardware = "Xeon"
    assert node.restore()


def test_the_hardware_is_named_by_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: AMD EPYC 7R32\nflags\t: fpu\n" * 4)
    for number in range(2):
        gpu = tmp_path / f"driver/nvidia/gpus/0000:00:1{number}.0"
        gpu.mkdir(parents=True)
        (gpu / "information").write_text("Model: \t\t NVIDIA A10G\nIRQ:   \t\t 33\n")
    assert describe_hardware(tmp_path) == "AMD EPYC 7R32, NVIDIA A10G"
    assert describe_hardware(tmp_path / "none") == platform.machine()


def _link(node: Node) -> None:
    (node.python.folder / "bin" / "other").symlink_to("/bin/sh")


def _link_beside(node: Node) -> None:
    (node.root / "code/kernels/fast.so").symlink_to("elsewhere.so")


def _remove(node: Node) -> None:
    (node.root / "code/kernels/version.py").unlink()


def _name_as_unfinished(node: Node) -> None:
    node.write(f"{SITE}/template.tmp", "of a package")


def _edit_in_the_image(node: Node) -> None:
    node.write("../image/app/_built.py", "")
    node.write(f"{SITE}/app.dist-info/direct_url.json", _origin(node.root / "image/app", "true"))


def _path_into_the_image(node: Node) -> None:
    node.write("../image/app/_built.py", "")
    node.write(f"{SITE}/app.pth", f"{node.root}/image/app\n")


def _origin(folder: Path, editable: str) -> str:
    return f'{{"url": "{folder.as_uri()}", "dir_info": {{"editable": {editable}}}}}'


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (_link, "'bin/other' is left out"),
        (_link_beside, "'kernels/fast.so' is left out"),
        (_remove, "pip removed code/kernels/version.py"),
        (_name_as_unfinished, "template.tmp ends with .tmp"),
        (_edit_in_the_image, "image/app, which is neither in the environment nor in the code"),
        (_path_into_the_image, "image/app, which is neither in the environment nor in the code"),
    ],
)
def test_what_would_come_back_as_another_is_not_kept_and_the_log_says_why(
    tmp_path: Path, s3: FakeS3, happens: Callable[[Node], None], why: str
) -> None:
    node = Node(tmp_path, s3)
    node.write(f"{SITE}/one.py", "ONE = 1")
    happens(node)
    node.keep()
    assert node.notes[0].startswith("the environment is not kept: later attempts install it again (12.0 s).")
    assert why in node.notes[0]
    assert s3.objects == {}


def test_links_and_unfinished_names_of_the_code_itself_hinder_nothing(tmp_path: Path, s3: FakeS3) -> None:
    node = Node(tmp_path, s3)
    node.write("../code/data.tmp", "unpacked")
    (tmp_path / "code/link").symlink_to("train.py")
    node.begin()
    node.write(f"{SITE}/one.py", "ONE = 1")
    node.keep()
    assert node.notes == ["kept the environment for later attempts: 1 files"]


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
    node = Node(tmp_path, s3)
    node.write("../code/requirements.txt", str(wheel(tmp_path, "greeter", "hello")))
    assert requirements.install(node.python, tmp_path / "code", node.python.variables(os.environ), run)
    node.keep()
    assert node.notes[-1].startswith("kept the environment")
    again = Node(tmp_path, s3)
    ask = [str(again.python.program), "-c", "import greeter; print(greeter.SAYS)"]
    assert run(ask, tmp_path, {})[0] == 1
    assert again.restore()
    assert run(ask, tmp_path, {}) == (0, ["hello"])


@pytest.mark.parametrize(
    "requirement",
    [
        "-e ./sub",
        *(pytest.param(one, marks=pytest.mark.at_length) for one in ("-e .", "--editable=sub", "-r more.txt")),
    ],
)
def test_a_real_pip_that_builds_beside_the_code_does_so_once(tmp_path: Path, s3: FakeS3, requirement: str) -> None:
    """The code of each attempt is unpacked anew: without what the build wrote, the package cannot be imported."""

    def unpacked() -> Node:
        node = Node(tmp_path, s3)
        write_editable(tmp_path / "code", "kernels")
        write_editable(tmp_path / "code/sub", "kernels")
        node.write("../code/more.txt", "-e ./sub")
        node.write("../code/requirements.txt", requirement)
        node.begin()
        return node

    def says(node: Node) -> tuple[int, list[str]]:
        asked = [str(node.python.program), "-I", "-c", "import kernels; print(kernels.ANSWER)"]
        code, lines = run(asked, tmp_path, {})
        return code, list(lines)[-1:]

    node = unpacked()
    assert requirements.install(node.python, tmp_path / "code", node.python.variables(os.environ), run)
    node.keep()
    assert "built beside the code" in node.notes[-1]
    assert says(node) == (0, ["42"])
    again = unpacked()
    assert says(again)[0] == 1
    assert again.restore()
    assert says(again) == (0, ["42"])
