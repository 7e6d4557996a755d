"""A type with EFA, and the devices that a machine of it shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from agent import efa
from contract.fabric import Interface, InterfaceType
from tests.builders import JOB

TWO = (Interface(type=InterfaceType.EFA), Interface(card=1, device=1, type=InterfaceType.EFA_ONLY))
LARGE = replace(JOB, interfaces={"p4d.24xlarge": TWO})


def devices(root: Path, number: int) -> None:
    for one in range(number):
        (root / efa.DEVICES / f"rdmap{one}s0").mkdir(parents=True)
