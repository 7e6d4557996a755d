"""Submits a line's training, and reads what the answer means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from contract.aws_errors import code_of
from grid_child.policy import SubmitAnswer, answered
from grid_child.trouble import status_of, words_of


def submit(call: Callable[[], Mapping[str, Any]], arn: str) -> tuple[SubmitAnswer, str]:
    """Returns the answer and its message, which is the member `arn` where the service accepted. Never raises because of an answer, or a
    lost one."""
    try:
        made = call()
    except ParamValidationError as problem:
        return SubmitAnswer.REFUSED, str(problem)
    except ClientError as problem:
        return answered(code_of(problem), status_of(problem)), f"{code_of(problem)}: {words_of(problem)}"
    except BotoCoreError as problem:
        return SubmitAnswer.OPEN, f"{type(problem).__name__}: {problem}"
    return SubmitAnswer.ACCEPTED, str(made[arn])
