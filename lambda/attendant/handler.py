"""What wakes the attendant: Train's token, the one-minute clock, urgent reports in the table's stream, and changes of instances.

No invocation waits while work of other jobs is behind it: a pass over many jobs is split among invocations, and a job whose error
waits for its explanation gets an invocation of its own.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from attendant import ages, costs
from attendant.ages import warnings
from attendant.ends import Ends
from attendant.look import TOLD, Looker
from attendant.policy import Verdict
from attendant.records import hints_in
from attendant.rounds import LookRound
from attendant.silence import gaps
from aws.clients import IN_PASSING
from aws.ec2 import Ec2
from aws.figures import count
from aws.functions import invoke_later
from aws.state import State, Token
from aws.table import HeldUp
from contract import items, money
from contract.environments import AttendantEnvironment

logger = Logger(service="attendant")
AT_ONCE = 8
"""Attempts looked at side by side."""
SLICE = 100
"""Attempts of a pass that one invocation looks at. A look takes about 33 ms of a whole CPU, and the function has a third of one."""
LOOKS_A_REPORT = 4
"""Looks within one `report_every_s`: an error counts as the command's own once the other nodes have reported after it, and with this
many looks the verdict need not wait for the clock."""
A_LOOK_S = 20.0
"""Longer than one look takes: 15 s until it is known that EC2 does not answer, and some calls more."""
LONGEST_S = 60.0
"""The time-out of an invocation."""


class Overdue(Exception):
    """A pass did not look at every attempt in time. It is raised so that Lambda's error metric shows it: the alarm rests on that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One invocation: its environment, its state, and `left`, what remains of its time in seconds."""

    env: AttendantEnvironment
    function: str
    """Its own name."""
    state: State
    left: Callable[[], float]

    def now(self) -> LookRound:
        """One that begins now."""
        return LookRound(began=time.time(), gaps_s=gaps(self.state.last_pass()))

    def looker(self, given: LookRound, *, urgent: bool = False) -> Looker:
        return Looker(
            state=self.state,
            node_role=self.env.node_role,
            job_role=self.env.job_role,
            training_roles=self.env.training_roles,
            topic=self.env.topic,
            gaps_s=given.gaps_s,
            urgent=urgent,
        )


def handler(event: Mapping[str, Any], context: Any) -> dict[str, int]:
    env = AttendantEnvironment.read()
    invocation = Invocation(
        env=env,
        function=context.function_name,
        state=State(env.table),
        left=lambda: context.get_remaining_time_in_millis() / 1000,
    )
    if records := event.get("Records"):
        from_queue = records[0].get("eventSource") == "aws:sqs"
        return _told(_ended(invocation, records) if from_queue else _reported(invocation, records))
    match event.get("action"):
        case "token":
            return _token(invocation, event)
        case "slice":
            return _told(_slice(invocation, event))
        case "await":
            return _told(_await(invocation, event))
        case "ends":
            return _ends(invocation)
    return _told(_pass(invocation))


def _told(done: Iterable[Verdict]) -> dict[str, int]:
    return dict(Counter(verdict.action.value for verdict in done))


def _pass(invocation: Invocation) -> list[Verdict]:
    """Looks at every attempt, once a minute, with the help of as many invocations as it takes. Notes the time, which the next pass
    reads."""
    given = invocation.now()
    try:
        invocation.state.note_pass(given.gaps_s)
    except (ClientError, BotoCoreError):
        # The next pass then takes the time since the last note for a gap, which ends no node.
        logger.exception("the pass is not noted")
    tokens = invocation.state.tokens()
    _have_ends_told(invocation, {token.job for token in tokens})
    mine = tokens[:SLICE]
    for start in range(SLICE, len(tokens), SLICE):
        part = tokens[start : start + SLICE]
        try:
            _hand_over(invocation, part, given)
        except (ClientError, BotoCoreError):
            logger.exception("not handed over", attempts=len(part))
            mine += part
    return _look_at(invocation, mine, given)


def _have_ends_told(invocation: Invocation, training: Set[str]) -> None:
    """Has another invocation tell people of jobs that have ended, where one may have: one that is not in Train. Looks do not wait for it,
    and what fails here the next minute does."""
    try:
        if any(one.job not in training for one in State(invocation.env.table, IN_PASSING).untold()):
            invoke_later(invocation.function, {"action": "ends"})
    except Exception:
        logger.exception("people are not told of ends in this minute")


def _ends(invocation: Invocation) -> dict[str, int]:
    """Tells people of jobs that have ended. It fails where nothing is known: Lambda then calls it again, which does no harm."""
    env = invocation.env
    ends = Ends(state=invocation.state, topic=env.topic, deployment=env.deployment, left=invocation.left)
    return {"told": ends.tell()}


def _slice(invocation: Invocation, event: Mapping[str, Any]) -> list[Verdict]:
    """Looks at a part of a pass."""
    return _look_at(invocation, invocation.state.tokens_between(event["first"], event["last"]), LookRound.told(event))


def _hand_over(invocation: Invocation, tokens: list[Token], given: LookRound) -> None:
    """Has another invocation look at everything in the table from the first of these to the last."""
    keys = sorted(token.key.sort for token in tokens)  # those of the stream come in any order
    told = {"action": "slice", "first": keys[0], "last": keys[-1], **given.telling}
    invoke_later(invocation.function, told)


