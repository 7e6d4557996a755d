"""Sync on the fake: a finished job's artifacts are listed, and AWS's troubles are no verdict about them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from contract import errors, keys
from contract.codec import encode
from contract.commits import Commit, CommittedFile
from contract.reports import Exit, NodeReport, Phase
from tests.builders import JOB
from tests.fakes.aws import Aws
from tests.fakes.faults import Kind, Mishap
from tests.fakes.functions import Functions, Outcome
from tests.fakes.state import report as tell
from tests.fakes.yard import admitted, deployed

BYTES = keys.BytesPrefix(JOB.id)
FILE = CommittedFile(path="model.pt", size=3, sha256="ab", key=BYTES.artifact(0, "model.pt"))
COMMIT = BYTES.commit(keys.CommitKind.ARTIFACTS, 1, 7, 0)


@dataclass
class Yard:
    """A job whose nodes have ended well, rank 0 with an artifact."""

    aws: Aws
    functions: Functions

    def sync(self, *mishaps: Mishap) -> Outcome:
        return self.functions.invoke("artifact_check", {"job": JOB.id, "attempt": 1}, mishaps)


@pytest.fixture
def yard() -> Iterator[Yard]:
    aws = deployed()
    made = Yard(aws, Functions(aws))
    job = admitted(aws)
    with made.functions.installed():
        launched = made.functions.invoke("launcher", {"job": job.id, "attempt": 1}, [])
        assert launched.error == ""
        place = job.places[job.ladder[0].region]
        commit = Commit(job=job.id, attempt=1, rank=0, step=7, created_at=aws.clock.now, final=True, files=(FILE,))
        aws.s3.write(place.bucket, COMMIT, encode(commit))
        aws.s3.write(place.bucket, FILE.key, b"abc")
        for rank in range(job.nodes):
            report = NodeReport(
                job=job.id,
                attempt=1,
                rank=rank,
                instance=launched.value["instances"][rank],
                phase=Phase.ENDED,
                sent_at=aws.clock.now,
                sequence=1,
                exit=Exit(code=0),
                artifacts="" if rank else COMMIT,
            )
            tell(aws, report)
        yield made


def test_a_finished_job_has_its_artifacts_listed(yard: Yard) -> None:
    outcome = yard.sync()
    assert outcome.error == ""
    assert (outcome.value["artifacts"], outcome.value["bytes"]) == (1, 3)
    body = yard.aws.s3.read(JOB.home_bucket, keys.JobPrefix(JOB.id).artifacts(1))
    assert body is not None
    assert [one["path"] for one in json.loads(body)["artifacts"]] == ["model.pt"]


@pytest.mark.parametrize("kind", [Kind.THROTTLED, Kind.ERROR, Kind.UNREACHABLE, Kind.DENIED])
@pytest.mark.parametrize("call", ["s3:GetObject", "s3:ListObjectsV2", "s3:PutObject"])
@pytest.mark.parametrize("nth", [1, 2])
def test_no_trouble_of_aws_is_a_verdict_about_artifacts(yard: Yard, call: str, kind: Kind, nth: int) -> None:
    """The machine tries again what is not a verdict."""
    outcome = yard.sync(Mishap(call, nth, times=math.inf, fault=kind))
    assert outcome.error not in errors.BY_NAME
    assert yard.sync().error == ""


def test_a_file_that_is_not_whole_is_a_verdict(yard: Yard) -> None:
    place = JOB.places[JOB.ladder[0].region]
    yard.aws.s3.write(place.bucket, FILE.key, b"ab")
    outcome = yard.sync()
    assert outcome.error == errors.SyncIncomplete.__name__
    assert "model.pt has 2 bytes, committed were 3" in outcome.cause
