"""The state machines of a deployment."""

from __future__ import annotations

from contract import names

MACHINES = {
    names.machine("trainyard"): "workflow",
    names.drain_machine("trainyard"): "reaper",
    names.build_machine("trainyard"): "builds",
    names.image_machine("trainyard"): "images",
    names.platform_machine("trainyard"): "images",
    names.grid_machine("trainyard"): "grid",
    names.search_machine("trainyard"): "search",
}
"""Each machine's stack."""
