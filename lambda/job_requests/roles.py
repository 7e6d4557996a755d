"""Decides what stands against a request's roles, and splits such a request into what each of its roles asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from contract.health import HealthCheck
from contract.limits import Limits
from contract.roles import RoleEnd
from contract.tag_forms import MOST_OF_A_REQUEST
from contract.training import ROLE, ROLE_ADDRESSES, ROLE_RANK
from job_requests.request import JobRequest
from job_requests.role_field import INHERITED, RoleField
from job_requests.values import Buying
from refusals.script import wanted_files

REFUSED = {
    "nodes": "each of which has its count",
    "launcher": "whose commands find each other by CLUSTER_SPEC",
    "processes_per_node": "whose commands find each other by CLUSTER_SPEC",
    "reservation": "whose nodes may be of several types",
    "workbench": "and a workbench has one node",
}
"""Fields that no request with roles can have, with what speaks against each."""
OURS = (ROLE, ROLE_RANK, f"{ROLE_ADDRESSES}...")
"""Variables that only jobs with roles have."""


def list_role_problems(given: object, request: JobRequest, limits: Limits) -> list[str]:
    """Rejects roles that are no job together, and fields that mean nothing beside them. `given` is the request as a person wrote it: a
    field that is wrong is there, and is rejected as such."""
    if not request.roles or not isinstance(given, Mapping):
        return []
    against = [
        f"{name}: the request has roles, {why}; allowed: roles without {name}"
        for name, why in REFUSED.items()
        if given.get(name) is not None
    ]
    if (together := count_nodes(request)) > limits.max_nodes:
        most = f"up to {limits.max_nodes} of all roles together (limits.max_nodes in cdk.json)"
        against.append(f"roles: they have {together} nodes; allowed: {most}")
    if all(one.ends is not RoleEnd.JOB for one in request.roles):
        against.append(f"roles: none of them ends the job; allowed: ends {RoleEnd.JOB.value} for one at least")
    if len(request.tags) >= MOST_OF_A_REQUEST:  # EC2's limit, and nodes with roles have one more of ours
        against.append(f"tags: has {len(request.tags)} entries; allowed: up to {MOST_OF_A_REQUEST - 1} beside roles")
    if request.health is HealthCheck.DEEP:
        against.append(
            f"health: {HealthCheck.DEEP.value} measures the network between nodes that are alike, and roles may differ; "
            f"allowed: {HealthCheck.QUICK.value} or {HealthCheck.OFF.value}"
        )
    for field in ("environment", "secrets"):
        taken = sorted(one for one in getattr(request, field) if one in OURS or one.startswith(ROLE_ADDRESSES))
        against += [f"{field}.{one}: is set by Trainyard; allowed: any name but {', '.join(OURS)}" for one in taken]
    return [*against, *_list_each(given, request)]


def _list_each(given: Mapping[str, Any], request: JobRequest) -> Iterator[str]:
    """Yields what is wrong with a single role: its name, and what neither it nor the request says."""
    names = list[str]()
    for number, (role, part) in enumerate(zip(request.roles, split_request(request), strict=True)):
        where = f"roles.{number}"
        if role.name in names:
            yield f"{where}.name: {role.name} is the name of another role too; allowed: a name of its own"
        names.append(role.name)
        if not (part.instance_types or part.accelerators or "instance_types" in given or given.get("accelerators")):
            yield f"{where}.instance_types: is missing; allowed: EC2 types, as in g5.xlarge, here or in the request"
        if part.image is None and given.get("image") is None:
            if not part.command and "command" not in given:
                yield f"{where}.command: is missing; allowed: the program to run, here or in the request, or an image"
            if not part.code and "code" not in given:
                yield f"code: is missing, and role {role.name} has no image; allowed: the address of an archive, or an image"
            if role.arguments:
                yield f"{where}.arguments: the role has no image; allowed: arguments beside an image, or words of command"


def count_nodes(request: JobRequest) -> int:
    """Returns how many nodes the job has."""
    return sum(one.count for one in request.roles) if request.roles else request.nodes


def split_request(request: JobRequest) -> list[JobRequest]:
    """Returns for each role a request that asks for what the role does, among as many nodes as all have; the request itself where it has no
    roles."""
    return [_ask_for(request, one) for one in request.roles] or [request]


def list_wanted_files(request: JobRequest) -> tuple[str, ...]:
    """Returns the files of the code that the request's commands name, each once."""
    parts = split_request(request)
    return tuple(dict.fromkeys(name for part in parts for name in wanted_files(part.launched_words)))


def _ask_for(request: JobRequest, role: RoleField) -> JobRequest:
    own = {name: getattr(role, name) for name in INHERITED if getattr(role, name)}
    if "command" in own:
        own.setdefault("arguments", [])
    if "instance_types" in own:
        own["accelerators"] = None
    return request.model_copy(update={**own, "roles": [], "nodes": count_nodes(request)})


def join_parts(request: JobRequest, parts: list[JobRequest]) -> JobRequest:
    """Returns the request with what its `parts` name together: all their types, spot where one of them is on spot, and no program."""
    if not request.roles:
        return parts[0]
    types = list(dict.fromkeys(name for part in parts for name in part.instance_types))
    markets = list(dict.fromkeys(part.market for part in parts))
    market = next((one for one in markets if one is not Buying.ON_DEMAND), Buying.ON_DEMAND)
    accelerators = next((part.accelerators for part in parts if part.accelerators), None)
    together = {"instance_types": types, "accelerators": accelerators, "market": market}
    return request.model_copy(update={**together, "image": None, "command": [], "arguments": []})


def judge_parts(request: JobRequest, judge: Callable[[JobRequest], Iterable[str]]) -> list[str]:
    """Returns what `judge` has against each part of a request, under the role's number where it is about a field of the role."""
    each = ([*judge(part)] for part in split_request(request))
    return place_problems(request, each)


def place_problems(request: JobRequest, each: Iterable[Iterable[str]]) -> list[str]:
    """Returns the problems of all parts in the order of roles, each once."""
    found = [
        f"roles.{number}.{one}" if request.roles and one.partition(":")[0] in INHERITED else one
        for number, problems in enumerate(each)
        for one in problems
    ]
    return list(dict.fromkeys(found))
