"""Rights on the deployment's keys, derived from a policy's other rights: who may read or write something may decrypt or encrypt it.

Every right names the service through which the key may be used; those for S3 and DynamoDB also name what is encrypted. So a
person cannot use a key directly, nor a role for anything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import IConstruct

from contract import names, tags
from stacks.parts.right import Right, add_to, grant_apart
from stacks.parts.rights import Rights, arn_of

VIA = "kms:ViaService"
DECRYPT = ("kms:Decrypt",)
ENCRYPT = ("kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey")
"""Decrypt as well: S3 decrypts the parts of an upload in parts, and SQS the data key that it uses again. Encrypt, because SageMaker's and
DynamoDB's pages ask for it."""
VOLUMES = ("kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext")
"""What EC2 asks, with the rights of who launches, to make an encrypted volume, beside the grant for itself
(https://docs.aws.amazon.com/ebs/latest/userguide/ebs-encryption-requirements.html)."""
TAGGED = "Keys of other regions, and of data that was kept, have ids that no template knows; the condition requires our tag on the key."


def let_use_keys(app: IConstruct, rights: Rights, home_key: str) -> None:
    """Adds the rights on keys to every role and managed policy of the app: one that is added later is not forgotten."""
    for one in app.node.find_all():
        if not isinstance(one, iam.Policy | iam.ManagedPolicy):
            continue
        needed = list(key_rights(rights, _allowed(one.document.to_json()), home_key))
        role = one.node.scope
        if needed and isinstance(one, iam.ManagedPolicy):
            add_to(one, *needed)
        elif needed:
            assert isinstance(role, iam.Role), (
                f"{one.node.path} reads or writes something, and is not its role's own policy"
            )
            grant_apart(role, "Keys" if one.node.id == "DefaultPolicy" else f"{one.node.id}Keys", *needed)


def encrypt_volumes(keys: Sequence[str]) -> list[Right]:
    """Allows launches with disks under these keys (ARNs), of this account or another, and nothing else with them. Of a volume that is made
    of an encrypted snapshot EC2 also asks for ReEncrypt."""
    if not keys:
        return []
    through = {"StringLike": {VIA: "ec2.*.amazonaws.com"}}
    granting = through | {"Bool": {"kms:GrantIsForAWSResource": "true"}}
    actions = (*VOLUMES, "kms:ReEncryptFrom", "kms:ReEncryptTo")
    return [
        Right("EncryptVolumesUnderTheSettingsKeys", actions, keys, conditions=through),
        Right("LetEc2AttachTheseVolumes", ["kms:CreateGrant"], keys, conditions=granting),
    ]


def key_rights(rights: Rights, allowed: Iterable[tuple[str, str]], home_key: str) -> Iterator[Right]:
    """Yields what a policy needs that allows these (action, resource). `home_key` is the ARN of the key that encrypts queues."""
    pairs = set(allowed)

    def may(*actions: str, of: str = "") -> bool:
        return any(
            resource.startswith(of) and fnmatchcase(action, wanted) for action, resource in pairs for wanted in actions
        )

    for name, bucket, region in (
        ("HomeBucket", rights.home_bucket, rights.home_region),
        ("BytesBuckets", rights.bytes_buckets, "*"),
    ):
        arn = f"arn:{cdk.Aws.PARTITION}:s3:::{bucket}"
        writes = may("s3:PutObject", of=f"{arn}/")
        if writes or may("s3:GetObject*", of=f"{arn}/"):
            yield Right(
                f"UseTheKeyOfThe{name}",
                ENCRYPT if writes else DECRYPT,
                [_keys(region)],
                TAGGED,
                # With a Bucket Key S3 names the bucket, without one the object.
                _conditions(rights, "s3", region, {"kms:EncryptionContext:aws:s3:arn": [arn, f"{arn}/*"]}),
            )
    if may("dynamodb:*"):
        writes = may("dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:BatchWriteItem")
        yield Right(
            "UseTheKeyOfTheTable",
            ENCRYPT if writes else DECRYPT,
            [_keys(rights.home_region)],
            TAGGED,
            _conditions(
                rights,
                "dynamodb",
                rights.home_region,
                {"kms:EncryptionContext:aws:dynamodb:tableName": [names.state_table(rights.deployment)]},
            ),
        )
    if may("rds-data:*"):
        through = {"StringEquals": {VIA: f"secretsmanager.{rights.home_region}.amazonaws.com"}}
        yield Right("UseTheKeyOfTheCataloguesSecrets", DECRYPT, [home_key], conditions=through)
    if may("sqs:*"):
        actions = ENCRYPT if may("sqs:SendMessage") else DECRYPT
        through = {"StringEquals": {VIA: f"sqs.{rights.home_region}.amazonaws.com"}}
        yield Right("UseTheKeyOfTheQueues", actions, [home_key], conditions=through)
    if may("ec2:RunInstances"):
        yield Right("EncryptVolumes", VOLUMES, [_keys("*")], TAGGED, _conditions(rights, "ec2", "*"))
        granting = _conditions(rights, "ec2", "*") | {"Bool": {"kms:GrantIsForAWSResource": "true"}}
        yield Right("LetEc2AttachVolumes", ["kms:CreateGrant"], [_keys("*")], TAGGED, granting)


def _conditions(
    rights: Rights, service: str, region: str, encrypted: Mapping[str, list[str]] | None = None
) -> dict[str, Mapping[str, object]]:
    return {
        "StringEquals": {f"aws:ResourceTag/{tags.DEPLOYMENT}": rights.deployment},
        "StringLike": {VIA: f"{service}.{region}.amazonaws.com", **(encrypted or {})},
    }


def _keys(region: str) -> str:
    return arn_of("kms", region, cdk.Aws.ACCOUNT_ID, "key/*")


def _allowed(document: Mapping[str, object] | None) -> Iterator[tuple[str, str]]:
    """Yields (action, resource) of every statement of a policy that allows something."""
    statements = (document or {}).get("Statement", [])
    assert isinstance(statements, list)
    for one in statements:
        if one["Effect"] == "Allow":
            yield from (
                (action, resource) for action in _listed(one["Action"]) for resource in _listed(one["Resource"])
            )


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
