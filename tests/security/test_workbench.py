"""Who may open which workbench, as an IAM simulator sees it: its owner by one document, and nobody anything else; and what a node may."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from contract import names, tags
from contract.workbench import DOCUMENT
from localaws.iam.simulator import Policies, Request, simulate
from tests.security.asking import EC2, HERE, SSM
from tests.security.policies import ACCOUNT, REGION, offered, role
from tools.synthesis import Synthesised

USER, FEDERATED = f"arn:aws:iam::{ACCOUNT}:user/ada", role("Federated")
WHO = {
    USER: {"aws:username": "ada", "aws:userid": "AIDAEXAMPLEOFANADA01"},
    FEDERATED: {"aws:PrincipalTag/owner": "ada", "aws:userid": "AROAEXAMPLE:ada@example.com"},
}
"""Two people who own `ada`'s benches: one by the name, one by the tag of a session."""
OTHERS = {
    "another user": {"aws:username": "bob"},
    "a role without the tag": {},
    "a role with another tag": {"aws:PrincipalTag/team": "ada"},
    "a role with an empty tag": {"aws:PrincipalTag/owner": ""},
    "a role whose tag is a pattern": {"aws:PrincipalTag/owner": "*"},
    "a user whose name begins so": {"aws:username": "ada2"},
    "a user whose name is written otherwise": {"aws:username": "Ada"},
}
BENCH = {tags.DEPLOYMENT: "trainyard", tags.WORKBENCH: "true", tags.OWNER: "ada"}
NOT_HERS: dict[str, dict[str, str]] = {
    "another's bench": {**BENCH, tags.OWNER: "bob"},
    "a bench of no owner": {tags.DEPLOYMENT: "trainyard", tags.WORKBENCH: "true"},
    "a job's node": {tags.DEPLOYMENT: "trainyard", tags.OWNER: "ada"},
    "a node that is none": {**BENCH, tags.WORKBENCH: "false"},
    "a bench of another deployment": {**BENCH, tags.DEPLOYMENT: "other"},
    "a machine of nobody's": {},
}
INSTANCE = f"{EC2}:instance/i-0abc"
PUBLISHED = f"{SSM}::document/"
SHELLS = (
    f"{PUBLISHED}AWS-StartSSHSession",
    f"{PUBLISHED}AWS-StartPortForwardingSessionToRemoteHost",
    f"{PUBLISHED}AWS-StartInteractiveCommand",
    f"{PUBLISHED}AWS-StartNonInteractiveCommand",
    f"{PUBLISHED}{DOCUMENT}2",
    f"{SSM}:{ACCOUNT}:document/SSM-SessionManagerRunShell",
    f"{SSM}:{ACCOUNT}:document/{DOCUMENT}",
)
"""The last one is of the account itself, which may write what it likes into it."""
SESSION = f"{SSM}:{ACCOUNT}:session/ada-0abc"
SESSION_OF = "ssm:resourceTag/aws:ssmmessages:session-id"
NEEDED = (
    ("ssm:UpdateInstanceInformation", INSTANCE),
    *((f"ssmmessages:{verb}{kind}Channel", "*") for verb in ("Create", "Open") for kind in ("Control", "Data")),
)
"""What the SSM agent of a node calls."""


@pytest.fixture(scope="module")
def people(wide: Synthesised) -> dict[str, Policies]:
    """Everybody of these tests, with the policy of people who have benches and no other."""
    policy = {"Workbench": offered(wide, "Workbench")}
    return dict.fromkeys((USER, FEDERATED), policy)


def opens(
    people: Mapping[str, Policies],
    principal: str,
    *,
    who: Mapping[str, str] | None = None,
    bench: Mapping[str, str] = BENCH,
    document: str = PUBLISHED + DOCUMENT,
    named: bool = True,
) -> bool:
    """Whether a session would begin. Session Manager asks for the instance and for the document; without the check, and where the call
    names no document, for the instance alone."""
    context = {**HERE, **(WHO[principal] if who is None else who)}
    tagged = {f"ssm:resourceTag/{key}": value for key, value in bench.items()}
    on = {**context, **tagged, "ssm:SessionDocumentAccessCheck": str(named).lower()}
    asked = [Request(principal=principal, action="ssm:StartSession", resource=INSTANCE, context=on)]
    if named:
        asked.append(Request(principal=principal, action="ssm:StartSession", resource=document, context=context))
    return all(allowed(people, *asked))


