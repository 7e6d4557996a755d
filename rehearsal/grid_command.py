"""The command line of a grid's rehearsal: `python -m rehearsal --manifest FILE`."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from contract.grid import Backend
from contract.kubernetes_objects import NEW
from localaws.surroundings import open_session
from rehearsal.deployment import context
from rehearsal.fault_check import list_grid_fault_problems
from rehearsal.faults import UnknownFault, parse_faults
from rehearsal.options import Parser, UnreadableFile, add_conditions, folder_problem, numbers, parse_json, read
from rehearsal.request_check import list_grid_problems

SPEED = 30.0
"""Durations divided by thirty: a training has its instances after 6 to 8 s, a child looks at it every 2 s."""


def arguments(given: list[str]) -> argparse.Namespace:
    parser = Parser(
        "Deploys Trainyard on a local AWS and carries out one manifest there: every line is trained, by processes."
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
        parser.error("--job and its options do not go with --manifest: a rehearsal runs one job or one grid")
    problems = [*_folder_problems(options), *numbers(options)]
    try:
        options.text = read("--manifest", options.manifest)
        options.request = read_object("--input", options.input) if options.input else {}
        options.faults = parse_faults(options.fault)
    except (UnreadableFile, UnknownFault) as problem:
        problems.append(str(problem))
    else:
        if "manifest" in options.request:
            problems.append(
                f"--input {options.input}: has `manifest`; --manifest is uploaded in its place, so leave it out"
            )
    parser.refuse(problems)
    parser.refuse(list_grid_fault_problems(options.faults, clusters=has_clusters(options)))
    name = options.input.name if options.input else options.manifest.name
    parser.refuse([f"{name}: {one}" for one in list_grid_problems(options.request, options.manifest.name)])
    return options


def read_object(option: str, file: Path) -> dict[str, Any]:
    """Returns the object in a file. Raises UnreadableFile."""
    found = parse_json(option, file)
    if not isinstance(found, dict):
        raise UnreadableFile(f"{option} {file}: is not a JSON object")
    return found


def _folder_problems(options: argparse.Namespace) -> Iterator[str]:
    known = _known_regions()
    yield from region_problems(options.region)
    if (data := options.grid_data) is not None:
        if problem := folder_problem("--grid-data", data):
            yield problem
        elif not _regions_in(data):
            yield f"--grid-data {data}: has no folder that is called like a region, such as {data / 'eu-central-1'}"
        else:
            strange = sorted(set(_regions_in(data)) - known)
            yield from (f"--grid-data {data}: {name} is not a region of SageMaker" for name in strange)
    yield from image_problems(options.image)


def _known_regions() -> set[str]:
    # boto3 takes half a second, which a mistake in the command line need not wait for.
    return set(open_session().get_available_regions("sagemaker"))


def region_problems(regions: Sequence[str]) -> Iterator[str]:
    """Says which regions SageMaker does not have."""
    known = _known_regions() if regions else set()
    for name in regions:
        if name not in known:
            yield f"--region {name}: SageMaker has no such region; there are {', '.join(sorted(known))}"


def image_problems(image: Path | None) -> Iterator[str]:
    """Says why a folder is not an image that can be built."""
    if image is None:
        return
    if problem := folder_problem("--image", image):
        yield problem
        return
    try:
        read_object("--image", image / "build.json")
    except UnreadableFile as unreadable:
        yield str(unreadable)


def _regions_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def has_clusters(options: argparse.Namespace) -> bool:
    """Whether a line of the manifest, or the input, names clusters of our own."""
    return _names(options, Backend.EC2)


def describe_cluster(options: argparse.Namespace, kubernetes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of a cluster that is there, where a line may run on Kubernetes and `kubernetes` of cdk.json has a cluster: a
    new one cannot be made here. Empty elsewhere; then Plan says what is missing."""
    if not kubernetes.get("cluster") or not _names(options, Backend.KUBERNETES):
        return {}
    kept = {name: one for name, one in kubernetes.items() if name == "max_nodes"}
    return kept | {"cluster": "rehearsed" if kubernetes["cluster"] == NEW else kubernetes["cluster"]}


def _names(options: argparse.Namespace, backend: Backend) -> bool:
    return backend.value in re.findall(r"\w+", f"{options.text}\n{json.dumps(options.request)}")


def regions(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Returns home with its network, as in the settings; the regions of the data, and the named ones. These serve only the grid where all
    lines are SageMaker's, and have networks of their own where some run on clusters."""
    settings = context(1.0)["trainyard"]
    (home,) = (place for place in settings["regions"] if place["region"] == settings["home_region"])
    data = _regions_in(options.grid_data) if options.grid_data else []
    more = sorted({*data, *options.region} - {home["region"]})
    if not has_clusters(options):
        return [home, *({"region": region} for region in more)]
    return [home, *({"region": region, "cidr": f"10.{110 + place}.0.0/16"} for place, region in enumerate(more))]
