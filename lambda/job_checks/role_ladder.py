"""Builds the ladder of a request with roles: in each zone that has types for all of them, the shapes that its nodes come in."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, islice

from contract.jobs import LaunchShape, Market, Rung
from job_checks.ladder import MOST_RUNGS, Ladder, PlacedRequest, build_ladder
from job_checks.resolve import ResolvedRequest
from job_requests.role_field import RoleField
from job_requests.roles import place_problems

Zones = dict[tuple[str, str], list[Rung]]
"""Region and zone to the rungs of one role there, in the order of its own ladder."""


def build_role_ladder(resolved: ResolvedRequest) -> PlacedRequest:
    """Joins what each role could be launched on by itself. All nodes of a rung are in one zone; a rung comes before those in which roles
    have to do with later types and markets, and then a cheaper one before a dearer one."""
    ladders = [build_ladder(part).ladder for part in resolved.parts]
    problems = place_problems(resolved.request, (one.problems for one in ladders))
    rungs = [] if problems else _join_ladders(resolved, ladders)
    if not rungs and not problems:
        problems = [
            "roles: no zone of the deployment offers types for all of them; allowed: types that one zone offers"
        ]
    left_out = tuple(dict.fromkeys(one for ladder in ladders for one in ladder.left_out))
    return PlacedRequest(
        resolved=resolved, ladder=Ladder(rungs=tuple(rungs), problems=tuple(problems), left_out=left_out)
    )


def average(shapes: Sequence[LaunchShape], read: Callable[[Rung], float | None]) -> float | None:
    """Returns the mean over all nodes of a price; None where that of a shape is not known."""
    each = [(read(one.rung), one.nodes) for one in shapes]
    known = [usd * nodes for usd, nodes in each if usd is not None]
    return math.fsum(known) / sum(nodes for _, nodes in each) if len(known) == len(each) else None


def _sort_zones(rungs: Sequence[Rung]) -> Zones:
    zones: Zones = {}
    for rung in rungs:
        zones.setdefault((rung.region, rung.zone), []).append(rung)
    return zones


def _join_ladders(resolved: ResolvedRequest, ladders: Sequence[Ladder]) -> list[Rung]:
    kinds = [list(dict.fromkeys((rung.instance_type, rung.market) for rung in one.rungs)) for one in ladders]
    zones = [_sort_zones(one.rungs) for one in ladders]
    shared = [place for place in zones[0] if all(place in one for one in zones)]
    share = max(1, MOST_RUNGS // max(1, len(shared)))
    found = list[tuple[int, Rung]]()
    for place in shared:
        joined = list[tuple[int, Rung]]()
        for chosen in islice(_list_choices([one[place] for one in zones]), share):
            each = zip(kinds, chosen, strict=True)
            later = sum(known.index((rung.instance_type, rung.market)) for known, rung in each)
            joined.append((later, _join_rungs(resolved, chosen)))
        found += _keep_first(joined, share)
    found.sort(key=lambda one: (one[0], math.inf if one[1].usd is None else one[1].usd))
    return [rung for _, rung in _keep_first(found, MOST_RUNGS)]


def _keep_first(found: Sequence[tuple[int, Rung]], most: int) -> list[tuple[int, Rung]]:
    """Returns the first rungs that have so many shapes together, and one at least: a walk keeps a request for each shape of each rung."""
    so_far = accumulate(len(rung.shapes) for _, rung in found)
    kept = sum(shapes <= most for shapes in so_far)
    return list(found[: max(1, kept)])


def _list_choices(options: Sequence[Sequence[Rung]]) -> Iterator[list[Rung]]:
    """Yields one option of each role, those first that come early in all of them together."""
    lengths = [len(one) for one in options]
    for later in range(sum(lengths) - len(lengths) + 1):
        for indexes in _list_sums(lengths, later):
            yield [one[index] for one, index in zip(options, indexes, strict=True)]


def _list_sums(lengths: Sequence[int], total: int) -> Iterator[tuple[int, ...]]:
    """Yields the indexes into lists of these lengths whose sum is the total."""
    if not lengths:
        yield from [()] if total == 0 else []
        return
    reach = sum(lengths[1:]) - len(lengths[1:])
    for index in range(max(0, total - reach), min(lengths[0] - 1, total) + 1):
        for others in _list_sums(lengths[1:], total - index):
            yield index, *others


def _join_rungs(resolved: ResolvedRequest, chosen: Sequence[Rung]) -> Rung:
    shapes = sorted(_list_shapes(resolved.request.roles, chosen), key=lambda one: _sort_scarce(resolved, one))
    types = dict.fromkeys(one.rung.instance_type for one in shapes)
    return replace(
        shapes[0].rung,
        instance_type=" + ".join(types),
        cluster=any(one.rung.cluster for one in shapes),
        usd=average(shapes, lambda rung: rung.usd),
        shapes=tuple(shapes),
    )


def _list_shapes(roles: Sequence[RoleField], chosen: Sequence[Rung]) -> list[LaunchShape]:
    """Returns a shape for each run of roles whose machines are alike: what one call launches, EC2 launches whole or not at all."""
    shapes, first = list[LaunchShape](), 0
    for role, rung in zip(roles, chosen, strict=True):
        if shapes and shapes[-1].rung == rung:
            before = shapes[-1]
            shapes[-1] = replace(before, nodes=before.nodes + role.count, role=f"{before.role}+{role.name}")
        else:
            shapes.append(LaunchShape(rung=rung, first_rank=first, nodes=role.count, role=role.name))
        first += role.count
    return shapes


def _sort_scarce(resolved: ResolvedRequest, shape: LaunchShape) -> tuple[float, bool, int]:
    """Sorts by what shows that machines are scarce: their on-demand price, then spot, then how many are wanted at once."""
    rung = shape.rung
    usd = resolved.facts.regions[rung.region].on_demand.get(rung.instance_type, math.inf)
    return -usd, rung.market is not Market.SPOT, -shape.nodes
