"""The credentials of a job open its bucket of bytes from our network alone; whoever else has a right to the bucket keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from contract import names
from contract.keys import BytesPrefix, CommitKind
from localaws.iam.permissions import listed
from localaws.iam.simulator import Policies, Request, simulate
from tests.security.asking import BYTES, HERE, JOB_ROLE, OWN, TAGGED_SESSION
from tests.security.policies import ACCOUNT, REGION, of_bytes_bucket, of_people, role
from tests.stacks.synth import only
from tools.synthesis import Synthesised

SESSION = OWN | TAGGED_SESSION
STORED = BytesPrefix("resnet")
OBJECTS = [
    ("s3:GetObject", STORED.checkpoint(0, "f" * 64, "a.pt")),
    ("s3:GetObject", STORED.commit(CommitKind.CHECKPOINTS, 1, 5, 0)),
    ("s3:PutObject", STORED.checkpoint(0, "f" * 64, "a.pt")),
    ("s3:PutObject", STORED.commit(CommitKind.CHECKPOINTS, 1, 5, 0)),
    ("s3:PutObject", STORED.artifact(0, "model.pt")),
    ("s3:DeleteObject", STORED.checkpoint(0, "f" * 64, "a.pt")),
]
LISTS = [STORED.commits(CommitKind.CHECKPOINTS), STORED.checkpoints(0)]
READS = ("s3:GetObject", "s3:ListBucket")


@dataclass(frozen=True)
class Place:
    """A region's bucket, its policy, and the id of the VPC beside it (empty for none)."""

    bucket: str
    policy: Mapping[str, Any]
    vpc: str


def place(deployment: Synthesised, region: str, *, has_network: bool = True) -> Place:
    template = deployment.template(f"region-{region}")
    (vpc,) = [key for key, one in template["Resources"].items() if one["Type"] == "AWS::EC2::VPC"] or [""]
    assert bool(vpc) is has_network
    return Place(BYTES.replace(REGION, region), of_bytes_bucket(deployment, region), vpc)


def list_requests(where: Place, whence: Mapping[str, str], principal: str = JOB_ROLE) -> list[Request]:
    """Everything that a job's nodes do with the bucket, from there."""
    questions: list[tuple[str, str, Mapping[str, str]]] = [
        *((action, f"{where.bucket}/{key}", {}) for action, key in OBJECTS),
        *(("s3:ListBucket", where.bucket, {"s3:prefix": one}) for one in LISTS),
    ]
    return [
        Request(
            principal=principal,
            action=action,
            resource=resource,
            context={**HERE, **SESSION, "aws:PrincipalArn": principal, **context, **whence},
            resource_policy=where.policy,
        )
        for action, resource, context in questions
    ]


def allowed(policies: Mapping[str, Policies], requests: list[Request]) -> set[str]:
    """The actions that were let through, every time that they were asked for."""
    answers = simulate(policies, requests)
    assert [answer.error for answer in answers] == [""] * len(answers)
    let = [request.action for request, answer in zip(requests, answers, strict=True) if answer.allowed]
    return {one for one in let if let.count(one) == [request.action for request in requests].count(one)}


EVERYTHING = {action for action, _ in OBJECTS} | {"s3:ListBucket"}
ELSEWHERE = {"outside of AWS": {}, "another VPC": {"aws:SourceVpc": "vpc-0theirs"}, "no name": {"aws:SourceVpc": ""}}


@pytest.fixture
def of_job(policies: dict[str, Policies]) -> dict[str, Policies]:
    return {JOB_ROLE: policies[role("Job")]}


@pytest.fixture
def of_wide_job(wide_policies: dict[str, Policies]) -> dict[str, Policies]:
    return {JOB_ROLE: wide_policies[role("Job")]}


def test_from_our_network_a_job_does_its_work(deployment: Synthesised, of_job: dict[str, Policies]) -> None:
    here = place(deployment, REGION)
    assert allowed(of_job, list_requests(here, {"aws:SourceVpc": here.vpc})) == EVERYTHING


@pytest.mark.parametrize("whence", ELSEWHERE)
def test_from_elsewhere_its_keys_open_nothing_where_one_region_trains(
    deployment: Synthesised, of_job: dict[str, Policies], whence: str
) -> None:
    requests = list_requests(place(deployment, REGION), ELSEWHERE[whence])
    assert not any(answer.allowed for answer in simulate(of_job, requests))


