"""Defines what may go wrong on single machines; the user of the local AWS decides what, and on which machines."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from localaws.conditions import Conditions, Fault
from localaws.machines.gpus import GpuState
from localaws.services.ec2_instance import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Birth:
    """How a node differs from a healthy one from its first line on."""

    user_data: bytes
    skew_s: float = 0.0
    """Error of its clock, in seconds of the rehearsal."""
    has_wire: bool = False
    """Whether its way to AWS can be cut."""
    cut: bool = False
    full: bool = False
    """Whether its disk is full."""
    gpus: GpuState | None = None
    """What its nvidia-smi shows; None for healthy GPUs, as many as its type has."""
    kernel: Sequence[str] = ()
    """What its kernel has said since the boot."""
    timerless: bool = False
    """Whether its power-off timer never fires."""


class FaultyNode(Protocol):
    """A node as faults see and change it."""

    @property
    def machine(self) -> Machine: ...

    @property
    def folder(self) -> Path:
        """Its disk."""

    @property
    def pid(self) -> int:
        """Process id of its process 1."""

    @property
    def alive(self) -> bool:
        """Whether anything runs on it."""

    def cut_off(self) -> None:
        """From now on neither AWS nor the metadata service answers it."""


class Losses(Protocol):
    """Takes machines away."""

    def vanish(self, machine: Machine, running_s: float) -> None:
        """Loses the machine without notice; EC2 reports it after that many real-world seconds."""

    def interrupt(self, machine: Machine, *, notice: bool) -> None:
        """AWS takes a spot machine back, two minutes after a notice or at once."""

    def recommend(self, machine: Machine) -> None:
        """AWS says that it expects to take a spot machine back."""

    def end_block(self, machine: Machine) -> None:
        """AWS ends everything that runs in the machine's reservation."""


class Mischief(Protocol):
    """Applies the faults of single nodes."""

    @property
    def striking(self) -> Collection[str]:
        """Names of the faults that `strike` knows."""

    def birth(self, machine: Machine, conditions: Conditions, /) -> Birth:
        """Returns what the requested faults change about a machine that boots now."""

    def death(self, node: FaultyNode, /) -> None:
        """Is called once nothing runs any more on a node that has ended, and before its disk is gone."""

    def befalls(self, fault: Fault, node: FaultyNode, /) -> bool:
        """Whether the fault's moment has come for a node that it applies to."""

    def strike(self, fault: Fault, node: FaultyNode, losses: Losses, /) -> None:
        """Carries the fault out, once. `vanish` loses a machine without notice; EC2 reports it after that many real-world seconds."""


class Peace:
    """Every machine is healthy and stays so."""

    striking: Collection[str] = ()

    def birth(self, machine: Machine, _conditions: Conditions, /) -> Birth:
        return Birth(user_data=machine.user_data)

    def death(self, _node: FaultyNode, /) -> None:
        return

    def befalls(self, _fault: Fault, _node: FaultyNode, /) -> bool:
        return False

    def strike(self, fault: Fault, _node: FaultyNode, _losses: Losses, /) -> None:
        raise NotImplementedError(fault.name)
