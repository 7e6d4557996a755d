"""Batch's compute environments, queues and job definitions, which a job needs before it can be submitted; per region."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from localaws.model import Refused

Request = dict[str, Any]
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
KINDS = ("FARGATE", "FARGATE_SPOT")


def client_problem(message: str) -> Refused:
    return Refused("ClientException", message)


class Registry:
    """Holds everything of one region by its ARN."""

    def __init__(self, region: str, account: str) -> None:
        self._region, self._account = region, account
        self.environments: dict[str, Request] = {}
        self.queues: dict[str, Request] = {}
        self.definitions: dict[str, Request] = {}
        self.operations: dict[str, Callable[[Request], Request]] = {
            "CreateComputeEnvironment": self._create_environment,
            "DescribeComputeEnvironments": partial(_shown, "computeEnvironments", self.environments),
            "UpdateComputeEnvironment": partial(_update, "computeEnvironment", self.environments),
            "DeleteComputeEnvironment": self._delete_environment,
            "CreateJobQueue": self._create_queue,
            "DescribeJobQueues": partial(_shown, "jobQueues", self.queues),
            "UpdateJobQueue": partial(_update, "jobQueue", self.queues),
            "DeleteJobQueue": partial(_delete, "jobQueue", self.queues),
            "RegisterJobDefinition": self._register,
            "DescribeJobDefinitions": self._describe_definitions,
            "DeregisterJobDefinition": self._deregister,
        }

    def queue(self, named: str) -> Request:
        """Finds a queue by name or ARN. Raises Refused."""
        found = _of(self.queues, named, "jobQueueName")
        if found is None:
            raise client_problem(f"JobQueue {named} not found.")
        return found

    def definition(self, named: str) -> Request:
        """Finds a definition by ARN, `name:revision`, or name, which means the newest active revision. Raises Refused."""
        if named in self.definitions:
            found = [self.definitions[named]]
        else:
            name, _, revision = named.rpartition("/")[2].partition(":")
            fitting = [one for one in self.definitions.values() if one["jobDefinitionName"] == name]
            found = [one for one in fitting if revision in ("", str(one["revision"])) and one["status"] == "ACTIVE"]
        if not found or found[-1]["status"] != "ACTIVE":
            raise client_problem(f"JobDefinition {named} not found or not active.")
        return found[-1]

    def tagged(self, arn: str) -> Request | None:
        return self.environments.get(arn) or self.queues.get(arn) or self.definitions.get(arn)

    def vcpus(self, queue: Mapping[str, Any]) -> float:
        """Returns the most vCPUs that the queue's environments give at once."""
        orders = queue["computeEnvironmentOrder"]
        return sum(
            float(self.environments[one["computeEnvironment"]]["computeResources"]["maxvCpus"]) for one in orders
        )

    def _arn(self, kind: str, name: str) -> str:
        return f"arn:aws:batch:{self._region}:{self._account}:{kind}/{name}"

    def _new_arn(self, kind: str, field: str, name: str, things: Mapping[str, Request]) -> str:
        _check_name(field, name)
        if (arn := self._arn(kind, name)) in things:
            raise client_problem(f"Object already exists: {name}")
        return arn

    def _create_environment(self, request: Request) -> Request:
        name, resources = str(request["computeEnvironmentName"]), request.get("computeResources", {})
        arn = self._new_arn("compute-environment", "computeEnvironmentName", name, self.environments)
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

    def _create_queue(self, request: Request) -> Request:
        name = str(request["jobQueueName"])
        arn = self._new_arn("job-queue", "jobQueueName", name, self.queues)
        order = []
        for one in request.get("computeEnvironmentOrder", []):
            environment = _of(self.environments, one["computeEnvironment"], "computeEnvironmentName")
            if environment is None:
                raise client_problem(f"computeEnvironment {one['computeEnvironment']} not found")
            order.append({**one, "computeEnvironment": environment["computeEnvironmentArn"]})
        if not order:
            raise client_problem("computeEnvironmentOrder must have at least one entry")
        found = {"state": "ENABLED", **request, "computeEnvironmentOrder": order, "jobQueueArn": arn}
        self.queues[arn] = {**found, "status": "VALID", "statusReason": "JobQueue Healthy"}
        return {"jobQueueName": name, "jobQueueArn": arn}

    def _delete_environment(self, request: Request) -> Request:
        found = _of(self.environments, request["computeEnvironment"], "computeEnvironmentName")
        used = [one["computeEnvironment"] for queue in self.queues.values() for one in queue["computeEnvironmentOrder"]]
        if found and found["computeEnvironmentArn"] in used:
            raise client_problem("Cannot delete, found existing JobQueue relationship")
        return _delete("computeEnvironment", self.environments, request)

    def _register(self, request: Request) -> Request:
        name = str(request["jobDefinitionName"])
        _check_name("jobDefinitionName", name)
        container = request.get("containerProperties")
        if request["type"] != "container" or not container or "FARGATE" not in request.get("platformCapabilities", []):
            raise client_problem("the rehearsal has job definitions of one container on Fargate")
        if not container.get("executionRoleArn"):
            raise client_problem("EXECUTION ROLE ARN must be specified for Fargate")
        revision = 1 + sum(one["jobDefinitionName"] == name for one in self.definitions.values())
        arn = self._arn("job-definition", f"{name}:{revision}")
        self.definitions[arn] = {**request, "jobDefinitionArn": arn, "revision": revision, "status": "ACTIVE"}
        return {"jobDefinitionName": name, "jobDefinitionArn": arn, "revision": revision}

    def _describe_definitions(self, request: Request) -> Request:
        wanted, name = request.get("jobDefinitions"), request.get("jobDefinitionName")
        found = [
            one
            for one in self.definitions.values()
            if (
                wanted is None
                or {one["jobDefinitionArn"], f"{one['jobDefinitionName']}:{one['revision']}"} & set(wanted)
            )
            and name in (None, one["jobDefinitionName"])
            and request.get("status") in (None, one["status"])
        ]
        return {"jobDefinitions": found}

    def _deregister(self, request: Request) -> Request:
        self.definition(request["jobDefinition"])["status"] = "INACTIVE"
        return {}


def _check_name(field: str, name: str) -> None:
    if not NAME.fullmatch(name):
        raise client_problem(f"{field} {name}: letters, digits, - and _, up to 128")


def _update(kind: str, things: dict[str, Request], request: Request) -> Request:
    found = _of(things, request[kind], f"{kind}Name")
    if found is None:
        raise client_problem(f"{request[kind]} does not exist")
    resources = {**found.get("computeResources", {}), **request.get("computeResources", {})}
    found |= {name: value for name, value in request.items() if name != kind}
    if resources:
        found["computeResources"] = resources
    return {f"{kind}Name": found[f"{kind}Name"], f"{kind}Arn": found[f"{kind}Arn"]}


def _delete(kind: str, things: dict[str, Request], request: Request) -> Request:
    """Deletes what is disabled; what does not exist is no error."""
    if found := _of(things, request[kind], f"{kind}Name"):
        if found["state"] != "DISABLED":
            raise client_problem("Cannot delete, state must be DISABLED")
        del things[found[f"{kind}Arn"]]
    return {}


def _of(things: Mapping[str, Request], named: str, field: str) -> Request | None:
    return next((one for arn, one in things.items() if named in (arn, one[field])), None)


def _shown(name: str, things: Mapping[str, Request], request: Request) -> Request:
    wanted = request.get(name)
    fitting = [one for arn, one in things.items() if wanted is None or {arn, arn.rpartition("/")[2]} & set(wanted)]
    return {name: fitting}
