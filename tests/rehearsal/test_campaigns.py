"""Uploaded data starts campaigns, and pushed commits are built: each once, whatever is late, double or away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from contract import items, names
from contract.campaigns import name_build, name_start
from contract.timing import Timing
from localaws.conditions import Conditions
from localaws.git_host import GitHosts, Instead, git
from localaws.iam.permissions import granted, judge, needed
from localaws.testing.calm import meanwhile
from localaws.testing.waiting import until
from rehearsal.deployment import ACCOUNT
from rehearsal.grid import GridJob
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.grids import AWAY, ENDLESS, EXAMPLE, HOME, SMALL, push, sooner
from tests.rehearsal.jobs import DENIALS, ONE, failed, stopped, succeeded, train
from tests.rehearsal.mailbox import Mailbox

pytestmark = [pytest.mark.rehearsal]
TRAINER = Path(__file__).with_name("trainer")
DATA = "their-drives"
"""A bucket of other people, in the region away from home."""
HOST = "git.example.com"
GIT = f"https://{HOST}/team/digits.git"
REGIONS = [{"region": HOME, "cidr": "10.70.0.0/16"}, {"region": AWAY}]
CODE = "uploads/trainer.tar.gz"
HOME_BUCKET = names.home_bucket("trainyard", ACCOUNT, HOME)
SPEED = 10.0
SOON = {"start_again_s": 10.0, "start_check_s": 20.0}
"""Tests wait for these, and for nothing else that is as long."""
SETTINGS: dict[str, Any] = {
    "timing": asdict(Timing().divided(SPEED)) | SOON,
    "regions": REGIONS,
    "data_buckets": [DATA],
    "git_hosts": {HOST: ""},
    "campaigns": {
        "drives": {
            "bucket": DATA,
            "region": AWAY,
            "prefix": "campaigns/",
            "suffix": "/_READY",
            "input": {"manifest": "{data}/manifest.jsonl", "defaults": SMALL},
        },
        "nightly": {
            "prefix": "uploads/nightly/",
            "suffix": ".csv",
            "input": {**ONE, "code": f"s3://{HOME_BUCKET}/{CODE}", "command": train(2, 0.1)},
        },
    },
    "watch": {"digits": {"git": GIT, "build": {"repository": "images"}}},
}


@dataclass
class Field:
    """The deployment, and what people do around it."""

    there: Yard
    hosts: GitHosts

    @property
    def s3(self) -> Any:
        return self.there.client("s3", AWAY)

    @property
    def bare(self) -> Path:
        return self.hosts.folder / HOST / "team" / "digits.git"

    def upload(self, folder: str, *lines: dict[str, Any]) -> str:
        """Uploads a manifest, where it has lines, and the object that starts the campaign; returns its version."""
        if lines:
            text = "".join(json.dumps(line) + "\n" for line in lines)
            self.s3.put_object(Bucket=DATA, Key=f"campaigns/{folder}/manifest.jsonl", Body=text.encode())
        found = self.s3.put_object(Bucket=DATA, Key=f"campaigns/{folder}/_READY", Body=b"")
        return str(found["VersionId"])

    def send_again(self, folder: str, version: str) -> None:
        """Has S3 send the event of an upload once more, as it may for whatever reason."""
        thing = {"key": f"campaigns/{folder}/_READY", "size": 0, "version-id": version}
        detail = {"bucket": {"name": DATA}, "object": thing, "reason": "PutObject"}
        self.there.aws.emit("aws.s3", "Object Created", detail, [f"arn:aws:s3:::{DATA}"], AWAY)

    def name(self, folder: str, version: str) -> str:
        return name_start("drives", DATA, f"campaigns/{folder}/_READY", version)

    def grid(self, folder: str, version: str) -> GridJob:
        """The grid that this version of the object starts, once it has."""
        name = self.name(folder, version)
        (found,) = until(lambda: [one for one in self.executions(names.grid_machine) if one.name == name])
        return GridJob(self.there, name, found.arn)

    def executions(self, machine: Any) -> list[StartedJob]:
        arn = f"arn:aws:states:{HOME}:{ACCOUNT}:stateMachine:{machine('trainyard')}"
        pages = self.there.client("stepfunctions").get_paginator("list_executions").paginate(stateMachineArn=arn)
        return [
            StartedJob(self.there, one["name"], one["executionArn"]) for page in pages for one in page["executions"]
        ]

    def commit(self, text: str) -> str:
        """Makes a commit whose Dockerfile has this text, and leaves every branch as it is."""
        entry = f"100644 blob {git(self.bare, 'hash-object', '-w', '--stdin', given=text.encode())}\tDockerfile\n"
        return git(self.bare, "commit-tree", git(self.bare, "mktree", given=entry.encode()), "-m", "a commit")

    def push(self, commit: str) -> None:
        """Makes it the head of the branch, by force."""
        git(self.bare, "update-ref", "refs/heads/main", commit)

    def watches(self) -> list[str]:
        """Names of the functions that watch branches."""
        pages = self.there.client("lambda").get_paginator("list_functions").paginate()
        return [one["FunctionName"] for page in pages for one in page["Functions"] if "Watch" in one["FunctionName"]]

    def watch(self) -> str:
        """Has the watch look at its branches, as its schedule does; returns its error."""
        (name,) = self.watches()
        answer = self.there.client("lambda").invoke(FunctionName=name, Payload=b"{}")
        return answer["Payload"].read().decode() if "FunctionError" in answer else ""

    def image(self, commit: str) -> dict[str, str]:
        """Digest of the commit's image by region."""
        found, tag = {}, name_build("digits", commit)
        for region in (HOME, AWAY):
            ids = self.there.client("ecr", region).list_images(repositoryName=names.repository("trainyard"))["imageIds"]
            digests = [str(one["imageDigest"]) for one in ids if one.get("imageTag") == tag]
            found |= dict.fromkeys([region] if digests else [], "".join(digests))
        return found

    def builds(self) -> list[str]:
        return [one.name for one in self.executions(names.build_machine)]

    def logged(self, function: str, words: str) -> list[str]:
        logs = self.there.aws.workers.logs()
        return [line for name, lines in logs.items() if function in name for line in lines if words in line]

    def letters(self) -> list[str]:
        sqs = self.there.client("sqs")
        url = self.there.output("StartLettersUrl")
        found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0).get("Messages", [])
        return [one["Body"] for one in found]


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    conditions = Conditions(speed=SPEED)
    wanted = ["campaigns", "images"]
    with GitHosts(tmp_path_factory.mktemp("git"), [HOST]) as hosts:
        hosts.repository(GIT.removeprefix("https://"))
        yard = Yard(tmp_path_factory.mktemp("yard"), conditions, settings=SETTINGS, wanted=wanted)
        yard.aws.outside = hosts.variables  # ahead of the deployment, after which the watch looks at once
        with yard:
            made = Field(yard, hosts)
            made.s3.create_bucket(Bucket=DATA)
            made.s3.put_bucket_versioning(Bucket=DATA, VersioningConfiguration={"Status": "Enabled"})
            made.s3.put_bucket_notification_configuration(
                Bucket=DATA, NotificationConfiguration={"EventBridgeConfiguration": {}}
            )
            for file in sorted((EXAMPLE / "digits" / AWAY).rglob("*")):
                if file.is_file():
                    made.s3.put_object(Bucket=DATA, Key=f"digits/{file.name}", Body=file.read_bytes())
            push(yard, "small", tmp_path_factory.mktemp("small"))
            yard.upload(TRAINER, "trainer")
            with sooner(yard):
                yield made


