"""A workbench as a person has it: opened by what its log says, worked in by a real browser, stopped, lost, taken back, and gone on with.

JupyterLab and Chromium are real. The tunnel in the place of Session Manager is ours (tests/rehearsal/benches.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from contract import keys, names, tags
from contract.codec import decode
from contract.commits import Commit
from contract.keys import CommitKind
from contract.workbench import NOTICE
from localaws.conditions import Conditions
from localaws.services import ec2
from localaws.testing.waiting import until
from rehearsal.deployment import ACCOUNT
from rehearsal.faults import parse_faults
from rehearsal.yard import StartedJob, Yard
from tests.fakes.pages.browser import PROGRAM
from tests.rehearsal.benches import (
    Laboratory,
    Person,
    Way,
    at_bench,
    busy,
    put_notebook,
    read_way,
    shut_down,
    status_of,
    tunnel,
)
from tests.rehearsal.jobs import ONE, ended, succeeded

LACKS = busy() or ("" if PROGRAM else "Chromium is not installed: apt-get install chromium")
pytestmark = [pytest.mark.rehearsal, pytest.mark.skipif(bool(LACKS), reason=LACKS)]
BENCH: dict[str, Any] = {**ONE, "workbench": {"idle_minutes": 60}, "owner": "ada", "checkpoint_minutes": 0.02}
FAULTS = ["node-lost:step=1,rank=0,job=second", "spot-notice:step=2,rank=0,attempt=2,job=second"]
"""A notebook tells its steps as any training does, and so says when they strike."""
ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "guides"
POLICY = re.compile(r"^ *```json\n( *\{\n *\"Version\".*?)^ *```", re.MULTILINE | re.DOTALL)
PLACEHOLDER = re.compile(r"<the output (\w+)>")
NOTEBOOK, STARTED = "from-bench-to-job.ipynb", "from-the-bench-1"
EXECUTES = (
    "import os, subprocess; libraries = {{**os.environ, 'PYTHONPATH': {boto3!r}}}; "
    "done = subprocess.run(['jupyter', 'execute', '--inplace', {name!r}], env=libraries, capture_output=True, text=True); "
    "print(done.stderr[-2000:], 'executed with'.upper(), done.returncode)"
)
"""A cell that runs a whole notebook, in an image that has boto3 as AWS's have."""
WRITES = "open('{file}', 'w').write('{text}'); print('wrote', '{file}'.upper())"
STEPS = "import os, json; open(os.environ['PROGRESS_FILE'], 'w').write(json.dumps({{'step': {step}}})); print('told', -{step})"


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    conditions = Conditions(speed=10.0, faults=parse_faults(FAULTS))
    settings = {"workbench": True, "job_roles": {"bench": f"arn:aws:iam::{ACCOUNT}:role/bench"}}
    folder = tmp_path_factory.mktemp("benches") / "work"
    with Yard(folder, conditions, settings=settings, wanted=["workflow"]) as deployed:
        make_role(deployed)
        yield deployed


def make_role(yard: Yard) -> None:
    """The role `bench`, as an administrator makes it by docs/guides/job-roles.md and docs/guides/workbench.md."""
    iam, (stack,) = (
        yard.client("iam"),
        yard.client("cloudformation").describe_stacks(StackName=names.workflow_stack("trainyard"))["Stacks"],
    )
    outputs = {one["OutputKey"]: one["OutputValue"] for one in stack["Outputs"]}
    (trust,), (rights,) = (
        POLICY.findall((GUIDES / f"{page}.md").read_text())[:1] for page in ("job-roles", "workbench")
    )
    filled = {
        "AttendantRoleArn": outputs[names.ATTENDANT_ROLE],
        "HomeBucket": yard.places.home,
        "TrainMachine": yard.places.machine,
    }
    trust, rights = (PLACEHOLDER.sub(lambda found: filled[found[1]], policy) for policy in (trust, rights))
    iam.create_role(RoleName="bench", AssumeRolePolicyDocument=json.dumps(json.loads(trust)))
    iam.put_role_policy(RoleName="bench", PolicyName="bench", PolicyDocument=json.dumps(json.loads(rights)))


