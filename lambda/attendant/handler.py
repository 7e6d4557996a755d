"""What wakes the attendant: Train's token, the one-minute clock, urgent reports in the table's stream, and changes of instances.

An invocation never waits for anything while others' work is behind it: a pass over many jobs is split among invocations, and
whoever has to wait for a second look hands it over to an invocation of its own.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools import Logger

from attendant.look import Looker
from attendant.policy import Verdict
from attendant.silence import gaps
from aws.ec2 import Ec2
from aws.functions import invoke_later
from aws.state import State, Token
from contract import items
from contract.codec import Garbled, decode
from contract.environments import AttendantEnvironment
from contract.reports import NodeReport

logger = Logger(service="attendant")
AT_ONCE = 8
"""Attempts looked at side by side."""
SLICE = 100
"""Attempts of a pass that one invocation looks at. A look takes about 33 ms of a whole CPU, and the function has a third of one."""
LOOKS_A_REPORT = 4
"""Looks within one `report_every_s`: an error counts as the command's own once the other nodes have reported after it, and with this
many looks the verdict need not wait for the clock."""
A_LOOK_S = 15.0
"""Longer than one look takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One invocation: its environment, its state, and `left`, what remains of its time in seconds."""

    env: AttendantEnvironment
    function: str
    """Its own name."""
    state: State
    left: Callable[[], float]

    def looker(self, gaps_s: tuple[float, ...] | None = None) -> Looker:
        known = gaps(self.state.last_pass()) if gaps_s is None else gaps_s
        return Looker(state=self.state, node_role=self.env.node_role, gaps_s=known)


def handler(event: Mapping[str, Any], context: Any) -> dict[str, int]:
    env = AttendantEnvironment.read()
    invocation = Invocation(
        env=env,
        function=context.function_name,
        state=State(env.table),
        left=lambda: context.get_remaining_time_in_millis() / 1000,
    )
    if "Records" in event:
        return _told(_reported(invocation, event["Records"]))
    match event.get("action"):
        case "token":
            return _token(invocation, event)
        case "slice":
            return _told(_slice(invocation, event))
        case "await":
            return _told(_await(invocation, event))
    if event.get("source") == "aws.ec2":
        return _told(_changed(invocation, event))
    return _told(_pass(invocation))


def _told(done: Iterable[Verdict]) -> dict[str, int]:
    return dict(Counter(verdict.action.value for verdict in done))


def _pass(invocation: Invocation) -> list[Verdict]:
    """Looks at every attempt, once a minute, with the help of as many invocations as it takes. Notes the time, which the next pass
    reads."""
    before = gaps(invocation.state.last_pass())
    invocation.state.note_pass(before)
    tokens = invocation.state.tokens()
    for start in range(SLICE, len(tokens), SLICE):
        _hand_over(invocation, tokens[start : start + SLICE], before)
    return _look_at(invocation, tokens[:SLICE], before)


def _slice(invocation: Invocation, event: Mapping[str, Any]) -> list[Verdict]:
    """Looks at a part of a pass."""
    tokens = invocation.state.tokens_between(event["first"], event["last"])
    return _look_at(invocation, tokens, tuple(event["gaps_s"]))


def _hand_over(invocation: Invocation, tokens: list[Token], gaps_s: tuple[float, ...]) -> None:
    """Has another invocation look at everything in the table from the first of these to the last."""
    first, last = tokens[0].key.sort, tokens[-1].key.sort
    told = {"action": "slice", "first": first, "last": last, "gaps_s": gaps_s}
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
        return _told([invocation.looker().look(token, now=time.time())])
    except Exception:
        logger.exception("the first look failed; the clock looks again", job=token.job)
        return {}


def _reported(invocation: Invocation, records: Iterable[Mapping[str, Any]]) -> list[Verdict]:
    """Looks once at each job of which nodes have something urgent to say, however many they are. Records are hints, never evidence."""
    told = [report for record in records if (report := _report(record)) is not None]
    done = []
    for job in dict.fromkeys(report.job for report in told):
        verdicts = _look_at(invocation, invocation.state.tokens(job))
        done += verdicts
        waiting = {verdict.awaits for verdict in verdicts} - {""}
        for report in told:  # whose error waits to be explained: only this invocation has its record
            if report.instance in waiting:
                invoke_later(invocation.function, {"action": "await", "job": job, "instance": report.instance})
    return done


def _report(record: Mapping[str, Any]) -> NodeReport | None:
    try:
        return decode(NodeReport, record["dynamodb"]["NewImage"][items.DOCUMENT]["S"])
    except (Garbled, KeyError, TypeError):
        logger.warning("a record of the stream that is not a report", keys=record.get("dynamodb", {}).get("Keys"))
        return None


def _await(invocation: Invocation, event: Mapping[str, Any]) -> list[Verdict]:
    """Looks again and again while the error of an instance waits to be explained; the clock looks in any case."""
    done, pause_s = list[Verdict](), invocation.env.timing.report_every_s / LOOKS_A_REPORT
    while invocation.left() > pause_s + A_LOOK_S:
        time.sleep(pause_s)
        done = _look_at(invocation, invocation.state.tokens(event["job"]))
        if not any(verdict.awaits == event["instance"] for verdict in done):
            break
    return done


def _changed(invocation: Invocation, event: Mapping[str, Any]) -> list[Verdict]:
    """Looks at the job of an instance of which EC2 reports a change."""
    found = Ec2(event["region"]).of_deployment(event["detail"]["instance-id"], invocation.env.deployment)
    return _look_at(invocation, invocation.state.tokens(found.job)) if found and found.job else []


def _look_at(invocation: Invocation, tokens: list[Token], gaps_s: tuple[float, ...] | None = None) -> list[Verdict]:
    """Looks at each attempt, and hands over those for which no time is left. A look that fails does not stop the others; the failures
    are raised at the end."""
    if not tokens:
        return []
    looker, done, left, failures = invocation.looker(gaps_s), list[Verdict](), list[Token](), []

    def timely(token: Token) -> Verdict | None:
        return looker.look(token, now=time.time()) if invocation.left() >= A_LOOK_S else None

    with ThreadPoolExecutor(AT_ONCE) as pool:
        looks = {pool.submit(timely, token): token for token in tokens}
        for future, token in looks.items():
            try:
                verdict = future.result()
            except Exception as problem:
                logger.exception("a look failed", job=token.job, attempt=token.attempt)
                failures.append(f"{token.job}/{token.attempt}: {problem}")
            else:
                done += [verdict] if verdict else []
                left += [] if verdict else [token]
    if left:
        logger.warning("handed over: the time was nearly over", attempts=len(left))
        _hand_over(invocation, left, looker.gaps_s)
    if failures:
        raise RuntimeError(f"{len(failures)} of {len(tokens)} looks failed: {'; '.join(failures)}")
    return done
