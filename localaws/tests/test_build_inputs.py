"""What a real build takes from the computer: pip's settings with their folders, what stands for an image, what a computer lacks."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from localaws.containers import base, building, inputs, real


def settings(*lines: str) -> tuple[dict[str, str], dict[str, str]]:
    """The options of the file, and the folders."""
    text, volumes = inputs.pip_settings(lines)
    head, *rest = text.splitlines()
    assert head == "[global]"
    return dict(line.split(" = ", 1) for line in rest), volumes


def test_the_settings_of_a_later_place_win_as_in_pip() -> None:
    told, _ = settings(":env:.timeout='3'", "global.timeout='1'", "user.timeout='2'", "global.retries='9'")
    assert told == {"timeout": "3", "retries": "9"}


def test_addresses_of_the_network_stay_as_they_are() -> None:
    address = "https://mirror.test:8443/simple"
    assert settings(f"global.index-url='{address}'") == ({"index-url": address}, {})


def test_a_password_stays_out_of_the_build() -> None:
    assert settings("global.index-url='https://user:word@mirror.test/simple'")[0] == {
        "index-url": "https://mirror.test/simple"
    }


def test_a_folder_of_the_computer_has_a_place_in_the_build(tmp_path: Path) -> None:
    told, volumes = settings(f"global.find-links='{tmp_path}'")
    assert (told, volumes) == ({"find-links": "/run/inputs/0"}, {str(tmp_path): "/run/inputs/0"})


def test_an_index_of_files_brings_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "simple").mkdir()
    told, volumes = settings(f"global.index-url='file://{tmp_path}/simple'")
    assert told == {"index-url": "file:///run/inputs/0/simple"}
    assert volumes == {str(tmp_path): "/run/inputs/0"}


def test_a_file_is_found_in_its_folder_and_a_folder_has_one_place(tmp_path: Path) -> None:
    (tmp_path / "constraints.txt").touch()
    told, volumes = settings(f"global.constraint='{tmp_path}/constraints.txt'", f"global.find-links='{tmp_path}'")
    assert told == {"constraint": "/run/inputs/0/constraints.txt", "find-links": "/run/inputs/0"}
    assert len(volumes) == 1


@pytest.mark.parametrize("option", inputs.LEFT_OUT)
def test_what_names_places_of_this_computer_alone_is_left_out(option: str) -> None:
    assert settings(f"global.{option}='/etc'") == ({}, {})


def test_more_folders_than_a_build_has_places_for_are_refused(tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(base.MOST_INPUTS + 1)]
    for one in folders:
        one.mkdir()
    with pytest.raises(SystemExit, match=f"more than {base.MOST_INPUTS} folders"):
        settings(f"global.find-links='{' '.join(map(str, folders))}'")


def test_the_file_of_settings_is_read_by_nobody_else_and_proxies_are_kept_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.test:3128")
    monkeypatch.setenv("PIP_TIMEOUT", "7")
    inputs.keep(tmp_path)
    volumes, proxies = inputs.kept(tmp_path)
    assert (tmp_path / "pip.conf").stat().st_mode & 0o077 == 0
    assert "timeout = 7" in (tmp_path / "pip.conf").read_text()
    assert volumes[str(tmp_path / "pip.conf")] == "/etc/pip.conf"
    assert proxies["HTTPS_PROXY"] == "http://proxy.test:3128"


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("763104351884.dkr.ecr.eu-central-1.amazonaws.com/pytorch-training:2.8", base.DEEP_LEARNING),
        ("public.ecr.aws/docker/library/python:3.13-slim", base.PYTHON),
        ("python:3.12", base.PYTHON),
    ],
)
def test_frameworks_are_in_the_base_of_awss_containers_alone(address: str, name: str) -> None:
    assert building.stands_for(address) == name


# what is missing


def refused(monkeypatch: pytest.MonkeyPatch, folder: Path, *, user: int = 0, there: tuple[str, ...] = ()) -> str:
    monkeypatch.setattr(base.os, "geteuid", lambda: user)
    monkeypatch.setattr(base.shutil, "which", lambda name: f"/usr/bin/{name}" if name in there else None)
    with pytest.raises(SystemExit) as problem:
        base.prepare(folder)
    return str(problem.value)


DEBIAN = ("apt-get", "dpkg")


def test_only_root_of_a_debian_gets_the_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {
        refused(monkeypatch, tmp_path, user=1000, there=DEBIAN),
        refused(monkeypatch, tmp_path, there=("apt-get",)),
        refused(monkeypatch, tmp_path),
    }
    assert len(said) == 1
    assert said.pop().startswith("Real images need root on Debian or Ubuntu")


def test_debian_out_of_reach_is_told_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(words: list[str], **_: Any) -> None:
        raise subprocess.CalledProcessError(100, words)

    monkeypatch.setattr(base.subprocess, "run", broken)
    assert refused(monkeypatch, tmp_path, there=DEBIAN).startswith("Debian's packages could not be fetched (apt-get")


def test_what_is_there_and_current_is_asked_of_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(words: list[str], **_: Any) -> None:
        raise AssertionError(words)

    monkeypatch.setattr(base.subprocess, "run", never)
    monkeypatch.setattr(base.shutil, "which", lambda name: f"/usr/bin/{name}")
    (tmp_path / base.KEY).write_text(base.key())
    base.prepare(tmp_path)
    (tmp_path / base.KEY).write_text("an earlier one")
    with pytest.raises(AssertionError):
        base.prepare(tmp_path)


@pytest.mark.parametrize(
    ("user", "there", "key", "why"),
    [
        (1000, real.TOOLS, "current", "they need root"),
        (0, ("buildah",), "current", "skopeo, docker-registry, unshare is missing: make container-tools"),
        (0, real.TOOLS, "", "the base image is missing: make container-tools"),
        (0, real.TOOLS, "old", "the base image is an earlier one: make container-tools"),
    ],
)
def test_a_computer_says_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, there: tuple[str, ...], key: str, why: str
) -> None:
    monkeypatch.setattr(real, "PLACE", tmp_path)
    monkeypatch.setattr(real.os, "geteuid", lambda: user)
    monkeypatch.setattr(real.shutil, "which", lambda name: f"/usr/bin/{name}" if name in there else None)
    if key:
        (tmp_path / base.KEY).write_text(base.key() if key == "current" else key)
    assert real.lacks() == why
    said = list[str]()
    assert real.announced(said.append) is False
    assert said == [f"images are not built for real, their files are copied as their Dockerfiles say: {why}"]


def test_images_of_from_are_found_but_for_arguments_stages_and_nothing() -> None:
    lines = [
        "FROM --platform=linux/amd64 python:3.12 AS one",
        "from ${BASE} as two",
        "FROM one",
        "FROM scratch",
        "FROM debian",
    ]
    assert building._foreign(lines) == ["python:3.12", "debian"]
