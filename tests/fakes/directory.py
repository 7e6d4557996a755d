"""The services that are asked for one thing only: SSM parameters, secrets, and how a stack is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from localaws.model import Refused
from tests.fakes.wire import Call

LINKED = {"batch.amazonaws.com": "AWSServiceRoleForBatch", "ecs.amazonaws.com": "AWSServiceRoleForECS"}


@dataclass
class Directory:
    """Parameters by region and name, secrets by region and ARN or name, stacks by ARN."""

    parameters: dict[tuple[str, str], str] = field(default_factory=dict)
    secrets: dict[tuple[str, str], str] = field(default_factory=dict)
    """To the ARN."""
    values: dict[tuple[str, str], str] = field(default_factory=dict)
    """To the text of the secret."""
    dying: set[str] = field(default_factory=set)
    """ARNs of secrets that are scheduled for deletion: they can be described, and not read."""
    stacks: dict[str, str] = field(default_factory=dict)
    """To the status."""
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Resource groups by ARN: ids of what is in them."""
    roles: set[str] = field(default_factory=set)
    """Names of service-linked roles."""

    def cloudformation(self, call: Call) -> dict[str, Any]:
        """A stack that is not known is an error, never an empty list."""
        if call.operation != "DescribeStacks":
            raise Refused("InvalidAction", f"The fake has no {call.name}")
        stack = call.params["StackName"]
        if stack not in self.stacks:
            raise Refused("ValidationError", f"Stack with id {stack} does not exist")
        name, status = stack.split("/")[1], self.stacks[stack]
        return {"Stacks": [{"StackName": name, "StackId": stack, "CreationTime": 0, "StackStatus": status}]}

    def resource_groups(self, call: Call) -> dict[str, Any]:
        """Pages of five."""
        if call.operation != "ListGroupResources":
            raise Refused("BadRequestException", f"The fake has no {call.name}")
        group = call.params["Group"]
        if group not in self.groups:
            raise Refused("NotFoundException", f"Cannot find group: {group}", 404)
        _, _, _, region, account, _ = group.split(":", 5)
        first = int(call.params.get("NextToken", 0))
        page = self.groups[group][first : first + 5]
        kinds = {"cr": "capacity-reservation", "i": "instance"}
        arns = [f"arn:aws:ec2:{region}:{account}:{kinds[one.split('-')[0]]}/{one}" for one in page]
        following = {"NextToken": str(first + 5)} if first + 5 < len(self.groups[group]) else {}
        return {"Resources": [{"Identifier": {"ResourceArn": arn}} for arn in arns], **following}

    def iam(self, call: Call) -> dict[str, Any]:
        """IAM makes a service-linked role once, and names it itself."""
        if call.operation == "GetRole":
            name = call.params["RoleName"]
            if name not in self.roles:
                raise Refused("NoSuchEntity", f"The role with name {name} cannot be found.", 404)
        elif call.operation == "CreateServiceLinkedRole":
            name = LINKED[call.params["AWSServiceName"]]
            if name in self.roles:
                taken = f"Service role name {name} has been taken in this account, please try a different suffix."
                raise Refused("InvalidInput", taken)
            self.roles.add(name)
        else:
            raise Refused("InvalidAction", f"The fake has no {call.name}")
        role = {
            "RoleName": name,
            "Path": "/",
            "RoleId": "A" * 16,
            "Arn": f"arn:aws:iam::1:role/{name}",
            "CreateDate": 0,
        }
        return {"Role": role}

    def ssm(self, call: Call) -> dict[str, Any]:
        """A missing parameter is an error, never an empty value."""
        if call.operation != "GetParameter":
            raise Refused("InvalidAction", f"The fake has no {call.name}")
        name = call.params["Name"]
        if (call.region, name) not in self.parameters:
            raise Refused("ParameterNotFound", "")
        return {"Parameter": {"Name": name, "Type": "String", "Value": self.parameters[call.region, name]}}

    def secretsmanager(self, call: Call) -> dict[str, Any]:
        """A secret of another region does not exist: secrets belong to one."""
        if call.operation not in ("DescribeSecret", "GetSecretValue"):
            raise Refused("InvalidRequestException", f"The fake has no {call.name}")
        arn = self.secrets.get((call.region, call.params["SecretId"]))
        if arn is None:
            raise Refused("ResourceNotFoundException", "Secrets Manager can't find the specified secret.")
        if call.operation == "GetSecretValue":
            text = self.values.get((call.region, call.params["SecretId"]))
            return {"ARN": arn, **({"SecretBinary": b""} if text is None else {"SecretString": text})}
        return {"ARN": arn, "Name": arn.rsplit(":", 1)[-1], "DeletedDate": 1 if arn in self.dying else None}
