"""Watches for the attempt's order, for a spot notice and for the job's deadline; the first that comes is the node's order."""

from __future__ import annotations

import calendar
import json
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from agent.metadata import Metadata
from agent.table import NodeItems
from contract.codec import Garbled, decode
from contract.errors import DeadlineReached, Interrupted
from contract.jobs import Job
from contract.orders import Order, OrderKind
from contract.roles import Role, name_author, name_rank

NOTICE_S = 120
"""How long before the interruption a spot notice comes; used where the notice does not say when."""
PATIENCE = 2
"""Looks for which a node that got a spot notice waits until the attendant has told every node: 10 s of the notice's 120."""


def deadline_order(job: Job, rank: int, now: float) -> Order | None:
    """The node's own order shortly before the job's deadline, because the attendant's may come late, or never."""
    if now < job.stop_at:
        return None
    return Order(
        kind=OrderKind.CHECKPOINT_AND_STOP,
        error=DeadlineReached.__name__,
        reason=f"the job's time, by its hours or its money, ends in {max(0.0, job.deadline - now):.0f} s",
        by=job.deadline,
        author=f"rank {rank}",
    )


def spot_order(notice: str, rank: int, now: float, roles: Sequence[Role] = ()) -> Order:
    """The order for the whole attempt that follows from a spot interruption notice, of a job with these roles."""
    try:
        by = calendar.timegm(time.strptime(json.loads(notice)["time"], "%Y-%m-%dT%H:%M:%SZ"))
    except (ValueError, KeyError, TypeError):
        by = int(now) + NOTICE_S
    return Order(
        kind=OrderKind.CHECKPOINT_AND_STOP,
        error=Interrupted.__name__,
        reason=f"the node of {name_rank(roles, rank)} got a spot interruption notice",
        by=by,
        author=f"rank {rank}",
    )


def rebalance_order(job: Job, rank: int, now: float) -> Order:
    """The order for the whole attempt that follows from a rebalance recommendation. There is no hurry: the last commit has its time."""
    return Order(
        kind=OrderKind.CHECKPOINT_AND_STOP,
        error=Interrupted.__name__,
        reason=f"EC2 recommends leaving the node of {name_rank(job.roles, rank)}: it expects to take it back (leave_on_rebalance)",
        by=int(now + job.timing.stop_grace_s + job.timing.save_allowance_s),
        author=f"rank {rank}",
    )


def word_order(job: Job, order: Order) -> str:
    """Returns who gave the order, and why."""
    return f"{name_author(job.roles, order.author)}: {order.reason}"


class OrderWatch:
    """Looks for an order every `orders_every_s`, in a thread of its own, until there is one to obey; `order` is None before that.

    `on_order` hears of an order before the node obeys it, and of the node's own as soon as there is one: the report takes it to
    the attendant, who gives it to every node.
    """

    def __init__(
        self,
        job: Job,
        rank: int,
        *,
        items: NodeItems,
        metadata: Metadata,
        on_order: Callable[[Order], None],
        note: Callable[[str], None],
        now: Callable[[], float],
        saved: Callable[[], bool] = lambda: False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`saved` says whether the attempt has committed a checkpoint: before that it does not leave because of a recommendation, which
        may be there from the first second on."""
        self._job, self._rank, self._items, self._metadata = job, rank, items, metadata
        self._on_order, self._note, self._now, self._monotonic = on_order, note, now, monotonic
        self._saved = saved
        self._looking = threading.Lock()
        self._own: Order | None = None
        self._since = 0.0
        self.order: Order | None = None
        self.came = threading.Event()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="orders", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._done.set()

    def read_order(self, *, stopped: bool = False) -> Order | None:
        """Reads the orders now. The attempt's order wins over the node's own. `stopped` says that the node's command ended with an error: a
        peer may have obeyed an order that came this second, and the node's own need not wait any longer."""
        with self._looking:
            if self.order is None:
                own = self._own_order()  # first, so that peers hear of it although DynamoDB may not answer
                order = self._given(certain=stopped) or (own if own and (stopped or self._is_due(own)) else None)
                if order is not None:
                    self._obey(order)
            return self.order

    def _obey(self, order: Order) -> None:
        self._note(f"order: {order.kind.value} ({order.error}) by {word_order(self._job, order)}")
        if order != self._own:
            self._on_order(order)
        self.order = order
        self.came.set()  # last, so that reports name the order before it ends the trainer

    def _run(self) -> None:
        while self.read_order() is None and not self._done.wait(self._job.timing.orders_every_s):
            pass

    def _given(self, *, certain: bool) -> Order | None:
        try:
            document = self._items.order(certain=certain)
            return None if document is None else decode(Order, document)
        except Garbled as problem:
            self._note(f"the agent ignores an order that it cannot read: {problem}")
        except Exception as problem:  # DynamoDB may be away for a while; the next look is seconds ahead
            self._note(f"the agent cannot read its orders: {problem}")
        return None

    def _own_order(self) -> Order | None:
        """The order of a spot notice or the deadline, once there is one."""
        if self._own is None:
            # By AWS's clock: with a wrong one of its own a node would end the job of all.
            notice, now = None, self._items.now(otherwise=self._now())
            with suppress(OSError):
                notice = self._metadata.spot_notice()
            self._own = (
                spot_order(notice, self._rank, now, self._job.roles)
                if notice is not None
                else deadline_order(self._job, self._rank, now) or self._recommended(now)
            )
            if self._own is not None:
                self._since = self._monotonic()
                self._note(f"asks for an order ({self._own.error}): {self._own.reason}")
                self._on_order(self._own)
        return self._own

    def _recommended(self, now: float) -> Order | None:
        """The order of a recommendation, where the job follows it and has something to go on from."""
        if not self._job.leave_on_rebalance or not self._saved():
            return None
        with suppress(OSError):
            if self._metadata.rebalance_recommendation() is not None:
                return rebalance_order(self._job, self._rank, now)
        return None

    def _is_due(self, own: Order) -> bool:
        """Whether the node obeys its own order without having been given one.

        The trainers of its peers fail when this node's stops, so a spot order waits until the attendant has told everybody; but the
        machine is gone soon, whatever the attendant does. The deadline every node knows itself.
        """
        waited_s = self._monotonic() - self._since
        return own.error == DeadlineReached.__name__ or waited_s >= PATIENCE * self._job.timing.orders_every_s
