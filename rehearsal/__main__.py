"""Rehearses one job, or one grid, on the local AWS: `python -m rehearsal --help`.

Heavy imports, moto above all, come after the command line has been checked and the first line printed.
"""

from __future__ import annotations

import gc
import signal
import sys
from types import FrameType
from typing import NoReturn

from rich.console import Console

from localaws.surroundings import shed_credentials
from rehearsal import grid_command, job_command
from rehearsal.deployment import DeploymentFailed
from rehearsal.runs import Run, Unwritable, job_name
from rehearsal.screen import Screen


def main(given: list[str]) -> int:
    """Returns 0 if all went as asked for, 1 if not, 2 for a command line that cannot be carried out."""
    of_a_grid = any(argument.partition("=")[0] == "--manifest" for argument in given)
    options = grid_command.arguments(given) if of_a_grid else job_command.arguments(given)
    try:
        run = Run(job_name(options.manifest.stem if of_a_grid else (options.code or options.image).resolve().name))
    except Unwritable as problem:
        print(problem, file=sys.stderr)
        return 2
    screen = Screen(Console(soft_wrap=True))
    for sign in INTERRUPTS:
        signal.signal(sign, _interrupted)
    try:
        with screen.parts.part("imports"):
            from rehearsal import grid_run, job_run
        return (grid_run if of_a_grid else job_run).carry_out(options, screen, run)
    except KeyboardInterrupt:
        at = ", ".join(screen.parts.going_on()) or "the end"
        screen.say(f"interrupted at: {at}; every process has ended. Results so far: {run.out}")
        return 130
    except DeploymentFailed as problem:
        from rehearsal.diagnosis import diagnose_deployment

        diagnose_deployment(problem, screen.console, run.out)
        return 1
    finally:
        screen.parts.write(run.out / "parts.json")
        run.close()


INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _interrupted(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Ends everything that was started; a second interrupt does not stop this."""
    for sign in INTERRUPTS:
        signal.signal(sign, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    shed_credentials()
    try:
        sys.exit(main(sys.argv[1:]))
    finally:
        gc.freeze()  # otherwise Python's garbage collector reads a million objects of the local AWS again, for seconds, before it exits