@pytest.fixture(scope="module")
def mailbox(field: Field) -> Mailbox:
    return Mailbox(field.there)


LINE = {"region": AWAY, "data": f"s3://{DATA}/digits/"}


@pytest.fixture(scope="module")
def refused(field: Field, mailbox: Mailbox) -> str:  # noqa: ARG001  (hears of it)
    """Version of an object that has no manifest beside it; people hear of it while other tests run."""
    return field.upload("without")


@pytest.fixture(scope="module")
def first(field: Field, refused: str) -> str:  # noqa: ARG001  (begins while the first commit is built)
    """A commit that is built."""
    made = field.commit("FROM scratch\n")
    field.push(made)
    return made


def test_an_uploaded_object_of_another_region_starts_one_grid_however_often_it_is_heard_of(
    field: Field,
    refused: str,
    first: str,  # noqa: ARG001  (is built meanwhile)
) -> None:
    with meanwhile(field.there.aws, events_doubled=1.0):
        version = field.upload("drive-1", LINE)
        field.send_again("drive-1", version)
    grid = field.grid("drive-1", version)
    field.send_again("drive-1", "an older version")  # out of order, and late
    succeeded(grid)
    (record,) = grid.results()
    assert (record.region, record.outcome.value) == (AWAY, "Completed")
    until(lambda: len(field.logged("Starter", "started before")) >= 3)
    grids = {one.name for one in field.executions(names.grid_machine)}
    assert grids - {field.name("without", refused)} == {grid.name}


