"""Images that a request names; wrong names are in the table of refusals."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from contract.errors import InvalidRequest
from contract.jobs import Job
from tests.builders import IMAGE
from tests.fakes.yard import ABROAD, home
from tests.functions.admission.account import GRAVITON, Account, account, start
from tools.refusals.jobs import LEAST

DIGITS = {**LEAST, "machine_image": "digits"}


@pytest.fixture
def there() -> Iterator[Account]:
    with account() as opened:
        yield opened


def admitted(there: Account) -> Job:
    job = there.job("job-1")
    assert job is not None
    return job


def test_every_rung_starts_from_the_named_image(there: Account) -> None:
    start(DIGITS)
    assert {rung.image for rung in admitted(there).ladder} == {IMAGE}


def test_an_image_for_arm_runs_on_arm(there: Account) -> None:
    start({**LEAST, "instance_types": ["t4g.large"], "machine_image": "graviton"})
    assert {rung.image.id for rung in admitted(there).ladder} == {GRAVITON}


def test_a_type_of_the_request_for_other_processors_is_refused_although_another_fits(there: Account) -> None:
    with pytest.raises(InvalidRequest, match=r"machine_image: t4g\.large would start from"):
        start({**LEAST, "instance_types": ["t4g.large", "g5.xlarge"], "machine_image": "digits"})
    assert there.changes == []


def test_a_region_without_the_image_is_left_out_where_any_region_will_do(there: Account) -> None:
    del there.directory.parameters[ABROAD.region, "/aws/service/x"]
    start({**DIGITS, "regions": "auto"})
    assert {rung.region for rung in admitted(there).ladder} == {"eu-central-1"}


def test_an_image_of_an_owner_who_is_not_trusted_is_refused(there: Account) -> None:
    home(there).catalogue.image_owners[IMAGE.id] = "999999999999"
    with pytest.raises(InvalidRequest, match="an image of 999999999999"):
        start(DIGITS)
    assert there.changes == []


def test_an_image_is_asked_for_once_however_many_types_there_are(there: Account) -> None:
    start({**DIGITS, "instance_types": ["g5.xlarge", "g4dn.xlarge"]})
    assert len(there.find_params("ec2:DescribeImages")) == 1


def test_an_unknown_name_is_told_once(there: Account) -> None:
    with pytest.raises(InvalidRequest) as problem:
        start({**LEAST, "machine_image": "nothing"})
    assert str(problem.value).count("machine_image: ") == 1
    assert there.find_params("ssm:GetParameter")
