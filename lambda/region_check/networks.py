"""Decides whether nodes can run in a network that the account has already: takes EC2's facts, returns every reason against it."""

from __future__ import annotations

from collections.abc import Iterator

from aws.network_facts import DEFAULT_ROUTE, GATEWAY, INTERFACE, NetworkFacts, Route, RouteTable, Subnet
from contract.networks import NamedNetwork

NEEDED = ("dynamodb", "ecr.api", "ecr.dkr", "logs")
"""Services beside S3 that nodes call: their reports, their images, their log. Secrets are for jobs that name some."""
FOR_BENCHES = ("ssm", "ssmmessages")
"""What nodes call besides, where jobs may be workbenches: Session Manager."""
ELSEWHERE = ("tgw-", "pcx-", "arn:")
"""How ids begin that lead to other networks, whose endpoints this account may not see: transit gateways, peerings, core networks."""
INTERNET_GATEWAY = "igw-"
SETTINGS = "regions[] in cdk.json, docs/guides/landing-zones.md"


def refuse_network(wanted: NamedNetwork, network: NetworkFacts | None, account: str) -> list[str]:
    """Returns a line for each thing that is known to be wrong; what `account`, the deployment's, cannot see is not refused."""
    if network is None:
        return [
            f"{wanted.region}: there is no VPC {wanted.vpc} in this account, and none is shared with it ({SETTINGS})"
        ]
    lines = [*_dns(wanted, network), *_subnets(wanted, network, account)]
    return [f"{wanted.region}: {line}" for line in lines]


def list_doubts(wanted: NamedNetwork, network: NetworkFacts | None, account: str) -> list[str]:
    """Returns a line for each thing that the account cannot see, for the log."""
    if network is None:
        return []
    hidden = [one for one in wanted.subnets.values() if network.table_of(one) is None]
    return [
        *(
            f"{wanted.region}: no route table of {one} is shown to this account, so its routes were not checked"
            for one in hidden
        ),
        *(
            [f"{wanted.region}: {wanted.vpc} belongs to account {network.owner}, so its endpoints were not checked"]
            if network.owner != account
            else []
        ),
    ]


def explain_silence(wanted: NamedNetwork, why: str) -> str:
    """Words that a network could not be looked at; a deploy waits until it can be."""
    return (
        f"{wanted.region}: {wanted.vpc} could not be checked: {why}. Deploy again once the region answers ({SETTINGS})"
    )


def _dns(wanted: NamedNetwork, network: NetworkFacts) -> Iterator[str]:
    if not network.dns_support:
        yield f"{wanted.vpc} resolves no names; switch on its DNS resolution (enableDnsSupport)"


def _subnets(wanted: NamedNetwork, network: NetworkFacts, account: str) -> Iterator[str]:
    found = {one.id: one for one in network.subnets}
    for zone, subnet in wanted.subnets.items():
        if subnet not in found:
            yield f"there is no subnet {subnet} in this account, and none is shared with it ({SETTINGS})"
        elif found[subnet].vpc != wanted.vpc:
            yield f"{subnet} belongs to {found[subnet].vpc}; name a subnet of {wanted.vpc} ({SETTINGS})"
        else:
            yield from _subnet(wanted, zone, found[subnet])
            if (table := network.table_of(subnet)) is not None:
                yield from _ways_out(wanted, subnet, table)
                if network.owner == account:
                    yield from _endpoints(wanted, subnet, network, table)


def _subnet(wanted: NamedNetwork, zone: str, subnet: Subnet) -> Iterator[str]:
    if subnet.zone != zone:
        yield f"{subnet.id} lies in {subnet.zone}, and the settings name it for {zone} ({SETTINGS})"
    if subnet.gives_public:
        yield (
            f"{subnet.id} gives public addresses to what starts in it, and nodes must have none; name a private subnet, or switch "
            "that off (MapPublicIpOnLaunch)"
        )
    if (room := subnet.free + subnet.ours) < wanted.most_nodes:
        yield (
            f"{subnet.id} has {room} addresses for nodes, and a job may have {wanted.most_nodes} (limits.max_nodes); name a larger "
            "subnet, or allow fewer nodes"
        )


def _ways_out(wanted: NamedNetwork, subnet: str, table: RouteTable) -> Iterator[str]:
    default = _default_route(table)
    if default is not None and not default.active:
        yield f"the default route of {subnet} leads nowhere: {default.by or 'its target'} is gone; mend {table.id}"
    elif default is not None and default.by.startswith(INTERNET_GATEWAY):
        yield (
            f"the default route of {subnet} leads to {default.by}, and nodes have no public address, so no answer comes back; lead it "
            f"to a NAT gateway in {table.id}, or name a private subnet"
        )
    elif _leads_nowhere(table) and not wanted.home:
        yield (
            f"{subnet} has no route out of {wanted.vpc}, and its nodes write to table, bucket and log of the home region, which "
            f"endpoints do not reach; add a default route ({DEFAULT_ROUTE}) to {table.id}, as to a NAT gateway"
        )


def _endpoints(wanted: NamedNetwork, subnet: str, network: NetworkFacts, table: RouteTable) -> Iterator[str]:
    if not _reaches(network, table, "s3"):
        yield (
            f"{subnet} has no S3 endpoint of {wanted.vpc}, and a job's credentials open its bucket of bytes through one alone; add the "
            f"gateway endpoint of S3 to {table.id}, which costs nothing"
        )
    needed = (*NEEDED, *FOR_BENCHES) if wanted.workbench else NEEDED
    missing = [service for service in needed if not _reaches(network, table, service)]
    if missing and wanted.home and _leads_nowhere(table):
        yield (
            f"{subnet} has no route out of {wanted.vpc}, and no endpoint for {', '.join(missing)}; add a default route "
            f"({DEFAULT_ROUTE}) to {table.id}, as to a NAT gateway, or these endpoints with private DNS names"
        )


def _default_route(table: RouteTable) -> Route | None:
    return next((one for one in table.routes if one.to == DEFAULT_ROUTE), None)


def _leads_nowhere(table: RouteTable) -> bool:
    """Whether no route leads out of the network: neither to everything, nor to another network, where endpoints may be."""
    return _default_route(table) is None and not any(one.by.startswith(ELSEWHERE) for one in table.routes if one.active)


def _reaches(network: NetworkFacts, table: RouteTable, service: str) -> bool:
    return any(
        one.available
        and one.service == service
        and ((one.kind == GATEWAY and table.id in one.route_tables) or (one.kind == INTERFACE and one.private_dns))
        for one in network.endpoints
    )
