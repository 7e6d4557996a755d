"""Every SageMaker call of a child: creates, reads and stops trainings in its line's region."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from contract.aws_errors import code_of
from contract.records import LineFacts
from contract.training_facts import describe_training
from grid_child.clients import client
from grid_child.plan import Work
from grid_child.policy import SubmitAnswer, is_ours
from grid_child.submission import submit
from grid_child.trouble import trouble_of

NOT_THERE = frozenset({"ResourceNotFound", "ValidationException"})
"""SageMaker answers ValidationException ("Requested resource not found.") for a name that it does not know. The message is not checked:
if it meant something else, a submission under the same name would be refused as in use, so nothing would be created twice."""


class SageMakerLine:
    """One line as a training of SageMaker in its region."""

    service = "SageMaker"

    def __init__(self, work: Work) -> None:
        self._line, self._tags = work.line, work.tags

    @cached_property
    def _client(self) -> Any:
        return client("sagemaker", self._line.region)

    def create(self) -> tuple[SubmitAnswer, str]:
        """As ChildBackend.create."""
        return submit(lambda: self._client.create_training_job(**self._line.request), "TrainingJobArn")

    def find(self) -> LineFacts | None:
        try:
            found: dict[str, Any] = self._client.describe_training_job(TrainingJobName=self._line.training)
        except (ClientError, BotoCoreError) as problem:
            if _is_absent(problem):
                return None
            raise trouble_of(problem, f"sagemaker:DescribeTrainingJob in {self._line.region}") from problem
        return describe_training(self._line, found)

    def name_stranger(self, facts: LineFacts) -> str:
        tags = self._read_tags(facts.arn)
        if is_ours(tags, self._tags):
            return ""
        return f"{facts.arn}, with the tags {json.dumps(tags, sort_keys=True, ensure_ascii=False)}"

    def stop(self) -> None:
        """The training is stopping, or had ended before, which SageMaker calls a ValidationException too, or is not there."""
        try:
            self._client.stop_training_job(TrainingJobName=self._line.training)
        except (ClientError, BotoCoreError) as problem:
            if _is_absent(problem):
                return
            raise trouble_of(problem, f"sagemaker:StopTrainingJob in {self._line.region}") from problem

    def _read_tags(self, arn: str) -> dict[str, str]:
        try:
            pages = self._client.get_paginator("list_tags").paginate(ResourceArn=arn)
            return {one["Key"]: one["Value"] for page in pages for one in page["Tags"]}
        except (ClientError, BotoCoreError) as problem:
            raise trouble_of(problem, f"sagemaker:ListTags in {self._line.region}") from problem


def _is_absent(problem: Exception) -> bool:
    return isinstance(problem, ClientError) and code_of(problem) in NOT_THERE
