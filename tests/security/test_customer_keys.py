"""With `compliance` whoever may read or write something may use its key for that, through its service alone, and nobody else may."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from contract import names, tags
from localaws.iam.simulator import Policies, Request, condition_keys, simulate
from tests.security.asking import BYTES, EC2, HOME, OURS, THEIRS, Ask
from tests.security.policies import (
    ACCOUNT,
    DEFAULT_GROUP,
    HOME_KEY,
    REGION,
    customer_key,
    function,
    log_stream,
    of_roles,
)
from tools.synthesis import Synthesised

REGION_KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1111"
ELSEWHERE = REGION_KEY.replace(REGION, "us-east-1")
S3_CONTEXT, TABLE_CONTEXT = "kms:EncryptionContext:aws:s3:arn", "kms:EncryptionContext:aws:dynamodb:tableName"
OF_THE_TABLE = {TABLE_CONTEXT: names.state_table("trainyard")}
VIA = "kms:ViaService"
DECRYPT, ENCRYPT = "kms:Decrypt", "kms:GenerateDataKey"
VOLUMES = ("kms:GenerateDataKeyWithoutPlaintext", "kms:Decrypt", "kms:DescribeKey")
GRANT = {"kms:GrantIsForAWSResource": "true"}


def via(service: str, region: str = REGION) -> dict[str, str]:
    return {VIA: f"{service}.{region}.amazonaws.com"}


def objects(bucket: str, region: str = REGION) -> dict[str, str]:
    return OURS | via("s3", region) | {S3_CONTEXT: bucket}


FLOW_LOG = log_stream("FlowLogsLog", "x")
NEW_ALLOWED = [
    Ask("DefaultGroup", "ec2:DescribeSecurityGroups", "*"),
    Ask("DefaultGroup", "ec2:RevokeSecurityGroupIngress", f"{EC2}:security-group/{DEFAULT_GROUP}"),
    Ask("DefaultGroup", "ec2:RevokeSecurityGroupEgress", f"{EC2}:security-group/{DEFAULT_GROUP}"),
    Ask("DefaultGroup", "logs:CreateLogStream", log_stream("DefaultGroupLog", "x")),
    Ask("FlowLogs", "logs:PutLogEvents", FLOW_LOG),
    Ask("FlowLogs", "logs:CreateLogStream", FLOW_LOG),
]
NEW_DENIED = [
    Ask("DefaultGroup", "ec2:RevokeSecurityGroupIngress", f"{EC2}:security-group/sg-1", OURS),
    Ask("DefaultGroup", "ec2:RevokeSecurityGroupEgress", f"{EC2}:security-group/sg-1", OURS),
    Ask("DefaultGroup", "ec2:AuthorizeSecurityGroupIngress", f"{EC2}:security-group/sg-1", OURS),
    Ask("DefaultGroup", "ec2:DescribeSecurityGroups", "*", {"aws:RequestedRegion": "us-east-1"}),
    Ask("DefaultGroup", "ec2:DescribeInstances", "*"),
    Ask("FlowLogs", "logs:PutLogEvents", log_stream(names.log_group("trainyard"), "x")),
    Ask("FlowLogs", "logs:CreateLogGroup", FLOW_LOG.partition(":log-stream")[0]),
    Ask("FlowLogs", "lambda:InvokeFunction", function("Launcher")),
    # By a role itself, and not through a service.
    Ask("Node", DECRYPT, HOME_KEY, OURS | {S3_CONTEXT: HOME}),
    Ask("Node", DECRYPT, REGION_KEY, OURS | {S3_CONTEXT: BYTES}),
    Ask("Attendant", DECRYPT, HOME_KEY, OURS | OF_THE_TABLE),
    Ask("Cleanup", DECRYPT, HOME_KEY),
    Ask("Launcher", "kms:GenerateDataKeyWithoutPlaintext", REGION_KEY, OURS),
    Ask("Launcher", "kms:CreateGrant", REGION_KEY, OURS | GRANT),
    # Through a service that the right is not for, or of another region.
    Ask("Node", DECRYPT, HOME_KEY, objects(HOME, "us-east-1")),
    Ask("Node", DECRYPT, HOME_KEY, objects(HOME) | via("ec2")),
    Ask("Node", DECRYPT, HOME_KEY, OURS | via("secretsmanager")),
    Ask("Attendant", DECRYPT, HOME_KEY, OURS | via("dynamodb", "us-east-1") | OF_THE_TABLE),
    Ask("Launcher", DECRYPT, REGION_KEY, objects(BYTES)),
    Ask("Launcher", ENCRYPT, REGION_KEY, OURS | via("ec2")),
    Ask("Cleanup", DECRYPT, HOME_KEY, via("sqs", "us-east-1")),
    # What somebody else encrypted, with our key or with his.
    Ask("Node", DECRYPT, HOME_KEY, objects("arn:aws:s3:::somebody-elses")),
    Ask("Node", ENCRYPT, HOME_KEY, objects(HOME)),
    Ask("Node", DECRYPT, REGION_KEY, THEIRS | via("s3") | {S3_CONTEXT: BYTES}),
    Ask("Node", DECRYPT, REGION_KEY, via("s3") | {S3_CONTEXT: BYTES}),
    Ask("Node", DECRYPT, REGION_KEY, objects(f"arn:aws:s3:::{names.bytes_bucket('other', ACCOUNT, REGION)}")),
    Ask("Node", DECRYPT, REGION_KEY.replace(ACCOUNT, "999999999999"), objects(BYTES)),
    Ask("Attendant", DECRYPT, HOME_KEY, OURS | via("dynamodb") | {TABLE_CONTEXT: names.state_table("other")}),
    Ask("Launcher", "kms:GenerateDataKeyWithoutPlaintext", REGION_KEY, THEIRS | via("ec2")),
    Ask("Launcher", "kms:CreateGrant", REGION_KEY, OURS | via("ec2")),
    Ask("Launcher", "kms:CreateGrant", REGION_KEY, OURS | via("ec2") | {"kms:GrantIsForAWSResource": "false"}),
    Ask("Launcher", "kms:CreateGrant", REGION_KEY, THEIRS | via("ec2") | GRANT),
    # What only the account's own people may do.
    *(
        Ask(who, f"kms:{action}", HOME_KEY, OURS)
        for who in ("Node", "Launcher", "Training", "Drain")
        for action in ("ScheduleKeyDeletion", "DisableKey", "PutKeyPolicy", "TagResource")
    ),
]
THINGS = {
    "read home": (DECRYPT, HOME_KEY, objects(HOME)),
    "write home": (ENCRYPT, HOME_KEY, objects(HOME)),
    "read bytes": (DECRYPT, REGION_KEY, objects(BYTES)),
    "write bytes": (ENCRYPT, REGION_KEY, objects(BYTES)),
    "use the table": (DECRYPT, HOME_KEY, OURS | via("dynamodb") | OF_THE_TABLE),
    "read queues": (DECRYPT, HOME_KEY, via("sqs")),
    "send to queues": (ENCRYPT, HOME_KEY, via("sqs")),
    "make volumes": ("kms:GenerateDataKeyWithoutPlaintext", REGION_KEY, OURS | via("ec2")),
    "grant": ("kms:CreateGrant", REGION_KEY, OURS | via("ec2") | GRANT),
}

READS, WRITES = {"read home"}, {"read home", "write home"}
TABLE = {"use the table"}
QUEUES = {"read queues", "send to queues"}
MAY: dict[str, set[str]] = {
    "Admission": WRITES | TABLE | {"read bytes"},
    "ArtifactCheck": WRITES | TABLE | {"read bytes"},
    "Attendant": TABLE | QUEUES,
    "Build": READS,
    "Child": WRITES,
    "Cleanup": WRITES | TABLE | QUEUES,
    "Drain": WRITES | TABLE,
    "GridCleanup": WRITES | QUEUES,
    "GridCollect": WRITES,
    "GridPlan": WRITES | TABLE | {"read bytes", "write bytes"},
    "ImageBuild": WRITES,
    "Launcher": WRITES | TABLE | {"make volumes", "grant"},
    "Job": READS | {"read bytes", "write bytes"},
    "Node": READS | TABLE,
    "OwnImages": WRITES,
    "PageClock": QUEUES,
    "PageWriter": WRITES | TABLE | QUEUES | {"read bytes"},
    "PlatformBuild": WRITES,
    "Reaper": TABLE | QUEUES,
    "RegionCheck": TABLE,
    "Schedule": QUEUES,
    "Search": WRITES | TABLE | {"read bytes"},
    "SearchCleanup": WRITES | QUEUES,
    "Terminator": WRITES | TABLE | {"read bytes"},
    "Training": READS | {"read bytes", "write bytes"},
}
"""Who sends to a queue, or writes an object, also decrypts: SQS the data key that it uses again, S3 the parts of an upload."""


@pytest.fixture(scope="module")
def roles(complying: Synthesised) -> dict[str, Policies]:
    return of_roles(complying)


@pytest.fixture(scope="module")
def keys(complying: Synthesised) -> dict[str, dict[str, Any]]:
    """Policies of keys by their ARNs."""
    of_region = customer_key(complying, f"region-{REGION}")
    return {HOME_KEY: customer_key(complying, "foundation"), REGION_KEY: of_region, ELSEWHERE: of_region}


def allowed(
    roles: Mapping[str, Policies], keys: Mapping[str, Mapping[str, Any]], asked: list[Ask]
) -> list[tuple[Ask, bool]]:
    """KMS asks the key's own policy as well, which leaves roles of the account to theirs."""
    requests = [replace(ask.request, resource_policy=keys.get(ask.request.resource)) for ask in asked]
    answers = simulate(roles, requests)
    assert [(str(ask), one.error, one.ignored) for ask, one in zip(asked, answers, strict=True) if one.error] == []
    return [(ask, answer.allowed) for ask, answer in zip(asked, answers, strict=True)]


