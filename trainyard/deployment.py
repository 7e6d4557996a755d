"""Finds a deployment in an account: what the outputs of its stacks say, and nothing that is written down elsewhere."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contract import names
from contract.aws_errors import code_of
from trainyard.stops import CannotProceed

if TYPE_CHECKING:
    from types_boto3_cloudformation.client import CloudFormationClient

ENDPOINT = "AWS_ENDPOINT_URL"
KINDS = {"job": names.machine, "grid": names.grid_machine, "search": names.search_machine}
"""What an execution is, and the name of the machine whose execution it is."""


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

    if endpoint_url:
        os.environ[ENDPOINT] = endpoint_url
    # Functions make clients without a region: theirs is the home region, and so is this process's.
    boto3.setup_default_session(profile_name=profile, region_name=region)


def find_deployment(name: str, region: str) -> Deployment:
    """Reads the outputs of the deployment's stacks. Raises CannotProceed where there is no such deployment."""
    foundation = _read_outputs(names.foundation_stack(name), region)
    workflow = _read_outputs(names.workflow_stack(name), region)
    for stack, found in ((names.foundation_stack(name), foundation), (names.workflow_stack(name), workflow)):
        if found is None:
            raise CannotProceed(
                f"deployment: there is no stack {stack} in {region}, so {name} is not deployed there; allowed: --deployment and "
                "--region of a deployment, or `make deploy` first"
            )
    assert foundation is not None
    assert workflow is not None
    train = workflow["TrainMachine"]
    others = {"grid": (names.grid_stack, "GridMachine"), "search": (names.search_stack, "SearchMachineArn")}
    found = {kind: (_read_outputs(stack(name), region) or {}).get(output) for kind, (stack, output) in others.items()}
    return Deployment(
        name=name,
        region=region,
        home_bucket=foundation["HomeBucket"],
        table=foundation["StateTable"],
        log_group=foundation["NodeLogGroup"],
        topic=foundation["NotificationTopic"],
        node_role=foundation.get(names.NODE_ROLE_ID, ""),
        train_machine=train,
        machines={"job": train, **{kind: arn for kind, arn in found.items() if arn}},
    )


def _read_outputs(stack: str, region: str) -> dict[str, str] | None:
    """Returns the outputs of a stack; None where there is no such stack."""
    found = find_stack(stack, region)
    return None if found is None else {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", [])}


def find_stack(stack: str, region: str) -> Any:
    """Returns CloudFormation's description of a stack; None where there is no such stack."""
    from botocore.exceptions import ClientError

    from aws.clients import BRISK, client

    cloudformation: CloudFormationClient = client("cloudformation", region, BRISK)
    try:
        (found,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    except ClientError as problem:
        if code_of(problem) == "ValidationError" and "does not exist" in str(problem):
            return None
        raise
    return found
