"""An account that encrypts volumes under a key of its own: told before anything is launched."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contract.errors import InvalidRequest
from tests.builders import PLACE
from tests.fakes.faults import Kind
from tests.fakes.yard import admits, home
from tests.functions.admission.account import Account, start
from tools.refusals.jobs import LEAST

OWN = "arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"


def test_a_key_of_the_accounts_own_is_refused_with_the_way_out(there: Account) -> None:
    home(there).volume_key = OWN
    with pytest.raises(InvalidRequest) as problem:
        start(LEAST)
    (line,) = str(problem.value).splitlines()[1:]
    assert line.startswith(f"- region: in eu-central-1 the account encrypts volumes under a key of its own ({OWN})")
    assert line.endswith("or that names the key as volume_key in cdk.json (docs/guides/landing-zones.md)")
    assert there.changes == []


@pytest.mark.parametrize("key", ["alias/aws/ebs", "arn:aws:kms:eu-central-1:123456789012:alias/aws/ebs", ""])
def test_awss_own_key_is_taken_and_so_is_an_account_that_does_not_say(there: Account, key: str) -> None:
    if key:
        home(there).volume_key = key
    else:
        there.faults.add(Kind.DENIED, "ec2:GetEbsDefaultKmsKeyId")
    start(LEAST)
    assert there.job("job-1") is not None


def test_a_region_in_which_the_deployment_does_not_train_is_not_asked(there: Account) -> None:
    home(there).volume_key = OWN
    with pytest.raises(InvalidRequest) as problem:
        start({**LEAST, "region": "us-west-2"})
    assert OWN not in str(problem.value)
    assert there.find_params("ec2:GetEbsDefaultKmsKeyId") == []


def test_a_deployment_with_a_key_of_its_own_in_the_region_does_not_mind_the_accounts(there: Account) -> None:
    home(there).volume_key = OWN
    admits(there, [replace(PLACE, volume_key=OWN.replace("1234abcd", "aaaaaaaa"))])
    start(LEAST)
    job = there.job("job-1")
    assert job is not None
    assert job.places[PLACE.region].volume_key.endswith("aaaaaaaa-12ab-34cd-56ef-1234567890ab")
