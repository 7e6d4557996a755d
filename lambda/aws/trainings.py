"""Every SageMaker call of the functions: a training by its name, all that run under a prefix, their tags, their end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from aws.clients import SIDE_BY_SIDE, client
from contract.aws_errors import code_of

PAGE = 100
"""The most that ListTrainingJobs gives at once."""
RUNS, STOPPING = "InProgress", "Stopping"
"""Statuses of a training that is not over; the second one ends by itself within minutes."""
INVALID = "ValidationException"
"""SageMaker's code for a name that it does not know, and for stopping what is over."""
UNKNOWN = "not found"
"""In the message, it means the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """A training as a listing, or a look at it, shows it."""

    name: str
    arn: str
    status: str
    created_at: float
    """UTC epoch seconds."""


class Trainings:
    """One region. All calls raise ClientError or BotoCoreError where SageMaker does not answer."""

    def __init__(self, region: str, given: Any = None) -> None:
        """Calls through the client `given`, where there is one."""
        self.region = region
        self._client: Any = given or client("sagemaker", region, SIDE_BY_SIDE)

    def described(self, name: str) -> Mapping[str, Any] | None:
        """DescribeTrainingJob's whole answer; None where there never was a training of that name."""
        try:
            answer: Mapping[str, Any] = self._client.describe_training_job(TrainingJobName=name)
        except ClientError as problem:
            if _says(problem, UNKNOWN):
                return None
            raise
        return answer

    def tags(self, arn: str) -> dict[str, str]:
        """All of them; SageMaker gives 50 at once, and allows no more."""
        found = self._client.list_tags(ResourceArn=arn)["Tags"]
        return {one["Key"]: one["Value"] for one in found}

    def stop(self, name: str) -> None:
        """SageMaker sends SIGTERM, and ends it 120 s later. What is over, or about to be, or never was, is left as it is."""
        try:
            self._client.stop_training_job(TrainingJobName=name)
        except ClientError as problem:
            if code_of(problem) != INVALID:
                raise

    def listed(self, prefix: str, status: str) -> Iterator[tuple[list[Training], Mapping[str, Any]]]:
        """Pages of the trainings whose name begins so and that have the status, each with the answer it came in."""
        wanted = {"NameContains": prefix, "StatusEquals": status, "SortBy": "CreationTime", "SortOrder": "Ascending"}
        pages = self._client.get_paginator("list_training_jobs")
        for page in pages.paginate(**wanted, PaginationConfig={"PageSize": PAGE}):
            every = [training(one) for one in page["TrainingJobSummaries"]]
            yield [one for one in every if one.name.startswith(prefix)], page


def training(raw: Mapping[str, Any]) -> Training:
    """Of an entry of a listing, or of DescribeTrainingJob's answer."""
    return Training(
        name=raw["TrainingJobName"],
        arn=raw["TrainingJobArn"],
        status=raw["TrainingJobStatus"],
        created_at=raw["CreationTime"].timestamp(),
    )


def _says(problem: ClientError, words: str) -> bool:
    error = problem.response["Error"]
    return error["Code"] == INVALID and words in error.get("Message", "").lower()
