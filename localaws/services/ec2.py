"""EC2 as an account has it: moto's records get a life of their own (ec2_machines), refusals (ec2_launch), and processes (nodes)."""

from __future__ import annotations

from pathlib import Path

from localaws.machines.nodes import LocalAws, Nodes
from localaws.services import ec2_calls, ec2_console, ec2_groups, ec2_launch, ec2_zones
from localaws.services.ec2_machines import Machines

AMI = Path(__file__).parents[2] / "build" / "ami"
"""The stand-in for the deep-learning AMI (`make setup`)."""
_current: list[Nodes] = []


def install(aws: LocalAws, *, ami: Path = AMI) -> None:
    """Fills the gaps until `aws.stop()`; nodes run in `aws.work / "nodes"`, and end with `machines().stop()`."""
    machines = Machines(aws)
    ec2_groups.install(aws)
    ec2_zones.install(aws)
    ec2_launch.install(aws, machines)
    ec2_calls.install(aws, machines)
    ec2_console.install(aws, machines)
    _current[:] = [Nodes(aws, machines, folder=aws.work / "nodes", ami=ami)]


def nodes() -> Nodes:
    """The nodes of the local AWS that was installed last; raises LookupError before there is one."""
    if not _current:
        raise LookupError("localaws.services.ec2 is not installed")
    return _current[-1]


def machines() -> Machines:
    """The instances of the local AWS that was installed last; raises LookupError before there is one."""
    return nodes().machines
