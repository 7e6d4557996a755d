"""What SageMaker looks at before it takes a training job: names, numbers, the role, the image; all in its own words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from localaws.api import Problem, service_model
from localaws.containers.images import Image, NotRunnable

if TYPE_CHECKING:
    from localaws.server import LocalAws

REGISTRY = re.compile(
    r"(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/([^:@]+)(?::([^@]+)|@(sha256:[0-9a-f]{64}))"
)
MOST = {"HyperParameters": 100, "Environment": 100, "Tags": 50, "InputDataConfig": 20}
LONGEST = {"HyperParameters": (256, 2500), "Environment": (512, 512)}
NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
LONGEST_RUN_S = 28 * 86400


def check(aws: LocalAws, request: Mapping[str, Any], region: str) -> str:
    """The digest of the image that is to run. Raises Problem."""
    _name(request["TrainingJobName"])
    _numbers(request)
    _stopping(request)
    _role(aws, str(request["RoleArn"]))
    return _image(aws, request, region)


def invalid(message: str) -> Problem:
    return Problem("ValidationException", message)


def _name(name: str) -> None:
    if not NAME.fullmatch(name) or len(name) > 63:
        raise invalid(
            f"1 validation error detected: Value '{name}' at 'trainingJobName' failed to satisfy constraint: Member must "
            "satisfy regular expression pattern: ^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}"
        )


def _numbers(request: Mapping[str, Any]) -> None:
    for field, most in MOST.items():
        if len(request.get(field, ())) > most:
            raise invalid(f"{len(request[field])} at '{field}': Member must have length less than or equal to {most}")
    for field, (longest_key, longest_value) in LONGEST.items():
        for key, value in request.get(field, {}).items():
            if len(key) > longest_key or len(value) > longest_value:
                raise invalid(f"'{key}' at '{field}': longer than {longest_key} and {longest_value} characters allow")
    kind = request["ResourceConfig"].get("InstanceType", "")
    known = service_model("sagemaker").shape_for("TrainingInstanceType").metadata.get("enum", [])
    if kind not in known:
        raise invalid(
            f"Value '{kind}' at 'resourceConfig.instanceType' failed to satisfy constraint: Member must be one of {known}"
        )
    for definition in request["AlgorithmSpecification"].get("MetricDefinitions", []):
        try:
            re.compile(definition["Regex"])
        except re.error as problem:
            raise invalid(f"Metric definition {definition['Name']}: invalid regular expression: {problem}") from problem


def _stopping(request: Mapping[str, Any]) -> None:
    condition, spot = request["StoppingCondition"], request.get("EnableManagedSpotTraining", False)
    runtime, wait = condition.get("MaxRuntimeInSeconds", 86400), condition.get("MaxWaitTimeInSeconds")
    if runtime > LONGEST_RUN_S:
        raise invalid(f"MaxRuntimeInSeconds {runtime}: at most {LONGEST_RUN_S}")
    if spot and (wait is None or wait < runtime):
        raise invalid(
            "Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal to MaxRuntimeInSeconds"
        )
    if wait is not None and not spot:
        raise invalid("MaxWaitTimeInSeconds above 0 is supported only when EnableManagedSpotTraining is true")


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
    _runnable(aws, str(images[0]["imageId"]["imageDigest"]), address)
    return str(images[0]["imageId"]["imageDigest"])


def _runnable(aws: LocalAws, digest: str, address: str) -> None:
    """SageMaker would run any image; here it has to be one of which there are files."""
    try:
        Image.of(aws.work / "images", digest)
    except NotRunnable as problem:
        raise invalid(f"{address}: {problem}") from problem
