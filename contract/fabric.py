"""The network interfaces with which a node is launched."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class InterfaceType(str, Enum):
    """What EC2 calls the types of an interface."""

    PLAIN = "interface"
    """An address and no EFA."""
    EFA = "efa"
    """An address and an EFA device."""
    EFA_ONLY = "efa-only"
    """An EFA device without an address."""

    @classmethod
    def of_later_version(cls) -> InterfaceType:
        """Every type of machine has it."""
        return cls.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """One interface of a node."""

    card: int = 0
    """Index of the network card; the first interface is on card 0."""
    device: int = 0
    """Device index, which counts on each card of its own."""
    type: InterfaceType = InterfaceType.PLAIN


PLAIN = (Interface(),)
"""What a node has that was launched without EFA."""
