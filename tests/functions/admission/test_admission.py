"""What Admit makes of a good request, and what it takes as it stands although it looks odd."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from admission.policy import admit
from aws.ec2 import Ec2
from aws.facts import Card, InstanceType, Object
from contract.errors import InvalidRequest
from contract.places import Place
from job_checks.facts import Execution, RegionFacts, RequestFacts
from job_requests.reading import read
from job_requests.request import JobRequest
from localaws.model import Refused
from tests.builders import ADMISSION, IMAGE, NOW, PLACE
from tests.fakes.faults import Kind
from tests.fakes.wire import Call
from tests.fakes.yard import ABROAD, home
from tests.functions.admission.account import GOOD, Account, start
from tools.refusals.jobs import LEAST
from tools.refusals.jobs.table import SECRET

ROOT = Path(__file__).parents[3]
EXECUTION = Execution(
    arn="arn:aws:states:eu-central-1:123456789012:execution:yard-train:job-1", name="job-1", started_at=NOW
)
HOME = RegionFacts(
    place=PLACE,
    types={"g5.xlarge": InstanceType(name="g5.xlarge", architectures=("x86_64",), cluster=True)},
    zones={"g5.xlarge": {"eu-central-1a", "eu-central-1c"}},
    images={"x86_64": IMAGE},
)
FACTS = RequestFacts(
    regions={PLACE.region: HOME},
    code=Object(bucket="yard-home", key="uploads/a.tar.gz", size=1000, version="v1"),
)
ODD = "a'b\"c $HOME `id` ;rm -rf / \n{% $states.input %} \u202ertl é \U0001f600 \x1b[31m"
ODD_KEY = "uploads/a'b\"c $HOME `id`;rm -rf {% $states.input %} \u202ertl é?#%2F+.tar.gz"


def with_home(**changes: Any) -> RequestFacts:
    """What AWS says of the home region is another thing."""
    return replace(FACTS, regions={PLACE.region: replace(HOME, **changes)})


def ask(**fields: Any) -> JobRequest:
    request, problems = read({**LEAST, **fields}, ADMISSION.limits)
    assert problems == []
    return request


def test_the_least_request_becomes_a_job_with_sensible_defaults() -> None:
    job = admit(ask(), EXECUTION, FACTS, ADMISSION)
    assert (job.nodes, job.max_hours, job.volume_gb, job.checkpoint_minutes) == (1, 24.0, 100, 10.0)
    assert job.deadline == NOW + 24 * 3600
    assert [rung.zone for rung in job.ladder] == ["eu-central-1a", "eu-central-1c"]
    assert job.code is not None
    assert job.code.key == "jobs/job-1/code/code.tar.gz"
    assert job.code.source_version == "v1"


def test_whole_numbers_may_be_written_as_fractions() -> None:
    job = admit(
        ask(nodes=2.0, volume_gb=200.0, retries={"times": 3.0, "exit_codes": [75.0]}), EXECUTION, FACTS, ADMISSION
    )
    written = json.dumps([job.nodes, job.volume_gb, job.retries.times, job.retries.exit_codes])
    assert written == "[2, 200, 3, [75]]"


@pytest.mark.parametrize("value", [1.5, "2.0", True, float("nan"), float("inf"), -1.0, 0.0])
@pytest.mark.parametrize("field", ["nodes", "volume_gb"])
def test_no_other_value_is_a_whole_number(field: str, value: object) -> None:
    _, problems = read({**LEAST, field: value}, ADMISSION.limits)
    assert [one.partition(":")[0] for one in problems] == [field]


@pytest.mark.parametrize("size", [10**400, 1e300])
def test_a_disk_beyond_all_disks_is_refused_in_words(size: float) -> None:
    with pytest.raises(InvalidRequest, match=r"volume_gb: 10*[0-9]*\.\.\. is too large"):
        admit(ask(volume_gb=size), EXECUTION, FACTS, ADMISSION)


def test_a_deep_check_knows_what_the_network_of_each_type_always_gives() -> None:
    card = Card(index=0, most=4, types=("interface",), gbps=2.5)
    facts = with_home(types={"g5.xlarge": replace(HOME.types["g5.xlarge"], cards=(card,))})
    limits = replace(ADMISSION.limits, network_share=0.1)
    job = admit(ask(health="deep"), EXECUTION, facts, replace(ADMISSION, limits=limits))
    assert (job.network, job.network_share) == ({"g5.xlarge": 2.5}, 0.1)
    assert admit(ask(health="deep"), EXECUTION, FACTS, ADMISSION).network == {}


@pytest.mark.parametrize("health", ["quick", "off"])
def test_another_check_needs_no_rate(health: str) -> None:
    card = Card(index=0, most=4, types=("interface",), gbps=2.5)
    facts = with_home(types={"g5.xlarge": replace(HOME.types["g5.xlarge"], cards=(card,))})
    assert admit(ask(health=health), EXECUTION, facts, ADMISSION).network == {}


def test_nodes_know_the_rate_of_the_card_by_which_they_reach_s3_and_of_no_other() -> None:
    first, second = (Card(index=index, most=4, types=("interface",), gbps=100.0) for index in (0, 1))
    facts = with_home(types={"g5.xlarge": replace(HOME.types["g5.xlarge"], cards=(first, second))})
    assert admit(ask(), EXECUTION, facts, ADMISSION).uplinks == {"g5.xlarge": 100.0}
    assert admit(ask(), EXECUTION, FACTS, ADMISSION).uplinks == {}


def test_the_nodes_meet_at_the_port_of_the_settings() -> None:
    assert admit(ask(), EXECUTION, FACTS, ADMISSION).master_port == 29500
    assert admit(ask(), EXECUTION, FACTS, replace(ADMISSION, master_port=4000)).master_port == 4000


def test_a_job_runs_where_the_request_says_with_that_regions_place_image_and_zones(
    there: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINYARD_REGIONS", json.dumps(["eu-central-1", ABROAD.region]))
    start({**LEAST, "region": ABROAD.region})
    job = there.job("job-1")
    assert job is not None
    assert job.places == {ABROAD.region: ABROAD}
    assert {(rung.region, rung.zone) for rung in job.ladder} == {(ABROAD.region, ABROAD.zones[0].name)}
    assert job.home_region == "eu-central-1"
    assert there.regions("ec2") == there.regions("ssm") == {ABROAD.region}


def test_a_job_without_a_region_runs_at_home(there: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINYARD_REGIONS", json.dumps([ABROAD.region, "eu-central-1"]))
    start(LEAST)
    job = there.job("job-1")
    assert job is not None
    assert job.places == {"eu-central-1": PLACE}
    assert there.regions("ec2") == there.regions("ssm") == {"eu-central-1"}


def test_nothing_is_looked_up_in_a_region_where_the_deployment_does_not_train(there: Account) -> None:
    with pytest.raises(InvalidRequest) as problem:
        start({**LEAST, "region": "us-east-1", "instance_types": ["g9.huge"]})
    (line,) = str(problem.value).split("\n")[1:]
    assert "the deployment does not train in us-east-1; allowed: eu-central-1" in line
    assert there.regions("ec2") == there.regions("ssm") == set()


def test_a_region_whose_stack_serves_the_grid_alone_trains_nothing() -> None:
    place = Place(region="eu-central-1", bucket="yard-bytes")
    with pytest.raises(InvalidRequest, match=r"has no Region stack that trains .* has no zones"):
        admit(ask(), EXECUTION, with_home(place=place), ADMISSION)


def test_one_node_needs_no_placement_group_and_two_get_one() -> None:
    assert not admit(ask(), EXECUTION, FACTS, ADMISSION).ladder[0].cluster
    assert admit(ask(nodes=2), EXECUTION, FACTS, ADMISSION).ladder[0].cluster


def test_a_large_image_enlarges_the_default_volume() -> None:
    facts = with_home(images={"x86_64": replace(IMAGE, snapshot_gb=150)})
    assert admit(ask(), EXECUTION, facts, ADMISSION).volume_gb == 150


@pytest.mark.parametrize("owner", ["amazon", "123456789012", "444455556666"])
def test_an_image_of_aws_of_the_account_or_of_an_owner_in_the_settings_is_taken(owner: str) -> None:
    facts = with_home(images={"x86_64": replace(IMAGE, owner=owner)})
    assert {rung.image.owner for rung in admit(ask(), EXECUTION, facts, ADMISSION).ladder} == {owner}


@pytest.mark.parametrize("owner", ["999988887777", "aws-marketplace", "Amazon", ""])
def test_an_image_that_the_launcher_may_not_use_is_refused_before_anything_starts(owner: str) -> None:
    facts = with_home(images={"x86_64": replace(IMAGE, owner=owner)})
    with pytest.raises(
        InvalidRequest, match=r"allowed: images of amazon, 123456789012, 444455556666 \(image_owners in"
    ):
        admit(ask(), EXECUTION, facts, ADMISSION)


def test_the_owner_and_all_devices_of_an_image_are_as_ec2_tells_them(there: Account) -> None:
    catalogue = home(there).catalogue
    catalogue.image_owners[IMAGE.id] = "444455556666"
    catalogue.further_devices[IMAGE.id] = ("/dev/sdf", "/dev/sdg")
    image = Ec2("eu-central-1").image(IMAGE.id)
    assert image == replace(IMAGE, owner="444455556666", further_devices=("/dev/sdf", "/dev/sdg"))


def test_a_command_given_as_text_is_split_as_a_shell_splits_words_and_nothing_is_expanded() -> None:
    words = ask(command="python train.py --name 'a b' '$HOME;ls' \"*.py\" '`id`' \\# no comment").command
    assert words == ["python", "train.py", "--name", "a b", "$HOME;ls", "*.py", "`id`", "#", "no", "comment"]


def test_odd_text_in_every_free_field_is_in_job_json_as_it_was_given(there: Account) -> None:
    there.put(ODD_KEY, GOOD)
    there.s3.write("datasets", f"{ODD_KEY}/0", b"0")
    data = [f"s3://datasets/{ODD_KEY}/"]
    start(
        {
            **LEAST,
            "code": f"s3://yard-home/{ODD_KEY}",
            "command": ["python", "-c", ODD, ""],
            "environment": {"ODD": ODD, "NOTHING": ""},
            "data": data,
        }
    )
    job = there.job("job-1")
    assert job is not None
    assert job.code is not None
    assert job.code.source == f"s3://yard-home/{ODD_KEY}"
    assert (job.command, job.environment, list(job.data)) == (
        ("python", "-c", ODD, ""),
        {"ODD": ODD, "NOTHING": ""},
        data,
    )


@pytest.mark.parametrize(
    "owner", ["", "Ada Lovelace", "עדה@example.com", "équipe-ml/a.b_c:d=e+f", "ａｄａ 7", "a" * 128]
)
def test_an_owner_may_be_what_aws_takes_in_a_tag(there: Account, owner: str) -> None:
    start({**LEAST, "owner": owner})
    job = there.job("job-1")
    assert job is not None
    assert job.owner == owner


def test_a_secret_of_the_deployments_path_is_handed_on_by_its_name_alone(there: Account) -> None:
    start({**LEAST, "secrets": {"TOKEN": f"{SECRET}team+a=b@c.d_e/token"}})
    job = there.job("job-1")
    assert job is not None
    assert job.secrets == {"TOKEN": f"{SECRET}team+a=b@c.d_e/token"}
    assert there.find_params("secretsmanager:GetSecretValue") == []


def test_arguments_and_values_as_long_as_promised_are_admitted(there: Account) -> None:
    start({**LEAST, "command": ["python", "train.py", "é" * 64_000], "environment": {"A": "x" * 100_000}})
    assert there.job("job-1") is not None


@pytest.mark.usefixtures("there")
def test_whole_hours_and_fractions_are_both_hours() -> None:
    assert (
        start({**LEAST, "max_hours": 2})["deadline"] - start({**LEAST, "max_hours": 0.5}, "job-2")["deadline"] == 5400
    )


def test_an_archived_object_that_was_restored_is_admitted(there: Account) -> None:
    restored = 'ongoing-request="false", expiry-date="Fri, 22 Jan 2027 00:00:00 GMT"'
    start({**LEAST, "code": there.upload("cold.tar.gz", GOOD, storage_class="GLACIER", restore=restored)})
    assert there.job("job-1") is not None


@pytest.mark.parametrize("code", ["SlowDown", "InternalError", "RequestTimeout"])
@pytest.mark.parametrize("call", ["CopyObject", "HeadObject", "ListObjectsV2"])
def test_trouble_of_s3_is_no_refusal_and_the_next_try_takes_the_request(
    there: Account, monkeypatch: pytest.MonkeyPatch, call: str, code: str
) -> None:
    request, honest = {**LEAST, "data": ["s3://datasets/imagenet/"]}, there.s3.answer

    def refused(asked: Call) -> dict[str, Any]:
        if asked.operation == call:
            raise Refused(code, "", 503)
        return honest(asked)

    with monkeypatch.context() as patch:
        patch.setattr(there.s3, "answer", refused)
        with pytest.raises(ClientError, match="503" if call == "HeadObject" else code):  # an answer without a body
            start(request)
    assert start(request)["job"] == "job-1"
    assert there.s3.read("yard-home", "jobs/job-1/code/code.tar.gz") == GOOD


def test_an_archive_that_may_not_be_copied_is_a_refusal(there: Account) -> None:
    there.faults.add(Kind.DENIED, "s3:CopyObject")
    with pytest.raises(InvalidRequest, match="could not be copied"):
        start(LEAST)
