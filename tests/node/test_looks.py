"""What a node looks at: its metadata, its identity, its orders, its trainer's progress, its requirements."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from agent import requirements
from agent.failures import CannotStart
from agent.identity import Patience, Unknown, identify
from agent.machine import cloudwatch_settings, start_cloudwatch
from agent.metadata import Metadata
from agent.orders import OrderWatch, deadline_order, spot_order
from agent.progress import ProgressFile
from agent.store import Store
from contract import tags
from contract.codec import decode
from contract.keys import JobPrefix
from contract.orders import Order
from tests.builders import JOB
from tests.node.fakes import FakeImds, FakeS3, imds, refusal
from tests.node.world import FAST, metadata

NOTICE = json.dumps({"action": "terminate", "time": "2027-01-15T08:02:00Z"})


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


# Orders


def watch(
    s3: FakeS3, service: FakeImds, rank: int, notes: list[str] | None = None, now: float = JOB.admitted_at
) -> OrderWatch:
    said = [] if notes is None else notes
    job = replace(JOB, timing=FAST)
    return OrderWatch(
        job, rank, home=Store(s3, JOB.home_bucket), key=JobPrefix(JOB.id).order(1), metadata=service.metadata,
        on_order=lambda _: None, note=said.append, now=lambda: now,
    )  # fmt: skip


def test_no_order_is_none() -> None:
    with imds({}) as service:
        assert watch(FakeS3(), service, 0).look() is None


def test_two_nodes_with_a_notice_write_one_order_and_both_follow_it() -> None:
    s3 = FakeS3()
    with imds({"spot/instance-action": NOTICE}) as service:
        first, second = watch(s3, service, 0), watch(s3, service, 1)
        # Both look before either writes.
        gone = iter(range(2))
        s3.fault = lambda call, _key: refusal("NoSuchKey") if call == "get" and next(gone, None) is not None else None
        orders = [first.look(), second.look()]
    assert orders[0] == orders[1] == decode(Order, s3.objects[JOB.home_bucket, JobPrefix(JOB.id).order(1)])
    assert orders[0] is not None
    assert orders[0].author == "rank 0"


def test_a_notice_counts_also_when_the_order_cannot_be_written() -> None:
    s3 = FakeS3()
    s3.fault = lambda _call, _key: refusal("SlowDown")
    with imds({"spot/instance-action": NOTICE}) as service:
        order = watch(s3, service, 0).look()
    assert order is not None
    assert order.error == "Interrupted"
    assert "could not be written" in order.reason


def test_an_order_that_meets_another_one_under_way_is_written_again() -> None:
    """S3 answers 409 while another conditional write of the key is not over: it did nothing."""
    s3, conflicts = FakeS3(), iter(range(2))
    s3.fault = lambda call, _key: (
        refusal("ConditionalRequestConflict") if call == "put" and next(conflicts, None) is not None else None
    )
    assert Store(s3, JOB.home_bucket).create("a", b"{}") is True
    assert s3.objects[JOB.home_bucket, "a"] == b"{}"


def test_a_conflict_that_does_not_end_is_no_order_of_somebody_else() -> None:
    s3 = FakeS3()
    s3.fault = lambda call, _key: refusal("ConditionalRequestConflict") if call == "put" else None
    with pytest.raises(ClientError, match="ConditionalRequestConflict"):
        Store(s3, JOB.home_bucket).create("a", b"{}")


def test_a_notice_that_says_nothing_is_still_one() -> None:
    for text in ("", "{}", '{"time": 5}', '{"time": "soon"}', "[]"):
        assert spot_order(text, 0, 1000.0).by == 1120


def test_s3_that_is_away_is_no_order() -> None:
    s3, notes = FakeS3(), list[str]()
    s3.fault = lambda _call, _key: refusal("InternalError")
    with imds({}) as service:
        assert watch(s3, service, 0, notes).look() is None
    assert notes


def test_a_node_acts_on_its_own_ahead_of_its_deadline() -> None:
    notice = JOB.timing.deadline_notice_s
    assert deadline_order(JOB, 1, JOB.deadline - notice - 1) is None
    order = deadline_order(JOB, 1, JOB.deadline - notice)
    assert order is not None
    assert (order.error, order.by, order.author) == ("DeadlineReached", JOB.deadline, "rank 1")


def test_a_short_job_keeps_half_of_its_time_for_training() -> None:
    short = replace(JOB, deadline=int(JOB.admitted_at) + 60)
    assert deadline_order(short, 0, JOB.admitted_at + 29) is None
    assert deadline_order(short, 0, JOB.admitted_at + 30) is not None


# Progress


@pytest.mark.parametrize(
    "text", ["", "{", '{"step": 5', "[]", "5", '{"step": "5"}', '{"step": true}', "{}", "\x00", "[" * 5000]
)
def test_torn_progress_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "progress").write_text(text)
    file = ProgressFile(tmp_path / "progress")
    assert file.read() is None
    assert file.checkpoint_step() == -1


def test_a_torn_file_does_not_take_back_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    file = ProgressFile(path)
    path.write_text('{"step": 5, "checkpoint": 4, "unknown": []}')
    assert file.checkpoint_step() == 4
    path.write_text('{"step": 6, "chec')
    assert (file.checkpoint_step(), file.names_checkpoints) == (4, True)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_metric_that_is_no_number_is_left_out(tmp_path: Path, number: str) -> None:
    (tmp_path / "progress").write_text(f'{{"step": 5, "metric": {number}, "import_s": {number}}}')
    progress = ProgressFile(tmp_path / "progress").read()
    assert progress is not None
    assert (progress.step, progress.metric, progress.import_s) == (5, None, 0.0)


# Requirements


def run(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, Sequence[str]]:
    done = subprocess.run(words, cwd=folder, env=dict(environment), capture_output=True, text=True, check=False)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def wheel(folder: Path, name: str, says: str) -> Path:
    """A package with one module, as pip takes it."""
    file = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{name}.py", f"SAYS = {says!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return file


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
    done = subprocess.run([image / "bin/python", "-c", driver], capture_output=True, text=True, check=False, timeout=60)
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


def test_a_cloudwatch_agent_that_fails_is_a_line_in_the_log(tmp_path: Path) -> None:
    control = tmp_path / "opt/aws/amazon-cloudwatch-agent/bin/amazon-cloudwatch-agent-ctl"
    control.parent.mkdir(parents=True)
    control.write_text("#!/bin/sh\nexit 3\n")
    control.chmod(0o755)
    notes: list[str] = []
    start_cloudwatch(tmp_path, tmp_path, cloudwatch_settings(JOB, 1, 0), notes.append)
    assert "did not start" in notes[0]
    settings = json.loads((tmp_path / "cloudwatch.json").read_text())
    assert settings["metrics"]["metrics_collected"]["nvidia_gpu"]["append_dimensions"] == {"job": "job-1", "rank": "0"}


def test_an_image_without_a_cloudwatch_agent_is_left_alone(tmp_path: Path) -> None:
    notes: list[str] = []
    start_cloudwatch(tmp_path, tmp_path, {}, notes.append)
    assert notes == []
    assert list(tmp_path.iterdir()) == []
