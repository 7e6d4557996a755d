"""Decides whether nodes can reach a file system of the settings: takes facts about both networks, returns every reason against it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network

from aws.network_facts import PlacedFileSystem, Route, RouteTable
from contract.networks import NamedFileSystem

TO_THE_INTERNET = ("nat-", "igw-", "eigw-")
"""How ids begin that lead to the internet, where no private address is."""
LOCAL = "local"
PAGE = "docs/guides/mounts.md"


def refuse_file_system(
    wanted: NamedFileSystem, found: PlacedFileSystem | None, vpc: str, tables: Iterable[RouteTable]
) -> list[str]:
    """Returns a line for each thing that is known to be wrong. `vpc` is the network of the region's nodes, and `tables` are its route
    tables; without any, its routes are not shown to this account, and are not judged."""
    where = f"{wanted.region}: {wanted.name}"
    if found is None:
        return [f"{where}: there is no file system {wanted.id} in this account (file_systems in cdk.json)"]
    if not found.vpcs:
        return [
            f"{where}: {wanted.id} has no mount target; make one in each zone of {vpc} in which nodes may run ({PAGE})"
        ]
    if vpc in found.vpcs:
        return []
    shown = list(tables)
    return [
        f"{where}: {wanted.id} lies in {found.vpcs[0]}, and no route of {vpc} leads to its address {address}; lead one there and one back, "
        f"as by a peering or a transit gateway, or name a file system of {vpc} ({PAGE})"
        for address in found.addresses
        if shown and not any(_leads(table, address) for table in shown)
    ]


def list_unseen(wanted: NamedFileSystem, found: PlacedFileSystem | None, vpc: str) -> list[str]:
    """Returns a line for what cannot be seen from here of a file system in another network, for the log."""
    if found is None or not found.vpcs or vpc in found.vpcs:
        return []
    return [
        f"{wanted.region}: {wanted.name} lies in {found.vpcs[0]}; whether its name resolves in {vpc}, a way leads back and its security "
        "group lets nodes in was not checked"
    ]


def _leads(table: RouteTable, address: str) -> bool:
    """Whether the narrowest route to the address leads to another private network."""
    fitting = [(network.prefixlen, route) for route, network in _networks(table) if IPv4Address(address) in network]
    if not fitting:
        return False
    _, route = max(fitting, key=lambda one: one[0])
    return route.active and route.by != LOCAL and not route.by.startswith(TO_THE_INTERNET)


def _networks(table: RouteTable) -> Iterator[tuple[Route, IPv4Network]]:
    """Yields the routes to networks; those to lists of prefixes are services of AWS, or unknown."""
    return ((one, IPv4Network(one.to)) for one in table.routes if "/" in one.to)
