"""Chooses instance types by their accelerators: `H100:8` is every type of the region whose machines have eight H100."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from aws.facts import Accelerators, InstanceType
from contract.environments import JobChecksEnvironment
from contract.limits import Limits
from job_requests.offered import is_allowed
from job_requests.request import MOST_TYPES, JobRequest
from job_requests.values import Mode
from refusals.wording import plain


def list_matching(request: JobRequest, types: Iterable[InstanceType], limits: Limits) -> list[InstanceType]:
    """Returns the types that the deployment allows and that have what the request names; none where it names nothing.

    Those with the fewest vCPUs come first, then it goes by name: of machines with the same accelerators the smaller one costs less.
    With `efa: true` types that have EFA keep the others out.
    """
    wanted = _read_wanted(request)
    found = [kind for kind in _allowed(types, limits) if wanted in map(_key, kind.accelerators)]
    with_efa = [kind for kind in found if kind.efas] if request.efa is Mode.TRUE else []
    return sorted(with_efa or found, key=lambda kind: (kind.vcpus, kind.name))


def choose_types(
    request: JobRequest,
    types: Iterable[InstanceType],
    offered: Collection[str],
    limits: Limits,
) -> JobRequest:
    """Returns the request with instance types in place of its accelerators, at most as many as a request may name.

    Types that are not `offered` in a zone of ours are left out, unless there are no others: then they are refused as such.
    A request that names both is left as it is.
    """
    if not request.accelerators or request.instance_types:
        return request
    names = [kind.name for kind in list_matching(request, types, limits)]
    here = [name for name in names if name in offered]
    return request.model_copy(update={"instance_types": (here or names)[:MOST_TYPES]})


def check_accelerators(
    request: JobRequest, types: Sequence[InstanceType], regions: Sequence[str], env: JobChecksEnvironment
) -> list[str]:
    """Rejects accelerators that no type of `types` has, all of the `regions`; of regions where nothing trains nothing is known."""
    if not request.accelerators or not regions or list_matching(request, types, env.limits):
        return []
    every = (one for kind in _allowed(types, env.limits) for one in kind.accelerators if one.count)
    known = {_key(one): f"{one.name}:{one.count}" for one in every}
    having = (
        ", ".join(known[key] for key in sorted(known)) or "instance_types, because no allowed type has accelerators"
    )
    return [
        f"accelerators: no allowed type in {', '.join(regions)} has {plain(request.accelerators)}; allowed: {having} "
        "(limits.instance_types in cdk.json)"
    ]


def _allowed(types: Iterable[InstanceType], limits: Limits) -> list[InstanceType]:
    return [kind for kind in types if is_allowed(kind.name, limits)]


def _read_wanted(request: JobRequest) -> tuple[str, int]:
    name, _, count = (request.accelerators or ":0").rpartition(":")
    return name.casefold(), int(count)


def _key(one: Accelerators) -> tuple[str, int]:
    return one.name.casefold(), one.count
