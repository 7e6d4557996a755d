"""A watch for orders beside a metadata service that needs no time."""

from __future__ import annotations

from collections.abc import Callable

from agent.metadata import Metadata
from agent.orders import OrderWatch
from agent.table import NodeItems
from contract.jobs import Job
from contract.orders import Order
from tests.builders import JOB


class Notices(Metadata):
    """A metadata service that answers at any speed."""

    def __init__(self, notice: str | None = None) -> None:
        super().__init__("http://nowhere")
        self.notice = notice
        self.recommendation: str | None = None
        self.asked = 0

    def spot_notice(self) -> str | None:
        return self.notice

    def rebalance_recommendation(self) -> str | None:
        self.asked += 1
        return self.recommendation


def watch(
    node_items: NodeItems,
    metadata: Metadata,
    rank: int = 0,
    *,
    on_order: Callable[[Order], None] = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
    now: float = JOB.admitted_at,
    monotonic: Callable[[], float] = lambda: 0.0,
    job: Job = JOB,
    saved: Callable[[], bool] = lambda: False,
) -> OrderWatch:
    return OrderWatch(
        job, rank, items=node_items, metadata=metadata,
        on_order=on_order, note=note, now=lambda: now, monotonic=monotonic, saved=saved,
    )  # fmt: skip