def log(job: StartedJob, attempt: int = 1) -> list[str]:
    stream = names.log_stream(job.name, attempt, 0)
    return job.log(stream) if stream in job.log_streams() else []


def way_in(job: StartedJob, attempt: int = 1) -> Way:
    """What the attempt's log says to paste, for as long as the job runs."""

    def read_running() -> Way | None:
        found = job.describe()
        assert found["status"] == "RUNNING", (found.get("error"), found.get("cause"))
        return read_way(log(job, attempt))

    way: Way = until(read_running)
    return way


def committed(job: StartedJob, text: str) -> bool:
    """Whether a closed set has a file with that text: bytes of a set that is still open come back on no other machine."""
    s3, bucket, prefix = job.yard.client("s3"), job.yard.places.bytes_, keys.BytesPrefix(job.name)

    def read(key: str, offset: int, size: int) -> bytes:
        end = "" if size < 0 else offset + size - 1
        body: bytes = s3.get_object(Bucket=bucket, Key=key, Range=f"bytes={offset}-{end}")["Body"].read()
        return body

    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix.commits(CommitKind.CHECKPOINTS))
    there = {one["Key"] for page in pages for one in page.get("Contents", [])}
    parts = [key for key in there if key.endswith("/r0000.json") and key.replace("r0000.json", keys.CLOSED) in there]
    try:
        files = {file for key in parts for file in decode(Commit, read(key, 0, -1)).files if 0 < file.size < 1_000_000}
        return any(text.encode() in read(file.key, file.offset, file.size) for file in files)
    except s3.exceptions.NoSuchKey:
        return False  # a newer set closed meanwhile, and this one was deleted


def write_and_commit(person: Person, job: StartedJob, file: str, text: str) -> None:
    person.run_cell(WRITES.format(file=file, text=text), f"wrote {file.upper()}")
    until(lambda: committed(job, text))


@pytest.fixture(scope="module")
def first(yard: Yard, laboratory: Laboratory) -> StartedJob:
    """A bench that installs its JupyterLab."""
    install = {
        "workbench": {"idle_minutes": 60, "install": True},
        "environment": laboratory.installing,
        "job_role": "bench",
    }
    return yard.start({**BENCH, **install}, "first")


@pytest.fixture(scope="module")
def second(yard: Yard, laboratory: Laboratory, first: StartedJob) -> StartedJob:
    """A bench on spot, in an image that has JupyterLab, which goes on with the work of the first one."""
    ended(first)
    changes = {"instance_types": ["g5.xlarge"], "market": "spot", "resume_from": "first"}
    return yard.start({**BENCH, **changes, "environment": laboratory.installed}, "second")


def test_a_person_opens_it_with_the_token_runs_a_cell_and_saves(first: StartedJob) -> None:
    with at_bench(way_in(first)) as person:
        person.start_notebook()
        write_and_commit(person, first, "written.txt", "by a cell")
        person.save()
        assert person.sees("Untitled.ipynb")
        until(lambda: committed(first, "open('written.txt'"))
    assert any("installs jupyterlab==" in line for line in log(first))


def test_the_notebook_of_the_examples_starts_a_job_that_trains(yard: Yard, first: StartedJob) -> None:
    way, text = way_in(first), (ROOT / "examples" / "workbench" / NOTEBOOK).read_text()
    for placeholder, value in (("HomeBucket", yard.places.home), ("TrainMachine", yard.places.machine)):
        text = text.replace(f"REPLACE-WITH-{placeholder}", value)
    with tunnel(way) as beginning:
        put_notebook(way, beginning, NOTEBOOK, json.loads(text))
    with at_bench(way) as person:
        person.start_notebook()
        libraries = str(Path(boto3.__file__).parents[1])
        person.run_cell(EXECUTES.format(boto3=libraries, name=NOTEBOOK), "EXECUTED WITH 0")
    started = StartedJob(yard, STARTED, yard.places.machine.replace(":stateMachine:", ":execution:") + f":{STARTED}")
    succeeded(started)
    assert any(key.endswith("/loss.json") for key in started.artifacts())
    assert "step 5: loss" in "\n".join(log(started))


