"""What `campaigns` and `watch` may not be is refused before anything is deployed, with what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from stacks.settings import BLOCK, BadSettings, Settings
from tests.stacks.campaigns import AROUND, AWAY, CAMPAIGNS, GRID, HOME, JOB, SEARCH, THIRD, WATCH, campaign, watch
from tools.synthesis import CONTEXT


def build(**arguments: str) -> dict[str, Any]:
    return {"repository": "images", "build_arguments": arguments}


def refusal(**changes: object) -> str:
    with pytest.raises(BadSettings) as refused:
        Settings.parse({**CONTEXT[BLOCK], **AROUND, **changes})
    return str(refused.value)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"campaigns": campaign(bucket="elsewhere")},
            "campaigns.drive-eu.bucket is elsewhere; allowed: one of data_buckets (imagenet, laion), or none for the home bucket",
        ),
        (
            {"campaigns": campaign(bucket="imagenet"), "data_buckets": []},
            "campaigns.drive-eu.bucket is imagenet; allowed: one of data_buckets (none), or none for the home bucket",
        ),
        (
            {"campaigns": campaign(bucket="imagenet", region="eu-west-1")},
            f"campaigns.drive-eu.region is eu-west-1; allowed: {HOME}, {AWAY}, {THIRD}",
        ),
        (
            {"campaigns": campaign(region=AWAY)},
            f"campaigns.drive-eu.region is {AWAY}, and the home bucket lies in {HOME}; allowed: {HOME}, or a bucket of that region",
        ),
        (
            {"campaigns": campaign(prefix="jobs/")},
            "campaigns.drive-eu.prefix is jobs/; allowed: one below uploads/, because people write nowhere else in the home bucket",
        ),
        (
            {"campaigns": campaign(prefix="/uploads/")},
            "campaigns.drive-eu.prefix is /uploads/; allowed: one below uploads/",
        ),
        (
            {"campaigns": campaign(prefix="uploads")},
            "campaigns.drive-eu.prefix is uploads; allowed: one below uploads/",
        ),
        (
            {"campaigns": campaign(input={"manifest": "x" * 100_000})},
            "campaigns.drive-eu.input has 100,016 characters; allowed: up to 100,000",
        ),
        (
            {"campaigns": campaign(input={"manfest": "{data}/lines.csv"})},
            "campaigns.drive-eu.input.manfest: there is no such field",
        ),
        (
            {"campaigns": campaign(input={"manifest": 5})},
            "campaigns.drive-eu.input.manifest: 5 is not a string; allowed: s3://bucket/key of a manifest",
        ),
        (
            {"campaigns": campaign(input={"manifest": "{date}/lines.csv"})},
            "campaigns.drive-eu.input.manifest: {date}/lines.csv is not an S3 address; allowed: s3://bucket/key",
        ),
        (
            {"campaigns": campaign(input={**GRID, "max_cost": 5})},
            "campaigns.drive-eu.input.max_cost: there is no such field",
        ),
        (
            {"campaigns": campaign(input={**GRID, "defaults": {"max_hours": "4 hours"}})},
            "campaigns.drive-eu.input.defaults.max_hours: ",
        ),
        (
            {"campaigns": campaign(input={**SEARCH, "trials": 0})},
            "campaigns.drive-eu.input.trials: 0 is too small; allowed: a whole number from 1",
        ),
        (
            {
                "campaigns": campaign(
                    input={**SEARCH, "template": {"command": ["python", "t.py"], "distribution": "mpi"}}
                )
            },
            "campaigns.drive-eu.input.template.distribution: mpi is read by AWS's toolkit, whose start entrypoint replaces",
        ),
        (
            {"campaigns": campaign(input={**SEARCH, "template": {"region": "eu-west-9"}})},
            "campaigns.drive-eu.input.template.region: eu-west-9 is not a region of trainyard",
        ),
        (
            {"campaigns": campaign(input={**SEARCH, "template": {"backend": "ec2", "nodes": "2"}})},
            'campaigns.drive-eu.input.template.nodes: "2" is not a whole number',
        ),
        (
            {"campaigns": campaign(input={**JOB, "preset": 5})},
            "campaigns.drive-eu.input.preset: 5 is not a string; allowed: ",
        ),
        (
            {"campaigns": campaign(input={"code": "{data}/code.tar.gz", "instance_types": ["g5.xlarge"]})},
            "campaigns.drive-eu.input.command: is missing; allowed: ",
        ),
        (
            {"campaigns": campaign(input={**JOB, "nodes": 1000})},
            "campaigns.drive-eu.input.nodes: 1000 is too large; allowed: a whole number from 1 to 16 (limits.max_nodes",
        ),
        (
            {"campaigns": campaign(input={"workbench": {"idle_minute": 1}})},
            "campaigns.drive-eu.input.workbench.idle_minute: ",
        ),
        (
            {"campaigns": campaign(input={"workbench": {}, "owner": "ada"})},
            "campaigns.drive-eu.input.workbench: the deployment has no workbenches; allowed: ",
        ),
        (
            {"watch": watch(build=build(BASE="a:b"))},
            "watch.digits.build.build_arguments.BASE: is set by base; allowed: any other name",
        ),
        ({"watch": watch(build=build(HTTP_PROXY="x"))}, "watch.digits.build.build_arguments.HTTP_PROXY: is a proxy"),
        (
            {"watch": watch(build=build(BUILDKIT_SYNTAX="x"))},
            "watch.digits.build.build_arguments.BUILDKIT_SYNTAX: is an instruction to BuildKit",
        ),
        (
            {"watch": watch(build=build(EXTRA="REPLACE-WITH-ExtraPackages"))},
            "watch.digits.build.build_arguments: REPLACE-WITH-ExtraPackages has the placeholder of the example; allowed: ",
        ),
        (
            {"watch": watch(git="https://github.com/REPLACE-WITH-Owner/digits.git")},
            "watch.digits.git: https://github.com/REPLACE-WITH-Owner/digits.git has the placeholder of the example",
        ),
        (
            {"watch": watch(build={"repository": "images", "base": "a:b"})},
            "watch.digits.build.base: a:b is not the name and tag of a container; allowed: ",
        ),
        (
            {"watch": watch(build={"repository": "images", "base": f"{'a' * 300}:b"})},
            "watch.digits.build.base: ",
        ),
        (
            {"watch": watch(build=build(ONE="x" * 3000, TWO="ö" * 400))},
            "watch.digits.build makes an order of 6,",
        ),
        (
            {"watch": watch(git="https://gitlab.com/owner/digits.git")},
            "watch.digits.git is at gitlab.com; allowed: github.com, git.example.com (git_hosts)",
        ),
        ({"watch": watch(), "git_hosts": {}}, "watch.digits.git is at github.com; allowed: none (git_hosts)"),
        (
            {"watch": watch(build={"repository": "imagse"})},
            "watch.digits.build.repository is imagse; allowed: images (repositories)",
        ),
        (
            {"campaigns": {"digits": CAMPAIGNS["drive-eu"]}, "watch": watch()},
            "watch.digits has the name of a campaign; allowed: different names, because messages name them",
        ),
        (
            {"campaigns": campaign(input={"query": "select 1"})},
            'campaigns.drive-eu.input has a query, and the deployment no catalogue; allowed: manifest, or "catalogue": true',
        ),
        (
            {"campaigns": campaign(input={"query": "{data}/query.sql"}), "catalogue": True},
            "campaigns.drive-eu.input.query: s3://home-bucket/uploads/drive-eu/query.sql is an address; allowed: the SQL that it holds",
        ),
        (
            {
                "campaigns": campaign(input={"query": "select * from data_sets where address = '{key}/'"}),
                "catalogue": True,
            },
            "campaigns.drive-eu.input.query: has the placeholder {key}; allowed: the value itself: only {data} is replaced",
        ),
        (
            {"campaigns": {f"c{n}": {**CAMPAIGNS["drive-eu"], "suffix": "x" * 400} for n in range(4)}},
            "campaigns: prefixes and suffixes take 1,668 characters together; allowed: up to 1,500",
        ),
        (
            {"campaigns": campaign(prefix="uploads/*/")},
            'campaigns.drive-eu.prefix is "uploads/*/"; allowed: 1 to 500 letters',
        ),
        ({"campaigns": campaign(suffix="*")}, 'campaigns.drive-eu.suffix is "*"; allowed: 1 to 500 letters'),
        ({"campaigns": campaign(suffix="")}, 'campaigns.drive-eu.suffix is ""; allowed: 1 to 500 letters'),
        ({"campaigns": campaign(input={})}, "campaigns.drive-eu.input is {}; allowed: at least 1 item"),
        (
            {"campaigns": campaign(sufix="x")},
            "campaigns.drive-eu.sufix is not a setting (did you mean suffix?); allowed: bucket, input, prefix, region, suffix",
        ),
        (
            {"watch": watch(build={"repositry": "images"})},
            "watch.digits.build.repositry is not a setting (did you mean repository?); allowed: base, build_arguments, platform, ",
        ),
        (
            {"watch": watch(build={"repository": "images", "tag": "v1"})},
            "watch.digits.build.tag is not a setting; allowed: base, build_arguments, platform, repository",
        ),
        ({"campaigns": {"drive-eu": {}}}, "campaigns.drive-eu.prefix is missing; allowed: 1 to 500 letters"),
        ({"campaigns": {"bucket": {}}}, "campaigns.bucket.input is missing; allowed: an object"),
        (
            {"watch": {"build": {"git": WATCH["digits"]["git"]}}},
            "watch.build.build is missing; allowed: an object of base, build_arguments, platform, repository",
        ),
        ({"watch": watch(build={})}, "watch.digits.build.repository is missing; allowed: "),
        (
            {"campaigns": campaign(prefix="x" * 501)},
            f'campaigns.drive-eu.prefix is "{"x" * 199}... (503 characters); allowed: 1 to 500 letters',
        ),
        (
            {"watch": watch(branch="refs/heads/*")},
            'watch.digits.branch is "refs/heads/*"; allowed: the name of a branch',
        ),
        (
            {"campaigns": {f"c{n}": CAMPAIGNS["drive-eu"] for n in range(21)}},
            "campaigns has 21 entries; allowed: at most 20 items",
        ),
        ({"watch": {f"w{n}": WATCH["digits"] for n in range(11)}}, "watch has 11 entries; allowed: at most 10 items"),
    ],
)
def test_settings_that_do_not_fit_are_refused_with_what_is_allowed(changes: dict[str, Any], says: str) -> None:
    assert f"{BLOCK}.{says}" in refusal(**changes)


def test_inputs_that_a_machine_takes_are_taken() -> None:
    for given in (GRID, JOB, SEARCH, {"resume": "drive-1", "trials": 40}):
        assert Settings.parse({**CONTEXT[BLOCK], **AROUND, "campaigns": campaign(input=given)}).campaigns


def test_a_build_whose_order_codebuild_takes_is_taken() -> None:
    changes = watch(build=build(ONE="x" * 4000))
    assert Settings.parse({**CONTEXT[BLOCK], **AROUND, "watch": changes}).watch


@pytest.mark.parametrize("depth", [101, 300, 1500, 20_000])
@pytest.mark.parametrize("opens", ["list", "object"])
def test_an_input_that_is_nested_too_deep_is_refused_by_its_name(depth: int, opens: str) -> None:
    inner: Any = 1
    for _ in range(depth - 3):
        inner = [inner] if opens == "list" else {"a": inner}
    said = refusal(campaigns=campaign(input={"manifest": inner}))
    assert said == (
        f"{BLOCK}.campaigns.drive-eu.input is nested more than 100 deep; allowed: up to 100 objects and lists in each other"
    )


def test_an_input_that_is_just_deep_enough_is_read() -> None:
    inner: Any = 1
    for _ in range(96):
        inner = [inner]
    said = refusal(campaigns=campaign(input={"manifest": inner}))
    assert said.startswith(f"{BLOCK}.campaigns.drive-eu.input.manifest: a list is not a string; allowed: ")


def test_every_wrong_thing_of_several_campaigns_is_said_at_once() -> None:
    wrong = {"one": {**CAMPAIGNS["drive-eu"], "prefix": "jobs/"}, "two": {**CAMPAIGNS["near"], "bucket": "elsewhere"}}
    said = refusal(campaigns=wrong, watch=watch(git="https://gitlab.com/owner/digits.git"))
    for name in ("campaigns.one.prefix", "campaigns.two.bucket", "watch.digits.git"):
        assert f"{BLOCK}.{name} is " in said
