"""The command line of a job's rehearsal: `python -m rehearsal --job FILE --code DIR`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rehearsal.fault_check import list_fault_problems
from rehearsal.faults import UnknownFault, parse_faults
from rehearsal.intervals import divide_interval
from rehearsal.options import Parser, UnreadableFile, add_conditions, folder_problem, numbers, parse_json, read
from rehearsal.packing import pack
from rehearsal.request_check import examine_request
from rehearsal.scenario import OPTION, BadScenario, load

SPEED = 10.0
"""Durations divided by ten: boots of 3 to 9 s, a clock of 6 s, a heartbeat of 30 s."""


def arguments(given: list[str]) -> argparse.Namespace:
    parser = Parser(
        "Deploys Trainyard on a local AWS and runs one job there, with the delays and losses of a real account. For "
        "a grid: python -m rehearsal --manifest FILE (--help beside it says more)."
    )
    parser.add_argument("--job", type=Path, required=True, metavar="FILE", help="a request, as JSON")
    parser.add_argument(
        "--code",
        type=Path,
        metavar="DIR",
        help="uploaded as the job's code, in the place of the request's; may be left out with --image",
    )
    parser.add_argument(
        "--image", type=Path, metavar="DIR", help="with a Dockerfile and a build.json: built first, and the job's image"
    )
    parser.add_argument("--nodes", metavar="N", help="instead of the request's")
    add_conditions(parser, speed=SPEED)
    parser.add_argument(
        OPTION,
        type=Path,
        metavar="FILE",
        help="faults with the moments at which each begins, as JSON (docs/reference/faults.md)",
    )
    parser.add_argument("--metric-at-least", metavar="X", help="fail unless the job's last metric is so high")
    options = parser.parse_args(given)
    folders = {"--code": options.code, "--image": options.image}
    problems = [*numbers(options), *filter(None, [folder_problem(name, one) for name, one in folders.items() if one])]
    options.archive = None
    try:
        options.request = _read_request(options.job)
        if options.code is None and options.image is None:
            problems.append(_describe_missing_code(options.request))
        if options.image is not None:
            options.request |= {"image": _built(options.image)}
        options.faults = parse_faults(options.fault)
        options.entries = load(options.scenario) if options.scenario else ()
    except (UnreadableFile, UnknownFault, BadScenario) as wrong:
        problems.append(str(wrong))
    parser.refuse(problems)
    parser.refuse(_check(options))
    return options


def _check(options: argparse.Namespace) -> list[str]:
    """Completes the request, packs the code, and returns what Admit would refuse without asking AWS, and which faults
    cannot strike the job. The request is checked as a person wrote it, and only then gets the interval of a rehearsal."""
    options.request |= {"nodes": options.nodes} if options.nodes is not None else {}
    if options.code is not None:
        try:
            options.archive = pack(options.code)
        except OSError as problem:
            return [f"--code {options.code}: {problem.filename}: {problem.strerror}; allowed: files that you may read"]
    problems, facts = examine_request(options.request, options.code, options.archive)
    options.checkpoint_minutes = facts.checkpoint_minutes
    options.request |= {"checkpoint_minutes": divide_interval(facts.checkpoint_minutes, options.speed)}
    faults = [*options.faults, *(one.fault for one in options.entries)]
    return [f"{options.job.name}: {one}" for one in problems] or list_fault_problems(faults, facts)


def _describe_missing_code(request: dict[str, Any]) -> str:
    if "code" in request:
        return (
            "--code is missing: the account of a rehearsal does not have the code that the request names; allowed: a folder, which "
            "is uploaded in its place"
        )
    return "--code is missing; allowed: a folder, unless --image names one with a Dockerfile"


def _built(folder: Path) -> str:
    """The image's name, as a request names it."""
    file = folder / "build.json"
    try:
        asked = json.loads(read("--image", file))
        return f"{asked['repository']}:{asked['tag']}"
    except (ValueError, KeyError, TypeError):
        raise UnreadableFile(f"--image {file}: is not a JSON object with `repository` and `tag`") from None


def _read_request(file: Path) -> dict[str, Any]:
    found = parse_json("--job", file)
    if not isinstance(found, dict):
        raise UnreadableFile(f"--job {file}: is not a JSON object; allowed: a request")
    return found