def _token(invocation: Invocation, event: Mapping[str, Any]) -> dict[str, int]:
    """Keeps the token of a Train state, and looks at once: after a redrive, this look finds the nodes gone.

    Train does not fail if the look does: the clock looks again.
    """
    digest = hashlib.sha256(event["token"].encode()).hexdigest()
    key = items.waiting(event["job"], event["attempt"], digest)
    token = Token(job=event["job"], attempt=event["attempt"], token=event["token"], key=key)
    invocation.state.keep_token(token)
    try:
        return _told([invocation.looker(invocation.now()).look(token, now=time.time())])
    except Exception:
        logger.exception("the first look failed; the clock looks again", job=token.job)
        return {}


def _reported(invocation: Invocation, records: Iterable[Mapping[str, Any]]) -> list[Verdict]:
    """Looks once at each job of which nodes have something urgent to say, however many they are. Records are hints, never evidence."""
    told = hints_in(records)
    jobs = dict.fromkeys(hint.job for hint in told)
    done = _look_at(invocation, [token for job in jobs for token in invocation.state.tokens(job)], urgent=True)
    waiting = {verdict.awaits for verdict in done} - {""}
    # One invocation a job, and few in all, wait for explanations, however many nodes fail, and however often one of them says so.
    for job in dict.fromkeys(hint.job for hint in told if hint.instance in waiting):
        if invocation.state.may_await(job, lasts_s=LONGEST_S):
            invoke_later(invocation.function, {"action": "await", "job": job})
    return done


def _await(invocation: Invocation, event: Mapping[str, Any]) -> list[Verdict]:
    """Looks again and again while an error of the job waits to be explained; the clock looks in any case."""
    done, pause_s = list[Verdict](), invocation.env.timing.report_every_s / LOOKS_A_REPORT
    while invocation.left() > pause_s + A_LOOK_S:
        time.sleep(pause_s)
        done = _look_at(invocation, invocation.state.tokens(event["job"]))
        if not any(verdict.awaits for verdict in done):
            break
    return done


def _ended(invocation: Invocation, records: Iterable[Mapping[str, Any]]) -> list[Verdict]:
    """Looks once at each job of the instances of which EC2 reports that they end. It does not fail if a look does: the clock looks again,
    and a message that came back would only ask for a third look."""
    events = [json.loads(record["body"]) for record in records]
    named: dict[str, set[str]] = {}
    for event in events:
        named.setdefault(event["region"], set()).add(event["detail"]["instance-id"])
    try:
        found = [
            one
            for region, instances in sorted(named.items())
            for one in Ec2(region).of_deployment(sorted(instances), invocation.env.deployment)
        ]
        jobs = sorted({one.job for one in found if one.job})
        return _look_at(invocation, [token for job in jobs for token in invocation.state.tokens(job)])
    except Exception:
        logger.exception("a look at ending instances failed; the clock looks again", instances=named)
        return []


def _look_at(
    invocation: Invocation, tokens: list[Token], given: LookRound | None = None, *, urgent: bool = False
) -> list[Verdict]:
    """Looks at each attempt, and hands over those for which no time is left.

    A look that fails does not stop the others; the failures are raised at the end, except those that the code of a job can bring about
    at its own job's look. Of a pass (`given`) it also raises where a look came late; what an event asks for would only be asked again.
    """
    if not tokens:
        return []
    timed, given = given is not None, given or invocation.now()
    looker, done, failures = invocation.looker(given, urgent=urgent), list[Verdict](), []
    late, left = list[Token](), list[Token]()

    def timely(token: Token) -> Verdict | None:
        now = time.time()
        if given.overdue(now):
            late.append(token)
        return looker.look(token, now=now) if invocation.left() >= A_LOOK_S else None

    with ThreadPoolExecutor(AT_ONCE) as pool:
        looks = {pool.submit(timely, token): token for token in tokens}
        for future, token in looks.items():
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
                done += [verdict] if verdict else []
                left += [] if verdict else [token]
    if overdue := {(token.job, token.attempt) for token in (*late, *left)}:
        logger.warning("looked at late, or handed over as the time was nearly over", attempts=sorted(overdue)[:TOLD])
    if timed:
        _measure(invocation, given, done)
    if left:
        _hand_over(invocation, left, given)
    if failures:
        raise RuntimeError(f"{len(failures)} of {len(tokens)} looks failed: {'; '.join(failures)}")
    if overdue and timed:
        raise Overdue(f"{len(overdue)} of {len(tokens)} looks came late, or had no time left")
    return done


def _measure(invocation: Invocation, given: LookRound, done: Iterable[Verdict]) -> None:
    """Writes the metrics of the jobs that run, in one line for all; and for people, which jobs' checkpoints are too old or too slow, and
    which have nearly used up their money: the alarms know no job."""
    verdicts = list(done)
    aged = [verdict.checkpoint for verdict in verdicts if verdict.checkpoint is not None]
    paid = [verdict.cost for verdict in verdicts if verdict.cost is not None]
    count(invocation.env.deployment, ages.figures(aged) | costs.figures(paid))
    for cost in paid:
        if cost.usd is not None and costs.is_near_cap(cost, given.gaps_s):
            logger.warning(
                "the cost is near the cap", job=cost.job, attempt=cost.attempt, usd_at_most=money.up_to_cents(cost.usd),
                max_cost_usd=cost.cap_usd, usd_per_hour=cost.hourly_usd,
            )  # fmt: skip
    for age in aged:
        for warn in warnings(age, invocation.env.checkpoints, given.gaps_s):
            logger.warning(
                warn.what, job=age.job, attempt=age.attempt, step=age.step, age_s=round(age.age_s), commit_s=age.commit_s,
                checkpoint_minutes=age.every_s / 60, todo=warn.todo,
            )  # fmt: skip
