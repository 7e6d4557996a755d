"""Tags every resource of the stacks with the deployment's name and with the settings' own tags."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from constructs import IConstruct

from contract import tags

REPLACED_WITH_THEIR_TAGS = ("AWS::Batch::ComputeEnvironment", "AWS::EC2::PlacementGroup")
"""Types whose tags CloudFormation cannot change: it would replace the groups that nodes are in and that waiting jobs name, and the
environment where children run."""


def tag_resources(scope: IConstruct, deployment: str, further: Mapping[str, str]) -> None:
    """Adds the tags to all that take any. A type that is replaced with its tags has the deployment's alone, which never changes."""
    cdk.Tags.of(scope).add(tags.DEPLOYMENT, deployment)
    for key, value in further.items():
        cdk.Tags.of(scope).add(key, value, exclude_resource_types=list(REPLACED_WITH_THEIR_TAGS))
