"""Runs one grid on the local AWS, from `cdk deploy` to its results: `python -m rehearsal --manifest FILE`."""

from __future__ import annotations

import argparse
import json
import math
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import boto3
from rich.console import Console
from rich.markup import escape

from rehearsal import grid, grid_screen
from rehearsal.conditions import Conditions
from rehearsal.deployment import context
from rehearsal.faults import UnknownFault, parse_faults, table
from rehearsal.options import LAST_LAYER_S, add_conditions
from rehearsal.screen import Screen
from rehearsal.yard import Yard

OUT = Path(__file__).parent / "out"
WORK = Path("build/rehearsal")
SPEED = 30.0
"""Durations divided by thirty: a training has its instances after 6 to 8 s, a child looks at it every 2 s."""


def arguments(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m rehearsal",
        allow_abbrev=False,
        description="Deploys Trainyard on a local AWS and carries out one manifest there: every line is trained, by processes.",
        epilog=f"faults (seconds are a real account's: the rehearsal divides them by its speed):\n{table()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--manifest", type=Path, required=True, metavar="FILE", help="CSV or JSON Lines")
    parser.add_argument("--input", type=Path, metavar="FILE", help="of the execution, without `manifest`, as JSON")
    parser.add_argument("--grid-data", type=Path, metavar="DIR", help="a folder a region, each uploaded there")
    parser.add_argument("--image", type=Path, metavar="DIR", help="with a build.json: built first, into every region")
    parser.add_argument("--region", action="append", default=[], metavar="NAME", help="a further one; again for more")
    add_conditions(parser, speed=SPEED)
    parser.add_argument("--job", "--code", "--nodes", "--metric-at-least", dest="of_a_job", help=argparse.SUPPRESS)
    options = parser.parse_args(given)
    if options.of_a_job is not None:
        parser.error("--job and its options do not go with --manifest: a rehearsal is of one job, or of one grid")
    problems = [*_folder_problems(options), *_number_problems(options)]
    try:
        options.text = _read("--manifest", options.manifest)
        options.request = _object("--input", options.input) if options.input else {}
        options.faults = parse_faults(options.fault)
    except (Unreadable, UnknownFault) as problem:
        problems.append(str(problem))
    else:
        if "manifest" in options.request:
            problems.append(
                f"--input {options.input}: has `manifest`; --manifest is uploaded in its place, so leave it out"
            )
    if problems:
        parser.error("\n".join(problems))
    return options


class Unreadable(Exception):
    """A file that the command line names; the message says what is wrong with it."""


def _read(option: str, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Unreadable(f"{option} {file}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "is no text in UTF-8"
        raise Unreadable(f"{option} {file}: {reason}") from None


def _object(option: str, file: Path) -> dict[str, Any]:
    try:
        found = json.loads(_read(option, file))
    except ValueError as problem:
        raise Unreadable(f"{option} {file}: is no JSON: {problem}") from None
    if not isinstance(found, dict):
        raise Unreadable(f"{option} {file}: wanted a JSON object")
    return found


def _folder_problems(options: argparse.Namespace) -> Iterator[str]:
    known = set(boto3.Session().get_available_regions("sagemaker"))
    for name in options.region:
        if name not in known:
            yield f"--region {name}: SageMaker has no such region; there are {', '.join(sorted(known))}"
    if (data := options.grid_data) is not None:
        if not data.is_dir():
            yield f"--grid-data {data}: there is no such folder"
        elif not _regions_in(data):
            yield f"--grid-data {data}: has no folder that is called like a region, such as {data / 'eu-central-1'}"
        else:
            strange = sorted(set(_regions_in(data)) - known)
            yield from (f"--grid-data {data}: {name} is no region of SageMaker" for name in strange)
    if (image := options.image) is not None:
        if not image.is_dir():
            yield f"--image {image}: there is no such folder"
        else:
            try:
                _object("--image", image / "build.json")
            except Unreadable as problem:
                yield str(problem)


def _number_problems(options: argparse.Namespace) -> Iterator[str]:
    for name, value in (("--speed", options.speed), ("--limit", options.limit)):
        if not 0 < value < math.inf:
            yield f"{name} {value:g}: wanted more than 0"


def _regions_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def main(given: list[str]) -> int:
    """0 only if every line completed and nothing runs; see `rehearsal.grid.shortcomings`."""
    options = arguments(given)
    screen = Screen(Console(soft_wrap=True))
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    conditions = Conditions(speed=options.speed, seed=options.seed)
    with ExitStack() as stack:
        with screen.step("Local AWS started, cdk bootstrap and cdk deploy"):
            yard = stack.enter_context(Yard(WORK.resolve(), conditions, settings={"regions": regions(options)}))
        if options.image:
            with screen.step(f"The image of {options.image} built, and brought into every region"):
                grid.build_image(yard, options.image)
        if options.grid_data:
            for region, address in grid.upload_data(yard, options.grid_data).items():
                screen.say(f"data of {region}: {address}")
        stack.enter_context(yard.faults(options.faults))
        return rehearse(yard, screen, options)


def regions(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Home with its network, as in the settings; those of the data, and those that were named, for the grid alone."""
    settings = context(1.0)["trainyard"]
    (home,) = (place for place in settings["regions"] if place["region"] == settings["home_region"])
    data = _regions_in(options.grid_data) if options.grid_data else []
    more = sorted({*data, *options.region} - {home["region"]})
    return [home, *({"region": region} for region in more)]


def rehearse(yard: Yard, screen: Screen, options: argparse.Namespace) -> int:
    """One grid from its manifest to its summary."""
    name = f"{options.manifest.stem.replace('_', '-')}-{time.strftime('%H%M%S')}"
    address = grid.upload_manifest(yard, options.text, f"{name}{options.manifest.suffix}")
    job = grid.start(yard, {**options.request, "manifest": address}, name)
    screen.say(f"grid [bold]{name}[/bold]: {address}")
    late = []
    try:
        grid_screen.follow(job, screen.say, options.limit)
        job.settle_grid(LAST_LAYER_S / options.speed)
    except TimeoutError as problem:
        late.append(str(problem))
    summary = grid.summarise(job, wall_s=time.monotonic() - screen.began)
    wrong = [*late, *grid.shortcomings(summary)]
    keep(job, summary, whole=bool(wrong))
    if summary.lines:
        grid_screen.show(screen.console, summary, yard.aws.conditions, wrong)
    else:
        screen.say(f"[red]the execution ended as {summary.status}: {summary.error}[/red]")
    if summary.cause:
        screen.say(f"[red]{escape(summary.cause)}[/red]")
    screen.say(f"results.csv, report.json, summary.json, recorded calls: {OUT}")
    return 1 if wrong else 0


def keep(job: grid.GridJob, summary: grid.GridSummary, *, whole: bool) -> None:
    """Everything that a person may want to look at afterwards, as files; `whole`: the functions' logs, too."""
    (OUT / "summary.json").write_text(json.dumps(asdict(summary), indent=1, ensure_ascii=False, default=str) + "\n")
    for key in (job.prefix.description, job.prefix.results_csv, job.prefix.results_jsonl, job.prefix.report):
        if body := job.read(key):
            (OUT / key.rpartition("/")[2]).write_bytes(body)
    with (OUT / "calls.jsonl").open("w") as calls:
        calls.writelines(json.dumps(asdict(call), default=str) + "\n" for call in job.yard.aws.recorder.calls)
    if whole:
        for function, lines in job.yard.aws.workers.logs().items():
            (OUT / f"{function}.log").write_text("\n".join(lines) + "\n")
