"""Every SageMaker call of a child: creates, reads and stops trainings in its line's region."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from contract.aws_errors import code_of
from grid_child.clients import client
from grid_child.policy import SubmitAnswer, answered
from grid_child.trouble import status_of, trouble_of, words_of

NOT_THERE = frozenset({"ResourceNotFound", "ValidationException"})
"""SageMaker answers ValidationException ("Requested resource not found.") for a name that it does not know. The message is not checked:
if it meant something else, a submission under the same name would be refused as in use, so nothing would be created twice."""


class SageMaker:
    """SageMaker in one region. Methods do not retry; they raise Trouble where a failure may pass, Unfit where a permission is missing."""

    def __init__(self, region: str) -> None:
        self.region = region

    @cached_property
    def _client(self) -> Any:
        return client("sagemaker", self.region)

    def create(self, arguments: Mapping[str, Any]) -> tuple[SubmitAnswer, str]:
        """Submits a training. Returns SageMaker's answer and its message; never raises because of an answer, or a lost one."""
        try:
            made = self._client.create_training_job(**arguments)
        except ParamValidationError as problem:
            return SubmitAnswer.REFUSED, str(problem)
        except ClientError as problem:
            return answered(code_of(problem), status_of(problem)), f"{code_of(problem)}: {words_of(problem)}"
        except BotoCoreError as problem:
            return SubmitAnswer.OPEN, f"{type(problem).__name__}: {problem}"
        return SubmitAnswer.ACCEPTED, str(made["TrainingJobArn"])

    def describe(self, name: str) -> dict[str, Any] | None:
        """DescribeTrainingJob's answer, None where there is no training of that name."""
        try:
            found: dict[str, Any] = self._client.describe_training_job(TrainingJobName=name)
        except (ClientError, BotoCoreError) as problem:
            if _is_absent(problem):
                return None
            raise trouble_of(problem, f"sagemaker:DescribeTrainingJob in {self.region}") from problem
        return found

    def tags(self, arn: str) -> dict[str, str]:
        """All tags of a training."""
        try:
            pages = self._client.get_paginator("list_tags").paginate(ResourceArn=arn)
            return {one["Key"]: one["Value"] for page in pages for one in page["Tags"]}
        except (ClientError, BotoCoreError) as problem:
            raise trouble_of(problem, f"sagemaker:ListTags in {self.region}") from problem

    def stop(self, name: str) -> None:
        """The training is stopping, or had ended before, which SageMaker calls a ValidationException too, or is not there."""
        try:
            self._client.stop_training_job(TrainingJobName=name)
        except (ClientError, BotoCoreError) as problem:
            if _is_absent(problem):
                return
            raise trouble_of(problem, f"sagemaker:StopTrainingJob in {self.region}") from problem


def _is_absent(problem: Exception) -> bool:
    return isinstance(problem, ClientError) and code_of(problem) in NOT_THERE
