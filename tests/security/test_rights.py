"""What roles may and may not do: requests put to an IAM simulator with the synthesised policies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from contract import names
from localaws.iam.permissions import listed
from localaws.iam.simulator import Answer, Policies, Request, condition_keys, simulate
from tests.security import (
    containers,
    endings,
    grids,
    images,
    jobs,
    launches,
    line_jobs,
    pages,
    resumes,
    searches,
    state,
    train,
)
from tests.security.asking import BYTES, HOME, JOB_ROLE, OWN, Ask
from tests.security.policies import ACCOUNT, REGION, TOPIC_KEY, of_resource, role, trust
from tools.synthesis import Synthesised

EVERY_ALLOWED = [
    *train.ALLOWED,
    *endings.ALLOWED,
    *images.ALLOWED,
    *grids.ALLOWED,
    *line_jobs.ALLOWED,
    *searches.ALLOWED,
    *state.ALLOWED,
    *jobs.ALLOWED,
    *pages.ALLOWED,
    *resumes.ALLOWED,
    *containers.ALLOWED,
]
EVERY_DENIED = [
    *train.DENIED,
    *launches.DENIED,
    *endings.DENIED,
    *images.DENIED,
    *grids.DENIED,
    *line_jobs.DENIED,
    *searches.DENIED,
    *state.DENIED,
    *jobs.DENIED,
    *pages.DENIED,
    *resumes.DENIED,
    *containers.DENIED,
]


IN_EVERY_REQUEST = {"aws:requestedregion"}
"""Of a parameter that belongs to no account the simulator knows no keys at all."""


@pytest.fixture(scope="module")
def answers(policies: dict[str, Policies], deployment: Synthesised) -> dict[str, Answer]:
    """One process for all cases. KMS asks the policy of the key as well, which leaves roles to their own, and STS the trust policy."""
    key = of_resource(deployment, "AWS::KMS::Key")
    asked = [ask.request for ask in (*EVERY_ALLOWED, *EVERY_DENIED)]
    of_their_own = {TOPIC_KEY: key, JOB_ROLE: trust(deployment, "JobRole")}
    with_key = [replace(one, resource_policy=of_their_own.get(one.resource)) for one in asked]
    return {request.identity: answer for request, answer in zip(asked, simulate(policies, with_key), strict=True)}


@pytest.mark.parametrize("ask", EVERY_ALLOWED, ids=str)
def test_a_role_may_do_its_work(answers: dict[str, Answer], ask: Ask) -> None:
    answer = answers[ask.request.identity]
    assert (answer.allowed, answer.error, answer.ignored) == (True, "", ())


@pytest.mark.parametrize("ask", EVERY_DENIED, ids=str)
def test_a_role_may_do_nothing_else(answers: dict[str, Answer], ask: Ask) -> None:
    answer = answers[ask.request.identity]
    assert (answer.allowed, answer.error, answer.ignored) == (False, "", ())


def test_the_tables_are_long_enough_and_name_every_role(policies: dict[str, Policies]) -> None:
    for table in (EVERY_ALLOWED, EVERY_DENIED):
        assert len({ask.request.identity for ask in table}) == len(table) >= 60
        assert {role(ask.role) for ask in table} == policies.keys()


def test_every_statement_is_what_allows_some_request_of_the_table(
    policies: dict[str, Policies], answers: dict[str, Answer]
) -> None:
    useful = {
        (ask.request.principal, policy, index)
        for ask in EVERY_ALLOWED
        for policy, index in answers[ask.request.identity].by
    }
    useless = [
        (principal, str(statement.get("Sid", statement["Action"])))
        for principal, of_role in policies.items()
        for policy, document in of_role.items()
        for index, statement in enumerate(document["Statement"])
        if (principal, policy, index) not in useful
    ]
    # The archives' keys are hashes of what is in them: no table can name them.
    assert sorted(useless) == [
        (role("Admission"), "ReadTheAgentAsset"),
        (role("Build"), "ReadTheScript"),
        (role("OwnImages"), "ReadContexts"),
        (role("PlatformBuild"), "ReadTheScript"),
    ]


def test_admission_fetches_the_agents_archive_and_no_other_asset(policies: dict[str, Policies]) -> None:
    statements = [one for document in policies[role("Admission")].values() for one in document["Statement"]]
    (fetch,) = [one for one in statements if one.get("Sid") == "ReadTheAgentAsset"]
    agent = fetch["Resource"]
    other = re.sub("[0-9a-f]{64}", "0" * 64, agent)
    assert other != agent
    asked = [Request(principal=role("Admission"), action="s3:GetObject", resource=one) for one in (agent, other)]
    assert [answer.allowed for answer in simulate(policies, asked)] == [True, False]


def test_no_condition_rests_on_a_key_that_iam_never_fills_in(
    policies: dict[str, Policies], wide_policies: dict[str, Policies]
) -> None:
    """Such a statement looks right and always denies."""
    used = [
        (action, resource, key)
        for each in (policies, wide_policies)
        for of_role in each.values()
        for document in of_role.values()
        for statement in document["Statement"]
        for action in listed(statement["Action"])
        for resource in listed(statement["Resource"])
        if _may_meet(action, resource, statement)
        for condition in statement.get("Condition", {}).values()
        for key in condition
    ]
    known = condition_keys((action, _concrete(resource)) for action, resource, _ in used)
    unknown = [
        one for one, keys_ in zip(used, known, strict=True) if _general(one[2]) not in {*keys_, *IN_EVERY_REQUEST}
    ]
    assert used
    assert unknown == []


def _may_meet(action: str, resource: str, statement: Mapping[str, Any]) -> bool:
    """Whether the action can be asked for the resource: a statement of several services has resources of each."""
    services = {one.partition(":")[0] for one in listed(statement["Action"])}
    return len(services) == 1 or resource == "*" or resource.split(":")[2] == action.partition(":")[0]


def test_a_key_that_iam_never_fills_in_is_noticed(policies: dict[str, Policies]) -> None:
    asked = Request(
        principal=role("Node"), action="s3:GetObject", resource=f"{HOME}/jobs/a", context={"s3:prefix": "x"}
    )
    (answer,) = simulate(policies, [asked])
    assert answer.ignored == ("s3:prefix",)
    assert "s3:prefix" not in condition_keys([("s3:GetObject", f"{HOME}/jobs/a")])[0]


def test_an_action_that_does_not_exist_is_no_answer(policies: dict[str, Policies]) -> None:
    (answer,) = simulate(
        policies, [Request(principal=role("Node"), action="s3:FetchObject", resource=f"{HOME}/jobs/a")]
    )
    assert "invalid.action" in answer.error


def test_data_buckets_are_read_by_what_trains_plans_and_builds_alone(wide_policies: dict[str, Policies]) -> None:
    roles = sorted(wide_policies)
    read = [Request(principal=one, action="s3:GetObject", resource="arn:aws:s3:::imagenet/a.tar") for one in roles]
    write = [Request(principal=one, action="s3:PutObject", resource="arn:aws:s3:::imagenet/a.tar") for one in roles]
    answers = simulate(wide_policies, [*read, *write])
    allowed = {request.principal for request, answer in zip([*read, *write], answers, strict=True) if answer.allowed}
    assert allowed == {
        *(role(one) for one in ("Admission", "Node", "Build", "ImageBuild", "GridPlan", "Search", "Training", "Pod"))
    }
    assert not any(answer.allowed for answer in answers[len(read) :])


def test_buckets_are_emptied_by_the_drain_alone_and_only_where_data_is_not_kept(
    policies: dict[str, Policies], wide_policies: dict[str, Policies]
) -> None:
    ours = [
        (action, f"{bucket}/jobs/resnet/x")
        for bucket in (HOME, BYTES)
        for action in ("s3:DeleteObject", "s3:DeleteObjectVersion")
    ]
    ours += [("s3:ListBucketVersions", bucket) for bucket in (HOME, BYTES)]
    asked = [
        Request(principal=role("Drain"), action=action, resource=resource, context=OWN) for action, resource in ours
    ]
    assert not any(answer.allowed for answer in simulate(policies, asked))

    assert all(answer.allowed for answer in simulate(wide_policies, asked))
    theirs = [
        Request(
            principal=role("Drain"), action="s3:DeleteObjectVersion", resource=f"arn:aws:s3:::{bucket}/x", context=OWN
        )
        for bucket in ("imagenet", names.home_bucket("other", ACCOUNT, REGION))
    ]
    others = [
        Request(principal=one, action="s3:DeleteObjectVersion", resource=f"{HOME}/jobs/resnet/x", context=OWN)
        for one in wide_policies
        if one != role("Drain")
    ]
    assert not any(answer.allowed for answer in simulate(wide_policies, [*theirs, *others]))


def _concrete(resource: str) -> str:
    return resource if resource == "*" else resource.replace("*", "x")


def _general(key: str) -> str:
    """`aws:RequestTag/trainyard:deployment` as the reference has it."""
    name, slash, _ = key.partition("/")
    return f"{name}{slash}${{TagKey}}".lower() if slash else name.lower()
