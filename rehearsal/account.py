"""Reads what IAM knows about the deployed account: roles' policies, tags, the role behind a profile; uses AWS's own API."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from botocore.exceptions import ClientError

from contract import names
from contract.aws_errors import code_of
from localaws.iam.guard import Guard
from localaws.iam.simulator import Policies
from localaws.server import LocalAws

NOT_OURS = ("role/cdk-", "role/aws-service-role/")
"""Roles of the CDK's bootstrap and of AWS, which none of our stacks makes."""


class DeployedAccount:
    """`localaws.iam.account.Account` of a yard. It remembers the answers, so ask it when everything has ended."""

    def __init__(self, aws: LocalAws, region: str, machine: str) -> None:
        """`region` is the home region, `machine` the ARN of the Train machine."""
        self.region, self._aws, self._machine = region, aws, machine
        self.tags: Callable[[str, str], Mapping[str, str]] = cache(self._tags)
        self.role: Callable[[str], str] = cache(self._role)
        self.instance_profile: Callable[[str, str], str] = cache(self._instance_profile)
        self.template: Callable[[str, str, str], Mapping[str, Any]] = cache(self._template)
        self.image: Callable[[str, str], Mapping[str, Any]] = cache(self._image)
        self.secret: Callable[[str, str], str] = cache(self._secret)
        self.key: Callable[[str, str], str] = cache(self._key)
        self.key_policy: Callable[[str], Mapping[str, Any]] = cache(self._key_policy)
        self.trust: Callable[[str], Mapping[str, Any]] = cache(self._trust)
        self.role_id: Callable[[str], str] = cache(self._role_id)
        self.table_keys: Callable[[str, str], tuple[str, ...]] = cache(self._table)

    def machine(self, region: str) -> str:  # noqa: ARG002
        return self._machine

    def policies(self) -> dict[str, Policies]:
        """Returns the policies of every role of the product, by its ARN."""
        iam = self._aws.client("iam", self.region)
        roles = [role for page in iam.get_paginator("list_roles").paginate() for role in page["Roles"]]
        return {
            role["Arn"]: self.of_role(role["RoleName"])
            for role in roles
            if not any(word in role["Arn"] for word in NOT_OURS)
        }

    def exists(self, bucket: str, key: str) -> bool:
        """Returns whether there is such an object."""
        try:
            self._aws.client("s3", self.region).head_object(Bucket=bucket, Key=key)
        except ClientError as problem:
            if code_of(problem) != "404":
                raise
            return False
        return True

    def of_role(self, role: str) -> Policies:
        """Returns the policies of a role of the product, by its name."""
        iam = self._aws.client("iam", self.region)
        found = {
            name: iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
            for name in iam.list_role_policies(RoleName=role)["PolicyNames"]
        }
        for one in iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]:
            version = iam.get_policy(PolicyArn=one["PolicyArn"])["Policy"]["DefaultVersionId"]
            read = iam.get_policy_version(PolicyArn=one["PolicyArn"], VersionId=version)["PolicyVersion"]
            found[one["PolicyName"]] = read["Document"]
        return found

    def _tags(self, region: str, resource: str) -> Mapping[str, str]:
        if resource.startswith("arn:aws:sagemaker:"):
            return self._of_training(region, resource)
        if resource.startswith("arn:aws:batch:"):
            job: dict[str, str] = self._aws.client("batch", region).list_tags_for_resource(resourceArn=resource)["tags"]
            return job
        ec2 = self._aws.client("ec2", region)
        pages = ec2.get_paginator("describe_tags").paginate(Filters=[{"Name": "resource-id", "Values": [resource]}])
        found = _plain(tag for page in pages for tag in page["Tags"])
        groups = ec2.describe_placement_groups()["PlacementGroups"] if not found else []
        return found or next((_plain(one.get("Tags", [])) for one in groups if one["GroupName"] == resource), {})

    def _of_training(self, region: str, arn: str) -> Mapping[str, str]:
        sagemaker = self._aws.client("sagemaker", region)
        try:
            return _plain(sagemaker.list_tags(ResourceArn=arn)["Tags"])
        except sagemaker.exceptions.ClientError:  # the name that was asked for belongs to no training
            return {}

    def _role(self, profile: str) -> str:
        found = self._aws.client("iam", self.region).get_instance_profile(
            InstanceProfileName=profile.rsplit("/", 1)[-1]
        )
        (role,) = found["InstanceProfile"]["Roles"]
        return str(role["Arn"])

    def _instance_profile(self, region: str, instance: str) -> str:
        wanted = [{"Name": "instance-id", "Values": [instance]}]
        found = self._aws.client("ec2", region).describe_iam_instance_profile_associations(Filters=wanted)
        profiles = (one["IamInstanceProfile"]["Arn"] for one in found["IamInstanceProfileAssociations"])
        return next(map(str, profiles), "")

    def _template(self, region: str, template: str, version: str) -> Mapping[str, Any]:
        ec2 = self._aws.client("ec2", region)
        (found,) = ec2.describe_launch_template_versions(LaunchTemplateId=template, Versions=[version])[
            "LaunchTemplateVersions"
        ]
        data: Mapping[str, Any] = found["LaunchTemplateData"]
        return data

    def _image(self, region: str, image: str) -> Mapping[str, Any]:
        (found,) = self._aws.client("ec2", region).describe_images(ImageIds=[image])["Images"]
        data: Mapping[str, Any] = found
        return data

    def _key(self, region: str, topic: str) -> str:
        found = self._aws.client("sns", region).get_topic_attributes(TopicArn=topic)["Attributes"]
        return str(found.get("KmsMasterKeyId", ""))

    def _key_policy(self, key: str) -> Mapping[str, Any]:
        kms = self._aws.client("kms", key.split(":")[3])
        policy = kms.get_key_policy(KeyId=key, PolicyName="default")["Policy"]
        found: Mapping[str, Any] = json.loads(policy) if isinstance(policy, str) else policy
        return found

    def _trust(self, role: str) -> Mapping[str, Any]:
        found = self._aws.client("iam", self.region).get_role(RoleName=role.rpartition("/")[2])["Role"]
        policy: Mapping[str, Any] = found["AssumeRolePolicyDocument"]
        return policy

    def _role_id(self, role: str) -> str:
        try:
            return str(
                self._aws.client("iam", self.region).get_role(RoleName=role.rpartition("/")[2])["Role"]["RoleId"]
            )
        except ClientError as problem:
            if code_of(problem) != "NoSuchEntity":
                raise
            return ""  # the role is gone: a destroy took it, and no policy of ours names an empty id

    def _table(self, region: str, table: str) -> tuple[str, ...]:
        schema = self._aws.client("dynamodb", region).describe_table(TableName=table)["Table"]["KeySchema"]
        return tuple(str(one["AttributeName"]) for one in sorted(schema, key=lambda one: str(one["KeyType"])))

    def _secret(self, region: str, secret: str) -> str:
        return str(self._aws.client("secretsmanager", region).describe_secret(SecretId=secret)["ARN"])


def _plain(tags: Any) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in tags}


def guard(aws: LocalAws, account: DeployedAccount, settings: Mapping[str, Any]) -> Guard:
    """Denies nodes, from now on, what IAM would deny them: as instances, with credentials of their job and of the role that it names.
    `settings` is cdk.json's block."""
    deployment = settings["deployment"]
    of_jobs = {names.job_role(deployment, account.region)}
    of_jobs |= {arn.rpartition("/")[2] for arn in settings.get("job_roles", {}).values()}

    @cache
    def policies(role: str) -> Policies | None:
        name = role.rpartition("/")[2]
        return (
            account.of_role(name) if name in of_jobs or re.match(rf"{deployment}-foundation-NodeRole", name) else None
        )

    made = Guard(account, policies, account.exists)
    made.install(aws)
    return made