def test_whoever_may_read_or_write_something_may_use_its_key_for_that_and_nobody_else_may(
    roles: dict[str, Policies], keys: dict[str, dict[str, Any]]
) -> None:
    """Every role, every use of a key."""
    everyone = [one.rpartition("/")[2].removesuffix("Role") for one in sorted(roles)]
    asked = [(who, thing) for who in everyone for thing in THINGS]
    answers = allowed(roles, keys, [Ask(who, *THINGS[thing]) for who, thing in asked])
    may = {one for one, (_, answer) in zip(asked, answers, strict=True) if answer}
    assert may == {(who, thing) for who, things in MAY.items() for thing in things}


def test_functions_and_logs_of_the_switch_may_do_their_work(
    roles: dict[str, Policies], keys: dict[str, dict[str, Any]]
) -> None:
    assert [str(ask) for ask, answer in allowed(roles, keys, NEW_ALLOWED) if not answer] == []


def test_a_key_is_no_use_to_a_role_by_itself_or_for_anything_else(
    roles: dict[str, Policies], keys: dict[str, dict[str, Any]]
) -> None:
    assert len(NEW_DENIED) > 40
    assert [str(ask) for ask, answer in allowed(roles, keys, NEW_DENIED) if answer] == []


def test_bytes_and_volumes_of_every_region_have_the_keys_of_their_regions(
    roles: dict[str, Policies], keys: dict[str, dict[str, Any]]
) -> None:
    bucket = f"arn:aws:s3:::{names.bytes_bucket('trainyard', ACCOUNT, 'us-east-1')}"
    there = [
        Ask("Job", DECRYPT, ELSEWHERE, objects(bucket, "us-east-1")),
        Ask("Training", ENCRYPT, ELSEWHERE, objects(f"{bucket}/grids/a/0/model.tar.gz", "us-east-1")),
        Ask("Launcher", "kms:CreateGrant", ELSEWHERE, OURS | via("ec2", "us-east-1") | GRANT),
    ]
    assert [str(ask) for ask, answer in allowed(roles, keys, there) if not answer] == []


