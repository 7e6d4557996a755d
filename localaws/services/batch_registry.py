"""Batch's compute environments, queues and job definitions: what a job needs before it can be submitted; one region each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from localaws.api import Request
from localaws.model import Refused

if TYPE_CHECKING:
    from localaws.recorder import Call

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
PREFIXES = {"compute-environment": "computeEnvironment", "job-queue": "jobQueue"}
KINDS = ("FARGATE", "FARGATE_SPOT")


def client_problem(message: str) -> Refused:
    return Refused("ClientException", message)


class Registry:
    """Everything by its ARN."""

    def __init__(self, account: str) -> None:
        self._account = account
        self.environments: dict[str, Request] = {}
        self.queues: dict[str, Request] = {}
        self.definitions: dict[str, Request] = {}

    def operations(self) -> dict[str, Any]:
        return {
            "CreateComputeEnvironment": self._create_environment,
            "DescribeComputeEnvironments": lambda call, request: _shown(
                "computeEnvironments", self.environments, request.get("computeEnvironments"), call.region
            ),
            "UpdateComputeEnvironment": lambda call, request: self._update(
                self.environments, "computeEnvironment", call, request
            ),
            "DeleteComputeEnvironment": self._delete_environment,
            "CreateJobQueue": self._create_queue,
            "DescribeJobQueues": lambda call, request: _shown(
                "jobQueues", self.queues, request.get("jobQueues"), call.region
            ),
            "UpdateJobQueue": lambda call, request: self._update(self.queues, "jobQueue", call, request),
            "DeleteJobQueue": self._delete_queue,
            "RegisterJobDefinition": self._register,
            "DescribeJobDefinitions": self._describe_definitions,
            "DeregisterJobDefinition": self._deregister,
        }

    def queue(self, region: str, named: str) -> Request:
        """By name or ARN. Raises Refused."""
        found = _of(self.queues, named, region, "jobQueueName")
        if found is None:
            raise client_problem(f"JobQueue {named} not found.")
        return found

    def definition(self, region: str, named: str) -> Request:
        """By ARN, `name:revision`, or name: then the newest that is active. Raises Refused."""
        if named in self.definitions:
            found = [self.definitions[named]]
        else:
            name, _, revision = named.rpartition("/")[2].partition(":")
            fitting = [one for one in self._in(region) if one["jobDefinitionName"] == name]
            found = [one for one in fitting if revision in ("", str(one["revision"])) and one["status"] == "ACTIVE"]
        if not found or found[-1]["status"] != "ACTIVE":
            raise client_problem(f"JobDefinition {named} not found or not active.")
        return found[-1]

    def tagged(self, arn: str) -> Request | None:
        return self.environments.get(arn) or self.queues.get(arn) or self.definitions.get(arn)

    def vcpus(self, queue: Mapping[str, Any]) -> float:
        """The most that the queue's environments give at once."""
        orders = queue["computeEnvironmentOrder"]
        return sum(
            float(self.environments[one["computeEnvironment"]]["computeResources"]["maxvCpus"]) for one in orders
        )

    def _in(self, region: str) -> list[Request]:
        return [one for arn, one in self.definitions.items() if arn.split(":")[3] == region]

    def _arn(self, call: Call, kind: str, name: str) -> str:
        return f"arn:aws:batch:{call.region}:{self._account}:{kind}/{name}"

    def _create_environment(self, call: Call, request: Request) -> Mapping[str, Any]:
        name, resources = str(request["computeEnvironmentName"]), request.get("computeResources", {})
        arn = self._arn(call, "compute-environment", name)
        _check_name("computeEnvironmentName", name)
        if arn in self.environments:
            raise client_problem(f"Object already exists: {name}")
        if request.get("type") != "MANAGED" or resources.get("type") not in KINDS:
            raise client_problem(f"the rehearsal has managed environments of {' and '.join(KINDS)}: {request}")
        for field in ("subnets", "securityGroupIds"):
            if not resources.get(field):
                raise client_problem(f"computeResources.{field} must be specified for Fargate")
        found = {
            "state": "ENABLED",
            **request,
            "computeEnvironmentArn": arn,
            "status": "VALID",
            "statusReason": "Healthy",
        }
        self.environments[arn] = {**found, "containerOrchestrationType": "ECS"}
        return {"computeEnvironmentName": name, "computeEnvironmentArn": arn}

    def _create_queue(self, call: Call, request: Request) -> Mapping[str, Any]:
        name = str(request["jobQueueName"])
        arn = self._arn(call, "job-queue", name)
        _check_name("jobQueueName", name)
        if arn in self.queues:
            raise client_problem(f"Object already exists: {name}")
        order = []
        for one in request.get("computeEnvironmentOrder", []):
            environment = _of(self.environments, one["computeEnvironment"], call.region, "computeEnvironmentName")
            if environment is None:
                raise client_problem(f"computeEnvironment {one['computeEnvironment']} not found")
            order.append({**one, "computeEnvironment": environment["computeEnvironmentArn"]})
        if not order:
            raise client_problem("computeEnvironmentOrder must have at least one entry")
        found = {"state": "ENABLED", **request, "computeEnvironmentOrder": order, "jobQueueArn": arn}
        self.queues[arn] = {**found, "status": "VALID", "statusReason": "JobQueue Healthy"}
        return {"jobQueueName": name, "jobQueueArn": arn}

    @staticmethod
    def _update(things: dict[str, Request], kind: str, call: Call, request: Request) -> Mapping[str, Any]:
        found = _of(things, request[kind], call.region, f"{kind}Name")
        if found is None:
            raise client_problem(f"{request[kind]} does not exist")
        resources = {**found.get("computeResources", {}), **request.get("computeResources", {})}
        found |= {name: value for name, value in request.items() if name != kind}
        if resources:
            found["computeResources"] = resources
        return {f"{kind}Name": found[f"{kind}Name"], f"{kind}Arn": found[f"{kind}Arn"]}

    def _delete_environment(self, call: Call, request: Request) -> Mapping[str, Any]:
        found = _of(self.environments, request["computeEnvironment"], call.region, "computeEnvironmentName")
        if found is None:
            return {}
        arn = found["computeEnvironmentArn"]
        used = [one for queue in self.queues.values() for one in queue["computeEnvironmentOrder"]]
        if any(one["computeEnvironment"] == arn for one in used):
            raise client_problem("Cannot delete, found existing JobQueue relationship")
        if found["state"] != "DISABLED":
            raise client_problem("Cannot delete, state must be DISABLED")
        del self.environments[arn]
        return {}

    def _delete_queue(self, call: Call, request: Request) -> Mapping[str, Any]:
        found = _of(self.queues, request["jobQueue"], call.region, "jobQueueName")
        if found is None:
            return {}
        if found["state"] != "DISABLED":
            raise client_problem("Cannot delete, state must be DISABLED")
        del self.queues[found["jobQueueArn"]]
        return {}

    def _register(self, call: Call, request: Request) -> Mapping[str, Any]:
        name = str(request["jobDefinitionName"])
        _check_name("jobDefinitionName", name)
        container = request.get("containerProperties")
        if request["type"] != "container" or not container or "FARGATE" not in request.get("platformCapabilities", []):
            raise client_problem("the rehearsal has job definitions of one container on Fargate")
        if not container.get("executionRoleArn"):
            raise client_problem("EXECUTION ROLE ARN must be specified for Fargate")
        revision = 1 + sum(one["jobDefinitionName"] == name for one in self._in(call.region))
        arn = self._arn(call, "job-definition", f"{name}:{revision}")
        self.definitions[arn] = {**request, "jobDefinitionArn": arn, "revision": revision, "status": "ACTIVE"}
        return {"jobDefinitionName": name, "jobDefinitionArn": arn, "revision": revision}

    def _describe_definitions(self, call: Call, request: Request) -> Mapping[str, Any]:
        wanted, name = request.get("jobDefinitions"), request.get("jobDefinitionName")
        found = [
            one
            for one in self._in(call.region)
            if (
                wanted is None
                or {one["jobDefinitionArn"], f"{one['jobDefinitionName']}:{one['revision']}"} & set(wanted)
            )
            and name in (None, one["jobDefinitionName"])
            and request.get("status") in (None, one["status"])
        ]
        return {"jobDefinitions": found}

    def _deregister(self, call: Call, request: Request) -> Mapping[str, Any]:
        self.definition(call.region, request["jobDefinition"])["status"] = "INACTIVE"
        return {}


def _check_name(field: str, name: str) -> None:
    if not NAME.fullmatch(name):
        raise client_problem(f"{field} {name}: letters, digits, - and _, up to 128")


def _of(things: Mapping[str, Request], named: str, region: str, field: str) -> Request | None:
    fits = (one for arn, one in things.items() if arn == named or (one[field] == named and arn.split(":")[3] == region))
    return next(fits, None)


def _shown(name: str, things: Mapping[str, Request], wanted: list[str] | None, region: str) -> Mapping[str, Any]:
    here = {arn: one for arn, one in things.items() if arn.split(":")[3] == region}
    fitting = [one for arn, one in here.items() if wanted is None or {arn, arn.rpartition("/")[2]} & set(wanted)]
    return {name: fitting}
