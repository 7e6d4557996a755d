"""What instances leave behind in the fake EC2: volumes, network interfaces, requests for spot capacity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from localaws.model import Pages, Refused
from tests.fakes.clock import Clock
from tests.fakes.wire import Call


@dataclass(frozen=True, slots=True)
class Sort:
    """How EC2 speaks of a sort of thing."""

    list_name: str
    id_name: str
    state_name: str
    tags_name: str
    born_name: str
    """Empty where it does not say when a thing was made."""
    filters: tuple[str, str]
    """Of the id and of the state."""
    code: str
    """The prefix of its errors."""
    free: str
    """The state in which it hangs on nothing, and can be ended."""


SORTS = {
    "vol": Sort(
        "Volumes", "VolumeId", "State", "Tags", "CreateTime", ("volume-id", "status"), "InvalidVolume", "available"
    ),
    "eni": Sort(
        "NetworkInterfaces",
        "NetworkInterfaceId",
        "Status",
        "TagSet",
        "",
        ("network-interface-id", "status"),
        "InvalidNetworkInterfaceID",
        "available",
    ),
    "sir": Sort(
        "SpotInstanceRequests",
        "SpotInstanceRequestId",
        "State",
        "Tags",
        "CreateTime",
        ("spot-instance-request-id", "state"),
        "InvalidSpotInstanceRequestID",
        "open",
    ),
}
OPERATIONS = {
    "DescribeVolumes": "vol",
    "DescribeNetworkInterfaces": "eni",
    "DescribeSpotInstanceRequests": "sir",
    "DeleteVolume": "vol",
    "DeleteNetworkInterface": "eni",
    "CancelSpotInstanceRequests": "sir",
}


@dataclass
class Leftover:
    """A volume, an interface or a request."""

    id: str
    state: str
    tags: dict[str, str]
    born_at: float
    gone: bool = False


@dataclass
class Leftovers:
    """Of one region."""

    clock: Clock
    name: Callable[[str], str]
    """Makes an id of a prefix."""
    things: dict[str, Leftover] = field(default_factory=dict)
    pages: Pages = field(default_factory=lambda: Pages(size=1000))

    def leave(self, prefix: str, tags: dict[str, str], *, state: str = "", born_at: float | None = None) -> Leftover:
        """For tests: something is left over, or (by `state`) in use."""
        born = self.clock.now if born_at is None else born_at
        thing = Leftover(self.name(prefix), state or SORTS[prefix].free, dict(tags), born)
        self.things[thing.id] = thing
        return thing

    def answer(self, call: Call) -> dict[str, Any]:
        prefix = OPERATIONS[call.operation]
        if call.operation.startswith("Describe"):
            return self._describe(prefix, call.params)
        if call.operation.startswith("Cancel"):
            found = [self._ended(prefix, id_) for id_ in call.params["SpotInstanceRequestIds"]]
            cancelled = [{"SpotInstanceRequestId": one.id, "State": "cancelled"} for one in found]
            return {"CancelledSpotInstanceRequests": cancelled}
        self._ended(prefix, call.params[SORTS[prefix].id_name])
        return {}

    def _ended(self, prefix: str, identity: str) -> Leftover:
        """What is in use cannot be deleted; what is gone is not found."""
        sort, thing = SORTS[prefix], self.things.get(identity)
        if thing is None or thing.gone:
            raise Refused(f"{sort.code}.NotFound", f"The '{identity}' does not exist")
        if thing.state != sort.free:
            raise Refused("VolumeInUse" if prefix == "vol" else "InvalidParameterValue", f"{identity} is in use")
        thing.gone = True
        return thing

    def _describe(self, prefix: str, params: dict[str, Any]) -> dict[str, Any]:
        """Pages are cut before they are filtered, as of instances."""
        sort, most = SORTS[prefix], params.get("MaxResults")
        if most is not None and not 5 <= most <= 1000:
            raise Refused("InvalidParameterValue", f"Value ( {most} ) for parameter maxResults is invalid.")
        every = [one for one in self.things.values() if one.id.startswith(prefix) and not one.gone]
        page, following = self.pages.cut(every, params.get("NextToken"), most or 1000, self.clock.now)
        shown = [one for one in page if self._fits(one, sort, params.get("Filters") or [])]
        return {sort.list_name: [_shown(one, sort) for one in shown], "NextToken": following}

    @staticmethod
    def _fits(thing: Leftover, sort: Sort, filters: list[dict[str, Any]]) -> bool:
        values = {sort.filters[0]: thing.id, sort.filters[1]: thing.state}
        for one in filters:
            name = one["Name"]
            if name not in values and not name.startswith("tag:"):
                raise Refused("InvalidParameterValue", f"The filter '{name}' is invalid")
            found = values.get(name) if name in values else thing.tags.get(name.removeprefix("tag:"))
            if found not in one["Values"]:
                return False
        return True


def _shown(thing: Leftover, sort: Sort) -> dict[str, Any]:
    entry: dict[str, Any] = {
        sort.id_name: thing.id,
        sort.state_name: thing.state,
        sort.tags_name: [{"Key": key, "Value": value} for key, value in thing.tags.items()],
    }
    if sort.born_name:
        entry[sort.born_name] = datetime.fromtimestamp(thing.born_at, timezone.utc)
    return entry
