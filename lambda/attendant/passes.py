"""Looks at many attempts side by side: at all of them once a minute, split among as many invocations as it takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from attendant import ages, costs
from attendant.ages import warnings
from attendant.attempt import handle_attempt
from attendant.curves import keep_curves
from attendant.invocation import Invocation
from attendant.policy import Verdict
from attendant.reading import LOGGED
from attendant.rounds import LookRound
from aws.clients import IN_PASSING
from aws.figures import count
from aws.functions import invoke_later
from aws.state import Token
from aws.table import HeldUp
from contract import money

logger = Logger(service="attendant")
AT_ONCE = 8
"""Attempts looked at side by side."""
SLICE = 100
"""Attempts of a pass that one invocation looks at. A look takes about 33 ms of a whole CPU, and the function has a third of one."""
A_LOOK_S = 20.0
"""Longer than one look takes: 15 s until it is known that EC2 does not answer, and some calls more."""


class Overdue(Exception):
    """A pass did not look at every attempt in time. It is raised so that Lambda's error metric shows it: the alarm rests on that."""


def run_pass(invocation: Invocation) -> list[Verdict]:
    """Looks at every attempt, with the help of as many invocations as it takes. Notes the time, which the next pass reads."""
    looks = invocation.begin_round(is_pass=True)
    try:
        invocation.state.note_pass(looks.gaps_s)
    except (ClientError, BotoCoreError):
        # The next pass then takes the time since the last note for a gap, which ends no node.
        logger.exception("could not note the pass")
    tokens = invocation.state.tokens()
    _request_announcements(invocation, {token.job for token in tokens})
    mine = tokens[:SLICE]
    for start in range(SLICE, len(tokens), SLICE):
        part = tokens[start : start + SLICE]
        try:
            _hand_over(invocation, part, looks)
        except (ClientError, BotoCoreError):
            logger.exception("could not hand over a part of the pass", attempts=len(part))
            mine += part
    return handle_attempts(invocation, mine, looks) if mine else []


def run_slice(invocation: Invocation, event: Mapping[str, Any]) -> list[Verdict]:
    """Looks at the part of a pass that another invocation has handed over."""
    tokens = invocation.state.tokens_between(event["first"], event["last"])
    return handle_attempts(invocation, tokens, LookRound.read_event(event)) if tokens else []


def handle_attempts(invocation: Invocation, tokens: list[Token], looks: LookRound) -> list[Verdict]:
    """Looks at each attempt, and hands over those for which no time is left.

    A look that fails does not stop the others; the failures are raised at the end, except those that the code of a job can bring about
    at its own job's look. A pass also raises Overdue where a look came late; what an event asks for would only be asked again.
    """
    verdicts, failures = list[Verdict](), list[str]()
    late, left = list[Token](), list[Token]()

    def handle_in_time(token: Token) -> Verdict | None:
        now = invocation.clock()
        if looks.is_overdue(now):
            late.append(token)
        return handle_attempt(invocation, looks, token, now=now) if invocation.remaining_s() >= A_LOOK_S else None

    with ThreadPoolExecutor(AT_ONCE) as pool:
        futures = {pool.submit(handle_in_time, token): token for token in tokens}
        for future, token in futures.items():
            try:
                verdict = future.result()
            except HeldUp as problem:
                logger.warning(
                    "nodes' own items hold up the look", job=token.job, attempt=token.attempt, problem=str(problem)
                )
            except Exception as problem:
                logger.exception("a look failed", job=token.job, attempt=token.attempt)
                failures.append(f"{token.job}/{token.attempt}: {problem}")
            else:
                verdicts += [verdict] if verdict else []
                left += [] if verdict else [token]
    if overdue := {(token.job, token.attempt) for token in (*late, *left)}:
        logger.warning("looked at late, or handed over as the time was nearly over", attempts=sorted(overdue)[:LOGGED])
    if looks.is_pass:
        _report_figures(invocation, looks, verdicts)
    if left:
        _hand_over(invocation, left, looks)
    if looks.is_pass:
        keep_curves(invocation, [verdict.point for verdict in verdicts if verdict.point is not None])
    if failures:
        raise RuntimeError(f"{len(failures)} of {len(tokens)} looks failed: {'; '.join(failures)}")
    if overdue and looks.is_pass:
        raise Overdue(f"{len(overdue)} of {len(tokens)} looks came late, or had no time left")
    return verdicts


def _hand_over(invocation: Invocation, tokens: list[Token], looks: LookRound) -> None:
    """Has another invocation look at everything in the table from the first of these to the last."""
    places = sorted(token.key.sort for token in tokens)  # those of the stream come in any order
    event = {"action": "slice", "first": places[0], "last": places[-1], **looks.event_fields}
    invoke_later(invocation.function, event)


def _request_announcements(invocation: Invocation, training: Set[str]) -> None:
    """Has another invocation announce the ends of jobs, where one may have ended: one that is not in Train. Looks do not wait for it, and
    the next pass does what fails here."""
    try:
        if any(one.job not in training for one in invocation.open_state(IN_PASSING).untold()):
            invoke_later(invocation.function, {"action": "ends"})
    except Exception:
        logger.exception("could not have the ends of jobs announced; the next pass tries again")


def _report_figures(invocation: Invocation, looks: LookRound, verdicts: Iterable[Verdict]) -> None:
    """Writes the metrics of the jobs that run, in one line for all; and for people, which jobs' checkpoints are too old or too slow, and
    which have nearly used up their money: the alarms know no job."""
    known = list(verdicts)
    aged = [verdict.checkpoint for verdict in known if verdict.checkpoint is not None]
    paid = [verdict.cost for verdict in known if verdict.cost is not None]
    count(invocation.env.deployment, ages.figures(aged) | costs.figures(paid))
    for cost in paid:
        if cost.usd is not None and costs.is_near_cap(cost, looks.gaps_s):
            logger.warning(
                "the cost is near the cap", job=cost.job, attempt=cost.attempt, usd_at_most=money.up_to_cents(cost.usd),
                max_cost_usd=cost.cap_usd, usd_per_hour=cost.hourly_usd,
            )  # fmt: skip
    for age in aged:
        for warn in warnings(age, invocation.env.checkpoints, looks.gaps_s):
            logger.warning(
                warn.what, job=age.job, attempt=age.attempt, step=age.step, age_s=round(age.age_s), commit_s=age.commit_s,
                checkpoint_minutes=age.every_s / 60, todo=warn.todo,
            )  # fmt: skip
