"""Which instance types `accelerators` stands for, and in which order."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from moto.ec2.models.instance_types import INSTANCE_TYPES

from aws.types import instance_type
from contract.errors import InvalidRequest
from job_checks import accelerators
from job_checks.machines import family
from job_requests.reading import read
from job_requests.request import JobRequest
from tests.builders import ADMISSION, IMAGE, LIMITS, PLACE
from tests.fakes.yard import home
from tests.functions.admission.account import Account, start
from tools.refusals.jobs import LEAST

TYPES = {name: instance_type(entry) for name, entry in INSTANCE_TYPES.items()}
"""As moto knows them: recorded answers of DescribeInstanceTypes."""
EVERY = [kind for kind in TYPES.values() if kind.accelerators]
ALL = replace(LIMITS, instance_types=("*",))
OFFERED = set(TYPES)
WITHOUT_TYPES = {name: value for name, value in LEAST.items() if name != "instance_types"}


def ask(text: str, **fields: Any) -> JobRequest:
    request, problems = read({**WITHOUT_TYPES, "accelerators": text, **fields}, ALL)
    assert problems == []
    return request


def matching(text: str, patterns: tuple[str, ...] = ("*",), **fields: Any) -> list[str]:
    limits = replace(LIMITS, instance_types=patterns)
    return [kind.name for kind in accelerators.list_matching(ask(text, **fields), EVERY, limits)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("H100:8", ["p5.48xlarge"]),
        ("H100:1", ["p5.4xlarge"]),
        ("A100:8", ["p4d.24xlarge", "p4de.24xlarge"]),
        ("Trainium:16", ["trn1.32xlarge", "trn1n.32xlarge"]),
        ("Trainium2:16", ["trn2.48xlarge"]),
        ("Inferentia2:1", ["inf2.xlarge", "inf2.8xlarge"]),
        ("A10G:1", ["g5.xlarge", "g5.2xlarge", "g5.4xlarge", "g5.8xlarge", "g5.16xlarge"]),
    ],
)
def test_types_with_exactly_these_are_chosen_the_smallest_first(text: str, names: list[str]) -> None:
    assert matching(text) == names


def test_capital_letters_do_not_matter() -> None:
    assert matching("h100:8") == matching("H100:8") != []


@pytest.mark.parametrize("text", ["H100:3", "H10:8", "A10:1", "V300:8", "Qualcomm AI100:8"])
def test_what_no_type_has_chooses_none(text: str) -> None:
    assert matching(text) == []


def test_a_part_of_a_gpu_is_not_one_gpu() -> None:
    assert not [name for name in matching("L4:1") if name.startswith("g6f.")]


def test_types_that_the_deployment_does_not_allow_are_never_chosen() -> None:
    assert matching("A100:8", ("p4de.*", "g*")) == ["p4de.24xlarge"]


def test_true_for_efa_leaves_out_the_types_that_have_none() -> None:
    names = matching("L4:1", efa=True)
    assert names != []
    assert all(TYPES[name].efas for name in names)


def test_true_for_efa_keeps_the_types_to_be_refused_where_none_has_it() -> None:
    assert matching("Trainium:1", efa=True) == ["trn1.2xlarge"]


def test_at_most_as_many_types_are_tried_as_a_request_may_name() -> None:
    many = [replace(TYPES["g5.xlarge"], name=f"g5.{number}xlarge", vcpus=number) for number in range(1, 20)]
    resolved = accelerators.choose_types(ask("A10G:1"), many, {kind.name for kind in many}, ALL)
    assert resolved.instance_types == [f"g5.{number}xlarge" for number in range(1, 11)]


def test_a_type_that_none_of_our_zones_offers_is_left_out() -> None:
    offered = OFFERED - {"p4d.24xlarge"}
    assert accelerators.choose_types(ask("A100:8"), EVERY, offered, ALL).instance_types == ["p4de.24xlarge"]


def test_types_that_are_offered_nowhere_are_kept_to_be_refused() -> None:
    found = accelerators.choose_types(ask("A100:8"), EVERY, (), ALL).instance_types
    assert found == ["p4d.24xlarge", "p4de.24xlarge"]


def test_a_request_that_names_types_is_left_as_it_is() -> None:
    request, _ = read(LEAST, ALL)
    assert accelerators.choose_types(request, EVERY, OFFERED, ALL) is request


def test_a_deployment_that_allows_no_accelerators_says_so() -> None:
    env = replace(ADMISSION, limits=replace(LIMITS, instance_types=("c7i.*",)))
    (line,) = accelerators.check_accelerators(ask("H100:8"), EVERY, ["eu-central-1"], env)
    assert "allowed: instance_types, because no allowed type has accelerators (limits.instance_types" in line


@pytest.mark.parametrize("name", ["trn1.2xlarge", "trn1n.32xlarge", "trn2.48xlarge", "trn2u.48xlarge", "inf2.48xlarge"])
def test_types_with_neuron_devices_start_from_the_neuron_image(name: str) -> None:
    assert family(TYPES[name]) == "neuron"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("p3dn.24xlarge", "p3"), ("p5.48xlarge", "x86_64"), ("g5g.xlarge", "arm64"), ("c7i.xlarge", "x86_64")],
)
def test_types_without_neuron_devices_start_from_the_image_of_their_own_family(name: str, wanted: str) -> None:
    assert family(TYPES[name]) == wanted


# Through Admit's function


def test_a_job_of_accelerators_is_a_job_of_the_types_that_have_them(there: Account) -> None:
    answer = start({**WITHOUT_TYPES, "accelerators": "A10G:4", "nodes": 2})
    job = there.job("job-1")
    assert job is not None
    assert {rung.instance_type for rung in job.ladder} == {"g5.12xlarge"}
    assert answer["network"] == ["g5.12xlarge: EFA, 1 device a node on 1 network interface"]
    assert list(job.interfaces) == ["g5.12xlarge"]


def test_only_the_types_of_the_ladder_have_interfaces_in_the_job(there: Account) -> None:
    start({**LEAST, "nodes": 2})
    job = there.job("job-1")
    assert job is not None
    assert job.interfaces == {}


def test_neuron_devices_are_admitted_once_the_settings_have_an_image(
    there: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINYARD_IMAGES", json.dumps({"neuron": IMAGE.id}))
    start({**WITHOUT_TYPES, "accelerators": "Trainium:1"})
    job = there.job("job-1")
    assert job is not None
    assert {rung.instance_type for rung in job.ladder} == {"trn1.2xlarge"}


def test_a_request_of_types_never_reads_all_types_of_the_region(there: Account) -> None:
    start(LEAST)
    assert all("Filters" in asked for asked in there.find_params("ec2:DescribeInstanceTypes"))


def test_accelerators_of_a_region_where_nothing_trains_look_nothing_up(there: Account) -> None:
    with pytest.raises(InvalidRequest, match="does not train in us-east-1"):
        start({**WITHOUT_TYPES, "accelerators": "A10G:1", "region": "us-east-1"})
    assert there.find_params("ec2:DescribeInstanceTypes") == []


def test_neither_field_and_both_fields_are_refused_and_change_nothing(there: Account) -> None:
    for fields, words in (
        (WITHOUT_TYPES, "instance_types: is missing"),
        ({**LEAST, "accelerators": "A10G:1"}, "one of the two"),
    ):
        with pytest.raises(InvalidRequest, match=words):
            start(fields)
    assert there.changes == []


def test_a_type_that_moved_out_of_the_zones_is_refused_by_the_field_that_asked_for_it(there: Account) -> None:
    home(there).catalogue.not_offered |= {("g5.12xlarge", zone.name) for zone in PLACE.zones}
    with pytest.raises(InvalidRequest, match=r"- accelerators: no zone of the deployment offers g5.12xlarge"):
        start({**WITHOUT_TYPES, "accelerators": "A10G:4"})
