"""A custom resource: something that a deploy asks of a function of ours."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from constructs import Construct, IConstruct

from stacks.parts.acknowledged import acknowledge

RIGHTS_FIRST = "The function's rights have to be there before its first call."


def add_custom_resource(
    scope: Construct,
    name: str,
    *,
    kind: str,
    function_arn: str,
    wait: cdk.Duration,
    properties: Mapping[str, object] | None = None,
    after: tuple[IConstruct, ...] = (),
    why: str = RIGHTS_FIRST,
) -> cdk.CustomResource:
    """Returns a resource of type `Custom::<kind>` that the function creates, updates and deletes; CloudFormation asks again only
    when `properties` change, and gives up after `wait`.

    It is created after everything in `after` and deleted before it. `why` says what no reference tells CloudFormation.
    """
    resource = cdk.CustomResource(
        scope,
        name,
        resource_type=f"Custom::{kind}",
        service_token=function_arn,
        service_timeout=wait,
        properties=dict(properties) if properties else None,
    )
    if after:
        resource.node.add_dependency(*after)
        acknowledge(resource, why, "W3005")
    return resource
