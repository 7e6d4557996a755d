"""What wakes the attendant: Train's token, the one-minute clock, urgent reports, and changes of instances."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aws_lambda_powertools import Logger

from attendant.look import look
from attendant.policy import Verdict
from attendant.silence import gaps
from aws.ec2 import Ec2
from aws.s3 import JobStore, Token
from contract import keys
from contract.environments import AttendantEnvironment

logger = Logger(service="attendant")
AT_ONCE = 8
"""Jobs looked at side by side."""
LOOKS_A_REPORT = 4
"""Looks within one `report_every_s`: an error counts as the command's own once the other nodes have reported after it, and with this
many looks the verdict need not wait for the clock."""
A_LOOK_S = 15.0
"""Longer than one look takes."""


def handler(event: Mapping[str, Any], context: Any) -> dict[str, int]:
    env = AttendantEnvironment.read()
    store = JobStore(env.bucket)
    if event.get("action") == "token":
        return _token(store, event)
    if event.get("source") not in ("aws.s3", "aws.ec2"):
        return _told(_pass(store))
    done = _look_at(store, list(_tokens(store, event, env)), gaps(store.last_pass()))
    while _waits(event, done) and _has_time(context, env):
        time.sleep(env.timing.report_every_s / LOOKS_A_REPORT)
        done = _look_at(store, list(_tokens(store, event, env)), gaps(store.last_pass()))
    return _told(done)


def _told(done: Iterable[Verdict]) -> dict[str, int]:
    return dict(Counter(verdict.action.value for verdict in done))


def _pass(store: JobStore) -> list[Verdict]:
    """Looks at every job, once a minute. Notes the time, which the next pass reads."""
    before = gaps(store.last_pass())
    store.note_pass(before)
    return _look_at(store, store.tokens(), before)


def _waits(event: Mapping[str, Any], done: Iterable[Verdict]) -> bool:
    """Whether this event reported the error that still waits to be explained: only one invocation waits, however many nodes fail."""
    key = event["detail"].get("object", {}).get("key")
    return any(verdict.awaits == key for verdict in done if verdict.awaits)


def _has_time(context: Any, env: AttendantEnvironment) -> bool:
    """Whether one more pause and one more look fit into this invocation; the clock looks again in any case."""
    left_s: float = context.get_remaining_time_in_millis() / 1000
    return left_s > env.timing.report_every_s / LOOKS_A_REPORT + A_LOOK_S


def _token(store: JobStore, event: Mapping[str, Any]) -> dict[str, int]:
    """Keeps the token of a Train state, and looks at once: after a redrive, this look finds the nodes gone.

    Train does not fail if the look does: the clock looks again.
    """
    digest = hashlib.sha256(event["token"].encode()).hexdigest()
    key = keys.token(event["job"], event["attempt"], digest)
    token = Token(job=event["job"], attempt=event["attempt"], token=event["token"], key=key)
    store.keep_token(token)
    try:
        return _told([look(store, token, now=time.time(), gaps_s=gaps(store.last_pass()))])
    except Exception:
        logger.exception("the first look failed; the clock looks again", job=token.job)
        return {}


def _tokens(store: JobStore, event: Mapping[str, Any], env: AttendantEnvironment) -> Iterable[Token]:
    """The waiting attempts that an event from S3 or EC2 may be about. Events are hints, never evidence."""
    detail = event["detail"]
    if event["source"] == "aws.s3":
        job = keys.job_of(detail["object"]["key"])
        return store.tokens(job) if job else []
    found = Ec2(event["region"]).of_deployment(detail["instance-id"], env.deployment)
    return store.tokens(found.job) if found and found.job else []


def _look_at(store: JobStore, tokens: list[Token], gaps_s: tuple[float, ...]) -> list[Verdict]:
    """Looks at each attempt. A look that fails does not stop the others; the failures are raised at the end."""
    done, failures = list[Verdict](), []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        looks = {pool.submit(look, store, token, now=time.time(), gaps_s=gaps_s): token for token in tokens}
        for future, token in looks.items():
            try:
                done.append(future.result())
            except Exception as problem:
                logger.exception("a look failed", job=token.job, attempt=token.attempt)
                failures.append(f"{token.job}/{token.attempt}: {problem}")
    if failures:
        raise RuntimeError(f"{len(failures)} of {len(tokens)} looks failed: {'; '.join(failures)}")
    return done
