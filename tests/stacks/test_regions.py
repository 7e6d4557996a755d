"""Several regions: each stands alone, goes in the right order, and as many as the settings take fit into what AWS takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from contract import names
from stacks import forms
from stacks.network_settings import MOST_REGIONS
from tests.stacks.synth import (
    MANAGED_CHARACTERS,
    MANAGED_POLICY,
    ROLE_CHARACTERS,
    artifacts,
    every,
    only,
    place_of,
    resolved,
    resources,
    size,
    stacks,
)
from tools.configurations import AWAY, GRID, HOME, READER_ACCOUNT, READER_ORGANIZATION
from tools.synthesis import Synthesised, synthesise

PULLING = {"ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"}
LONGEST = "abcdefghijklmnopqrst"
"""Name of a deployment."""
VARIABLES_BYTES = 4_096
TEMPLATE_BYTES, TEMPLATE_RESOURCES = 1_000_000, 500


@contextmanager
def known(regions: list[str]) -> Iterator[None]:
    """The CDK's table has these regions meanwhile."""
    table = SimpleNamespace(
        Fact=SimpleNamespace(regions=regions),
        RegionInfo=SimpleNamespace(get=lambda _: SimpleNamespace(partition="aws")),
    )
    caches = (forms.known_regions, forms.partition)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forms, "region_info", table)
        for one in caches:
            one.cache_clear()
        yield
    for one in caches:
        one.cache_clear()


