"""What EC2 says of a network: plain facts, which a policy judges."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_ROUTE = "0.0.0.0/0"
GATEWAY, INTERFACE = "Gateway", "Interface"
"""Types of endpoints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subnet:
    id: str
    vpc: str
    zone: str
    free: int
    """Addresses that nothing uses."""
    ours: int
    """Addresses that the deployment's own nodes use."""
    gives_public: bool
    """Whether what starts in it gets a public address unless the launch says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    to: str
    """An IPv4 network, or the id of a list of them."""
    by: str
    """The id of the gateway, interface or connection."""
    active: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteTable:
    id: str
    subnets: tuple[str, ...]
    """Those that name this table."""
    main: bool
    """Whether it is for all subnets that name none."""
    routes: tuple[Route, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    id: str
    service: str
    """Its short name, as in `ecr.dkr`."""
    kind: str
    available: bool
    route_tables: tuple[str, ...]
    """Those that lead to a gateway endpoint."""
    private_dns: bool
    """Whether the service's own name leads to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFacts:
    """A VPC that exists, and what of it was asked for. Of a VPC that another account shares, EC2 shows no endpoints, and perhaps no route
    tables."""

    vpc: str
    owner: str
    """The id of the account to which it belongs."""
    dns_support: bool
    subnets: tuple[Subnet, ...]
    route_tables: tuple[RouteTable, ...]
    endpoints: tuple[Endpoint, ...]

    def table_of(self, subnet: str) -> RouteTable | None:
        """Returns the table that holds for a subnet; None where no table is shown."""
        own = (one for one in self.route_tables if subnet in one.subnets)
        return next(own, next((one for one in self.route_tables if one.main), None))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedInterface:
    """A network interface in a network of the deployment, or with one of its security groups."""

    id: str
    region: str
    subnet: str
    description: str
    """What the service wrote that made it."""
    instance: str
    """The instance to which it is attached; empty for none."""
    tagged: bool
    """Whether it has the deployment's tag, or belongs to a NAT gateway or an endpoint that has it, to the catalogue's database, or to the
    cluster of Kubernetes: AWS tags no interface of these so."""
    in_our_group: bool
    """Whether it has a security group with the deployment's tag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedFileSystem:
    """A file system that exists, and where it is reached."""

    vpcs: tuple[str, ...]
    """Networks in which it has interfaces; empty for one of EFS without mount targets."""
    addresses: tuple[str, ...]
