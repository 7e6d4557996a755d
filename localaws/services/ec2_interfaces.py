"""Checks the network interfaces of a launch against the network cards of its instance type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from localaws.model import Refused
from localaws.services.ec2_catalogue import Card, Kind

TYPES = ("interface", "efa", "efa-only")


def check(kind: Kind, interfaces: Sequence[Mapping[str, Any]]) -> None:
    """Raises Refused for interfaces that a machine of the type cannot have.

    Which code EC2 gives is known from people's reports for a public address beside several interfaces, for the missing first interface
    and for too many interfaces; the others are the likeliest. EC2 has accepted a device index beyond its card, and ended the instance at
    once; here it is refused.
    """
    cards = {card.index: card for card in kind.cards}
    if len(interfaces) > 1 and any("AssociatePublicIpAddress" in one for one in interfaces):
        raise _combination(
            "The associatePublicIPAddress parameter cannot be specified when launching with multiple network interfaces."
        )
    for one in interfaces:
        _one(kind, cards, one)
    places = [_place(one) for one in interfaces]
    if len(set(places)) < len(places):
        raise _combination("Each network interface requires a unique device index on its network card.")
    if (0, 0) not in places:
        raise _combination(
            "When specifying network interfaces, you must include a device at index 0 and network card at index 0."
        )
    _efas(kind, interfaces)


def _one(kind: Kind, cards: Mapping[int, Card], one: Mapping[str, Any]) -> None:
    index, device = _place(one)
    card, sort = cards.get(index), _type(one)
    if card is None:
        raise _value(f"Network card index {index} is not valid for the instance type '{kind.name}'.")
    if not 0 <= device < card.most:
        raise _value(f"Device index {device} is not valid for network card {index} of '{kind.name}'.")
    if sort not in TYPES:
        raise _value(f"Value ({sort}) for parameter interfaceType is invalid.")
    if sort == "efa-only" and (index, device) == (0, 0):
        raise _combination("An EFA-only network interface may not be the primary network interface.")
    if sort not in card.types:
        raise _combination(f"'{kind.name}' does not support network interfaces of type {sort} on network card {index}.")
    if sort == "efa-only" and any(name in one for name in ("PrivateIpAddress", "Ipv6AddressCount")):
        raise _combination("EFA-only network interfaces do not support IP addresses.")


def _efas(kind: Kind, interfaces: Sequence[Mapping[str, Any]]) -> None:
    on = Counter(_place(one)[0] for one in interfaces if _type(one) != "interface")
    if on.total() > kind.efas:
        raise Refused("AttachmentLimitExceeded", f"EFA count {on.total()} exceeds the limit for {kind.name}")
    if any(number > 1 for number in on.values()):
        raise _combination("Only one Elastic Fabric Adapter may be attached to a network card.")


def _place(one: Mapping[str, Any]) -> tuple[int, int]:
    return one.get("NetworkCardIndex", 0), one.get("DeviceIndex", 0)


def _type(one: Mapping[str, Any]) -> str:
    return str(one.get("InterfaceType", "interface"))


def _value(message: str) -> Refused:
    return Refused("InvalidParameterValue", message)


def _combination(message: str) -> Refused:
    return Refused("InvalidParameterCombination", message)