@pytest.fixture(scope="module")
def most(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """As many regions as the settings take, more than AWS has today, all of them training, with long names and everything else at
    its largest."""
    away = [f"{continent}-southeast-{number}" for continent in ("ap", "ca", "mx", "us") for number in range(10)]
    cidrs = [{"region": one, "cidr": f"10.{n}.0.0/16"} for n, one in enumerate([HOME, *away][:MOST_REGIONS])]
    with known([HOME, *away]):
        return synthesise(
            tmp_path_factory.mktemp("most"),
            deployment=LONGEST,
            regions=cidrs,
            repositories=[f"repository-of-quite-a-long-name-{n}" for n in range(10)],
            # A region by itself is measured in test_security_groups.py and test_resources.py; forty large ones took half a minute.
            placement_groups_per_zone=1,
            network={"security_groups_per_region": 1},
            keep_data=False,
            compliance=True,
            data_buckets=["imagenet", "laion"],
            job_roles={
                f"role-of-a-long-na-{n:02}": f"arn:aws:iam::444455556666:role/{'p' * 60}/{'r' * 33}-{n:02}"
                for n in range(20)
            },
            machine_images={f"image-{n}": f"/{'p' * 48}/{n}" for n in range(3)},
            copy_accounts=[f"{n:012}" for n in range(20)],
            git_hosts={f"git-{n}.com": f"token-{n}" for n in range(5)},
            image_readers={
                "accounts": [f"{n:012}" for n in range(100)],
                "organizations": [f"o-{n:032}" for n in range(20)],
            },
        )


def needs(deployment: Synthesised) -> dict[str, set[str]]:
    """Stack to the stacks that are deployed before it, and destroyed after it."""
    manifest = artifacts(deployment)
    return {stack: set(manifest[stack]["dependencies"]) & deployment.stacks.keys() for stack in deployment.stacks}


def names_in(value: Any, key: str) -> Iterator[Any]:
    """Whatever stands under a key, anywhere."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == key:
                yield inner
            yield from names_in(inner, key)
    elif isinstance(value, list):
        for one in value:
            yield from names_in(one, key)


# Each stands alone


def test_every_region_of_the_settings_has_its_stack(three: Synthesised) -> None:
    assert three.stacks.keys() == stacks("trainyard", HOME, AWAY, GRID)


@pytest.mark.parametrize("region", [HOME, AWAY, GRID])
def test_no_region_refers_to_another_stack(three: Synthesised, region: str) -> None:
    template, text = three.template(f"region-{region}"), three.text(f"region-{region}")
    assert list(names_in(template, "Fn::ImportValue")) == []
    assert list(names_in(template, "Fn::GetStackOutput")) == []
    lent = json.dumps(list(names_in(template.get("Outputs", {}), "Export")))
    assert lent == "[]" or region == HOME, "home lends its network to the grid's children"
    assert "Network" in lent or lent == "[]"
    assert needs(three)[f"trainyard-region-{region}"] == set()
    others = {stack for stack in three.stacks if "-region-" not in stack}
    text = text.replace(names.job_role("trainyard", HOME), "")  # whom the bucket's policy binds to the region's network
    assert [word for word in ("-home-", *others, *({HOME, AWAY, GRID} - {region})) if word in text] == []


def test_nothing_that_one_region_exports_is_read_in_another(three: Synthesised) -> None:
    """CloudFormation's exports belong to a region."""
    manifest = artifacts(three)
    exported = {
        output["Export"]["Name"]: manifest[stack]["environment"]
        for stack, template in three.stacks.items()
        for output in template.get("Outputs", {}).values()
        if "Export" in output
    }
    for stack, template in three.stacks.items():
        for name in names_in(template, "Fn::ImportValue"):
            assert exported[name] == manifest[stack]["environment"]


def test_a_stack_is_deployed_into_its_own_region(three: Synthesised) -> None:
    manifest = artifacts(three)
    for stack in three.stacks:
        region = next((one for one in (HOME, AWAY, GRID) if stack.endswith(f"-region-{one}")), HOME)
        assert manifest[stack]["environment"] == f"aws://unknown-account/{region}"


# The order


def test_what_starts_something_goes_first_then_what_builds_then_the_reaper_the_regions_and_home_last(
    three: Synthesised,
) -> None:
    before = needs(three)
    regions = {names.region_stack("trainyard", region) for region in (HOME, AWAY, GRID)}
    home = {"trainyard-foundation"}
    assert before["trainyard-grid"] == regions | home | {"trainyard-reaper", "trainyard-workflow", "trainyard-builds"}
    assert before["trainyard-workflow"] == regions | home | {"trainyard-reaper"}
    assert before["trainyard-builds"] == before["trainyard-reaper"] == regions | home
    assert before["trainyard-foundation"] == set()


# A region for the grid alone


def test_a_region_for_the_grid_alone_has_nothing_that_costs_while_idle(three: Synthesised) -> None:
    kinds = {one["Type"] for one in three.template(f"region-{GRID}")["Resources"].values()}
    assert kinds == {"AWS::S3::Bucket", "AWS::S3::BucketPolicy", "AWS::ECR::Repository", "AWS::SSM::Parameter"}


def test_a_region_for_the_grid_alone_describes_itself_without_a_place_to_launch(three: Synthesised) -> None:
    parameter, place = only(three.template(f"region-{GRID}"), "AWS::SSM::Parameter"), place_of(three, GRID)
    assert (place.region, place.zones, place.launch_template) == (GRID, (), "")
    assert parameter["Name"] == names.region_parameter("trainyard", GRID)


def test_jobs_are_admitted_where_nodes_run_and_everything_is_looked_after_everywhere(three: Synthesised) -> None:
    functions = {
        one["Handler"].split(".")[0]: one["Environment"]["Variables"]
        for stack in ("workflow", "reaper", "builds")
        for one in resources(three.template(stack), "AWS::Lambda::Function").values()
    }
    for package in ("admission", "terminator", "cleanup"):
        assert json.loads(functions[package]["TRAINYARD_REGIONS"]) == [HOME, AWAY]
    for package in ("reaper", "drain", "image_build"):
        assert json.loads(functions[package]["TRAINYARD_REGIONS"]) == [HOME, AWAY, GRID]


def test_cloudformation_asks_about_every_change_of_the_regions(three: Synthesised) -> None:
    check = only(three.template("workflow"), "Custom::Regions")
    assert (check["Regions"], check["ServiceTimeout"]) == ([HOME, AWAY, GRID], "300")


# Images


@pytest.mark.parametrize("region", [HOME, AWAY, GRID])
def test_every_region_has_the_same_repositories_and_no_tag_changes_its_image(three: Synthesised, region: str) -> None:
    found = list(resources(three.template(f"region-{region}"), "AWS::ECR::Repository").values())
    wanted = [names.repository("trainyard", short) for short in ("images", "grid-child", names.PLATFORM)]
    assert [one["RepositoryName"] for one in found] == wanted
    for one in found:
        assert one["ImageScanningConfiguration"] == {"ScanOnPush": True}
        assert one["ImageTagMutability"] == "IMMUTABLE"
        (rule,) = json.loads(one["LifecyclePolicy"]["LifecyclePolicyText"])["rules"]
        assert rule["selection"] == {"tagStatus": "any", "countType": "imageCountMoreThan", "countNumber": 100}


def test_the_cache_of_builds_is_at_home_alone(three: Synthesised) -> None:
    cache = names.build_cache("trainyard")
    (where,) = [name for name, one in every(three, "AWS::ECR::Repository") if one["RepositoryName"] == cache]
    assert where.startswith("trainyard-builds/")


def test_readers_may_pull_and_do_nothing_else(three: Synthesised) -> None:
    for region in (HOME, AWAY, GRID):
        for one in resources(three.template(f"region-{region}"), "AWS::ECR::Repository").values():
            if one["RepositoryName"] == "trainyard/platform":
                assert "RepositoryPolicyText" not in one
                continue
            accounts, organizations = one["RepositoryPolicyText"]["Statement"]
            (root,) = [accounts["Principal"]["AWS"]]
            assert READER_ACCOUNT in json.dumps(root)
            assert organizations["Principal"] == {"AWS": "*"}
            assert organizations["Condition"] == {"StringEquals": {"aws:PrincipalOrgID": [READER_ORGANIZATION]}}
            for statement in (accounts, organizations):
                assert statement["Effect"] == "Allow"
                assert set(statement["Action"]) == PULLING


def test_without_readers_no_repository_has_a_policy(deployment: Synthesised) -> None:
    for name, one in every(deployment, "AWS::ECR::Repository"):
        assert "RepositoryPolicyText" not in one, name


# As many regions as the settings take


@pytest.mark.at_length
def test_no_role_has_more_policy_than_iam_takes(most: Synthesised) -> None:
    sizes: dict[str, int] = {}
    for stack, template in most.stacks.items():
        managed = resources(template, MANAGED_POLICY)
        assert [name for name in managed if "OverflowPolicy" in name] == [], "the CDK makes them of what does not fit"
        assert {
            name: size(one["PolicyDocument"])
            for name, one in managed.items()
            if size(one["PolicyDocument"]) > MANAGED_CHARACTERS
        } == {}
        for policy in resources(template, "AWS::IAM::Policy").values():
            role = f"{stack}/{policy['Roles'][0]['Ref']}"
            sizes[role] = sizes.get(role, 0) + size(policy["PolicyDocument"])
    assert {role: characters for role, characters in sizes.items() if characters > ROLE_CHARACTERS} == {}
    assert max(sizes.values()) > ROLE_CHARACTERS / 3, "a measure that measures"


@pytest.mark.at_length
def test_no_function_has_more_variables_than_lambda_takes(most: Synthesised) -> None:
    for name, function in every(most, "AWS::Lambda::Function"):
        variables = resolved(function["Environment"]["Variables"])
        assert sum(len(key) + len(value) for key, value in variables.items()) < VARIABLES_BYTES, name


@pytest.mark.at_length
def test_no_template_and_no_repository_policy_is_too_large(most: Synthesised) -> None:
    for stack, template in most.stacks.items():
        assert len(most.text(stack.removeprefix(f"{LONGEST}-"))) < TEMPLATE_BYTES
        assert len(template["Resources"]) < TEMPLATE_RESOURCES
    for name, repository in every(most, "AWS::ECR::Repository"):
        assert size(repository.get("RepositoryPolicyText", {})) < 10_240, name


@pytest.mark.at_length
def test_the_settings_take_as_many_regions_as_are_measured_and_no_more(most: Synthesised) -> None:
    assert len([stack for stack in most.stacks if "-region-" in stack]) == MOST_REGIONS