def test_a_new_version_of_the_object_is_a_new_start(field: Field) -> None:
    lines = [{**LINE, "hyperparameters": ENDLESS}]
    one, two = (field.upload("drive-2", *lines) for _ in range(2))
    grid = field.grid("drive-2", two)
    field.there.client("stepfunctions").stop_execution(executionArn=grid.arn, error="Stopped")
    stopped(grid)
    assert field.name("drive-2", one) != field.name("drive-2", two)


def test_an_upload_to_the_home_bucket_starts_a_job(field: Field) -> None:
    key = "uploads/nightly/readings.csv"
    found = field.there.client("s3").put_object(Bucket=HOME_BUCKET, Key=key, Body=b"1,2\n")
    name = name_start("nightly", HOME_BUCKET, key, found["VersionId"])
    (job,) = until(lambda: [one for one in field.executions(names.machine) if one.name == name])
    succeeded(job)
    assert job.artifacts()


def test_what_is_uploaded_while_admission_is_closed_starts_once_it_opens(field: Field) -> None:
    table = field.there.client("dynamodb")
    where = {"TableName": names.state_table("trainyard")}
    key = {"pk": {"S": items.ADMISSION_CLOSED.partition}, "sk": {"S": items.ADMISSION_CLOSED.sort}}
    table.put_item(**where, Item={**key, "doc": {"S": json.dumps({"reason": "the team looks at something"})}})
    key_ = "uploads/nightly/later.csv"
    found = field.there.client("s3").put_object(Bucket=HOME_BUCKET, Key=key_, Body=b"3,4\n")
    name = name_start("nightly", HOME_BUCKET, key_, found["VersionId"])
    until(lambda: field.logged("Starter", "the team looks at something"))
    assert name not in [one.name for one in field.executions(names.machine)]
    table.delete_item(**where, Key=key)
    (job,) = until(lambda: [one for one in field.executions(names.machine) if one.name == name])
    succeeded(job)


def test_a_refused_input_is_told_to_people_and_is_a_letter(field: Field, refused: str, mailbox: Mailbox) -> None:
    grid = field.grid("without", refused)
    assert "manifest: " in failed(grid, "InvalidRequest")
    (mail,) = until(lambda: mailbox.about("campaign drives", grid.name))
    assert f"s3://{DATA}/campaigns/without/manifest.jsonl" in mail.text
    until(lambda: any(grid.arn in letter for letter in field.letters()))


