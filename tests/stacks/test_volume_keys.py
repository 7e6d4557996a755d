"""Disks of nodes under a key that the settings name, or under the deployment's: who may use it, for what, and on spot too."""

from __future__ import annotations

from typing import Any

import pytest

from localaws.iam.simulator import Policies, Request, simulate
from stacks.settings import BLOCK, BadSettings, Settings
from tests.security.asking import SPOT_ROLE, Ask
from tests.security.policies import ACCOUNT, REGION, customer_key, of_roles, role
from tests.stacks.synth import only, place_of, resources, rights
from tools.configurations import AWAY, GRID, HOME
from tools.synthesis import CONTEXT, Synthesised, synthesise_once

KEY = f"arn:aws:kms:{HOME}:444455556666:key/12345678-1234-1234-1234-123456789012"
"""Of another account, as that of a security team."""
OTHER = KEY.replace("12345678-", "87654321-")
REGIONS = [
    {"region": HOME, "cidr": "10.70.0.0/16", "volume_key": KEY},
    {"region": AWAY, "cidr": "10.71.0.0/16"},
    {"region": GRID},
]
VIA = {"kms:ViaService": f"ec2.{REGION}.amazonaws.com"}
GRANT = {"kms:GrantIsForAWSResource": "true"}
USES = ("Decrypt", "DescribeKey", "GenerateDataKeyWithoutPlaintext", "ReEncryptFrom", "ReEncryptTo")


@pytest.fixture(scope="module")
def keyed() -> Synthesised:
    return synthesise_once(regions=REGIONS)


@pytest.fixture(scope="module")
def complying() -> Synthesised:
    return synthesise_once(regions=REGIONS, compliance=True)


def refusal(**region: Any) -> str:
    home = {"region": HOME, "cidr": "10.70.0.0/16"}
    with pytest.raises(BadSettings) as problem:
        Settings.parse(
            CONTEXT[BLOCK] | {"regions": [home | region] if region.get("region", HOME) == HOME else [home, region]}
        )
    return str(problem.value)


# The settings


@pytest.mark.parametrize(
    "key",
    [
        "alias/ebs",
        KEY.replace("key/", "alias/"),
        KEY.replace(":kms:", ":iam:"),
        f"{KEY}\n",
        KEY.rpartition("/")[2],
        f"{KEY}*",
    ],
)
def test_what_is_no_arn_of_a_key_is_refused(key: str) -> None:
    assert "allowed: the ARN of a key of KMS, not of its alias" in refusal(volume_key=key)


def test_a_key_of_another_region_is_refused() -> None:
    assert f"the volume_key of {HOME} is of us-east-1; allowed: a key of {HOME}" in refusal(
        volume_key=KEY.replace(HOME, AWAY)
    )


def test_a_key_where_no_nodes_run_is_refused() -> None:
    assert f"{AWAY} has a volume_key and no nodes" in refusal(region=AWAY, volume_key=KEY.replace(HOME, AWAY))


# What a launch names, and who may use it


def test_launches_name_the_key_of_the_settings_in_its_region_alone(keyed: Synthesised) -> None:
    assert place_of(keyed, HOME).volume_key == KEY
    assert place_of(keyed, AWAY).volume_key == ""


def test_with_compliance_it_goes_before_the_deployments_key(complying: Synthesised) -> None:
    assert place_of(complying, HOME).volume_key == KEY
    assert place_of(complying, AWAY).volume_key.startswith("<Key")


def judge_asks(*asks: Ask, roles: dict[str, Policies]) -> list[bool]:
    """KMS asks the key's own policy as well; that of another account's key lets our account in."""
    shared: dict[str, Any] = {
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
                "Action": "kms:*",
                "Resource": "*",
            }
        ]
    }
    answers = simulate(
        roles,
        [
            Request(
                principal=one.request.principal,
                action=one.action,
                resource=one.resource,
                context=one.request.context,
                resource_policy=shared,
            )
            for one in asks
        ],
    )
    assert [one.error for one in answers] == [""] * len(answers)
    return [one.allowed for one in answers]


def test_the_launcher_may_encrypt_volumes_under_it_through_ec2(keyed: Synthesised) -> None:
    allowed = [Ask("Launcher", f"kms:{use}", KEY, VIA) for use in USES]
    assert all(judge_asks(*allowed, Ask("Launcher", "kms:CreateGrant", KEY, VIA | GRANT), roles=of_roles(keyed)))


DENIED = [
    *(Ask("Launcher", f"kms:{use}", KEY) for use in USES),
    *(Ask("Launcher", f"kms:{use}", KEY, {"kms:ViaService": f"s3.{REGION}.amazonaws.com"}) for use in USES),
    *(Ask("Launcher", f"kms:{use}", OTHER, VIA) for use in USES),
    Ask("Launcher", "kms:CreateGrant", KEY, VIA),
    Ask("Launcher", "kms:CreateGrant", KEY, GRANT),
    Ask("Launcher", "kms:CreateGrant", OTHER, VIA | GRANT),
    Ask("Launcher", "kms:GenerateDataKey", KEY, VIA),
    Ask("Launcher", "kms:PutKeyPolicy", KEY, VIA),
    Ask("Launcher", "kms:RevokeGrant", KEY, VIA | GRANT),
    *(
        Ask(who, "kms:Decrypt", KEY, VIA)
        for who in ("Node", "Job", "Attendant", "Admission", "Reaper", "Drain", "Training")
    ),
]


