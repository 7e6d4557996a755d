"""Decides which network interfaces the nodes of a job get: EFA where the type has it and the job wants it, a plain one elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from aws.facts import Card, InstanceType
from contract.fabric import PLAIN, Interface, InterfaceType
from contract.jobs import Job
from contract.shapes import list_types
from job_requests.values import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedNetwork:
    """The network of a job's nodes, and what stands against it."""

    interfaces: dict[str, tuple[Interface, ...]]
    """Those of a node by instance type, for each type whose nodes get EFA."""
    rates: dict[str, float]
    """Instance type to how many Gbit/s the cards of a node always give together on which it has an interface; a type of which EC2 does not
    say it is left out."""
    problems: list[str]


def resolve_network(mode: Mode, nodes: int, names: Iterable[str], types: Mapping[str, InstanceType]) -> ResolvedNetwork:
    """Resolves what a request says about EFA for all `types`; `names` are those that the request names."""
    interfaces = choose_interfaces(mode, nodes, types.values())
    rates = list_rates(interfaces, types.values())
    return ResolvedNetwork(interfaces=interfaces, rates=rates, problems=check_efa(mode, names, types))


def choose_interfaces(mode: Mode, nodes: int, types: Iterable[InstanceType]) -> dict[str, tuple[Interface, ...]]:
    """Returns the interfaces of a node by instance type, for each type whose nodes get EFA.

    A single node has no other to talk to, so `auto` asks for none there: plain launches need fewer interfaces and find capacity alike.
    """
    wanted = mode is Mode.TRUE or (mode is Mode.AUTO and nodes > 1)
    return {kind.name: interfaces(kind) for kind in types if wanted and kind.efas}


def interfaces(kind: InstanceType) -> tuple[Interface, ...]:
    """Returns one interface for each network card that takes EFA, and the first one on card 0 in any case.

    The first one has the node's address. It has an EFA device as well where its card takes one; on P6-B300 it does not. The others have
    a device and no address: a node of 32 cards takes one address of its subnet, and Linux has one way out.
    """
    first, *others = kind.cards or (Card(index=0, most=1, types=()),)
    with_device = _takes(first, InterfaceType.EFA)
    found = [Interface(type=InterfaceType.EFA if with_device else InterfaceType.PLAIN)]
    for card in others:
        if sum(one.type is not InterfaceType.PLAIN for one in found) == kind.efas:
            break
        if taken := next((one for one in (InterfaceType.EFA_ONLY, InterfaceType.EFA) if _takes(card, one)), None):
            # AWS's guide gives device 1 for further cards, and odd cards of P6e-GB200 take one interface alone, device 0.
            found.append(Interface(card=card.index, device=min(1, card.most - 1), type=taken))
    return tuple(found)


def list_rates(interfaces: Mapping[str, tuple[Interface, ...]], types: Iterable[InstanceType]) -> dict[str, float]:
    """Returns by instance type how many Gbit/s the cards of a node always give together on which it has an interface. A type of which
    EC2 does not tell it is left out."""
    rates = {}
    for kind in types:
        used = {one.card for one in interfaces.get(kind.name, PLAIN)}
        gbps = [card.gbps for card in kind.cards if card.index in used]
        if gbps and all(gbps):
            rates[kind.name] = sum(gbps)
    return rates


def _takes(card: Card, wanted: InterfaceType) -> bool:
    """An `efa` interface is older than EC2's lists of types: a card without a list takes it."""
    return wanted.value in card.types if card.types else wanted is InterfaceType.EFA


def check_efa(mode: Mode, names: Iterable[str], types: Mapping[str, InstanceType]) -> list[str]:
    """Rejects `true` for each of the named types that has no EFA. A type that the region lacks is rejected elsewhere."""
    if mode is not Mode.TRUE:
        return []
    known = [types[name] for name in names if name in types]
    having = ", ".join(kind.name for kind in known if kind.efas)
    types_with = f"types that have it (of this request {having})" if having else "types that have it, as in p5.48xlarge"
    return [f"efa: {kind.name} has no EFA; allowed: auto, false, or {types_with}" for kind in known if not kind.efas]


def describe_network(job: Job) -> list[str]:
    """Says for each type of the ladder what the network between its nodes will be."""
    return [_describe_type(job, name) for name in list_types(job)]


def _describe_type(job: Job, name: str) -> str:
    if efas := job.efas_of(name):
        on = len(job.interfaces_of(name))
        return f"{name}: EFA, {_count(efas, 'device')} a node on {_count(on, 'network interface')}"
    between = "" if job.nodes == 1 else "; nodes talk over TCP"
    return f"{name}: one network interface without EFA{between}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
