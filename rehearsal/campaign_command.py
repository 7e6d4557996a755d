"""The command line of a campaign's rehearsal: `python -m rehearsal --campaign DIR`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rehearsal.fault_check import list_grid_fault_problems, names_clusters
from rehearsal.faults import UnknownFault, parse_faults
from rehearsal.grid_command import image_problems, read_object, region_problems
from rehearsal.options import Parser, UnreadableFile, add_conditions, folder_problem, numbers, read

SPEED = 30.0
"""Durations divided by thirty, as for a grid."""
SETTINGS, TABLES = "settings.json", "catalogue.sql"
"""Files of a campaign's folder: keys of cdk.json's block, and statements that a blank line ends."""


def arguments(given: list[str]) -> argparse.Namespace:
    parser = Parser(
        "Deploys Trainyard on a local AWS with a campaign and the catalogue, fills the catalogue, and uploads the object that starts the "
        "campaign: everything after that happens by itself."
    )
    parser.add_argument(
        "--campaign", type=Path, required=True, metavar="DIR", help=f"a folder with {SETTINGS} and {TABLES}"
    )
    parser.add_argument("--grid-data", type=Path, metavar="DIR", help="a folder a region, each uploaded there")
    parser.add_argument("--image", type=Path, metavar="DIR", help="with a build.json: built first, into every region")
    parser.add_argument("--region", action="append", default=[], metavar="NAME", help="a further one; again for more")
    add_conditions(parser, speed=SPEED)
    options = parser.parse_args(given)
    problems = [*region_problems(options.region), *image_problems(options.image), *numbers(options)]
    for option, folder in (("--campaign", options.campaign), ("--grid-data", options.grid_data)):
        if folder is not None and (problem := folder_problem(option, folder)):
            problems.append(problem)
    try:
        options.settings = read_object("--campaign", options.campaign / SETTINGS)
        options.statements = split_statements(read("--campaign", options.campaign / TABLES))
        options.faults = parse_faults(options.fault)
    except (UnreadableFile, UnknownFault) as unreadable:
        problems.append(str(unreadable))
    else:
        problems += _setting_problems(options.settings)
    parser.refuse(problems)
    parser.refuse(list_grid_fault_problems(options.faults, clusters=names_clusters(options.settings)))
    return options


def split_statements(text: str) -> list[str]:
    """Returns the statements of a file, which blank lines separate: the Data API takes one at a time."""
    return [one.strip() for one in text.split("\n\n") if one.strip()]


def _setting_problems(settings: dict[str, Any]) -> list[str]:
    campaigns = settings.get("campaigns")
    if not isinstance(campaigns, dict) or len(campaigns) != 1:
        return [f"--campaign: {SETTINGS} has to have one campaign in `campaigns`"]
    (campaign,) = campaigns.values()
    if not isinstance(campaign, dict) or not {"prefix", "suffix", "input"} <= campaign.keys() or campaign.get("bucket"):
        return [f"--campaign: the campaign of {SETTINGS} has to have prefix, suffix and input, and no bucket"]
    return [] if settings.get("catalogue") is True else [f'--campaign: {SETTINGS} has to say "catalogue": true']
