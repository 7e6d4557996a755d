"""The watch of branches: every five minutes, asks for the head of each, and starts the build of a commit that has none."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aws_lambda_powertools import Logger

from aws import executions
from aws.queue import Queue
from aws.state import State
from contract.campaign_environments import WatchEnvironment
from contract.campaigns import STARTS_FILE, Starts, Watch, name_build
from contract.codec import decode
from git_code.commit import GitCommit, NotFetched, list_fetch_problems
from git_code.fetching import fetch_archive, find_head
from messages.checks import Check

logger = Logger(service="branch-watch")
STARTS = Path(__file__).parents[1] / STARTS_FILE
AT_ONCE = 2
"""Branches that are looked after at once: each is asked by a process of its own, which may take 768 MB."""


class BranchesUnread(Exception):
    """Some heads are not known, or not built; the next tick asks again. The message says which and why."""


def handler(_event: Mapping[str, Any], _context: object) -> None:
    """Raises BranchesUnread, after all other branches were asked."""
    env = WatchEnvironment.read()
    if (reason := State(env.table).admission_closed()) is not None:
        logger.info("admission is closed", reason=reason)
        return
    watches = decode(Starts, STARTS.read_bytes()).watches
    with ThreadPoolExecutor(AT_ONCE) as pool:
        said = list(pool.map(lambda name: _try(name, watches[name], env), watches))
    if problems := [one for one in said if one]:
        raise BranchesUnread("\n".join(problems))


def _try(name: str, watch: Watch, env: WatchEnvironment) -> str:
    """Returns why the branch's newest commit is not known or not being built; a branch keeps no other from being asked."""
    try:
        return _look_after(name, watch, env)
    except Exception as problem:
        logger.exception("a branch could not be looked after", watch=name)
        return f"watch {name}: {type(problem).__name__}: {problem}"


def _look_after(name: str, watch: Watch, env: WatchEnvironment) -> str:
    branch = GitCommit(watch.git, "")
    head = find_head(watch.git, watch.branch, env.git_hosts.get(branch.host, ""))
    if isinstance(head, NotFetched):
        return "; ".join(list_fetch_problems(branch, head, env.git_hosts, f"watch.{name}.git"))
    build = name_build(name, head)
    execution = executions.name_arn(env.build_machine, build)
    if executions.described(execution) is not None:
        return ""
    # The build takes the name, so what keeps its host from giving the commit is asked before, as often as needed.
    commit = replace(branch, commit=head)
    with TemporaryDirectory() as folder:
        if trouble := fetch_archive(commit, env.git_hosts.get(commit.host, ""), Path(folder, commit.archive)):
            return "; ".join(list_fetch_problems(commit, trouble, env.git_hosts, f"watch.{name}.git"))
    # First the question, then the build: a build without a question would end untold.
    Queue(env.messages).send(Check(execution=execution).write(), in_s=env.check_s)
    # An image that has the tag already, from a build of more than 90 days ago, is as good.
    wanted = {"context": {"git": watch.git, "ref": head}, "tag": build, "if_absent": True, **watch.build}
    executions.start(env.build_machine, build, wanted)
    logger.info("started a build", watch=name, commit=head, execution=execution)
    return ""
