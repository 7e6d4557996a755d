"""Makes the checks of other services before SageMaker accepts a training job: role and image; in SageMaker's own words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from localaws.containers.images import Image, NotRunnable
from localaws.services.sagemaker_model import invalid

if TYPE_CHECKING:
    from localaws.server import LocalAws

REGISTRY = re.compile(
    r"(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/([^:@]+)(?::([^@]+)|@(sha256:[0-9a-f]{64}))"
)


def check(aws: LocalAws, request: Mapping[str, Any], region: str) -> str:
    """Returns the digest of the image to run. Raises Refused."""
    _role(aws, str(request["RoleArn"]))
    return _image(aws, request, region)


def _role(aws: LocalAws, arn: str) -> None:
    try:
        role = aws.client("iam").get_role(RoleName=arn.rsplit("/", 1)[-1])["Role"]
    except ClientError:
        role = {}
    trust = role.get("AssumeRolePolicyDocument", {})
    trusted = json.loads(trust) if isinstance(trust, str) else trust
    if role.get("Arn") != arn or "sagemaker.amazonaws.com" not in json.dumps(trusted):
        raise invalid(
            f"Could not assume role {arn}. Please ensure that the role exists and allows principal "
            "'sagemaker.amazonaws.com' to assume the role."
        )


def _image(aws: LocalAws, request: Mapping[str, Any], region: str) -> str:
    address = request["AlgorithmSpecification"].get("TrainingImage", "")
    found = REGISTRY.fullmatch(address)
    if not found:
        raise invalid(
            f"Invalid image URI {address}. Please provide a valid Amazon Elastic Container Registry path of the image"
        )
    account, there, repository, tag, digest = found.groups()
    if there != region:
        raise invalid(
            f"The image {address} is not in the region {region}. Please provide an image of the training job's region"
        )
    wanted = {"imageDigest": digest} if digest else {"imageTag": tag}
    ecr = aws.client("ecr", region, role=str(request["RoleArn"]), throttled=False)
    try:
        images = ecr.batch_get_image(registryId=account, repositoryName=repository, imageIds=[wanted])["images"]
    except ClientError as problem:
        raise invalid(
            f"Cannot find repository: {repository} in registry ID: {account} Please check if your ECR repository exists and "
            "role has proper pull permissions for SageMaker."
        ) from problem
    if not images:
        raise invalid(f"Requested image {address} not found.")
    if account == aws.account:
        _runnable(aws, str(images[0]["imageId"]["imageDigest"]), address)
    return str(images[0]["imageId"]["imageDigest"])


def _runnable(aws: LocalAws, digest: str, address: str) -> None:
    """Checks that files of the image exist here; SageMaker would run any image."""
    try:
        Image.of(aws.work / "images", digest)
    except NotRunnable as problem:
        raise invalid(f"{address}: {problem}") from problem
