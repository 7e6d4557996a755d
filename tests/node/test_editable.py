"""Folders from which an environment imports, beside its own and the code's, are found; nothing that a package writes hinders that."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.editable import MOST, ORIGIN, find_outside

SITE = "env/lib/python3.12/site-packages"


class Work:
    """A work folder with an environment, the code, and a folder of the image beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.image = folder / "work", folder / "image"
        for path in (self.folder / SITE / "own", self.folder / "code/sub", self.image):
            path.mkdir(parents=True)

    def find(self, name: str, text: str | bytes) -> str:
        (self.folder / SITE / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return find_outside(self.folder, [f"{SITE}/{name}"], [self.folder / "env", self.folder / "code"])

    def origin(self, folder: Path, editable: str = "true") -> str:
        return f'{{"url": "{folder.as_uri()}", "dir_info": {{"editable": {editable}}}}}'


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path)


@pytest.mark.parametrize("name", ["app.pth", "easy-install.pth", "app.egg-link"])
def test_a_path_of_the_image_is_outside(work: Work, name: str) -> None:
    assert work.find(name, f"# of an editable package\n\n{work.image}\n") == str(work.image)


def test_a_relative_path_and_a_link_that_lead_out_are_outside(work: Work) -> None:
    assert work.find("app.pth", "../../../../../image\n").endswith("/image")
    (work.folder / "code/link").symlink_to(work.image)
    assert work.find("app.pth", f"{work.folder}/code/link\n") == f"{work.folder}/code/link"


def test_a_package_that_is_edited_in_the_image_is_outside(work: Work) -> None:
    assert work.find(ORIGIN, work.origin(work.image)) == str(work.image)
    named = work.image / "with a blank"
    named.mkdir()
    assert work.find(ORIGIN, work.origin(named)) == str(named)


def test_what_was_copied_from_a_folder_is_not(work: Work) -> None:
    assert work.find(ORIGIN, work.origin(work.image, "false")) == ""


@pytest.mark.parametrize("inside", ["code", "code/sub", SITE, "env/src"])
def test_folders_of_the_environment_and_of_the_code_are_inside(work: Work, inside: str) -> None:
    (work.folder / inside).mkdir(exist_ok=True, parents=True)
    assert work.find("app.pth", f"{work.folder / inside}\nown\n.\n") == ""
    assert work.find(ORIGIN, work.origin(work.folder / inside)) == ""


def test_a_folder_that_only_begins_as_the_codes_is_outside(work: Work) -> None:
    (work.folder / "code-of-others").mkdir()
    assert work.find("app.pth", f"{work.folder}/code-of-others\n") == f"{work.folder}/code-of-others"


@pytest.mark.parametrize(
    "text", ["import sys; sys.path\n", "import\tsite\n", "/nowhere/at/all\n", "# /\n", "\n \n", "\0\n"]
)
def test_lines_that_name_no_folder_name_none(work: Work, text: str) -> None:
    assert work.find("app.pth", text) == ""


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"[]", b"3", b"null", b'{"url": 3}', b'{"url": "file:///", "dir_info": 1}', b"[" * MOST, b"\xff\xfe",
        b'{"url": "https://host/", "dir_info": {"editable": true}}', b'{"url": "file:///%00", "dir_info": {"editable": true}}',
        b'{"url": "file://[", "dir_info": {"editable": true}}', b'{"url": "file:///", "vcs_info": {"vcs": "git"}}',
    ],
)  # fmt: skip
def test_an_origin_that_pip_did_not_write_so_names_none(work: Work, text: bytes) -> None:
    assert work.find(ORIGIN, text) == ""


def test_other_files_are_not_read(work: Work) -> None:
    assert work.find("app.py", str(work.image)) == ""


def test_no_more_is_read_than_a_file_of_paths_has(work: Work) -> None:
    assert work.find("app.pth", "#" * MOST + f"\n{work.image}\n") == ""
