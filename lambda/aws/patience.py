"""The end of a step's patience, for the handlers of functions whose step is tried again after any error but a verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import wraps
from typing import Any, TypeVar

from contract import patience
from contract.errors import ASKED_AGAIN, JobError, PatienceOver

C = TypeVar("C")
Handler = Callable[[Mapping[str, Any], C], dict[str, Any]]


def patient(handler: Handler[C]) -> Handler[C]:
    """The handler, whose last error is a verdict once the patience that the event tells of is over."""

    @wraps(handler)
    def handled(event: Mapping[str, Any], context: C) -> dict[str, Any]:
        try:
            return handler(event, context)
        except Exception as problem:
            if (verdict := final(problem, event, time.time())) is None:
                raise
            raise verdict from problem

    return handled


def final(problem: Exception, event: Mapping[str, Any], now: float) -> JobError | None:
    """What a function ends with instead of `problem` once its step's patience is over; None where it is `problem` itself.

    A verdict stays what it is. An event that says nothing of patience, or nothing that can be read, leaves everything as it is:
    then the machine's numbers of tries alone end the step.
    """
    if isinstance(problem, JobError) and not isinstance(problem, ASKED_AGAIN):
        return None
    try:
        told = event[patience.FIELD]
        since, seconds = (
            datetime.fromisoformat(told[patience.ENTERED_AT].replace("Z", "+00:00")),
            float(told[patience.SECONDS]),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    if now < since.timestamp() + seconds:
        return None
    return PatienceOver(
        f"Tried again for {now - since.timestamp():.0f} s, {seconds:.0f} s at least, and got no answer. "
        f"The last error was {type(problem).__name__}: {problem}"
    )
