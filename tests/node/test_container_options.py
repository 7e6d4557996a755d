"""The words that docker gets, one by one, and what is given to it in another way; no docker runs here."""

from __future__ import annotations

import csv
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from agent.container import options
from agent.container.options import DockerEnvironment, Hardware, Mount
from contract import containers
from tools.docker_options import OPTIONS

ADDRESS = f"123456789012.dkr.ecr.eu-central-1.amazonaws.com/yard/images@sha256:{'a' * 64}"
PLAIN = Hardware(shared_bytes=1000, most_processes=300)


def words(**changes: object) -> list[str]:
    usual: dict[str, object] = {
        "command": (),
        "arguments": (),
        "mounts": (),
        "environment_file": Path("/settings/environment"),
        "passed": (),
        "folder": "",
        "hardware": PLAIN,
    }
    return options.run(ADDRESS, **(usual | changes))  # type: ignore[arg-type]


def values(given: list[str], option: str) -> list[str]:
    """What follows the option, each time."""
    before = given[: given.index(ADDRESS)]
    return [value for name, value in pairwise(before) if name == option]


def test_the_least_container_has_these_words_and_no_others() -> None:
    assert words() == [
        "run",
        *("--name", "trainyard"),
        *("--pull", "never"),
        *("--log-driver", "none"),
        "--init",
        "--no-healthcheck",
        *("--network", "host"),
        *("--shm-size", "1000"),
        *("--ulimit", "memlock=-1:-1"),
        *("--ulimit", "nofile=1048576:1048576"),
        *("--ulimit", "stack=67108864:67108864"),
        *("--pids-limit", "300"),
        *("--oom-score-adj", "500"),
        *("--env-file", "/settings/environment"),
        ADDRESS,
    ]


def test_every_option_is_explained_and_every_explained_option_is_used() -> None:
    device, mount = (Path("/dev/x"), "/dev/x"), Mount(source=Path("/a"), target="/b")
    most = words(
        command=["x"], mounts=[mount], passed=["A"], folder="/c", hardware=replace(PLAIN, gpus=True, devices=(device,))
    )
    given = {word for word in most[: most.index(ADDRESS)] if word.startswith("--")}
    assert given == options.MEANING.keys()


def test_every_option_and_every_value_is_one_that_dockers_reference_has() -> None:
    assert OPTIONS.keys() == options.MEANING.keys()
    device, mount = (Path("/dev/x"), "/dev/x"), Mount(source=Path("/a, b"), target="/b", read_only=True)
    hardware = replace(PLAIN, gpus=True, devices=(device,))
    most = words(command=["x"], mounts=[mount], passed=["A"], folder="/c", hardware=hardware)
    left, wrong = most[1 : most.index(ADDRESS)], list[str]()
    while left:
        option = left.pop(0)
        value = "" if OPTIONS[option].takes == "nothing" else left.pop(0)
        wrong += [] if OPTIONS[option].fits(value.replace('"', "")) else [f"{option} {value}"]
    assert wrong == []


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--ulimit", "memory=-1:-1"),
        ("--ulimit", "memlock=unlimited"),
        ("--oom-score-adj", "1001"),
        ("--gpus", "2"),
        ("--env", "A=secret"),
        ("--pull", "newer"),
        ("--mount", "type=bind,target=/a"),
        ("--device", "/dev/x"),
        ("--shm-size", "half"),
    ],
)
def test_a_value_that_the_reference_does_not_have_is_found(option: str, value: str) -> None:
    assert not OPTIONS[option].fits(value)


@pytest.mark.parametrize(
    "word",
    ["--privileged", "--cap-add", "--user", "--volume", "-v", "--rm", "--tty", "--security-opt", "--ipc", "--pid"],
)
def test_a_container_gets_no_more_of_the_machine_than_it_needs(word: str) -> None:
    assert word not in words(hardware=replace(PLAIN, gpus=True))


def test_a_machine_without_gpus_is_not_asked_for_any() -> None:
    assert values(words(), "--gpus") == []
    assert values(words(hardware=replace(PLAIN, gpus=True)), "--gpus") == ["all"]


