"""Watches for the attempt's order, for a spot notice and for the job's deadline; the first that comes is the node's order."""

from __future__ import annotations

import calendar
import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from agent.metadata import Metadata
from agent.store import Missing, Store
from contract.codec import Garbled, decode, encode
from contract.errors import DeadlineReached, Interrupted
from contract.jobs import Job
from contract.orders import Order, OrderKind

NOTICE_S = 120
"""How long before the interruption a spot notice comes; used where the notice does not say when."""


def deadline_order(job: Job, rank: int, now: float) -> Order | None:
    """The node's own order shortly before the job's deadline, because the attendant's may come late, or never."""
    if now < job.stop_at:
        return None
    return Order(
        kind=OrderKind.CHECKPOINT_AND_STOP,
        error=DeadlineReached.__name__,
        reason=f"the job's {job.max_hours:g} hours end in {max(0.0, job.deadline - now):.0f} s",
        by=job.deadline,
        author=f"rank {rank}",
    )


def spot_order(notice: str, rank: int, now: float) -> Order:
    """The order for the whole attempt that follows from a spot interruption notice."""
    try:
        by = calendar.timegm(time.strptime(json.loads(notice)["time"], "%Y-%m-%dT%H:%M:%SZ"))
    except (ValueError, KeyError, TypeError):
        by = int(now) + NOTICE_S
    return Order(
        kind=OrderKind.CHECKPOINT_AND_STOP,
        error=Interrupted.__name__,
        reason=f"the node of rank {rank} got a spot interruption notice",
        by=by,
        author=f"rank {rank}",
    )


class OrderWatch:
    """Looks for an order every `orders_every_s`, in a thread of its own, until one comes; `order` is None before that."""

    def __init__(
        self,
        job: Job,
        rank: int,
        *,
        home: Store,
        key: str,
        metadata: Metadata,
        on_order: Callable[[Order], None],
        note: Callable[[str], None],
        now: Callable[[], float],
    ) -> None:
        self._job, self._rank, self._home, self._key = job, rank, home, key
        self._metadata, self._on_order, self._note, self._now = metadata, on_order, note, now
        self._looking = threading.Lock()
        self.order: Order | None = None
        self.came = threading.Event()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="orders", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._done.set()

    def look(self) -> Order | None:
        """Looks now. The attempt's order wins over the node's own."""
        with self._looking:
            if self.order is None and (order := self._given() or self._own()) is not None:
                self.order = order
                self._note(f"order: {order.kind.value} ({order.error}) by {order.author}: {order.reason}")
                self._on_order(order)
                self.came.set()  # last, so that reports name the order before it ends the trainer
            return self.order

    def _run(self) -> None:
        while self.look() is None and not self._done.wait(self._job.timing.orders_every_s):
            pass

    def _given(self) -> Order | None:
        try:
            return decode(Order, self._home.get(self._key))
        except Missing:
            return None
        except Garbled as problem:
            self._note(f"an order that cannot be understood is left aside: {problem}")
        except Exception as problem:  # S3 may be away for a while; the next look is seconds ahead
            self._note(f"no look at the orders: {problem}")
        return None

    def _own(self) -> Order | None:
        """The order of a spot notice or the deadline. It is written for the other nodes before this one obeys it: their trainers
        fail when this node's stops."""
        notice, now = None, self._now()
        with suppress(OSError):
            notice = self._metadata.spot_notice()
        order = (
            spot_order(notice, self._rank, now) if notice is not None else deadline_order(self._job, self._rank, now)
        )
        return None if order is None else self._written(order)

    def _written(self, order: Order) -> Order:
        try:
            if not self._home.create(self._key, encode(order)):
                return self._given() or order
        except Exception as problem:  # this node obeys all the same
            self._note(f"the order for the others could not be written: {problem}")
            return replace(order, reason=f"{order.reason} (the order could not be written)")
        return order
