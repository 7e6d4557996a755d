"""What a job knows of its machines: their interfaces, accelerators, and how their health is checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from admission import efa
from admission.request import JobRequest
from aws.facts import InstanceType
from contract.health import HealthCheck
from contract.limits import Limits


def chosen(request: JobRequest, types: Sequence[InstanceType], limits: Limits) -> dict[str, Any]:
    """Returns the job's fields about its machines, which have these types."""
    interfaces = efa.chosen(request.efa, request.nodes, types)
    deep = request.health is HealthCheck.DEEP
    return {
        "interfaces": interfaces,
        "network": efa.rates(interfaces, types) if deep else {},
        "network_share": limits.network_share,
        "health": request.health,
        "gpus": {kind.name: kind.gpus for kind in types if kind.gpus},
        "neurons": {kind.name: kind.neurons for kind in types if kind.neurons},
    }
