"""Every AWS call that rehearsed jobs made, nodes' included, judged by the deployed policies in an IAM simulator.

Its tests run after the others, and judge their calls too.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contract import names
from localaws.iam.permissions import Granted, Verdict, granted, judge, needed
from localaws.iam.simulator import Policies
from rehearsal.account import DeployedAccount
from rehearsal.yard import Yard
from tests.rehearsal.grids import HOME
from tests.rehearsal.jobs import DENIALS, ONE, TWO, succeeded, train

pytestmark = [pytest.mark.rehearsal, pytest.mark.turn("judges")]
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "permissions.md"
NOT_BEFORE = re.compile(r'^pytestmark = .*(?:faults|losses|"judges"|"destroys")', re.MULTILINE)
"""Modules with a deployment of their own, and those whose turn is not before this one's."""
WHOLE = [
    file.stem
    for file in sorted(Path(__file__).parent.glob("test_*.py"))
    if "yard: Yard" in (text := file.read_text()) and not NOT_BEFORE.search(text)
]
"""Modules that make calls: without one of them rights may seem spare that are not."""
SILENT = {"DrainMachine"}
"""Roles that nobody took before a destroy."""
Row = tuple[str, str, str, str]


@pytest.fixture(scope="module")
def account(yard: Yard, trainer: str) -> DeployedAccount:
    """After two jobs more: one with a secret, which no other test has, and one on two nodes, for whoever runs this file alone."""
    secret = yard.client("secretsmanager").create_secret(
        Name=f"{names.secret_prefix('trainyard')}zz", SecretString="hush"
    )
    requests = {
        "zz-secret": {**ONE, "code": trainer, "command": train(1, 0.1), "secrets": {"HUSH": secret["ARN"]}},
        "zz-two": {**TWO, "code": trainer, "command": train(1, 0.1)},
    }
    jobs = [yard.start(request, name) for name, request in requests.items()]
    for job in jobs:
        succeeded(job)
        job.settle()
    return yard.account()


@pytest.fixture(scope="module")
def policies(account: DeployedAccount) -> dict[str, Policies]:
    return account.policies()


@pytest.fixture(scope="module")
def verdicts(yard: Yard, account: DeployedAccount, policies: dict[str, Policies]) -> list[Verdict]:
    # What code on a node tries and is denied is no call of the product's: test_attack.py.
    made = [call for call in list(yard.aws.recorder.calls) if call.role in policies and call.error not in DENIALS]
    return judge(made, policies, account)


def test_no_call_of_a_rehearsal_would_be_denied_and_every_role_made_some(
    verdicts: list[Verdict], policies: dict[str, Policies], request: pytest.FixtureRequest
) -> None:
    asked = {short(verdict.request.principal) for verdict in verdicts}
    assert asked
    if not left_out(request):
        assert {short(one) for one in policies} - asked == SILENT
    denied = [(one.call.name, one.request, one.answer.error) for one in verdicts if not one.answer.allowed]
    assert denied == []


def test_no_question_had_a_key_that_iam_never_fills_in(verdicts: list[Verdict]) -> None:
    assert [(one.request, one.answer.ignored) for one in verdicts if one.answer.ignored] == []


def test_a_launch_was_judged_for_every_resource_that_it_made_or_used(verdicts: list[Verdict]) -> None:
    kinds = {one.request.resource.split(":")[5].split("/")[0] for one in verdicts if one.call.action == "RunInstances"}
    launch = {"instance", "volume", "network-interface", "image", "subnet", "security-group", "launch-template"}
    assert kinds - {"spot-instances-request"} == launch | {"placement-group", "role"}


def test_the_same_launch_would_be_allowed_on_spot(
    verdicts: list[Verdict], policies: dict[str, Policies], account: DeployedAccount
) -> None:
    call = next(one.call for one in verdicts if one.call.action == "RunInstances")
    spot = replace(call, parameters={**call.parameters, "InstanceMarketOptions.MarketType": "spot"})
    judged = judge([spot], policies, account)
    assert {"RequestSpot", "CreateTheSpotRole"} <= {one.statement for one in needed(judged, policies)}
    assert [one.request for one in judged if not one.answer.allowed or one.answer.ignored] == []