def allowed(policies: Mapping[str, Policies], *asked: Request) -> list[bool]:
    answers = simulate(policies, asked)
    assert [(one.error, one.ignored) for one in answers if one.error or one.ignored] == []
    return [one.allowed for one in answers]


# People


@pytest.mark.parametrize("principal", WHO)
def test_its_owner_opens_a_port_of_a_bench(people: dict[str, Policies], principal: str) -> None:
    assert opens(people, principal)


@pytest.mark.parametrize("principal", WHO)
@pytest.mark.parametrize("whose", NOT_HERS)
def test_nobody_opens_what_is_not_the_own_bench(people: dict[str, Policies], principal: str, whose: str) -> None:
    assert not opens(people, principal, bench=NOT_HERS[whose])


@pytest.mark.parametrize("principal", WHO)
@pytest.mark.parametrize("document", SHELLS)
def test_no_other_document_opens_the_own_bench(people: dict[str, Policies], principal: str, document: str) -> None:
    assert not opens(people, principal, document=document)


@pytest.mark.parametrize("principal", WHO)
def test_a_session_that_names_no_document_is_denied(people: dict[str, Policies], principal: str) -> None:
    """Session Manager would open a shell."""
    assert not opens(people, principal, named=False)


@pytest.mark.parametrize("other", OTHERS)
def test_who_is_not_the_owner_opens_nothing(people: dict[str, Policies], other: str) -> None:
    assert not opens(people, FEDERATED, who=OTHERS[other])


def test_who_has_neither_name_nor_tag_does_not_own_what_has_no_owner(people: dict[str, Policies]) -> None:
    for owner in ("", "${aws:username}", "${aws:PrincipalTag/owner}"):
        assert not opens(people, FEDERATED, who={}, bench={**BENCH, tags.OWNER: owner})


@pytest.mark.parametrize("principal", WHO)
@pytest.mark.parametrize("action", ["ssm:TerminateSession", "ssm:ResumeSession"])
def test_a_person_ends_own_sessions_and_no_others(people: dict[str, Policies], principal: str, action: str) -> None:
    person = {**HERE, **WHO[principal]}
    asked = [
        Request(principal=principal, action=action, resource=SESSION, context={**person, **begun})
        for begun in (
            {SESSION_OF: WHO[principal]["aws:userid"]},
            {SESSION_OF: "AIDAEXAMPLEOFANBOB01"},
            {SESSION_OF: "${aws:userid}"},
            {},
        )
    ]
    assert allowed(people, *asked) == [True, False, False, False]


def test_a_person_opens_the_channel_of_a_session_in_our_regions_alone(people: dict[str, Policies]) -> None:
    asked = [
        Request(principal=USER, action="ssmmessages:OpenDataChannel", resource="*", context={**WHO[USER], **where})
        for where in (HERE, {"aws:RequestedRegion": "sa-east-1"})
    ]
    assert allowed(people, *asked) == [True, False]


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("ssm:SendCommand", INSTANCE),
        ("ssm:SendCommand", f"{SSM}:{ACCOUNT}:document/AWS-RunShellScript"),
        ("ssm:DescribeSessions", "*"),
        ("ssm:CreateDocument", f"{SSM}:{ACCOUNT}:document/{DOCUMENT}"),
        ("ssm:UpdateDocument", f"{SSM}:{ACCOUNT}:document/SSM-SessionManagerRunShell"),
        ("ssm:StartSession", f"{SSM}:{ACCOUNT}:managed-instance/mi-0abc"),
        ("ssm:GetParameter", f"{SSM}:{ACCOUNT}:parameter{names.region_parameter('trainyard', REGION)}"),
        ("ec2:CreateTags", INSTANCE),
        ("ec2:TerminateInstances", INSTANCE),
        ("ec2-instance-connect:SendSSHPublicKey", INSTANCE),
        ("ec2:DescribeInstances", "*"),
        ("states:StartExecution", f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:{names.machine('trainyard')}"),
        ("ssmmessages:CreateControlChannel", "*"),
        ("ssmmessages:CreateDataChannel", "*"),
        ("ssmmessages:OpenControlChannel", "*"),
        ("iam:TagUser", USER),
        ("sts:TagSession", role("Node")),
    ],
)
def test_who_has_benches_may_do_nothing_else(people: dict[str, Policies], action: str, resource: str) -> None:
    context = {**HERE, **WHO[USER]}
    assert allowed(people, Request(principal=USER, action=action, resource=resource, context=context)) == [False]


