"""The attendant's doors: Train's token, the one-minute clock, urgent reports, and changes of instances."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aws_lambda_powertools import Logger

from attendant.look import look
from attendant.policy import Action
from aws.ec2 import Ec2
from aws.s3 import JobStore, Token
from contract import keys
from contract.environments import AttendantEnvironment

logger = Logger(service="attendant")
AT_ONCE = 8
"""Jobs looked at side by side."""


def handler(event: Mapping[str, Any], _context: object) -> dict[str, int]:
    env = AttendantEnvironment.read()
    store = JobStore(env.bucket)
    if event.get("door") == "token":
        return _token(store, event)
    return dict(_look_at(store, list(_tokens(store, event, env))))


def _token(store: JobStore, event: Mapping[str, Any]) -> dict[str, int]:
    """Keeps the token of a Train state, and looks at once: a redriven execution finds its nodes gone here.

    The look may fail without failing Train: the clock looks again.
    """
    digest = hashlib.sha256(event["token"].encode()).hexdigest()
    key = keys.token(event["job"], event["attempt"], digest)
    token = Token(job=event["job"], attempt=event["attempt"], token=event["token"], key=key)
    store.keep_token(token)
    try:
        return {look(store, token, now=time.time()).value: 1}
    except Exception:
        logger.exception("the first look failed; the clock looks again", job=token.job)
        return {}


def _tokens(store: JobStore, event: Mapping[str, Any], env: AttendantEnvironment) -> Iterable[Token]:
    """The waiting attempts that an event may concern: events say where to look, never what is so."""
    detail = event.get("detail", {})
    if event.get("source") == "aws.s3":
        job = keys.job_of(detail["object"]["key"])
        return store.tokens(job) if job else []
    if event.get("source") == "aws.ec2":
        found = Ec2(event["region"]).of_deployment(detail["instance-id"], env.deployment)
        return store.tokens(found.job) if found and found.job else []
    return store.tokens()


def _look_at(store: JobStore, tokens: list[Token]) -> Counter[str]:
    """Looks at each; one that fails does not keep the others from being looked at, and is raised at the end."""
    done, failures = Counter[str](), []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        looks = {pool.submit(look, store, token, now=time.time()): token for token in tokens}
        for future, token in looks.items():
            try:
                action: Action = future.result()
                done[action.value] += 1
            except Exception as problem:
                logger.exception("a look failed", job=token.job, attempt=token.attempt)
                failures.append(f"{token.job}/{token.attempt}: {problem}")
    if failures:
        raise RuntimeError(f"{len(failures)} of {len(tokens)} looks failed: {'; '.join(failures)}")
    return done
