"""What a node looks at: its metadata, its identity, its requirements."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
import venv
from dataclasses import replace
from pathlib import Path

import pytest

from agent import requirements
from agent.credentials import CredentialsExpired
from agent.failures import CannotStart
from agent.identity import Patience, Unknown, identify
from agent.machine import CLOUDWATCH_COMMON, cloudwatch_settings, run_cloudwatch
from agent.metadata import Metadata
from contract import tags
from contract.sessions import SessionCredentials
from localaws.testing.waiting import HANG_S
from tests.builders import JOB
from tests.node.fakes import imds
from tests.node.wheels import run, wheel
from tests.node.world import metadata

# Metadata and identity


def test_metadata_that_is_not_there_is_none() -> None:
    with imds({}) as service:
        assert service.metadata.spot_notice() is None


def test_an_expired_token_is_replaced() -> None:
    with imds({"instance-id": "i-1"}) as service:
        client = service.metadata
        assert client.get("instance-id") == "i-1"
        service.tokens.clear()
        assert client.get("instance-id") == "i-1"


def test_a_proxy_never_sees_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with imds({"instance-id": "i-1"}) as service:
        assert service.metadata.get("instance-id") == "i-1"


def test_late_tags_are_waited_for_with_growing_pauses() -> None:
    late = metadata()
    job = late.pop(f"tags/instance/{tags.JOB}")
    pauses: list[float] = []
    with imds(late) as service:

        def sleep(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 6:
                service.values[f"tags/instance/{tags.JOB}"] = job

        node = identify(service.metadata, Patience(most_s=60, now=lambda: sum(pauses), sleep=sleep))
    assert (node.job, node.attempt, node.rank, node.region) == ("job-1", 1, 0, "eu-central-1")
    assert pauses == [0.2, 0.4, 0.8, 1.6, 2.0, 2.0]


def test_a_tag_that_never_comes_is_named() -> None:
    pauses: list[float] = []
    with imds({}) as service, pytest.raises(Unknown, match=tags.DEPLOYMENT):
        identify(service.metadata, Patience(most_s=10, now=lambda: sum(pauses), sleep=pauses.append))


def test_a_metadata_service_that_is_away_is_waited_for_and_named() -> None:
    pauses: list[float] = []
    with pytest.raises(Unknown, match=tags.DEPLOYMENT):
        identify(Metadata("http://127.0.0.1:9"), Patience(most_s=3, now=lambda: sum(pauses), sleep=pauses.append))


# Requirements


def test_requirements_come_on_top_of_a_virtual_environment(tmp_path: Path) -> None:
    """As on a deep-learning image: the Python that runs the agent is itself one of a virtual environment."""
    image = tmp_path / "image"
    venv.EnvBuilder(symlinks=True).create(image)
    packages = next(image.glob("lib/python*/site-packages"))
    for name in ("framework", "both"):
        (packages / f"{name}.py").write_text("SAYS = 'of the image'\n")
    # The image's own .pth files count as well; this one brings pip, which this environment was made without.
    (packages / "more.pth").write_text(f"{next(Path(sys.prefix).glob('lib/python*/site-packages'))}\n")
    launcher = "import os, sys, subprocess\nprint('launched by', sys.executable)\n"
    launcher += "subprocess.run([os.environ.get('PYTHON_EXEC', sys.executable), *sys.argv[1:]], check=True)\n"
    programs = {
        "torchrun": f"#!{image}/bin/python\n",
        "deepspeed": f"#!/bin/sh\n'''exec' \"{image}/bin/python\" \"$0\" \"$@\"\n' '''\n",
        "isolated": f"#!{image}/bin/python -I\n",
        "foreign": "#!/usr/bin/perl\n",
    }
    for name, first_line in programs.items():
        (image / "bin" / name).write_text(first_line + launcher)
        (image / "bin" / name).chmod(0o755)
    code = tmp_path / "code"
    code.mkdir()
    (code / "requirements.txt").write_text(
        f"{wheel(tmp_path, 'extra', 'installed')}\n{wheel(tmp_path, 'both', 'installed')}\n"
    )
    (code / "train.py").write_text("import framework, extra, both; print(framework.SAYS, extra.SAYS, both.SAYS)")
    commands = [
        ["python", "train.py"],
        ["python3", "train.py"],
        ["torchrun", "train.py"],
        ["bash", "-c", "python train.py"],
        ["bash", "-c", "torchrun train.py"],
        ["bash", "-c", "deepspeed train.py"],
        ["bash", "-c", f"{image}/bin/torchrun train.py"],
    ]
    driver = f"""
import os, sys
from pathlib import Path
from types import SimpleNamespace
sys.path[:0] = {[str(Path(requirements.__file__).parents[1]), str(Path(tags.__file__).parents[1])]!r}
from agent import requirements
import subprocess
def run(words, folder, environment):
    done = subprocess.run(words, cwd=folder, env=environment)
    return done.returncode, []
