"""Resources that belong to EC2 instances and may outlive them: volumes, network interfaces, spot requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from localaws.model import Clock, Pages, Refused, moment
from localaws.services.ec2_request import is_spot


@dataclass(frozen=True, slots=True)
class Sort:
    """What EC2 calls a kind of resource."""

    list_name: str
    id_name: str
    state_name: str
    tags_name: str
    born_name: str
    """Name of the creation time; empty if EC2 does not show one."""
    filters: tuple[str, str]
    """Names of the filters for the id and for the state."""
    code: str
    """Prefix of its error codes."""
    free: str
    """The state in which it is attached to nothing, and can be deleted."""


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
    "CreateVolume": "vol",
    "DeleteVolume": "vol",
    "DeleteNetworkInterface": "eni",
    "CancelSpotInstanceRequests": "sir",
}


IN_USE, ACTIVE = "in-use", "active"


@dataclass
class Part:
    """A volume, an interface or a spot request."""

    id: str
    state: str
    tags: dict[str, str]
    born_at: float
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further members that a describe call shows."""
    goes: bool = True
    """DeleteOnTermination."""
    gone: bool = False


@dataclass
class Parts:
    """The parts of one region."""

    clock: Clock
    name: Callable[[str], str]
    """Makes an id with a prefix."""
    things: dict[str, Part] = field(default_factory=dict)
    pages: Pages = field(default_factory=lambda: Pages(size=1000))

    def leave(self, prefix: str, tags: Mapping[str, str], *, state: str = "", born_at: float | None = None) -> Part:
        """Adds a resource that no instance was launched with: left over, or (by `state`) in use."""
        born = self.clock.time() if born_at is None else born_at
        return self._add(Part(self.name(prefix), state or SORTS[prefix].free, dict(tags), born))

    def _create_volume(self, params: Mapping[str, Any]) -> dict[str, Any]:
        tags = {tag["Key"]: tag["Value"] for one in params.get("TagSpecifications", []) for tag in one["Tags"]}
        return _shown(self.leave("vol", tags), SORTS["vol"])

    def of_launch(
        self, request: Mapping[str, Any], tags_for: Callable[[Mapping[str, Any], str], dict[str, str]]
    ) -> tuple[str, ...]:
        """Creates the volumes and interfaces of an instance; returns their ids."""
        now, made = self.clock.time(), []
        for device in request["BlockDeviceMappings"]:
            ebs = device.get("Ebs", {})
            shown = {"Size": "VolumeSize", "VolumeType": "VolumeType", "Encrypted": "Encrypted"}
            more = {member: ebs[name] for member, name in shown.items() if name in ebs}
            tags, goes = tags_for(request, "volume"), ebs.get("DeleteOnTermination", True)
            made.append(Part(self.name("vol"), IN_USE, tags, now, more, goes))
        for interface in request["NetworkInterfaces"]:
            tags, goes = tags_for(request, "network-interface"), interface.get("DeleteOnTermination", True)
            more = {
                "SubnetId": interface["SubnetId"],
                "Groups": [{"GroupId": id_} for id_ in interface.get("Groups") or []],
                "InterfaceType": interface.get("InterfaceType", "interface"),
            }
            made.append(Part(self.name("eni"), IN_USE, tags, now, more, goes))
        if is_spot(request):  # a one-time request is active with its instance, and closed with it
            made.append(Part(self.name("sir"), ACTIVE, tags_for(request, "spot-instances-request"), now))
        return tuple(self._add(one).id for one in made)

    def hold(self, identity: str) -> bool:
        """Whether an interface is in the subnet or the security group, which then cannot be deleted."""
        return any(
            one.more.get("SubnetId") == identity or {"GroupId": identity} in one.more.get("Groups", [])
            for one in self.things.values()
            if not one.gone
        )

    def let_go(self, ids: tuple[str, ...]) -> None:
        """Releases the parts of a terminated instance that are not deleted with it."""
        for one in [self.things[identity] for identity in ids if identity in self.things]:
            one.state = SORTS[one.id.partition("-")[0]].free
            if one.goes:
                self._remove(one)

    def answer(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        prefix = OPERATIONS[operation]
        if operation == "CreateVolume":
            return self._create_volume(params)
        if operation.startswith("Describe"):
            return self._describe(prefix, params)
        if operation.startswith("Cancel"):
            found = [self._ended(prefix, id_) for id_ in params["SpotInstanceRequestIds"]]
            cancelled = [{"SpotInstanceRequestId": one.id, "State": "cancelled"} for one in found]
            return {"CancelledSpotInstanceRequests": cancelled}
        self._ended(prefix, params[SORTS[prefix].id_name])
        return {}

    def known(self, identity: str) -> Part:
        thing, sort = self.things.get(identity), SORTS.get(identity.partition("-")[0])
        if sort is None:
            raise Refused("InvalidID", f"The ID '{identity}' is not valid")
        if thing is None or thing.gone:
            raise Refused(f"{sort.code}.NotFound", f"The '{identity}' does not exist")
        return thing

    def _add(self, thing: Part) -> Part:
        self.things[thing.id] = thing
        return thing

    def _remove(self, thing: Part) -> None:
        """Its tags can be asked for some time longer."""
        thing.gone = True

    def _ended(self, prefix: str, identity: str) -> Part:
        """Deletes a part; one in use cannot be deleted, one that is gone is not found."""
        sort = SORTS[prefix]
        if not identity.startswith(prefix):
            raise Refused(f"{sort.code}.Malformed", f"Invalid id: '{identity}'")
        thing = self.known(identity)
        if thing.state != sort.free:
            raise Refused("VolumeInUse" if prefix == "vol" else "InvalidParameterValue", f"{identity} is in use")
        self._remove(thing)
        return thing

    def _describe(self, prefix: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Cuts pages before filtering, as for instances."""
        sort, most = SORTS[prefix], params.get("MaxResults")
        if most is not None and not 5 <= most <= 1000:
            raise Refused("InvalidParameterValue", f"Value ( {most} ) for parameter maxResults is invalid.")
        if ids := params.get(f"{sort.id_name}s"):
            page, following = [self.known(identity) for identity in ids], None
        else:
            every, token = list(self.things.values()), params.get("NextToken")
            page, following = self.pages.cut_seen(
                every, lambda one: one.id.startswith(prefix) and not one.gone, token, most or 1000, self.clock.time()
            )
        shown = [one for one in page if self._fits(one, sort, params.get("Filters") or [])]
        return {sort.list_name: [_shown(one, sort) for one in shown], "NextToken": following}

    @staticmethod
    def _fits(thing: Part, sort: Sort, filters: list[dict[str, Any]]) -> bool:
        values = {sort.filters[0]: thing.id, sort.filters[1]: thing.state, "vpc-id": thing.more.get("VpcId", "")}
        for one in filters:
            name = one["Name"]
            if name not in values and not name.startswith("tag:"):
                raise Refused("InvalidParameterValue", f"The filter '{name}' is invalid")
            found = values.get(name) if name in values else thing.tags.get(name.removeprefix("tag:"))
            if found not in one["Values"]:
                return False
        return True


def _shown(thing: Part, sort: Sort) -> dict[str, Any]:
    entry: dict[str, Any] = {
        **thing.more,
        sort.id_name: thing.id,
        sort.state_name: thing.state,
        sort.tags_name: [{"Key": key, "Value": value} for key, value in thing.tags.items()],
    }
    if sort.born_name:
        entry[sort.born_name] = moment(thing.born_at)
    return entry
