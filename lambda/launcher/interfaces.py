"""The network interfaces of a launch, as RunInstances takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from contract.fabric import PLAIN, Interface


def list_interfaces(
    interfaces: Sequence[Interface], *, subnet: str, security_groups: Sequence[str]
) -> list[dict[str, Any]]:
    """Returns NetworkInterfaces. They carry subnet and security groups: EC2 refuses them beside SubnetId.

    None has a public address. A single interface says so; EC2 refuses the parameter beside several interfaces, which get no public
    address anyway. A plain launch has the same bytes as before there was EFA: its ClientToken stands for them.
    """
    whole: dict[str, Any] = {"SubnetId": subnet, "Groups": list(security_groups)}
    if len(interfaces) == 1:
        whole["AssociatePublicIpAddress"] = False
    return [{"DeviceIndex": one.device, **whole, "DeleteOnTermination": True, **_beyond(one)} for one in interfaces]


def _beyond(one: Interface) -> dict[str, Any]:
    return {} if one in PLAIN else {"NetworkCardIndex": one.card, "InterfaceType": one.type.value}
