"""Runs one job on the local AWS, from `cdk deploy` to terminated: `python -m rehearsal --job FILE --code DIR`."""

from __future__ import annotations

import argparse
import gc
import json
import shutil
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from rehearsal import grid_command
from rehearsal.conditions import Conditions
from rehearsal.deployment import DeploymentFailed
from rehearsal.diagnosis import diagnose
from rehearsal.faults import UnknownFault, parse_faults, table
from rehearsal.options import LAST_LAYER_S, add_conditions
from rehearsal.screen import Screen
from rehearsal.summary import Summary, shortcomings, summarise
from rehearsal.yard import Job, Yard

OUT = Path(__file__).parent / "out"
WORK = Path("build/rehearsal")
SPEED = 10.0
"""Durations divided by ten: boots of 3 to 9 s, a clock of 6 s, a heartbeat of 30 s."""


def arguments(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m rehearsal",
        description="Deploys Trainyard on a local AWS and runs one job there, with the delays and losses of a real account. For "
        "a grid: python -m rehearsal --manifest FILE (--help beside it says more).",
        epilog=f"faults (seconds are a real account's: the rehearsal divides them by its speed):\n{table()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--job", type=Path, required=True, metavar="FILE", help="a request without `code`, as JSON")
    parser.add_argument("--code", type=Path, required=True, metavar="DIR", help="uploaded as the job's code")
    parser.add_argument("--nodes", type=int, metavar="N", help="instead of the request's")
    add_conditions(parser, speed=SPEED)
    parser.add_argument(
        "--metric-at-least", type=float, metavar="X", help="fail unless the job's last metric is so high"
    )
    options = parser.parse_args(given)
    if not options.code.is_dir():
        parser.error(f"--code {options.code}: there is no such folder")
    if options.speed <= 0:
        parser.error(f"--speed {options.speed:g}: wanted more than 0")
    try:
        options.request = json.loads(options.job.read_text())
        options.faults = parse_faults(options.fault)
    except (OSError, ValueError, UnknownFault) as problem:
        parser.error(f"--job {options.job}: {problem}" if not isinstance(problem, UnknownFault) else str(problem))
    if not isinstance(options.request, dict):
        parser.error(f"--job {options.job}: wanted a JSON object, the request without `code`")
    if "code" in options.request:
        parser.error(f"--job {options.job}: has `code`; --code DIR is uploaded in its place, so leave it out")
    return options


def main(given: list[str]) -> int:
    """0 only if the job is what was asked for; see `rehearsal.summary.shortcomings`."""
    if any(argument.partition("=")[0] == "--manifest" for argument in given):
        return grid_command.main(given)
    options = arguments(given)
    screen = Screen(Console(soft_wrap=True))
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    conditions = Conditions(speed=options.speed, seed=options.seed)
    with ExitStack() as stack:
        with screen.step("Local AWS started, cdk bootstrap and cdk deploy"):
            yard = stack.enter_context(Yard(WORK.resolve(), conditions))
        stack.enter_context(yard.faults(options.faults))
        return rehearse(yard, screen, options)


def rehearse(yard: Yard, screen: Screen, options: argparse.Namespace) -> int:
    """One job from its upload to its summary."""
    name = f"{options.code.resolve().name.replace('_', '-')}-{time.strftime('%H%M%S')}"
    request = options.request | ({"nodes": options.nodes} if options.nodes is not None else {})
    request["code"] = yard.upload(options.code, name)
    job = yard.start(request, name)
    screen.say(f"job [bold]{name}[/bold]: {request['code']}")
    try:
        screen.follow(job, options.limit)
    except TimeoutError as late:
        screen.say(f"[red]{late}[/red]")
        diagnose(job, screen.console)
        return 1
    job.settle(LAST_LAYER_S / options.speed)
    summary = summarise(job, wall_s=time.monotonic() - screen.began)
    keep(job, summary)
    wrong = shortcomings(summary, nodes=request.get("nodes", 1), metric_at_least=options.metric_at_least)
    if wrong:
        diagnose(job, screen.console)
    screen.summary(summary, wrong)
    screen.say(f"summary, artifacts, logs and recorded calls: {OUT}")
    return 1 if wrong else 0


def keep(job: Job, summary: Summary) -> None:
    """Everything that a person may want to look at afterwards, as files."""
    job.download(OUT)
    (OUT / "summary.json").write_text(json.dumps(summary.document(), indent=1, ensure_ascii=False) + "\n")
    with (OUT / "calls.jsonl").open("w") as calls:
        calls.writelines(json.dumps(asdict(call), default=str) + "\n" for call in job.yard.aws.recorder.calls)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("\ninterrupted; everything that was started is over")
    except DeploymentFailed as problem:
        sys.exit(f"the deployment failed:\n{problem}")
    finally:
        gc.freeze()  # or Python looks through a million objects of the local AWS once more, for seconds, before it leaves
