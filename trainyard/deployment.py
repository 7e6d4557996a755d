"""Finds a deployment in an account: what the outputs of its stacks say, and nothing that is written down elsewhere."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from contract import names
from contract.aws_errors import code_of
from trainyard.stops import CannotProceed

if TYPE_CHECKING:
    from types_boto3_cloudformation.client import CloudFormationClient

ENDPOINT = "AWS_ENDPOINT_URL"
MACHINE = re.compile(r"arn:[a-z-]+:states:[a-z0-9-]+:\d{12}:stateMachine:[^:]+")
FILLED = re.compile(r".+")
NEEDED_OF_FOUNDATION = dict.fromkeys(("HomeBucket", "StateTable", "NodeLogGroup", "NotificationTopic"), FILLED)
NEEDED_OF_WORKFLOW = {"TrainMachine": MACHINE}
"""Outputs without which no command works, and the form of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What the commands use of a deployment."""

    name: str
    region: str
    """The home region."""
    home_bucket: str
    table: str
    """The table of state."""
    log_group: str
    """Of all nodes."""
    topic: str
    """ARN of the topic that people subscribe to."""
    node_role: str
    """Id of the nodes' role; empty where an older deployment does not say."""
    train_machine: str
    """ARN."""
    machines: dict[str, str]
    """ARN of each machine that is deployed, by kind (`job`, `grid`, `search`)."""

    @property
    def partition(self) -> str:
        return self.train_machine.split(":")[1]

    @property
    def account(self) -> str:
        return self.train_machine.split(":")[4]

    def machine(self, kind: str) -> str:
        """Returns the machine's ARN. Raises CannotProceed where its stack is not deployed."""
        if kind not in self.machines:
            raise CannotProceed(
                f"deployment: {self.name} has no {kind} machine in {self.region}; allowed: deploy its stack first"
            )
        return self.machines[kind]


def begin_session(*, region: str, profile: str | None, endpoint_url: str | None) -> None:
    """Has every client of this process use the profile, the region and the endpoint."""
    import boto3

    endpoint_url = endpoint_url or os.environ.get(ENDPOINT)
    if endpoint_url:
        require_url(endpoint_url)
        os.environ[ENDPOINT] = endpoint_url
    # Functions make clients without a region: theirs is the home region, and so is this process's.
    boto3.setup_default_session(profile_name=profile, region_name=region)


def require_url(given: str) -> None:
    """Raises CannotProceed for what botocore cannot call."""
    try:
        parts = urlsplit(given)
        is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url or " " in given or not given.isprintable():
        raise CannotProceed(
            f"--endpoint-url: {given} is not an address; allowed: one such as https://aws.example.com (also in the variable {ENDPOINT})"
        )


def renew_session() -> None:
    """Has the calls from now on use the credentials that there are now: a person may have renewed them in a file, or by SSO."""
    import boto3

    from aws.clients import client

    before = boto3.DEFAULT_SESSION
    if before is None:
        return
    client.cache_clear()
    profile = None if before.profile_name == "default" else before.profile_name
    boto3.setup_default_session(profile_name=profile, region_name=before.region_name)


def find_deployment(name: str, region: str) -> Deployment:
    """Reads the outputs of the deployment's stacks. Raises CannotProceed where there is no such deployment."""
    foundation = _require_outputs(name, names.foundation_stack(name), region)
    workflow = _require_outputs(name, names.workflow_stack(name), region)
    others = {"grid": (names.grid_stack, "GridMachine"), "search": (names.search_stack, "SearchMachineArn")}
    found = {kind: (_read_outputs(stack(name), region) or {}).get(output) for kind, (stack, output) in others.items()}
    train = workflow["TrainMachine"]
    return Deployment(
        name=name,
        region=region,
        home_bucket=foundation["HomeBucket"],
        table=foundation["StateTable"],
        log_group=foundation["NodeLogGroup"],
        topic=foundation["NotificationTopic"],
        node_role=foundation.get(names.NODE_ROLE_ID, ""),
        train_machine=train,
        machines={"job": train, **{kind: arn for kind, arn in found.items() if arn and MACHINE.fullmatch(arn)}},
    )


def _require_outputs(name: str, stack: str, region: str) -> dict[str, str]:
    """Returns the outputs of a stack, those among them that the commands cannot do without. Raises CannotProceed where it has them not."""
    found = _read_outputs(stack, region)
    if found is None:
        raise CannotProceed(
            f"deployment: there is no stack {stack} in {region}, so {name} is not deployed there; allowed: --deployment and "
            "--region of a deployment, or `make deploy` first"
        )
    wanted = NEEDED_OF_WORKFLOW if stack == names.workflow_stack(name) else NEEDED_OF_FOUNDATION
    if missing := [output for output, form in wanted.items() if not form.fullmatch(found.get(output, ""))]:
        raise CannotProceed(
            f"deployment: the stack {stack} in {region} has no output {', '.join(missing)}, or a strange one: its deploy has not ended, "
            "or another version wrote it; allowed: wait until it has, or `make deploy` of this version"
        )
    return found


def _read_outputs(stack: str, region: str) -> dict[str, str] | None:
    """Returns the outputs of a stack; None where there is no such stack."""
    found = find_stack(stack, region)
    return None if found is None else list_outputs(found)


def list_outputs(stack: Any) -> dict[str, str]:
    """Returns the outputs of CloudFormation's description of a stack."""
    return {one["OutputKey"]: one["OutputValue"] for one in stack.get("Outputs", [])}


def find_stack(stack: str, region: str) -> Any:
    """Returns CloudFormation's description of a stack; None where there is no such stack."""
    from botocore.exceptions import ClientError

    from aws.clients import BRISK, client

    cloudformation: CloudFormationClient = client("cloudformation", region, BRISK)
    try:
        found = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    except ClientError as problem:
        if code_of(problem) == "ValidationError" and "does not exist" in str(problem):
            return None
        raise
    return found[0] if found else None
