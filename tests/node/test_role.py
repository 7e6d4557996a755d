"""The training of a job with a `job_role` finds its keys, and newer ones, as AWS's SDKs read them; nothing else finds them."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

import pytest

from agent.failures import MachineTrouble, Ordered
from agent.role import RoleCredentials
from contract import training
from contract.sessions import Credentials, SessionCredentials
from localaws.testing.waiting import until
from tests.node.world import FAST, KEYS, REGION, Site

NOW = 1_800_000_000.0
ROLE = Credentials(access_key="ASIAROLE", secret_key="hush", token="t", expires=NOW + 3600)
DENIED = "User: me is not authorized to perform: sts:AssumeRole"
ASKS = """
import sys, boto3
credentials = boto3.session.Session().get_credentials()
for line in sys.stdin:
    try:
        print(credentials.get_frozen_credentials().access_key, credentials.method, flush=True)
    except Exception as problem:
        print(type(problem).__name__, problem, flush=True)
"""
SHOWS = """
import json, os
shown = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
print("SHOWN", json.dumps(shown))
"""


@dataclass
class Letters:
    """What the node's item of keys holds, and what the agent notes."""

    folder: Path
    held: SessionCredentials | Exception | None = None
    notes: list[str] = field(default_factory=list)
    now: float = NOW
    looks: int = 0

    def read(self) -> SessionCredentials | None:
        self.looks += 1
        if isinstance(self.held, Exception):
            raise self.held
        return self.held

    def role(self) -> RoleCredentials:
        return RoleCredentials(
            self.folder / "a folder", "corpus", REGION, read=self.read, note=self.notes.append,
            now=lambda: self.now, monotonic=lambda: self.now,
        )  # fmt: skip

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def letters(tmp_path: Path) -> Letters:
    return Letters(tmp_path, replace(KEYS, training=ROLE))


def waited(letters: Letters) -> RoleCredentials:
    role = letters.role()
    role.wait(600, letters.sleep)
    return role


def printed(role: RoleCredentials) -> dict[str, object]:
    """By the process that the config file names."""
    lines = Path(role.variables[training.CONFIG_FILE]).read_text().splitlines()
    (command,) = (line.partition(" = ")[2] for line in lines if line.startswith("credential_process"))
    found: dict[str, object] = json.loads(subprocess.run(["sh", "-c", command], capture_output=True, check=True).stdout)
    return found


