"""Wires a child from its environment, and turns whatever ends it into an exit code that Batch's rules know."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping

from contract.grid import ExitCode
from grid_child.batch import ended_on_purpose
from grid_child.child import Child
from grid_child.identity import ChildIdentity, identify
from grid_child.plan import read_work
from grid_child.retry import Retry
from grid_child.store import Home
from grid_child.trouble import Trouble, Unfit
from grid_child.waits import Terminated, Waits

LEAVES_S = 5.0 / 6.0
"""Of the time from SIGTERM to SIGKILL, what a child uses: 25 of 30 s."""


def main(variables: Mapping[str, str], *, waits: Waits, chance: random.Random | None = None) -> int:
    """The exit code. What a person should read of a failure goes to stderr."""
    try:
        return _serve(identify(variables), waits, chance or random.Random())
    except Unfit as problem:
        print(f"Another attempt would fail in the same way: {problem}", file=sys.stderr, flush=True)
        return ExitCode.FINAL
    except Trouble as problem:
        print(f"The next attempt goes on: {problem}", file=sys.stderr, flush=True)
        return ExitCode.AGAIN


def _serve(me: ChildIdentity, waits: Waits, chance: random.Random) -> ExitCode:
    environment = me.environment
    watch_s = environment.timing.training_watch_s
    retry = Retry(waits, chance, base_s=watch_s / 60, most_s=watch_s)
    home = Home(environment.bucket, environment.home_region, retry)
    child: Child | None = None
    try:
        work = read_work(me, home, chance)
        child = Child(
            work,
            home=home,
            timing=environment.timing,
            waits=waits,
            retry=retry,
            chance=chance,
            submitted=not me.first_look,
        )
        return child.run()
    except Terminated:
        return _terminated(me, waits, child)


def _terminated(me: ChildIdentity, waits: Waits, child: Child | None) -> ExitCode:
    """SIGTERM: the training is left alone, and the next attempt adopts it, unless a call ended the job."""
    until = waits.hear() + LEAVES_S * me.environment.timing.stop_grace_s
    reason = _why(me, waits, until)
    print(reason or "SIGTERM, and no call has ended the job: the training keeps running", flush=True)
    return child.end(reason, until) if reason and child else ExitCode.AGAIN


def _why(me: ChildIdentity, waits: Waits, until: float) -> str:
    """Says who ended the job; empty where no call did, or where that is unknown."""
    pause = me.environment.timing.stop_grace_s / 30
    while me.job and waits.time() + pause < until:
        try:
            return ended_on_purpose(me.job, me.environment.home_region)
        except Unfit as problem:
            print(problem, file=sys.stderr, flush=True)
            return ""
        except Trouble:
            waits.sleep(pause)
    return ""
