"""Keys of the settings for disks of nodes: one that is gone, or that cannot encrypt them, ends a deploy; one that is not shown does not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from aws.key_facts import VolumeKey
from contract import names
from region_check import handler
from region_check.volume_keys import list_doubts, refuse_key
from tests.builders import PLACE
from tests.fakes.aws import ACCOUNT, Aws
from tests.fakes.cloudformation import CloudFormation
from tests.fakes.faults import Kind, Mishap
from tests.fakes.functions import Functions
from tests.fakes.yard import deployed

KEY = f"arn:aws:kms:eu-central-1:{ACCOUNT}:key/12345678-1234-1234-1234-123456789012"
AWAY = KEY.replace("eu-central-1", "us-east-1")
THEIRS = KEY.replace(ACCOUNT, "444455556666")
REPLICA = KEY.replace("key/12345678-", "key/mrk-12345678-")
SPOT_ROLE = f"arn:aws:iam::{ACCOUNT}:role/{names.SPOT_ROLE}"
GOOD = VolumeKey(state="Enabled", usage="ENCRYPT_DECRYPT", spec="SYMMETRIC_DEFAULT", spot=True)


def refusal(found: VolumeKey | None, key: str = KEY) -> str:
    return "\n".join(refuse_key(key, found))


@pytest.mark.parametrize("key", [KEY, THEIRS, REPLICA])
@pytest.mark.parametrize("state", ["Enabled", "Updating"])
def test_a_key_that_encrypts_is_let_through(key: str, state: str) -> None:
    assert refusal(replace(GOOD, state=state), key) == ""
    assert list_doubts(key, replace(GOOD, state=state), SPOT_ROLE) == []


@pytest.mark.parametrize("key", [KEY, AWAY, THEIRS, REPLICA])
def test_a_key_that_there_is_not_is_refused_by_its_field(key: str) -> None:
    said, region = refusal(None, key), key.split(":")[3]
    assert said.startswith(f"{region}: there is no key {key}; ")
    assert f"allowed: an enabled symmetric key of {region} that encrypts and decrypts" in said
    assert "regions[].volume_key in cdk.json" in said
    assert "replicate a multi-region key" in said


@pytest.mark.parametrize(
    ("state", "mend"),
    [
        ("Disabled", "enable it"),
        ("PendingDeletion", "cancel its deletion and enable it"),
        ("PendingReplicaDeletion", "cancel its deletion and enable it"),
        ("PendingImport", "import its key material"),
        ("Unavailable", "connect its key store"),
        ("Creating", "deploy again once KMS has made it"),
    ],
)
def test_a_key_that_encrypts_nothing_now_is_refused_with_what_mends_it(state: str, mend: str) -> None:
    said = refusal(replace(GOOD, state=state))
    assert f"eu-central-1: {KEY} is {state}; {mend}, or name another" in said
    assert "regions[].volume_key in cdk.json" in said


@pytest.mark.parametrize(
    ("usage", "spec"),
    [
        ("SIGN_VERIFY", "RSA_2048"),
        ("ENCRYPT_DECRYPT", "RSA_4096"),
        ("GENERATE_VERIFY_MAC", "HMAC_256"),
        ("KEY_AGREEMENT", "ECC_NIST_P256"),
    ],
)
def test_a_key_that_ebs_does_not_take_is_refused(usage: str, spec: str) -> None:
    said = refusal(replace(GOOD, usage=usage, spec=spec))
    assert f"{KEY} is a key of {spec} for {usage}, which encrypts no disk" in said


def test_a_state_that_nobody_here_knows_is_a_doubt_and_no_refusal() -> None:
    found = replace(GOOD, state="Resting")
    assert refusal(found) == ""
    (doubt,) = list_doubts(KEY, found, SPOT_ROLE)
    assert "is Resting" in doubt


def test_a_key_that_is_not_shown_is_a_doubt_and_no_refusal() -> None:
    hidden = VolumeKey(hidden="AccessDeniedException: no")
    assert refusal(hidden, THEIRS) == ""
    (doubt,) = list_doubts(THEIRS, hidden, SPOT_ROLE)
    assert f"KMS does not show {THEIRS} (AccessDeniedException: no)" in doubt


def test_a_key_without_a_grant_for_spot_is_a_doubt_that_names_the_role() -> None:
    without = replace(GOOD, spot=False)
    assert refusal(without) == ""
    (doubt,) = list_doubts(KEY, without, SPOT_ROLE)
    assert (
        f"no grant lets {SPOT_ROLE} use {KEY}, so spot nodes end as they start unless the key's policy names" in doubt
    )


def test_grants_that_are_not_shown_are_a_doubt() -> None:
    (doubt,) = list_doubts(KEY, replace(GOOD, spot=None), SPOT_ROLE)
    assert "whether spot nodes may use it was not checked" in doubt


def test_a_key_that_is_refused_causes_no_doubt_about_spot() -> None:
    assert list_doubts(KEY, None, SPOT_ROLE) == []
    assert list_doubts(KEY, replace(GOOD, state="Disabled", spot=False), SPOT_ROLE) == []


# The function


def described(**changes: str) -> dict[str, Any]:
    metadata = {"KeyId": "1", "KeyState": "Enabled", "KeyUsage": "ENCRYPT_DECRYPT", "KeySpec": "SYMMETRIC_DEFAULT"}
    return {"DescribeKey": {"KeyMetadata": metadata | changes}, "ListGrants": granted(SPOT_ROLE)}


def granted(*principals: str) -> dict[str, Any]:
    return {"Grants": [{"GrantId": one, "GranteePrincipal": one} for one in principals], "Truncated": False}


@dataclass
class Yard:
    aws: Aws
    functions: Functions
    cloudformation: CloudFormation

    def ask(self, *keys: str, mishaps: tuple[Mishap, ...] = ()) -> str:
        properties = {"Regions": [PLACE.region], "VolumeKeys": list(keys)}
        request = self.cloudformation.request("Create", properties, stack="yard-workflow")
        assert self.functions.invoke("region_check", request, mishaps).error == ""
        return str(self.cloudformation.answers[-1]["Reason"])

    def looks(self) -> list[tuple[str, str, str]]:
        kms = [one for one in self.aws.calls if one.service == "kms"]
        return [(one.operation, one.region, one.params["KeyId"]) for one in kms]


@pytest.fixture
def yard(cloudformation: CloudFormation) -> Iterator[Yard]:
    aws = deployed()
    aws.volume_keys = {KEY: described(), AWAY: described()}
    found = Yard(aws, Functions(aws), cloudformation)
    with found.functions.installed():
        yield found


def test_keys_are_described_in_their_own_regions_and_let_through(yard: Yard) -> None:
    assert yard.ask(KEY, AWAY) == ""
    assert sorted(yard.looks()) == sorted(
        (operation, region, key)
        for region, key in (("eu-central-1", KEY), ("us-east-1", AWAY))
        for operation in ("DescribeKey", "ListGrants")
    )
    assert yard.aws.changes == []


def test_without_keys_in_the_settings_kms_is_not_asked(yard: Yard) -> None:
    assert yard.ask() == ""
    assert yard.looks() == []


def test_every_key_that_is_wrong_fails_the_deploy_by_itself(yard: Yard) -> None:
    yard.aws.volume_keys = {KEY: described(KeyState="Disabled")}
    said = yard.ask(KEY, AWAY)
    assert f"{KEY} is Disabled; enable it" in said
    assert f"us-east-1: there is no key {AWAY}" in said


@pytest.mark.parametrize("fault", [Kind.ERROR, Kind.UNREACHABLE])
def test_a_key_of_which_kms_says_nothing_is_not_taken_for_a_good_one(yard: Yard, fault: Kind) -> None:
    said = yard.ask(KEY, mishaps=(Mishap("kms:DescribeKey", times=math.inf, fault=fault),))
    assert f"eu-central-1: {KEY} could not be checked" in said
    assert "Deploy again once the region answers" in said


def test_a_key_that_may_not_be_described_fails_no_deploy(yard: Yard) -> None:
    assert yard.ask(THEIRS, mishaps=(Mishap("kms:DescribeKey", times=math.inf, fault=Kind.DENIED),)) == ""


@pytest.mark.parametrize("fault", [Kind.DENIED, Kind.ERROR, Kind.UNREACHABLE])
def test_grants_that_may_not_be_listed_fail_no_deploy(yard: Yard, fault: Kind) -> None:
    assert yard.ask(KEY, mishaps=(Mishap("kms:ListGrants", times=math.inf, fault=fault),)) == ""


@pytest.mark.parametrize("principals", [(), (SPOT_ROLE.replace(ACCOUNT, "444455556666"),), (f"{SPOT_ROLE}Fleet",)])
def test_a_key_without_a_grant_for_spot_fails_no_deploy(yard: Yard, principals: tuple[str, ...]) -> None:
    yard.aws.volume_keys[KEY]["ListGrants"] = granted(*principals)
    assert yard.ask(KEY) == ""


def test_doubts_are_warnings_in_the_log(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []
    monkeypatch.setattr(handler.logger, "warning", lambda *_, doubts: said.extend(doubts))
    yard.aws.volume_keys[KEY]["ListGrants"] = granted()
    assert yard.ask(KEY, AWAY) == ""
    (doubt,) = said
    assert f"no grant lets {SPOT_ROLE} use {KEY}" in doubt