def test_the_policy_is_for_people_to_attach(wide: Synthesised) -> None:
    resources = wide.template("foundation")["Resources"]
    (found,) = (
        one["Properties"]
        for name, one in resources.items()
        if one["Type"] == "AWS::IAM::ManagedPolicy" and name.startswith("Workbench")
    )
    assert found["ManagedPolicyName"] == names.bench_policy("trainyard", REGION)
    assert not {"Roles", "Users", "Groups"} & found.keys()
    assert len(json.dumps(found["PolicyDocument"])) < 6144


# Nodes


def of_a_node(action: str, resource: str, context: Mapping[str, Any] = HERE) -> Request:
    return Request(principal=role("Node"), action=action, resource=resource, context=context)


@pytest.mark.parametrize(("action", "resource"), NEEDED)
def test_a_node_answers_session_manager(wide_policies: dict[str, Policies], action: str, resource: str) -> None:
    away = {"aws:RequestedRegion": "sa-east-1"}
    asked = (of_a_node(action, resource), of_a_node(action, resource, away))
    assert allowed(wide_policies, *asked) == [True, False]


@pytest.mark.parametrize(("action", "resource"), NEEDED)
def test_without_the_setting_a_node_answers_nothing(policies: dict[str, Policies], action: str, resource: str) -> None:
    assert allowed(policies, of_a_node(action, resource)) == [False]


@pytest.mark.parametrize("bench", [BENCH, *NOT_HERS.values()], ids=["a bench", *NOT_HERS])
def test_a_node_begins_no_session(wide_policies: dict[str, Policies], bench: dict[str, str]) -> None:
    tagged = {f"ssm:resourceTag/{key}": value for key, value in bench.items()}
    on = {**HERE, **tagged, "ssm:SessionDocumentAccessCheck": "true"}
    asked = (
        of_a_node("ssm:StartSession", INSTANCE, on),
        of_a_node("ssm:StartSession", PUBLISHED + DOCUMENT),
        of_a_node("ssm:TerminateSession", SESSION),
    )
    assert allowed(wide_policies, *asked) == [False, False, False]


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("ssm:SendCommand", INSTANCE),
        ("ssm:SendCommand", f"{SSM}:{ACCOUNT}:document/AWS-RunShellScript"),
        ("ssm:GetParameter", f"{SSM}:{ACCOUNT}:parameter/of/another"),
        ("ssm:GetParameters", f"{SSM}:{ACCOUNT}:parameter/of/another"),
        ("ssm:GetParametersByPath", f"{SSM}:{ACCOUNT}:parameter/of"),
        ("ssm:PutParameter", f"{SSM}:{ACCOUNT}:parameter/of/another"),
        ("ssm:GetDocument", f"{SSM}:{ACCOUNT}:document/SSM-SessionManagerRunShell"),
        ("ssm:ListCommands", "*"),
        ("ssm:DescribeSessions", "*"),
        ("ssm:PutInventory", "*"),
        ("ssm:UpdateInstanceAssociationStatus", INSTANCE),
        ("ec2messages:GetMessages", "*"),
        ("ec2messages:SendReply", "*"),
    ],
)
def test_a_node_may_do_nothing_else_of_ssm(wide_policies: dict[str, Policies], action: str, resource: str) -> None:
    assert allowed(wide_policies, of_a_node(action, resource)) == [False]


def test_no_other_role_answers_session_manager(wide_policies: dict[str, Policies]) -> None:
    asked = [
        Request(principal=who, action=action, resource=resource, context=HERE)
        for who in wide_policies
        if who != role("Node")
        for action, resource in (*NEEDED, ("ssm:StartSession", INSTANCE), ("ssm:StartSession", PUBLISHED + DOCUMENT))
    ]
    assert len(asked) > 50
    assert not any(allowed(wide_policies, *asked))
