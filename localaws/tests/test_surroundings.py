"""No password and no key of whoever starts a local AWS reaches the code that runs in it, and none of this person's settings counts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import localaws
from localaws.account import LocalAccount
from localaws.conditions import Conditions
from localaws.containers import inputs
from localaws.machines.nodes import network
from localaws.recorder import Recorder
from localaws.server import LocalAws
from localaws.surroundings import name_passwords, read_ways, without_credentials, without_passwords
from localaws.testing.calm import CALM

ROOT = Path(localaws.__path__[0]).parent


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("https://me:hush@index.example/simple", "https://index.example/simple"),
        ("https://hush@index.example/simple", "https://index.example/simple"),
        ("https://me:hu@sh@index.example:8443", "https://index.example:8443"),
        ("https://a:hush@one/x https://b:hush@two/y", "https://one/x https://two/y"),
        ("https://a:hush@one/x\nhttps://b:hush@two/y", "https://one/x\nhttps://two/y"),
        ("me:hush@proxy.example:3128", "proxy.example:3128"),
        ("git+https://hush@host/a.git", "git+https://host/a.git"),
    ],
)
def test_an_address_loses_its_user_and_password(text: str, left: str) -> None:
    assert without_passwords(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "https://index.example/simple",
        "file:///opt/a@b/simple",
        "/opt/me:x/a@b",
        "proxy:3128",
        "localhost,127.0.0.1,.example",
        "",
    ],
)
def test_an_address_without_a_user_stays_as_it_is(text: str) -> None:
    assert without_passwords(text) == text


@pytest.fixture
def surrounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(read_ways()):
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_INDEX_URL", "https://me:hush@index.example/simple")
    monkeypatch.setenv("https_proxy", "me:hush@proxy.example:3128")
    monkeypatch.setenv("PIP_TIMEOUT", "9")


@pytest.mark.usefixtures("surrounded")
def test_machines_get_the_way_to_an_index_without_its_password(tmp_path: Path) -> None:
    given = network(tmp_path / "ami")
    assert "hush" not in str(given)
    assert given["PIP_INDEX_URL"] == "https://index.example/simple"
    assert given["https_proxy"] == "proxy.example:3128"
    assert given["PIP_TIMEOUT"] == "9"


@pytest.mark.usefixtures("surrounded")
def test_builds_get_the_way_to_an_index_without_its_password(tmp_path: Path) -> None:
    inputs.keep(tmp_path)
    kept = [file.read_text() for file in tmp_path.iterdir()]
    assert [text for text in kept if "hush" in text] == []
    assert any("index.example" in text for text in kept)
    assert inputs.kept(tmp_path)[1] == {"https_proxy": "proxy.example:3128"}


@pytest.mark.usefixtures("surrounded")
def test_the_person_hears_whose_password_is_left_out() -> None:
    assert name_passwords() == ["PIP_INDEX_URL", "https_proxy"]


@pytest.mark.parametrize("name", ["ALL_PROXY", "UV_INDEX_URL", "npm_config_registry", "PIP_INDEX_URL", "ANY"])
def test_no_variable_keeps_the_password_of_an_address(name: str) -> None:
    for scheme, user in (("https", "me:hush"), ("http", "hush"), ("socks5h", "me:hush")):
        given = {name: f"{scheme}://{user}@host.example/x"}
        assert without_credentials(given) == {name: f"{scheme}://host.example/x"}
        assert name_passwords(given) == [name]


def test_a_user_without_a_password_stays_in_an_address() -> None:
    assert without_credentials({"DOCKER_HOST": "ssh://me@host"}) == {"DOCKER_HOST": "ssh://me@host"}


@pytest.mark.parametrize(
    "name",
    [
        "AWS_SECRET_ACCESS_KEY",
        "AWS_PROFILE",
        "AWS_SESSION_TOKEN",
        "GITHUB_TOKEN",
        "WANDB_API_KEY",
        "MY_PASSWORD",
        "DB_passwd",
    ],
)
def test_credentials_are_left_out(name: str) -> None:
    assert without_credentials({name: "hush", "PATH": "/bin"}) == {"PATH": "/bin"}


@pytest.mark.parametrize("name", ["PATH", "HOME", "LANG", "TERM", "VIRTUAL_ENV", "COLUMNS", "PIP_FIND_LINKS"])
def test_what_is_no_credential_stays(name: str) -> None:
    assert without_credentials({name: "x"}) == {name: "x"}


def test_no_process_of_the_local_aws_shows_the_persons_keys() -> None:
    variables = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "AWS_SECRET_ACCESS_KEY": "hush-key",
        "AWS_PROFILE": "hush-profile",
        "PIP_INDEX_URL": "https://me:hush-index@index.example/simple",
    }
    words = [sys.executable, "-m", "localaws"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, env=variables, text=True, cwd=ROOT, **pipes) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        printed = [process.stdout.readline() for _ in range(5)]
        shown = Path("/proc", str(process.pid), "environ").read_bytes()
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read()
    assert printed[0].startswith("export AWS_ENDPOINT_URL=http://localhost:")
    assert b"hush" not in shown
    assert "hush" not in said
    assert "PIP_INDEX_URL: used without the password" in said
    assert b"PATH=" in shown


@pytest.mark.parametrize("variable", ["AWS_PROFILE", "AWS_DEFAULT_PROFILE"])
def test_a_profile_of_the_person_that_does_not_exist_does_not_matter(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "there-is-none")
    account = LocalAccount(Conditions(), Recorder(lambda *_: []))
    account.endpoint = "http://localhost:1"
    assert account.client("s3").meta.endpoint_url == "http://localhost:1"


def test_no_other_user_of_the_computer_reads_what_the_account_holds(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir(mode=0o755)
    LocalAws(CALM, work=work)
    assert work.stat().st_mode & 0o777 == 0o700


def test_no_setting_of_the_person_changes_a_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config"
    config.write_text("[default]\nregion = mars-1\nmax_attempts = 99\ns3 =\n  addressing_style = virtual\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    account = LocalAccount(Conditions(), Recorder(lambda *_: []))
    account.endpoint = "http://localhost:1"
    client = account.client("s3", "eu-central-1")
    assert (client.meta.region_name, client.meta.config.s3) == ("eu-central-1", None)
    assert client.meta.config.retries["total_max_attempts"] == 4