def test_no_condition_on_a_key_rests_on_what_kms_never_fills_in(roles: dict[str, Policies]) -> None:
    used = [
        (action, resource.replace("*", "x"), key)
        for of_role in roles.values()
        for document in of_role.values()
        for statement in document["Statement"]
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
        if action.startswith("kms:")
        for resource in [statement["Resource"]]
        for condition in statement["Condition"].values()
        for key in condition
    ]
    known = condition_keys((action, resource) for action, resource, _ in used)
    general = [key.replace(tags.DEPLOYMENT, "${TagKey}") for _, _, key in used]
    general = [
        "kms:EncryptionContext:${EncryptionContextKey}" if "EncryptionContext" in one else one for one in general
    ]
    assert used
    assert [
        one for one, key, found in zip(used, general, known, strict=True) if key.lower() not in map(str.lower, found)
    ] == []


# The keys' own policies

LOGS, EVENTS = f"logs.{REGION}.amazonaws.com", "events.amazonaws.com"
LOGS_CONTEXT = "kms:EncryptionContext:aws:logs:arn"


def group(name: str, region: str = REGION, account: str = ACCOUNT) -> dict[str, str]:
    return {LOGS_CONTEXT: f"arn:aws:logs:{region}:{account}:log-group:{name}"}


def may(policy: Mapping[str, Any], who: str, action: str, context: Mapping[str, str]) -> bool:
    asked = Request(principal=who, action=action, resource=HOME_KEY, context=context, resource_policy=policy)
    (answer,) = simulate({}, [asked])
    assert answer.error == ""
    return answer.allowed


