"""Keeps the metric of each job over its steps, for the job's page: after everything else of a pass, in passing, and for nothing that ends
or judges an attempt."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from attendant.invocation import Invocation
from attendant.points import JobPoint
from aws.clients import IN_PASSING
from aws.state import State
from contract.codec import Garbled
from contract.curves import Curve, extend

logger = Logger(service="attendant")
AT_ONCE = 8
"""Curves kept side by side."""
LEAST_S = 20.0
"""With less of the invocation's time left no more are kept; the next pass keeps what is new by then."""
FAILURES = 3
"""After so many failures no more are kept: each may cost seconds."""


def keep_curves(invocation: Invocation, found: Iterable[JobPoint]) -> None:
    """Adds each point to its job's curve. What fails is logged, and missing on a page."""
    failures = list[str]()

    def keep(one: JobPoint) -> None:
        if len(failures) >= FAILURES or invocation.remaining_s() < LEAST_S:
            return
        try:
            _keep(invocation.open_state(IN_PASSING), one)
        except (ClientError, BotoCoreError) as problem:
            failures.append(f"{one.job.id}: {problem}")

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(keep, list(found)))
    if failures:
        logger.warning("curves could not be kept; the next pass keeps what is new", failures=failures)


def _keep(state: State, one: JobPoint) -> None:
    """Another look may write at the same time, and one of the two points is lost."""
    try:
        curve = state.curve(one.job.id)
    except Garbled:
        curve = Curve()
    longer = extend(curve, one.point)
    if longer is not curve:
        state.keep_curve(one.job, longer)
