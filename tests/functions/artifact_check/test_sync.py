"""Sync lets nothing pass that is not whole: every rank's last report, every commit that one names, every file that a commit lists."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from artifact_check.policy import missing
from aws.state import State
from contract import errors, items
from contract.codec import encode
from contract.commits import Commit, CommittedFile
from contract.intents import LaunchAnswer, LaunchOutcome
from contract.keys import BytesPrefix, CommitKind, JobPrefix
from contract.reports import Exit, NodeReport, Phase
from tests.builders import INTENT, JOB, NODE_ROLE, NOW, PLACE, WITH_ROLES
from tests.fakes.faults import Kind, Mishap
from tests.fakes.functions import Functions
from tests.fakes.functions import Outcome as Ended
from tests.fakes.state import TABLE, store
from tests.fakes.state import report as tell
from tests.fakes.yard import admitted, deployed

KEYS, BYTES = JobPrefix(JOB.id), BytesPrefix(JOB.id)


class Trained:
    """A job of two nodes whose work is over, and everything of it in S3."""

    def __init__(self) -> None:
        self.aws = deployed()
        self.functions = Functions(self.aws)
        admitted(self.aws)
        answer = LaunchAnswer(outcome=LaunchOutcome.LAUNCHED, at=NOW, instances=("i-0", "i-1"))
        intent = replace(INTENT, steps=(replace(INTENT.steps[0], answer=answer),))
        store(self.aws, items.launch(JOB.id, 1, 1), encode(intent))
        for rank in (0, 1):
            self.report(
                rank,
                checkpoint=self.commit(CommitKind.CHECKPOINTS, rank),
                artifacts=self.commit(CommitKind.ARTIFACTS, rank),
            )

    def commit(self, kind: CommitKind, rank: int) -> str:
        """Key of a commit of one file."""
        key = self.file(kind, rank)
        self.aws.s3.write(PLACE.bucket, key, b"0123456789")
        file = CommittedFile(path="model", size=10, sha256="ab", key=key)
        commit = Commit(job=JOB.id, attempt=1, rank=rank, step=3, created_at=NOW, final=True, files=(file,))
        name = BYTES.commit(kind, 1, 3, rank)
        self.aws.s3.write(PLACE.bucket, name, encode(commit))
        return name

    @staticmethod
    def file(kind: CommitKind, rank: int) -> str:
        return BYTES.artifact(rank, "model") if kind is CommitKind.ARTIFACTS else BYTES.checkpoint(rank, "ab", "model")

    def report(self, rank: int, **fields: Any) -> None:
        report = NodeReport(
            job=JOB.id, attempt=1, rank=rank, instance=f"i-{rank}", phase=Phase.ENDED, sent_at=NOW, exit=Exit(code=0)
        )
        tell(self.aws, replace(report, **fields))

    def lose(self, bucket: str, key: str) -> None:
        del self.aws.s3.buckets[bucket].objects[key]

    def sync(self, *mishaps: Mishap) -> Ended:
        return self.functions.invoke("artifact_check", {"job": JOB.id, "attempt": 1}, mishaps)

    @property
    def listed(self) -> bytes | None:
        return self.aws.s3.read(JOB.home_bucket, KEYS.artifacts(1))


@pytest.fixture
def trained() -> Iterator[Trained]:
    made = Trained()
    with made.functions.installed():
        yield made


def test_what_is_whole_passes_and_is_listed(trained: Trained) -> None:
    outcome = trained.sync()
    assert (outcome.error, outcome.value["artifacts"], outcome.value["bytes"]) == ("", 2, 20)
    assert trained.listed is not None
    assert [(one["rank"], one["path"]) for one in json.loads(trained.listed)["artifacts"]] == [
        (0, "model"),
        (1, "model"),
    ]


@pytest.mark.parametrize("kind", list(CommitKind))
@pytest.mark.parametrize("rank", [0, 1])
def test_a_file_that_is_not_there_is_named_whatever_folder_and_rank_it_is_of(
    trained: Trained, kind: CommitKind, rank: int
) -> None:
    trained.lose(PLACE.bucket, trained.file(kind, rank))
    outcome = trained.sync()
    assert outcome.error == "SyncIncomplete"
    assert f"rank {rank}: model is not there" in outcome.cause
    assert trained.listed is None


@pytest.mark.parametrize("kind", list(CommitKind))
def test_a_torn_file_is_no_file(trained: Trained, kind: CommitKind) -> None:
    trained.aws.s3.write(PLACE.bucket, trained.file(kind, 1), b"0123")
    outcome = trained.sync()
    assert outcome.error == "SyncIncomplete"
    assert "rank 1: model has 4 bytes, and its commit says 10" in outcome.cause


def test_a_rank_that_has_nothing_to_keep_is_whole(trained: Trained) -> None:
    trained.report(1)
    outcome = trained.sync()
    assert (outcome.error, outcome.value["artifacts"], outcome.value["bytes"]) == ("", 1, 10)


@pytest.mark.parametrize("kind", list(CommitKind))
def test_a_commit_that_a_report_names_is_there(trained: Trained, kind: CommitKind) -> None:
    trained.lose(PLACE.bucket, BYTES.commit(kind, 1, 3, 1))
    outcome = trained.sync()
    assert outcome.error == "SyncIncomplete"
    assert "rank 1: its commit" in outcome.cause


def test_a_file_of_a_role_that_is_not_whole_is_named_with_it() -> None:
    file = CommittedFile(path="model", size=10, sha256="ab", key="k")
    commit = Commit(job=JOB.id, attempt=1, rank=3, step=3, created_at=NOW, final=True, files=(file,))
    assert missing([commit], {}, WITH_ROLES.roles) == ["rank 3 (ps 0): model is not there (k)"]
    assert missing([commit], {}) == ["rank 3: model is not there (k)"]


def test_no_rank_may_be_without_its_report(trained: Trained) -> None:
    State(TABLE).delete(items.node_report(NODE_ROLE, "i-1"))
    outcome = trained.sync()
    assert (outcome.error, outcome.cause) == ("SyncIncomplete", "there is no report of rank 1")


@pytest.mark.parametrize("fields", [{"attempt": 2}, {"phase": 7}, {"job": "job-10"}])
def test_somebody_elses_report_is_none(trained: Trained, fields: dict[str, Any]) -> None:
    trained.report(1, **fields)
    assert trained.sync().cause == "there is no report of rank 1"


@pytest.mark.parametrize("kind", [Kind.THROTTLED, Kind.ERROR, Kind.UNREACHABLE, Kind.DENIED])
@pytest.mark.parametrize(
    "call", ["s3:GetObject", "s3:ListObjectsV2", "s3:PutObject", "dynamodb:Query", "dynamodb:BatchGetItem"]
)
@pytest.mark.parametrize("nth", [1, 2])
def test_no_trouble_of_aws_is_a_verdict_about_artifacts(trained: Trained, call: str, kind: Kind, nth: int) -> None:
    """The machine tries again what is not a verdict."""
    outcome = trained.sync(Mishap(call, nth, times=math.inf, fault=kind))
    assert outcome.error not in errors.BY_NAME
    assert trained.sync().error == ""


OTHERS = BytesPrefix("job-10")


@pytest.mark.parametrize(
    "key",
    [
        OTHERS.commit(CommitKind.CHECKPOINTS, 1, 3, 1),
        OTHERS.checkpoint(1, "ab", "model"),
        BYTES.checkpoint(1, "ab", "model"),
        BYTES.commit(CommitKind.ARTIFACTS, 1, 3, 1),
        f"{BYTES.checkpoints(1)}{BYTES.commit(CommitKind.CHECKPOINTS, 1, 3, 1)}",
        BYTES.commit(CommitKind.CHECKPOINTS, 1, 3, 1) + "x",
        f"{BYTES.commits(CommitKind.CHECKPOINTS)}../../../job-10/commits/checkpoints/a0001/s000000000003/r0001.json",
        JobPrefix("job-10").description,
    ],
)
def test_a_report_cannot_have_anything_read_but_a_commit_of_its_own_job(trained: Trained, key: str) -> None:
    whole = trained.aws.s3.read(PLACE.bucket, BYTES.commit(CommitKind.CHECKPOINTS, 1, 3, 1))
    assert whole is not None
    trained.aws.s3.write(PLACE.bucket, key, whole)
    trained.report(1, checkpoint=key)
    outcome = trained.sync()
    assert outcome.error == "SyncIncomplete"
    assert "rank 1: its last commit of checkpoints would be" in outcome.cause
    read = {call.params["Key"] for call in trained.aws.calls if call.operation == "GetObject"}
    assert key not in read


@pytest.mark.parametrize("size", [33 * 1024**2, 5 * 1024**4])
def test_a_commit_that_fills_the_functions_memory_is_not_read(trained: Trained, size: int) -> None:
    key = BYTES.commit(CommitKind.CHECKPOINTS, 1, 3, 1)
    trained.aws.s3.write(PLACE.bucket, key, b"{", size=size)
    outcome = trained.sync()
    assert outcome.error == "SyncIncomplete"
    assert f"has {size:,} bytes; allowed: up to" in outcome.cause


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff\xfe", b'{"job": 7}'])
def test_a_commit_that_is_none_is_a_verdict_about_its_own_job(trained: Trained, body: bytes) -> None:
    trained.aws.s3.write(PLACE.bucket, BYTES.commit(CommitKind.ARTIFACTS, 1, 3, 0), body)
    outcome = trained.sync()
    assert outcome.error == "SyncIncomplete"
    assert "rank 0: its commit" in outcome.cause