def test_each_device_keeps_its_path() -> None:
    devices = tuple((Path(f"/root/dev/infiniband/uverbs{n}"), f"/dev/infiniband/uverbs{n}") for n in range(2))
    given = words(hardware=replace(PLAIN, devices=devices))
    assert values(given, "--device") == [f"{source}:{target}" for source, target in devices]


def test_without_a_command_the_entry_point_gets_the_arguments_as_they_are() -> None:
    given = words(arguments=["--epochs", "3 4", "$HOME", "", "--privileged"])
    assert given[given.index(ADDRESS) :] == [ADDRESS, "--epochs", "3 4", "$HOME", "", "--privileged"]
    assert values(given, "--entrypoint") == []


def test_a_command_replaces_the_entry_point_and_its_words_and_the_arguments_follow_the_image() -> None:
    given = words(command=["python", "train.py"], arguments=["--lr", "1"])
    assert values(given, "--entrypoint") == ["python"]
    assert given[given.index(ADDRESS) :] == [ADDRESS, "train.py", "--lr", "1"]


def test_words_of_the_job_never_stand_where_docker_looks_for_options() -> None:
    given = words(command=["--network=none", "--privileged"], arguments=["--volume", "/:/host"])
    place = given.index(ADDRESS)
    assert values(given, "--entrypoint") == ["--network=none"]
    assert given[place - 2] == "--entrypoint"
    assert given[place:] == [ADDRESS, "--privileged", "--volume", "/:/host"]


def test_the_working_folder_is_named_only_where_there_is_code() -> None:
    assert values(words(), "--workdir") == []
    assert values(words(folder=containers.CODE), "--workdir") == [containers.CODE]


@pytest.mark.parametrize("folder", ["/plain", "/with space", "/with,comma", '/with"quote', "/with=equals"])
def test_a_mount_is_read_back_as_it_was_meant(folder: str) -> None:
    (fields,) = csv.reader([str(Mount(source=Path(folder), target="/opt/ml/x", read_only=True))])
    assert fields == ["type=bind", f"source={folder}", "target=/opt/ml/x", "readonly"]


def test_a_mount_is_writable_unless_it_says_otherwise() -> None:
    assert str(Mount(source=Path("/a"), target="/b")) == "type=bind,source=/a,target=/b"


def test_no_value_of_the_environment_stands_among_dockers_words() -> None:
    said = DockerEnvironment.of({"TOKEN": "very secret", "KEY": "-----BEGIN\nvery secret"})
    given = words(passed=sorted(said.passed))
    assert values(given, "--env") == ["KEY"]
    assert "secret" not in " ".join(given)


@pytest.mark.parametrize(
    "value", ["", "plain", "with = and #", " leading", "trailing ", "quotes '\"", "$HOME `x`", "é" * 100, "\ttab"]
)
def test_a_value_of_one_line_stands_in_the_file_as_it_is(value: str) -> None:
    said = DockerEnvironment.of({"A": value})
    assert (said.lines, dict(said.passed)) == ((f"A={value}",), {})


@pytest.mark.parametrize("value", ["a\nb", "a\r", "x" * 70_000, "\udc80"])
def test_a_value_that_no_line_holds_is_passed_by_its_name(value: str) -> None:
    said = DockerEnvironment.of({"A": value})
    assert (said.lines, dict(said.passed)) == ((), {"A": value})


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "LD_AUDIT", "GLIBC_TUNABLES", "DOCKER_HOST", "GODEBUG", "PATH", "HOME", "http_proxy"]
)
def test_a_variable_that_docker_itself_obeys_is_known(name: str) -> None:
    assert options.DOCKERS_OWN.fullmatch(name)


@pytest.mark.parametrize("name", ["CERTIFICATE", "KEY", "PATHS", "MY_HOME", "PYTHONPATH", "MODEL_LD", "NCCL_DEBUG"])
def test_a_variable_of_the_programs_is_none_of_dockers(name: str) -> None:
    assert not options.DOCKERS_OWN.fullmatch(name)


def test_no_two_folders_of_a_container_are_the_same_or_hide_each_other() -> None:
    folders = [getattr(containers, one) for one in ("CHECKPOINTS", "ARTIFACTS", "CODE", "DATA", "PROGRESS", "ROLE")]
    assert len(set(folders)) == len(folders)
    assert [(one, two) for one in folders for two in folders if one != two and two.startswith(f"{one}/")] == []