def test_the_same_launch_would_be_denied_without_any_one_of_its_rights(
    verdicts: list[Verdict], policies: dict[str, Policies], account: DeployedAccount
) -> None:
    launches = [one for one in verdicts if one.call.action == "RunInstances"]
    (launcher,) = {one.request.principal for one in launches}
    call = next(one.call for one in launches if "Placement.GroupName" in one.call.parameters)
    for right in sorted(needed(judge([call], policies, account), policies)):
        less = {
            name: {**document, "Statement": without(right, document["Statement"])}
            for name, document in policies[launcher].items()
        }
        judged = judge([call], {launcher: less}, account)
        assert not all(one.answer.allowed for one in judged), right


def without(right: Granted, statements: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The statements, and of the one that gives the right all but its resource; without the whole one where it has no other."""
    return [
        {**one, "Resource": [kept for kept in one["Resource"] if kept != right.resource] or "arn:aws:s3:::none"}
        if one.get("Sid") == right.statement and isinstance(one["Resource"], list)
        else one
        for one in statements
        if one.get("Sid") != right.statement or isinstance(one["Resource"], list)
    ]


def test_what_no_rehearsal_needed_is_listed_with_its_reason(
    verdicts: list[Verdict], policies: dict[str, Policies], request: pytest.FixtureRequest
) -> None:
    if missing := left_out(request):
        pytest.skip(f"needs the calls of {', '.join(missing)} as well")
    spare = {row(one) for one in granted(policies) - needed(verdicts, policies)}
    reasons = listed_in(PAGE.read_text())
    sometimes = {one for one, reason in reasons.items() if reason.startswith("Sometimes needed")}
    problems = {
        "No rehearsal needs these rights: take them away, or say on the page why not": spare - reasons.keys(),
        "Rehearsals need these rights now: take them off the page": reasons.keys() - sometimes - spare,
        "No role has these rights: take them off the page": reasons.keys() - {row(one) for one in granted(policies)},
    }
    if any(problems.values()):
        told = (f"{what} ({PAGE.name}):\n{lines(rows)}" for what, rows in problems.items() if rows)
        pytest.fail("\n".join(told), pytrace=False)
    assert [one for one, reason in reasons.items() if len(reason) < 30] == []


def left_out(request: pytest.FixtureRequest) -> list[str]:
    """Modules that make calls and do not run in this session."""
    running = {item.path.stem for item in request.session.items}
    return [module for module in WHOLE if module not in running]


def lines(rows: set[Row]) -> str:
    return "\n".join(f"| {role} | {name} | `{action}` | {where} | |" for role, name, action, where in sorted(rows))


def short(principal: str) -> str:
    """`Launcher`, from the name that CloudFormation made of the stack, the construct and some letters."""
    if principal.endswith(f"/{names.training_role('trainyard', HOME)}"):
        return "Training"
    if principal.endswith(f"/{names.job_role('trainyard', HOME)}"):
        return "Job"
    found = re.search(r"-([A-Za-z]+)Role[0-9A-F]{8}-", principal)
    assert found, principal
    return found[1]


def row(right: Granted) -> Row:
    """As the page has it: what differs from deployment to deployment left out."""
    if right.statement.startswith("("):
        return ("every function", "its log, by the CDK", right.action, "its own log group")
    resource = right.resource.split(":", 5)[-1]
    if ":s3:::" in right.resource:
        resource = re.sub(r"^trainyard-([a-z]+)-[0-9]{12}-[a-z0-9*-]+", r"\1", resource)
        resource = re.sub(r"^cdk-[a-z0-9]+-assets-.*", "asset", resource)
    # Names that CloudFormation made of the stack, the construct and some letters; a key has no name at all.
    resource = re.sub(r"trainyard-[a-z]+-([A-Za-z]+)[0-9A-F]{8}-\w+", r"\1", resource)
    resource = re.sub(r"^key/[0-9a-f-]{36}$", "key", resource)
    return (short(right.principal), right.statement, right.action, resource)


def listed_in(page: str) -> dict[Row, str]:
    table = page.partition("\n## Allowed, and needed by no rehearsal\n")[2].partition("\n## ")[0]
    cells = [
        [cell.strip().strip("`") for cell in line.strip("|\n ").split("|")]
        for line in table.splitlines()
        if "|" in line
    ]
    return {(one[0], one[1], one[2], one[3]): one[4] for one in cells[2:]}
