"""The function that writes pages: a queue calls it for each start and end, and a clock every five minutes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws import executions
from aws.clients import BRISK, IN_PASSING
from aws.grids import GridStore
from aws.queue import Queue
from aws.s3 import HomeBucket
from aws.state import State
from contract.page_environments import PageEnvironment
from messages.work import work_through
from page_writer.grids import GridSources
from page_writer.jobs import JobSources
from page_writer.policy import LOOKS_BACK_S, PATTERNS, DuePage, PageKind, is_missing, read_due
from page_writer.searches import SearchSources
from page_writer.writing import PageWriter
from searches.store import SearchStore

logger = Logger(service="page_writer")
AT_ONCE = 8
"""Pages written, or asked for, side by side."""
MOST_ENDED = 10_000
"""Executions of a machine, the newest ones, among which the clock looks for ends that no event told of."""
RETRY_S = 120.0
"""After how long a message comes back whose page could not be written."""


class NotAsked(Exception):
    """The clock could not ask for all pages. It is raised so that Lambda's error metric shows it."""


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any] | None:
    """Returns the messages to deliver again, where the queue called it."""
    env = PageEnvironment.read()
    queue, writer = Queue(env.messages), open_writer(env)
    if "Records" not in event:
        ask_for_pages(env, writer, queue, time.time())
        return None
    begins = {kind: executions.name_arn(machine, "") for kind, machine in list_machines(env).items()}
    return work_through(
        event,
        queue,
        lambda body: write_page(env, writer, queue, read_due(body, begins), time.time()),
        again_s=RETRY_S,
        at_once=AT_ONCE,
    )


def open_writer(env: PageEnvironment) -> PageWriter:
    home = HomeBucket(env.bucket, config=BRISK)
    return PageWriter(
        home=home,
        jobs=JobSources(
            deployment=env.deployment, home=home, state=State(env.table, IN_PASSING), node_role=env.node_role
        ),
        grids=GridSources(deployment=env.deployment, store=GridStore(env.bucket)),
        searches=SearchSources(deployment=env.deployment, store=SearchStore(env.bucket)),
        clock=time.time,
    )


def list_machines(env: PageEnvironment) -> dict[PageKind, str]:
    """Returns the ARN of the machine of each kind."""
    return {PageKind.JOB: env.machine, PageKind.GRID: env.grid_machine, PageKind.SEARCH: env.search_machine}


def write_page(env: PageEnvironment, writer: PageWriter, queue: Queue, due: DuePage | None, now: float) -> None:
    """Writes the page, and asks for it again where it is not whole yet. Raises what keeps it from that; of a page that the clock asks for
    only the log tells it, because the clock asks again."""
    if due is None:
        logger.warning("dropped: the message asks for no page of ours")
        return
    if due.is_overtaken(now):
        logger.info("dropped: the clock has asked again since", execution=due.execution)
        return
    try:
        is_whole = writer.write(due)
    except Exception:
        if due.sent_at is None:
            raise
        logger.exception("a page could not be written; the clock asks again", execution=due.execution)
        return
    if not is_whole and due.comes_back:
        queue.send(due.again().write(), in_s=env.again_s)


def ask_for_pages(env: PageEnvironment, writer: PageWriter, queue: Queue, now: float) -> None:
    """Asks for the page of each execution that runs, and of those that ended without a page that says so. What one machine, or S3, does not
    answer keeps no other page from being asked for. Raises NotAsked at the end where anything failed."""
    failures = list[str]()

    def ask(kind: PageKind, one: executions.ListedExecution) -> None:
        try:
            if one.ended_at is None or is_missing(writer.find_written(kind, one.name), one.ended_at):
                queue.send(DuePage(kind=kind, name=one.name, execution=one.arn, sent_at=now).write(), in_s=0)
        except (ClientError, BotoCoreError) as problem:
            failures.append(f"{one.arn}: {problem}")

    for kind, machine in list_machines(env).items():
        try:
            listed = {
                one.arn: one
                for one in executions.running_or_ended_since(machine, now - LOOKS_BACK_S, most=MOST_ENDED)
                if PATTERNS[kind].fullmatch(one.name)
            }
        except (ClientError, BotoCoreError) as problem:
            failures.append(f"{machine}: {problem}")
            continue
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda one, kind=kind: ask(kind, one), listed.values()))
        logger.info("asked for pages", machine=machine, executions=len(listed))
    if failures:
        raise NotAsked(f"{len(failures)} questions failed: {'; '.join(failures[:5])}")
