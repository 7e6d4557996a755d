"""Custom resources of stacks: invokes a function, which answers to a presigned address of S3, as CloudFormation does.

moto only tells a function about a creation, and never waits for it.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from moto.awslambda_simple.models import lambda_simple_backends
from moto.cloudformation import parsing
from moto.cloudformation.models import cloudformation_backends
from moto.core.common_models import CloudFormationModel
from moto.s3.models import s3_backends
from moto.utilities.arns import parse_arn

from localaws.account import USUAL

if TYPE_CHECKING:
    from localaws.server import LocalAws

KIND, PREFIX = "AWS::CloudFormation::CustomResource", "Custom::"
TIMEOUT_S = 3600.0
"""CloudFormation's default where a template sets no ServiceTimeout."""
LOOK_S = 0.05
SIGNED = USUAL.merge(Config(signature_version="s3v4"))
"""For addresses: botocore presigns with version 2 by default in old regions, which new buckets of AWS do not take."""
_aws: list[LocalAws] = []
_making = threading.Lock()


class Failed(Exception):
    """The function reported a failure, or did not answer in time. The message is the reason that the stack shows."""


def install(aws: LocalAws) -> None:
    _aws[:] = [aws]
    original = parsing.resource_class_from_type
    aws.patch(parsing, "resource_class_from_type", lambda kind: CustomResource if is_custom(kind) else original(kind))


def is_custom(kind: str) -> bool:
    return kind == KIND or kind.startswith(PREFIX)


class CustomResource(CloudFormationModel):  # type: ignore[misc]
    """One custom resource. Creation, change and deletion return when the function has answered; they raise Failed."""

    def __init__(self, stack_id: str, logical_id: str, kind: str, properties: Mapping[str, Any], region: str) -> None:
        self.stack_id, self.logical_resource_id, self.cf_resource_type = stack_id, logical_id, kind
        self.properties, self.region = properties, region
        self.physical_resource_id = f"{stack_id.split('/')[1]}-{logical_id}-{uuid.uuid4().hex[:12].upper()}"
        self.data: Mapping[str, Any] = {}

    @staticmethod
    def cloudformation_name_type() -> str:
        return ""

    @staticmethod
    def cloudformation_type() -> str:
        return KIND

    @classmethod
    def has_cfn_attr(cls, attr: str) -> bool:  # noqa: ARG003  (the function alone knows)
        return True

    def get_cfn_attribute(self, attribute_name: str) -> Any:
        return self.data.get(attribute_name)

    @classmethod
    def create_from_cloudformation_json(
        cls, resource_name: str, cloudformation_json: Any, account_id: str, region_name: str, **about: Any
    ) -> CustomResource:
        del resource_name
        made = cls(
            about["StackId"], about["LogicalId"], about["ResourceType"], cloudformation_json["Properties"], region_name
        )
        # Known before it exists: a rollback also deletes a resource whose creation failed.
        stack = cloudformation_backends[account_id][region_name].get_stack(about["StackId"])
        stack.resource_map._parsed_resources[made.logical_resource_id] = made
        made._ask("Create", made.properties)
        return made

    @classmethod
    def update_from_cloudformation_json(
        cls,
        original_resource: CustomResource,
        new_resource_name: str,
        cloudformation_json: Any,
        account_id: str,
        region_name: str,
    ) -> CustomResource:
        del new_resource_name, account_id, region_name
        new, identity = cloudformation_json["Properties"], original_resource.physical_resource_id
        original_resource._ask("Update", new, OldResourceProperties=_texts(original_resource.properties))
        if original_resource.physical_resource_id != identity:
            raise NotImplementedError("a custom resource that an update replaces: the old one would have to be deleted")
        original_resource.properties = new
        return original_resource

    def delete(self, account_id: str, region_name: str) -> None:
        del account_id, region_name
        self._ask("Delete", self.properties)

    def _ask(self, what: str, properties: Mapping[str, Any], **more: Any) -> None:
        aws, request = _aws[-1], str(uuid.uuid4())
        where = parse_arn(properties["ServiceToken"])
        function = lambda_simple_backends[where.account][where.region].get_function_by_arn(properties["ServiceToken"])
        if function is None:
            raise Failed(f"there is no function {properties['ServiceToken']}")
        bucket = f"cloudformation-custom-resource-response-{self.region}"
        event = {
            "RequestType": what,
            "ServiceToken": properties["ServiceToken"],
            "ResponseURL": _address(aws, self.region, bucket, request),
            "StackId": self.stack_id,
            "RequestId": request,
            "LogicalResourceId": self.logical_resource_id,
            "ResourceType": self.cf_resource_type,
            "ResourceProperties": _texts(properties),
            **more,
        }
        if what != "Create":
            event["PhysicalResourceId"] = self.physical_resource_id
        aws.workers.invoke_later(function, json.dumps(event).encode())
        limit_s = float(properties.get("ServiceTimeout") or TIMEOUT_S)
        self._take(_answer(aws, bucket, request, limit_s))

    def _take(self, answer: Mapping[str, Any]) -> None:
        self.physical_resource_id = str(answer.get("PhysicalResourceId") or self.physical_resource_id)
        self.data = answer.get("Data") or {}
        if answer.get("Status") != "SUCCESS":
            raise Failed(
                f"Received response status [FAILED] from custom resource. Message returned: {answer.get('Reason')}"
            )
        if not answer.get("PhysicalResourceId"):
            raise Failed("Invalid PhysicalResourceId")


def _address(aws: LocalAws, region: str, bucket: str, key: str) -> str:
    s3 = aws.client("s3", region, config=SIGNED)
    with _making:  # stacks are created side by side, and all custom resources of a region answer to one bucket
        if bucket not in s3_backends[aws.account]["aws"].buckets:
            elsewhere = {"CreateBucketConfiguration": {"LocationConstraint": region}} if region != "us-east-1" else {}
            s3.create_bucket(Bucket=bucket, **elsewhere)
    return str(s3.generate_presigned_url("put_object", Params={"Bucket": bucket, "Key": key}, ExpiresIn=7200))


def _answer(aws: LocalAws, bucket: str, key: str, limit_s: float) -> Mapping[str, Any]:
    """Returns the function's PUT, for which CloudFormation waits `limit_s`. These seconds are not divided by the rehearsal's speed: the
    function, and a build that it waits for, compute in real ones."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end and not aws.stopping.wait(LOOK_S):
        found = s3_backends[aws.account]["aws"].buckets[bucket].keys.get(key)
        if found is not None:
            answer: Mapping[str, Any] = json.loads(found.value)
            if len(found.value) > 4096:
                raise Failed("Response object is too long.")
            return answer
    raise Failed(
        "CloudFormation did not receive a response from your Custom Resource. Please check your logs for requestId "
        f"[{key}]."
    )


def _texts(value: Any) -> Any:
    """Turns every number and boolean of the properties into text, as CloudFormation does."""
    if isinstance(value, Mapping):
        return {key: _texts(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_texts(one) for one in value]
    return str(value).lower() if isinstance(value, bool) else str(value)