def test_without_the_token_it_answers_403(first: StartedJob) -> None:
    way = way_in(first)
    with tunnel(way) as beginning:
        for path in ("/api/contents", "/api/kernels", "/api/contents?token=", f"/api/contents?token={'0' * 64}"):
            assert status_of(beginning + path) == 403, path
        assert status_of(f"{beginning}/api/contents?token={way.token}") == 200


def test_the_output_of_launch_has_the_command_of_the_log_and_no_token(yard: Yard, first: StartedJob) -> None:
    way, history = way_in(first), json.dumps(first.history(), default=str)
    assert " ".join(way.command) in history
    assert way.token not in history
    (machine,) = [one for one in ec2.machines().all() if one.tags.get(tags.JOB) == "first"]
    assert (machine.id, machine.tags[tags.WORKBENCH], machine.tags[tags.OWNER]) == (way.instance, "true", "ada")
    assert not any(
        way.token in json.dumps(call.parameters, default=str)
        for call in yard.aws.recorder.calls
        if call.service != "logs"
    )


def test_somebody_stops_it_and_the_machine_ends(yard: Yard, first: StartedJob) -> None:
    yard.client("stepfunctions").stop_execution(executionArn=first.arn, error="Stopped", cause="home for today")
    assert ended(first)["status"] == "ABORTED"
    until(lambda: first.instances_left() == 0)


def test_a_bench_whose_money_is_used_up_leaves_a_word_and_ends_with_its_work_committed(
    yard: Yard, laboratory: Laboratory, first: StartedJob
) -> None:
    ended(first)
    job = yard.start(
        {**BENCH, "environment": laboratory.installed, "max_hours": 0.045, "max_cost_usd": 0.006}, "capped"
    )
    with at_bench(way_in(job)) as person:
        person.start_notebook()
        write_and_commit(person, job, "paid.txt", "as long as there was money")
        until(lambda: committed(job, "This bench was ordered to end at"))
    execution = ended(job)
    assert (execution["status"], execution["error"]) == ("FAILED", "BudgetExceeded")
    assert "$0.006 of its max_cost_usd" in execution["cause"]
    until(lambda: job.instances_left() == 0)


def test_the_next_bench_has_the_files_and_a_lost_machine_comes_back_with_the_last_commit(second: StartedJob) -> None:
    way = way_in(second)
    with at_bench(way) as person:
        assert person.sees("Untitled.ipynb")
        assert person.sees("written.txt")
        person.start_notebook()
        write_and_commit(person, second, "more.txt", "before the loss")
        person.begin_cell(STEPS.format(step=1))
        again = way_in(second, attempt=2)
    assert (again.instance != way.instance, again.token != way.token) == (True, True)
    with at_bench(again) as person:
        assert person.sees("more.txt")
        assert person.sees("written.txt")


def test_a_notice_of_spot_commits_the_work_and_leaves_a_word(second: StartedJob) -> None:
    with at_bench(way_in(second, attempt=2)) as person:
        person.start_notebook()
        person.run_cell(WRITES.format(file="last.txt", text="after the loss"), "wrote LAST.TXT")
        person.begin_cell(STEPS.format(step=2))
        until(lambda: committed(second, "This bench was ordered to end at"))
        again = way_in(second, attempt=3)
    with at_bench(again) as person:
        assert person.sees("last.txt")
        assert not person.lists(NOTICE)


def test_a_person_who_shuts_it_down_ends_the_job_well(second: StartedJob) -> None:
    way = way_in(second, attempt=3)
    with tunnel(way) as beginning:
        shut_down(way, beginning)
    assert succeeded(second)["status"] == "SUCCEEDED"
    until(lambda: second.instances_left() == 0)
    assert [one["error"] for one in second.recovered()] == ["NodeLost", "Interrupted"]
