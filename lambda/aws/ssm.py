"""Every Systems Manager call of the functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.config import Config
from botocore.exceptions import ClientError

from aws.clients import PATIENT, client
from contract.aws_errors import code_of

if TYPE_CHECKING:
    from types_boto3_ssm.client import SSMClient


def parameter(name: str, region: str, config: Config = PATIENT) -> str | None:
    """A parameter's value, None where the region has no such parameter."""
    ssm: SSMClient = client("ssm", region, config)
    try:
        return ssm.get_parameter(Name=name)["Parameter"]["Value"]
    except ClientError as problem:
        if code_of(problem) == "ParameterNotFound":
            return None
        raise