@pytest.mark.parametrize("whence", ELSEWHERE)
@pytest.mark.parametrize("region", [REGION, "us-east-1"])
def test_from_elsewhere_they_write_and_delete_nothing_where_several_regions_train(
    wide: Synthesised, of_wide_job: dict[str, Policies], region: str, whence: str
) -> None:
    requests = [one for one in list_requests(place(wide, region), ELSEWHERE[whence]) if one.action not in READS]
    assert requests
    assert not any(answer.allowed for answer in simulate(of_wide_job, requests))


def test_a_job_that_recovers_in_another_region_reads_its_checkpoints_and_writes_none_there(
    wide: Synthesised, of_wide_job: dict[str, Policies]
) -> None:
    """Its nodes come through a NAT gateway there."""
    assert allowed(of_wide_job, list_requests(place(wide, REGION), {})) == set(READS)


def test_the_network_of_one_region_is_a_stranger_in_another(
    wide: Synthesised, of_wide_job: dict[str, Policies]
) -> None:
    home, away = place(wide, REGION), place(wide, "us-east-1")
    theirs = {"aws:SourceVpc": f"{away.vpc}-of-another-region"}
    assert allowed(of_wide_job, list_requests(home, theirs)) == set(READS)
    assert allowed(of_wide_job, list_requests(away, {"aws:SourceVpc": away.vpc})) == EVERYTHING


def test_where_no_nodes_run_a_job_writes_nothing_from_anywhere(
    wide: Synthesised, of_wide_job: dict[str, Policies]
) -> None:
    grid = place(wide, "ap-south-1", has_network=False)
    for whence in ({"aws:SourceVpc": "vpc-1"}, {}):
        assert allowed(of_wide_job, list_requests(grid, whence)) == set(READS)


@pytest.mark.parametrize(
    ("who", "action", "key", "context"),
    [
        ("People", "s3:GetObject", STORED.artifact(0, "model.pt"), {}),
        ("People", "s3:PutObject", "uploads/ann/code.zip", {}),
        ("ArtifactCheck", "s3:GetObject", STORED.commit(CommitKind.ARTIFACTS, 1, 5, 0), {}),
        ("ArtifactCheck", "s3:ListBucket", "", {}),
        ("Training", "s3:PutObject", "grids/g/models/0/model.tar.gz", {}),
    ],
)
def test_nobody_else_is_bound(
    deployment: Synthesised,
    policies: dict[str, Policies],
    who: str,
    action: str,
    key: str,
    context: dict[str, str],
) -> None:
    here = place(deployment, REGION)
    resource = f"{here.bucket}/{key}" if key else here.bucket
    one = Request(
        principal=role(who),
        action=action,
        resource=resource,
        context={**HERE, **OWN, "aws:PrincipalArn": role(who), **context},
    )
    bound = Request(
        principal=role(who),
        action=action,
        resource=resource,
        context={**HERE, **OWN, "aws:PrincipalArn": role(who), **context},
        resource_policy=here.policy,
    )
    answers = simulate(policies | of_people(deployment), [one, bound])
    assert [answer.allowed for answer in answers] == [True, True]


def test_another_deployments_jobs_are_its_own_affair(deployment: Synthesised) -> None:
    (statement,) = [
        one for one in of_bytes_bucket(deployment, REGION)["Statement"] if one.get("Sid") == "JobsInOurNetworkAlone"
    ]
    assert statement["Effect"] == "Deny"
    assert statement["Condition"]["ArnEquals"] == {
        "aws:PrincipalArn": f"arn:aws:iam::{ACCOUNT}:role/{names.job_role('trainyard', REGION)}"
    }


def test_every_network_has_the_endpoint_that_names_it_to_s3_in_every_subnet_of_nodes(wide: Synthesised) -> None:
    """Without it a node's request has no VPC, and its job could save nothing."""
    for region in (REGION, "us-east-1"):
        template = wide.template(f"region-{region}")
        endpoint = only(template, "AWS::EC2::VPCEndpoint", "NetworkVpcS3")
        routed = {one["Ref"] for one in endpoint["RouteTableIds"]}
        tables = {key for key, one in template["Resources"].items() if one["Type"] == "AWS::EC2::RouteTable"}
        assert tables
        assert tables <= routed
        assert "PolicyDocument" not in endpoint
        assert all("s3" in str(one) for one in listed(endpoint["ServiceName"]))
