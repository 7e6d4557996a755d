"""A repository of images in a region, with the accounts outside that may pull from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from constructs import Construct

from stacks.parts import interfaces
from stacks.parts.acknowledged import acknowledge
from stacks.parts.image_rights import PULL

KEPT_IMAGES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """Accounts, and whole organizations; empty for none."""

    accounts: Sequence[str] = ()
    organizations: Sequence[str] = ()


class Repository(ecr.Repository):
    """Scanned on push, with immutable tags and a lifecycle policy; deleted with its stack, with all of its images."""

    def __init__(self, scope: Construct, name: str, *, physical_name: str, readers: Readers) -> None:
        super().__init__(
            scope,
            name,
            repository_name=physical_name,
            image_scan_on_push=True,
            image_tag_mutability=ecr.TagMutability.IMMUTABLE,
            encryption=ecr.RepositoryEncryption.AES_256,
            lifecycle_rules=[
                ecr.LifecycleRule(description=f"The newest {KEPT_IMAGES} images", max_image_count=KEPT_IMAGES)
            ],
            # Images can be built again, and a repository that stayed would block the next deployment.
            removal_policy=cdk.RemovalPolicy.DESTROY,
            empty_on_delete=True,
        )
        if readers.accounts:
            # Names the accounts' roots: each account decides which of its own roles may pull.
            self._let(
                "ReadFromAccounts",
                [interfaces.principal(iam.AccountPrincipal(account)) for account in readers.accounts],
            )
        if readers.organizations:
            members = {"StringEquals": {"aws:PrincipalOrgID": list(readers.organizations)}}
            self._let("ReadFromOrganizations", [interfaces.principal(iam.AnyPrincipal())], members)
            acknowledge(
                self, "The condition keeps to members of the organizations that the settings name.", "AwsSolutions-ECR1"
            )
        acknowledge(
            self,
            "ECR encrypts with a key of its own; every node may pull, so another key would hide nothing.",
            "CKV_AWS_136",
        )

    def _let(
        self, sid: str, principals: Sequence[iam.IPrincipal], conditions: Mapping[str, object] | None = None
    ) -> None:
        self.add_to_resource_policy(
            iam.PolicyStatement(sid=sid, principals=list(principals), actions=list(PULL), conditions=conditions)
        )
