"""Says how a node's work ended, once its order and its last commits are known."""

from __future__ import annotations

from dataclasses import replace

from agent.saver import Unsaved
from contract.errors import NodeLost, TrainingFailed
from contract.orders import Order
from contract.reports import Exit


def concluded(ending: Exit, order: Order | None, *, tail: tuple[str, ...], unsaved: Unsaved) -> Exit:
    """How the work ended, once the order (if any) and the last commits are known.

    An order explains the exit, whatever its code. A success whose results could not be saved is a failure: NodeLost, because a
    new attempt may save them, or TrainingFailed where the job itself is the reason, because a new attempt would fail again.
    """
    ending = replace(ending, tail=tail)
    if order is not None:
        return replace(ending, error=order.error, reason=order.reason, ordered=True)
    if not ending.error and unsaved.text:
        error = TrainingFailed if unsaved.own else NodeLost
        return replace(ending, code=1, error=error.__name__, reason=f"trained, but {unsaved.text}")
    return ending
