"""Reads the command line of a rehearsal, and carries it out: one job, one grid, one campaign, or searches.

Heavy imports, moto above all, come after the command line has been checked and the first line printed.
"""

from __future__ import annotations

import argparse
import gc
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rich.console import Console

from localaws.surroundings import shed_credentials
from rehearsal import campaign_command, grid_command, job_command, search_command
from rehearsal.deployment import DeploymentFailed
from rehearsal.request_check import CannotCheck
from rehearsal.runs import Run, Unwritable, job_name, shorten
from rehearsal.screen import Screen


def main(given: list[str]) -> int:
    """Returns 0 if all went as asked for, 1 if not, 2 for a command line that cannot be carried out."""
    words = {argument.partition("=")[0] for argument in given}
    kind = next((one for one in ("campaign", "search", "manifest") if f"--{one}" in words), "job")
    command = {"campaign": campaign_command, "search": search_command, "manifest": grid_command, "job": job_command}[
        kind
    ]
    try:
        options = command.arguments(given)
    except KeyboardInterrupt:
        print("interrupted before anything was deployed", file=sys.stderr)
        return 130
    except CannotCheck as problem:
        print(f"the request cannot be checked: {problem}", file=sys.stderr)
        return 2
    try:
        run = Run(job_name(_choose_name(options, kind)))
    except Unwritable as problem:
        print(problem, file=sys.stderr)
        return 2
    screen = Screen(Console(soft_wrap=True, emoji=False), verbose=options.verbose)
    for sign in INTERRUPTS:
        signal.signal(sign, _interrupted)
    try:
        with screen.parts.part("imports"):
            from rehearsal import campaign_run, grid_run, job_run, search_run
        runs = {"campaign": campaign_run, "search": search_run, "manifest": grid_run, "job": job_run}[kind]
        return runs.carry_out(options, screen, run)
    except KeyboardInterrupt:
        at = ", ".join(screen.parts.going_on()) or "the end"
        screen.say(f"interrupted at: {at}; every process has ended. Results so far: {shorten(run.out)}")
        return 130
    except DeploymentFailed as problem:
        from rehearsal.diagnosis import diagnose_deployment

        diagnose_deployment(problem, screen.console, run.out)
        return 1
    finally:
        screen.parts.write(run.out / "parts.json")
        run.close()


def _choose_name(options: argparse.Namespace, kind: str) -> str:
    """Returns what a run is called after."""
    if kind == "job":
        return str((options.code or options.image).resolve().name)
    file: Path = getattr(options, kind)
    return file.resolve().stem


INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _interrupted(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Ends everything that was started; a second interrupt does not stop this."""
    for sign in INTERRUPTS:
        signal.signal(sign, signal.SIG_IGN)
    raise KeyboardInterrupt


def run_command(given: list[str]) -> int:
    """Runs the command line in a process of its own; returns its exit code."""
    shed_credentials()
    try:
        return main(given)
    finally:
        gc.freeze()  # otherwise Python's garbage collector reads a million objects of the local AWS again, for seconds, before it exits