code = Path({str(code)!r})
python = requirements.make(Path({str(tmp_path / "env")!r}))
environment = python.variables(os.environ)
assert requirements.install(python, code, environment, run)
python.take_over_programs()
taken = [name for name in {list(programs)!r} if (python.folder / "bin" / name).exists()]
print("taken over:", *taken, flush=True)
for words in {commands!r}:
    subprocess.run(python.command(words), cwd=code, env=environment, check=True)
print("PATH of the job's own:", python.command(["python"]) == [str(python.program)], flush=True)
"""
    done = subprocess.run(
        [image / "bin/python", "-c", driver], capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("of the image installed installed") == len(commands)
    assert "taken over: torchrun deepspeed\n" in done.stdout
    assert done.stdout.count(f"launched by {tmp_path}/env/bin/python\n") == 3
    assert "PATH of the job's own: True" in done.stdout


def test_requirements_that_cannot_be_installed_show_pips_last_words(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("/nowhere/missing-1.0-py3-none-any.whl\n")
    python = requirements.make(tmp_path / "env")
    with pytest.raises(CannotStart, match=r"(?s)pip exited with code 1.*missing-1\.0"):
        requirements.install(python, tmp_path, python.variables(os.environ), run)


def test_code_without_requirements_installs_nothing(tmp_path: Path) -> None:
    python = requirements.make(tmp_path / "env")
    assert not requirements.install(python, tmp_path, {}, lambda *_: pytest.fail("a tool was started"))


# The CloudWatch agent

KEYS = SessionCredentials(access_key="ASIA1", secret_key="s", token="t", expires=2e9)


class Over(Exception):
    """The test has seen enough."""


def cloudwatch(root: Path, script: str) -> None:
    control = root / "opt/aws/amazon-cloudwatch-agent/bin/amazon-cloudwatch-agent-ctl"
    control.parent.mkdir(parents=True)
    control.write_text(f"#!/bin/sh\n{script}\n")
    control.chmod(0o755)


def test_a_cloudwatch_agent_that_fails_is_a_line_in_the_log(tmp_path: Path) -> None:
    cloudwatch(tmp_path, "exit 3")
    notes: list[str] = []
    settings = cloudwatch_settings(JOB, 1, 0)
    run_cloudwatch(tmp_path, tmp_path, settings, credentials=lambda: KEYS, sleep=time.sleep, note=notes.append)
    assert "did not start" in notes[0]
    written = json.loads((tmp_path / "cloudwatch.json").read_text())
    gpu = written["metrics"]["metrics_collected"]["nvidia_gpu"]
    assert gpu["append_dimensions"] == {"job": "job-1"}
    assert written["metrics"]["aggregation_dimensions"] == [["job"]]
    assert gpu["drop_original_metrics"] == gpu["measurement"]  # each GPU would be five metrics, billed by the hour


def test_an_image_without_a_cloudwatch_agent_is_left_alone(tmp_path: Path) -> None:
    notes: list[str] = []
    run_cloudwatch(tmp_path, tmp_path, {}, credentials=lambda: KEYS, sleep=time.sleep, note=notes.append)
    assert notes == []
    assert list(tmp_path.iterdir()) == []


def test_a_cloudwatch_agent_has_the_newest_keys_of_the_job_and_those_of_the_instance_never(tmp_path: Path) -> None:
    cloudwatch(tmp_path, "exit 0")
    given, notes, seen = iter(["ASIA1", "ASIA2", None, "ASIA4"]), list[str](), list[str]()
    file = tmp_path / "cloudwatch-keys"

    def keys() -> SessionCredentials:
        if (key := next(given)) is None:
            raise OSError("no answer")
        return replace(KEYS, access_key=key)

    def sleep(_: float) -> None:
        seen.append(file.read_text().splitlines()[1])
        if len(seen) == 4:
            raise Over

    with pytest.raises(Over):
        run_cloudwatch(tmp_path, tmp_path, {}, credentials=keys, sleep=sleep, note=notes.append)
    assert [line.rpartition(" ")[2] for line in seen] == ["ASIA1", "ASIA2", "ASIA2", "ASIA4"]
    assert file.stat().st_mode & 0o077 == 0
    assert notes == ["the CloudWatch agent keeps its credentials: no answer"]
    assert str(file) in (tmp_path / CLOUDWATCH_COMMON).read_text()


def test_a_cloudwatch_agent_starts_once_there_are_valid_keys_and_is_never_given_expired_ones(tmp_path: Path) -> None:
    cloudwatch(tmp_path, "exit 0")
    given, notes, pauses = iter([None, KEYS, None]), list[str](), itertools.count()

    def keys() -> SessionCredentials:
        if (found := next(given)) is None:
            raise CredentialsExpired("the credentials of the job have expired")
        return found

    def sleep(_: float) -> None:
        if next(pauses) == 2:
            raise Over

    with pytest.raises(Over):
        run_cloudwatch(tmp_path, tmp_path, {}, credentials=keys, sleep=sleep, note=notes.append)
    assert [line.partition(":")[0] for line in notes] == [
        "no CloudWatch agent yet",
        "the CloudWatch agent keeps its credentials",
    ]
    assert KEYS.access_key in (tmp_path / "cloudwatch-keys").read_text()