def test_nobody_may_use_it_otherwise(keyed: Synthesised) -> None:
    assert [str(one) for one, may in zip(DENIED, judge_asks(*DENIED, roles=of_roles(keyed)), strict=True) if may] == []


def test_without_a_key_in_the_settings_the_launcher_has_no_such_right(deployment: Synthesised) -> None:
    assert [
        one.name for one in rights(deployment.template("workflow"), "Launcher") if "kms:" in "".join(one.actions)
    ] == []


# The region check, which looks at the key before anything is launched


def test_a_deploy_asks_for_each_key_of_the_settings_and_again_when_they_change(keyed: Synthesised) -> None:
    assert only(keyed.template("workflow"), "Custom::Regions")["VolumeKeys"] == [KEY]


def test_the_region_check_may_look_at_these_keys_alone_and_use_none(keyed: Synthesised) -> None:
    looks = ("kms:DescribeKey", "kms:ListGrants")
    denied = [
        *(Ask("RegionCheck", look, OTHER) for look in looks),
        *(
            Ask("RegionCheck", f"kms:{use}", KEY, context)
            for use in USES
            if use != "DescribeKey"
            for context in ({}, VIA)
        ),
        *(Ask("RegionCheck", f"kms:{one}", KEY, VIA | GRANT) for one in ("CreateGrant", "RetireGrant", "RevokeGrant")),
        *(
            Ask("RegionCheck", f"kms:{one}", KEY)
            for one in ("EnableKey", "PutKeyPolicy", "GetKeyPolicy", "CancelKeyDeletion")
        ),
    ]
    roles = of_roles(keyed)
    assert all(judge_asks(*(Ask("RegionCheck", look, KEY) for look in looks), roles=roles))
    assert not any(judge_asks(*denied, roles=roles))


def test_without_a_key_in_the_settings_the_region_check_asks_kms_nothing(deployment: Synthesised) -> None:
    template = deployment.template("workflow")
    assert "VolumeKeys" not in only(template, "Custom::Regions")
    assert [one.name for one in rights(template, "RegionCheck") if "kms:" in "".join(one.actions)] == []


# Spot, which a role of AWS launches


@pytest.fixture(scope="module")
def policy(complying: Synthesised) -> dict[str, Any]:
    """Of the deployment's key in a region where nodes run."""
    return customer_key(complying, f"region-{AWAY}")


def spot(
    action: str, policy: dict[str, Any], *, principal: str = SPOT_ROLE, account: str = ACCOUNT, **context: str
) -> bool:
    (answer,) = simulate(
        {principal: {}},
        [
            Request(
                principal=principal,
                action=f"kms:{action}",
                resource=f"arn:aws:kms:{AWAY}:{ACCOUNT}:key/1",
                context={"kms:CallerAccount": account, "aws:PrincipalArn": principal, **context},
                resource_policy=policy,
            )
        ],
    )
    assert answer.error == ""
    return answer.allowed


@pytest.mark.parametrize("use", [*USES, "Encrypt", "GenerateDataKey"])
def test_awss_role_for_spot_may_encrypt_disks_under_the_deployments_key(policy: dict[str, Any], use: str) -> None:
    assert spot(use, policy)


def test_it_may_grant_to_services_of_aws_alone(policy: dict[str, Any]) -> None:
    assert spot("CreateGrant", policy, **GRANT)
    assert not spot("CreateGrant", policy)
    assert not spot("CreateGrant", policy, **{"kms:GrantIsForAWSResource": "false"})


@pytest.mark.parametrize(
    "principal",
    [
        role("Node"),
        f"arn:aws:iam::{ACCOUNT}:role/AWSServiceRoleForEC2Spot",
        SPOT_ROLE.replace(ACCOUNT, "444455556666"),
        SPOT_ROLE.replace("EC2Spot", "EC2SpotFleet"),
    ],
)
def test_no_other_role_may_by_the_keys_policy(policy: dict[str, Any], principal: str) -> None:
    for use in USES:
        assert not spot(use, policy, principal=principal)
    assert not spot("CreateGrant", policy, principal=principal, **GRANT)


@pytest.mark.parametrize("action", ["PutKeyPolicy", "ScheduleKeyDeletion", "DisableKey", "RevokeGrant"])
def test_it_may_do_nothing_else_with_the_key(policy: dict[str, Any], action: str) -> None:
    assert not spot(action, policy, **GRANT)


def test_keys_that_encrypt_no_disks_let_it_do_nothing(complying: Synthesised) -> None:
    for stack in ("foundation", f"region-{GRID}"):
        for key in resources(complying.template(stack), "AWS::KMS::Key").values():
            assert "Spot" not in "".join(one.get("Sid", "") for one in key["KeyPolicy"]["Statement"])