def test_an_object_that_is_gone_when_it_is_heard_of_starts_nothing_and_is_a_letter(
    field: Field, mailbox: Mailbox
) -> None:
    for bucket, key in ((DATA, "campaigns/gone/_READY"), (HOME_BUCKET, "uploads/nightly/gone.csv")):
        s3 = field.there.client("s3", AWAY if bucket == DATA else HOME)
        s3.put_object(Bucket=bucket, Key=key, Body=b"")
        s3.delete_object(Bucket=bucket, Key=key)
        until(lambda key=key: mailbox.about(f"{key} is gone again"))
        until(lambda key=key: any(key in letter for letter in field.letters()))  # SQS shows it at its next look


def test_a_branch_forced_back_and_forth_is_built_once_a_commit(field: Field, first: str) -> None:
    until(lambda: set(field.image(first)) == {HOME, AWAY})  # the schedule found it
    second = field.commit("FROM scratch\n# 2\n")
    for commit in (second, first, second, first):
        field.push(commit)
        assert field.watch() == ""
    until(lambda: set(field.image(second)) == {HOME, AWAY})
    mine = [name for name in field.builds() if name.startswith("digits-")]
    assert sorted(mine) == sorted(name_build("digits", one) for one in (first, second))


def test_what_is_pushed_while_its_host_is_away_is_built_once_it_is_back(field: Field, first: str) -> None:
    until(lambda: field.image(first))
    third = field.commit("FROM scratch\n# 3\n")
    field.hosts.instead = lambda _: Instead(503)
    field.push(third)
    assert "cannot be reached" in field.watch()
    assert name_build("digits", third) not in field.builds()
    field.hosts.instead = lambda _: None
    until(lambda: set(field.image(third)) == {HOME, AWAY})


def test_a_build_whose_host_goes_away_after_its_push_waits_for_it(field: Field, first: str) -> None:
    until(lambda: field.image(first))
    fourth = field.commit("FROM scratch\n# 4\n")
    away: list[str] = []

    def once_its_head_is_known(address: str) -> Instead | None:
        if name_build("digits", fourth) in started and len(away) < 3:
            away.append(address)
            return Instead(503)
        return None

    started: list[str] = []
    field.there.aws.recorder.watchers.append(
        lambda call: started.append(str(call.parameters["name"])) if call.name == "states:StartExecution" else None
    )
    field.hosts.instead = once_its_head_is_known
    field.push(fourth)
    assert field.watch() == ""
    until(lambda: set(field.image(fourth)) == {HOME, AWAY})
    field.hosts.instead = lambda _: None
    assert len(away) == 3
    assert [name for name in field.builds() if name == name_build("digits", fourth)] == [name_build("digits", fourth)]


def test_no_call_of_the_campaigns_was_denied_and_no_right_of_theirs_is_spare(field: Field) -> None:
    roles = ("Starter", "BranchWatch", "ForwardUploads")
    account = field.there.account()
    policies = {arn: policy for arn, policy in account.policies().items() if any(f"-{one}" in arn for one in roles)}
    assert len(policies) == len(roles)
    made = [call for call in list(field.there.aws.recorder.calls) if call.role in policies]
    assert [(call.name, call.role) for call in made if call.error in DENIALS] == []
    judged = judge(made, policies, account)
    assert [(one.call.name, one.request, one.answer.error) for one in judged if not one.answer.allowed] == []
    spare = {(one.statement, one.action) for one in granted(policies) - needed(judged, policies)}
    assert {one for one in spare if not one[0].startswith("(")} == set()


def test_campaigns_that_are_taken_out_end_nothing_and_a_destroy_ends_what_they_started(field: Field) -> None:
    version = field.upload("drive-3", {**LINE, "hyperparameters": ENDLESS})
    grid = field.grid("drive-3", version)
    until(lambda: grid.progress() == {"Training": 1})
    field.there.cdk.destroy(field.there.assembly, "trainyard-campaigns")
    assert grid.describe()["status"] == "RUNNING"
    field.upload("drive-4", {**LINE, "hyperparameters": ENDLESS})  # nobody hears of it
    field.there.cdk.destroy(field.there.assembly)
    assert grid.trainings_left() == []