@pytest.mark.parametrize("key", [HOME_KEY, REGION_KEY])
@pytest.mark.parametrize("name", [names.log_group("trainyard"), "trainyard-workflow-AdmissionLog1234-AbCd"])
def test_cloudwatch_logs_encrypts_and_decrypts_our_groups(keys: dict[str, dict[str, Any]], key: str, name: str) -> None:
    assert all(may(keys[key], LOGS, action, group(name)) for action in ("kms:Encrypt", DECRYPT, ENCRYPT))


def test_cloudwatch_logs_encrypts_every_group_that_a_template_names(
    complying: Synthesised, keys: dict[str, dict[str, Any]]
) -> None:
    """Without the right CloudWatch makes no group with a key, and the deploy fails."""
    resources = [one for template in complying.stacks.values() for one in template["Resources"].values()]
    groups = [one["Properties"] for one in resources if one["Type"] == "AWS::Logs::LogGroup"]
    named = sorted({str(one["LogGroupName"]) for one in groups if "LogGroupName" in one})
    assert names.log_group("trainyard") in named
    assert [name for name in named if not may(keys[HOME_KEY], LOGS, ENCRYPT, group(name))] == []


@pytest.mark.parametrize(
    "context",
    [
        {},
        group("/aws/lambda/somebody-elses"),
        group(names.log_group("other")),
        group(names.log_group("trainyard"), "us-east-1"),
        group(names.log_group("trainyard"), REGION, "999999999999"),
    ],
)
def test_cloudwatch_logs_encrypts_nothing_else(keys: dict[str, dict[str, Any]], context: dict[str, str]) -> None:
    assert not any(
        may(keys[key], LOGS, action, context) for key in (HOME_KEY, REGION_KEY) for action in (DECRYPT, ENCRYPT)
    )


def test_rules_encrypt_messages_for_queues_at_home_and_nothing_in_regions(keys: dict[str, dict[str, Any]]) -> None:
    ours = {"aws:SourceAccount": ACCOUNT}
    assert all(may(keys[HOME_KEY], EVENTS, action, ours) for action in (DECRYPT, ENCRYPT))
    assert not any(may(keys[REGION_KEY], EVENTS, action, ours) for action in (DECRYPT, ENCRYPT))


@pytest.mark.parametrize("given", [{}, {"aws:SourceAccount": "999999999999"}])
def test_rules_of_other_accounts_use_no_key_of_ours(keys: dict[str, dict[str, Any]], given: dict[str, str]) -> None:
    assert not any(may(keys[HOME_KEY], EVENTS, action, given) for action in (DECRYPT, ENCRYPT))


@pytest.mark.parametrize(
    "who", ["s3.amazonaws.com", "sns.amazonaws.com", "logs.us-east-1.amazonaws.com", "ec2.amazonaws.com"]
)
@pytest.mark.parametrize("key", [HOME_KEY, REGION_KEY])
def test_no_other_service_uses_a_key_by_itself(keys: dict[str, dict[str, Any]], key: str, who: str) -> None:
    assert not any(may(keys[key], who, action, group(names.log_group("trainyard"))) for action in (DECRYPT, ENCRYPT))