@contextmanager
def asking(role: RoleCredentials) -> Iterator[subprocess.Popen[str]]:
    """A process with a real boto3, and no other way to keys."""
    inherited = RoleCredentials.without_others(os.environ) | {
        "AWS_EC2_METADATA_DISABLED": "true",
        "HOME": "/nonexistent",
    }
    with subprocess.Popen(
        [sys.executable, "-c", ASKS], env=inherited | role.variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip
        yield process
        process.kill()


def ask(process: subprocess.Popen[str]) -> str:
    asked: IO[str] | None = process.stdin
    assert asked is not None
    assert process.stdout is not None
    asked.write("\n")
    asked.flush()
    return str(process.stdout.readline()).strip()


def test_boto3_finds_the_keys_and_reads_newer_ones_by_itself(letters: Letters) -> None:
    letters.now = time.time()
    letters.held = replace(KEYS, training=replace(ROLE, expires=letters.now + 60))
    role = waited(letters)
    with asking(role) as process:
        assert ask(process) == "ASIAROLE custom-process"
        letters.held = replace(KEYS, training=replace(ROLE, access_key="ASIANEW", expires=letters.now + 3600))
        role.renew()
        assert ask(process) == "ASIANEW custom-process"


def test_boto3_says_that_keys_which_nobody_renews_have_expired(letters: Letters) -> None:
    letters.now = time.time()
    letters.held = replace(KEYS, training=replace(ROLE, expires=letters.now - 60))
    with asking(waited(letters)) as process:
        assert "expired" in ask(process)


def test_the_process_prints_what_sdks_ask_for(letters: Letters) -> None:
    told = printed(waited(letters))
    assert told == {
        "Version": 1,
        "AccessKeyId": "ASIAROLE",
        "SecretAccessKey": "hush",
        "SessionToken": "t",
        "Expiration": "2027-01-15T09:00:00Z",
    }


def test_only_its_owner_may_open_the_folder_and_its_files(letters: Letters) -> None:
    config = Path(waited(letters).variables[training.CONFIG_FILE])
    modes = {stat.S_IMODE(one.stat().st_mode) for one in config.parent.iterdir()}
    assert (stat.S_IMODE(config.parent.stat().st_mode), modes) == (0o700, {0o600})
    assert {one.name for one in config.parent.iterdir()} == {"config", "keys.json"}


def test_a_reader_never_meets_half_of_the_keys(letters: Letters) -> None:
    role, broken, over = waited(letters), list[str](), threading.Event()
    file = Path(role.variables[training.CONFIG_FILE]).with_name("keys.json")

    def read() -> None:
        while not over.is_set():
            try:
                json.loads(file.read_text())
            except (OSError, ValueError) as problem:
                broken.append(str(problem))

    reader = threading.Thread(target=read)
    reader.start()
    letters.now += 1801
    for number in range(300):
        letters.held = replace(KEYS, training=replace(ROLE, access_key="A" * 2000, expires=ROLE.expires + number))
        role.renew()
    over.set()
    reader.join()
    assert broken == []


@pytest.mark.parametrize("held", [None, KEYS, OSError("away"), replace(KEYS, refusal=DENIED)])
def test_keys_that_come_late_are_waited_for(letters: Letters, held: SessionCredentials | Exception | None) -> None:
    letters.held, role, pauses = held, letters.role(), list[float]()

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            letters.held = replace(KEYS, training=ROLE)

    role.wait(600, sleep)
    assert len(pauses) == 3
    assert printed(role)["AccessKeyId"] == "ASIAROLE"


def test_keys_that_never_come_are_the_machines_trouble_with_the_last_reason(letters: Letters) -> None:
    letters.held = replace(KEYS, refusal=DENIED)
    with pytest.raises(MachineTrouble, match=f"no credentials of the job_role corpus came within 600 s.*{DENIED}"):
        letters.role().wait(600, letters.sleep)


def test_an_order_ends_the_wait(letters: Letters) -> None:
    def ordered(_: float) -> None:
        raise Ordered

    letters.held = None
    with pytest.raises(Ordered):
        letters.role().wait(600, ordered)


def test_fresh_keys_are_not_looked_for(letters: Letters) -> None:
    role = waited(letters)
    letters.now += 1700
    role.renew()
    assert letters.looks == 1
    letters.now += 200
    role.renew()
    assert letters.looks == 2


@pytest.mark.parametrize(
    "held",
    [
        None,
        KEYS,
        OSError("away"),
        replace(KEYS, refusal=DENIED),
        replace(KEYS, training=replace(ROLE, access_key="ASIAOLD", expires=ROLE.expires - 1)),
    ],
)
def test_what_is_not_newer_leaves_the_keys_that_the_training_has(
    letters: Letters, held: SessionCredentials | Exception | None
) -> None:
    role = waited(letters)
    letters.now, letters.held = ROLE.expires - 60, held
    role.renew()
    assert printed(role)["AccessKeyId"] == "ASIAROLE"


def test_a_role_that_can_no_longer_be_assumed_is_told_once_with_the_time_that_is_left(letters: Letters) -> None:
    role = waited(letters)
    letters.now, letters.held = ROLE.expires - 1000, replace(KEYS, refusal=DENIED)
    role.renew()
    role.renew()
    (note,) = letters.notes
    for words in ("job_role corpus cannot be assumed", "valid until 2027-01-15T09:00:00Z", DENIED):
        assert words in note


# The whole agent


def shown(site: Site) -> dict[str, str]:
    """The training's variables of AWS."""
    (line,) = (one for one in site.lines if "SHOWN" in one)
    found: dict[str, str] = json.loads(line.partition("SHOWN ")[2])
    return found


def test_a_training_with_a_role_is_led_to_its_keys_alone(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.setenv(name, "of somebody else")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    site.gets_keys = False
    site.give_credentials(replace(KEYS, training=replace(ROLE, expires=2e9)))
    site.offer(SHOWS, job_role="corpus")
    assert site.run().error == ""
    found = shown(site)
    assert found.keys() & training.OTHER_CREDENTIALS == {training.CONFIG_FILE}
    assert found["AWS_REGION"] == "eu-central-1"
    assert Path(found[training.CONFIG_FILE]).with_name("keys.json").exists()


def test_a_training_without_a_role_has_the_variables_that_it_always_had(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "of the machine")
    monkeypatch.delenv("AWS_CONFIG_FILE", raising=False)
    site.offer(SHOWS, environment={"AWS_SESSION_TOKEN": "its own"})
    assert site.run().error == ""
    found = shown(site)
    assert (found["AWS_PROFILE"], found["AWS_SESSION_TOKEN"]) == ("of the machine", "its own")
    assert training.CONFIG_FILE not in found
    assert not (site.root / "var/lib/trainyard/role").exists()


def test_the_training_starts_once_its_role_has_keys_and_the_report_says_what_it_waits_for(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.role.FIRST_S", 0.1)
    site.offer("print('trained')", job_role="corpus")

    def give() -> None:
        until(lambda: any("credentials of the job_role corpus" in one.note for one in site.sent()))
        assert "started" not in site.report().timeline
        site.give_credentials(replace(KEYS, training=replace(ROLE, expires=2e9)))

    giver = threading.Thread(target=give)
    giver.start()
    assert site.run().error == ""
    giver.join()
    assert "trained" in site.lines


def test_a_training_whose_role_never_gets_keys_does_not_start(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.role.FIRST_S", 0.1)
    site.offer("print('trained')", job_role="corpus", timing=replace(FAST, prepare_allowance_s=0.5))
    ending = site.run()
    assert ending.error == "NodeLost"
    assert "no credentials of the job_role corpus came" in ending.reason
    assert "trained" not in site.lines


def test_the_installation_of_requirements_gets_no_keys(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    given = list[Mapping[str, str]]()

    def install(python: object, code: Path, environment: Mapping[str, str], tool: object) -> bool:  # noqa: ARG001
        given.append(environment)
        return False

    monkeypatch.setattr("agent.workspace.requirements.install", install)
    site.gets_keys = False
    site.give_credentials(replace(KEYS, training=replace(ROLE, expires=2e9)))
    site.offer("", job_role="corpus", files={"requirements.txt": "\n"})
    assert site.run().error == ""
    (environment,) = given
    assert str(site.root / "var/lib/trainyard/role") not in " ".join(environment.values())
