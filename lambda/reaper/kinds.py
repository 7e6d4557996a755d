"""The kinds of things that the reaper looks for: how each is listed, read again just before its end, and ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from aws.belongings import Belongings, Page, filters, profiled, tagged
from contract.environments import ReaperEnvironment
from reaper.executions_left import LinesLeft, RoundsLeft
from reaper.grids import JobsLeft, TrainingsLeft
from reaper.pods_left import PodsLeft


class ResourceKind(Protocol):
    """One kind of thing in one region. Every call may raise ClientError or BotoCoreError, `pages` also after some pages."""

    @property
    def name(self) -> str:
        """The key of its section in the region's marks."""

    @property
    def every_s(self) -> float:
        """How often it is listed; 0 means in each pass."""

    @property
    def counted(self) -> bool:
        """Whether it counts among our running things, of which a pass may end only a share."""

    def pages(self) -> Iterator[Page]:
        """Yields all of them, page by page."""

    def again(self, ids: Sequence[str]) -> Page:
        """Returns those of `ids` (at most 200) that still exist and are still left over."""

    def end(self, ids: Sequence[str]) -> dict[str, str]:
        """Ends them. Returns the reason for each that AWS refused."""


ListPages = Callable[[list[dict[str, Any]]], Iterator[Page]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """Things of EC2 that carry the deployment's tag."""

    name: str
    listing: ListPages
    wanted: list[dict[str, Any]]
    id_filter: str
    ending: Callable[[Sequence[str]], dict[str, str]]
    counted: bool = False
    every_s: float = 0.0

    def pages(self) -> Iterator[Page]:
        return self.listing(self.wanted)

    def again(self, ids: Sequence[str]) -> Page:
        return _whole(self.listing([*self.wanted, *filters(**{self.id_filter: ids})]))

    def end(self, ids: Sequence[str]) -> dict[str, str]:
        return self.ending(ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Untagged:
    """Instances with our instance profile and without the deployment's tag (those with the tag are found by it)."""

    belongings: Belongings
    profile: str
    deployment: str
    every_s: float
    name: str = "untagged"
    counted: bool = False

    def pages(self) -> Iterator[Page]:
        for page in self.belongings.instances(profiled(self.profile)):
            yield Page(tuple(one for one in page.things if one.deployment != self.deployment), page.moment)

    def again(self, ids: Sequence[str]) -> Page:
        return _whole(self.belongings.instances([*profiled(self.profile), *filters(instance_id=ids)]))

    def end(self, ids: Sequence[str]) -> dict[str, str]:
        return self.belongings.terminate(ids)


def _whole(pages: Iterator[Page]) -> Page:
    """Joins the pages of one listing, with the first one's time: a clock that lags only delays an end."""
    every = list(pages)
    return Page(tuple(thing for page in every for thing in page.things), every[0].moment)


def kinds(region: str, env: ReaperEnvironment) -> tuple[ResourceKind, ...]:
    """All kinds in a region in the order in which they are scanned: those that cost most come first."""
    ec2, ours = Belongings(region), tagged(env.deployment)
    lines = LinesLeft(env.deployment, region, env.machine, env.grid_machine)
    rounds = RoundsLeft(env.deployment, region, env.grid_machine, env.search_machine)
    pods = (PodsLeft(env.deployment, region, env.cluster_function),) if env.cluster_function else ()
    children = (rounds, lines, JobsLeft(env.deployment, region), *pods) if region == env.home_region else ()
    return (
        Tagged(
            name="instances",
            listing=ec2.instances,
            wanted=ours,
            id_filter="instance_id",
            ending=ec2.terminate,
            counted=True,
        ),
        TrainingsLeft(env.deployment, region),
        *children,
        Untagged(
            belongings=ec2,
            profile=env.instance_profile,
            deployment=env.deployment,
            every_s=env.timing.reaper_profile_every_s,
        ),
        Tagged(
            name="spot-requests",
            listing=ec2.spot_requests,
            wanted=ours,
            id_filter="spot_instance_request_id",
            ending=ec2.cancel_spot_requests,
        ),
        Tagged(name="volumes", listing=ec2.volumes, wanted=ours, id_filter="volume_id", ending=ec2.delete_volumes),
        Tagged(
            name="interfaces",
            listing=ec2.interfaces,
            wanted=ours,
            id_filter="network_interface_id",
            ending=ec2.delete_interfaces,
        ),
    )
