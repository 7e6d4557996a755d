"""The command `manifest`: prints the objects of Kubernetes that a person can apply by hand: a line's MPIJob, or what a cluster needs."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainyard.options import Command
from trainyard.settings import read_object
from trainyard.stops import CannotProceed, CommandExit

if TYPE_CHECKING:
    from stacks.settings import Settings

BY_HAND = "applied by hand"
"""Why the reaper leaves such an MPIJob alone."""
MOST_NAME = 11
"""Letters of a person's name that the name of an MPIJob has room for, beside eight of what the line says."""


def print_manifest(command: Command, file: Path | None, *, name: str | None, gpus: int) -> int:
    """Returns the exit code."""
    settings = command.find_settings().parse()
    if not settings.kubernetes.cluster:
        raise CannotProceed("kubernetes.cluster: is empty in cdk.json; allowed: new, or the name of a cluster of EKS")
    found = list_cluster_objects(settings) if file is None else list_line(read_object(file), settings, name, gpus)
    if command.printer.as_json:
        command.printer.document({"objects": found})
    else:
        command.printer.write_document(write_yaml(found))
    return CommandExit.DONE


def write_yaml(objects: list[dict[str, Any]]) -> str:
    """Returns the objects as YAML with every text in double quotes, names of fields too.

    YAML's versions differ in which words are numbers, booleans or null: kubectl reads 1e-05, 0o17 and n as other types than PyYAML does.
    """
    import yaml

    class QuotingDumper(yaml.SafeDumper):
        def represent_text(self, text: str) -> Any:
            return self.represent_scalar("tag:yaml.org,2002:str", text, style='"')

    QuotingDumper.add_representer(str, QuotingDumper.represent_text)
    # A dump of JSON: equal parts of an object would else become anchors, which people do not read.
    plain = json.loads(json.dumps(objects))
    text: str = yaml.dump_all(plain, Dumper=QuotingDumper, sort_keys=False, width=math.inf)
    return text


def list_cluster_objects(settings: Settings) -> list[dict[str, Any]]:
    """Returns what the owner of a cluster applies, beside the mpi-operator."""
    from contract.kubernetes_objects import build_node_pool, build_objects

    return [
        *build_objects(settings.deployment, settings.kubernetes.max_nodes),
        build_node_pool(settings.deployment),
    ]


def _name_line(fields: dict[str, Any], name: str | None, gpus: int) -> str:
    """Returns a name by what the line says: another line of the same one would change its object, and go on from its checkpoints."""
    content = json.dumps([fields, gpus], sort_keys=True, default=str).encode()
    return f"{(name or 'by-hand')[:MOST_NAME]}-{hashlib.sha256(content).hexdigest()[:8]}"


def list_line(fields: dict[str, Any], settings: Settings, name: str | None, gpus: int) -> list[dict[str, Any]]:
    """Returns what a person applies for one line: who may reach its pods, and its MPIJob."""
    from contract.pod_network import close_job

    job = build_line(fields, settings, name, gpus)
    return [close_job(job), job]


def build_line(fields: dict[str, Any], settings: Settings, name: str | None, gpus: int) -> dict[str, Any]:
    """Returns the MPIJob of one line of a manifest. Raises CannotProceed with everything that stands against it."""
    from contract import tags
    from contract.mpi_job import UNIQUE, annotate
    from grid_plan import limits, policy
    from grid_plan.choice import Decision
    from grid_plan.pod_lines import build_pod_request, list_pod_problems
    from grid_plan.reading import read, rename
    from grid_plan.training_arguments import GridRun
    from grid_plan.wanted import Wanted
    from trainyard.supposed import describe_grids, find_account

    env = describe_grids(settings, find_account(json.dumps(fields), settings.deployment, settings.home_region))
    known, problems = rename({**fields, "backend": "kubernetes"})
    spec, found = read(known, limits.allowed(env.limits))
    training = Wanted.of(spec, env)
    problems += [*found, *policy.problems(training, (training.spec.instance_type or "",)), *list_pod_problems(training)]
    if name and not UNIQUE.fullmatch(name):
        problems.append(
            f"--name: is {name!r}; allowed: up to 63 letters, digits, dots, hyphens and underscores, with a letter or digit at each end; "
            f"the job's name begins with the first {MOST_NAME}, in small letters, digits and hyphens, and with a g before a digit"
        )
    if spec.code:
        problems.append("code: Plan copies the archive for a grid; allowed: an image that has the code")
    if problems:
        raise CannotProceed("\n".join(problems))
    decision = Decision(
        region=env.home_region,
        why="",
        copies={channel: one.data[0] for channel, one in training.channels.items()},
        image=training.image_in(env.home_region),
        code="",
        hourly_usd=None,
    )
    name = _name_line(fields, name, gpus)
    run = GridRun(grid=name, execution=f"{env.machine}:{name}", started_at="", owner="")
    job: dict[str, Any] = build_pod_request(training, decision, 0, run, gpus)["job"]
    job["metadata"]["annotations"] |= annotate({tags.PROTECTED: BY_HAND})
    return job
