"""The command line of a search's rehearsal: `python -m rehearsal --search FILE`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rehearsal.deployment import context
from rehearsal.fault_check import list_grid_fault_problems, names_clusters
from rehearsal.faults import UnknownFault, parse_faults
from rehearsal.grid_command import image_problems, read_object, region_problems
from rehearsal.options import Parser, UnreadableFile, add_conditions, numbers
from rehearsal.request_check import list_search_problems

SPEED = 60.0
"""Durations divided by sixty: a search waits for many grids one after another."""


def arguments(given: list[str]) -> argparse.Namespace:
    parser = Parser(
        "Deploys Trainyard on a local AWS and carries out searches there, one for each seed: every trial is trained, by processes. "
        "Optuna alone, in this process, is given the same function and the same seeds."
    )
    parser.add_argument("--search", type=Path, required=True, metavar="FILE", help="the execution's input, as JSON")
    parser.add_argument("--image", type=Path, metavar="DIR", help="with a build.json: built first, into every region")
    parser.add_argument("--region", action="append", default=[], metavar="NAME", help="a further one; again for more")
    parser.add_argument("--searches", default="1", metavar="N", help="with the seeds from 0 to N-1 (default 1)")
    parser.add_argument("--at-once", default="5", metavar="N", help="searches that run at the same time (default 5)")
    parser.add_argument("--found-at", default="0.95", metavar="VALUE", help="of the objective (default 0.95)")
    add_conditions(parser, speed=SPEED)
    options = parser.parse_args(given)
    problems = [*region_problems(options.region), *image_problems(options.image), *numbers(options)]
    try:
        options.request = read_object("--search", options.search)
        options.faults = parse_faults(options.fault)
    except (UnreadableFile, UnknownFault) as problem:
        problems.append(str(problem))
    parser.refuse(problems)
    parser.refuse(list_grid_fault_problems(options.faults, clusters=names_clusters(options.request)))
    parser.refuse([f"{options.search.name}: {one}" for one in list_search_problems(options.request)])
    return options


def regions(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Returns home with its network, as in the settings, and the named regions."""
    settings = context(1.0)["trainyard"]
    (home,) = (place for place in settings["regions"] if place["region"] == settings["home_region"])
    return [home, *({"region": region} for region in sorted(set(options.region) - {home["region"]}))]
