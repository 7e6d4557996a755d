"""Lines with the backend kubernetes: trainings in the words of SageMaker, each of which becomes an MPIJob."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from typing import Any

from contract import containers, names
from contract.grid import Backend, GridPrefix, mpi_job_name
from contract.jobs import Launcher
from contract.kubernetes_objects import EXPIRES_H
from contract.mpi_job import SAVED_S, PodPlace, PodTraining, build_mpi_job, describe_files
from contract.mpi_job_facts import PLACED_S
from grid_plan import code
from grid_plan.answers import Answers
from grid_plan.choice import Decision
from grid_plan.cluster_lines import as_command, write_arguments
from grid_plan.columns import AUTO, MPI, NONE, ON_DEMAND
from grid_plan.training_arguments import GridRun, build_arguments
from grid_plan.wanted import Wanted, bytes_buckets

KUBERNETES = Backend.KUBERNETES.value
NOTHING = {
    "kms_key": "nothing; the bucket's own key encrypts",
    "volume_kms_key": "nothing; the cluster's node class names keys",
    "network_isolation": "false",
    "encrypt_traffic": "false",
}
"""Fields that pods cannot have, and what is allowed in their place."""
PROCESSOR = "x86_64"
"""Of the cluster's machines: the platform's own image has no other."""
MOST_VOLUME_GB = 60
"""Of the 80 GiB that a machine of EKS's Auto Mode has by its default class, images and the system take the rest."""
MOST_HOURS = EXPIRES_H - math.ceil((PLACED_S + SAVED_S) / 3600)
"""What the age of a machine of the deployment's own cluster leaves beside the wait for the other machines, and the time to save."""
NOT_MADE_FAMILIES = frozenset({"g7", "p2", "p3"})
"""Families of SageMaker's types of x86_64 that are not among those that EKS's Auto Mode makes (its guide, managed instances). Of sizes
it leaves out only those that SageMaker has not either."""
LAUNCHERS = {MPI: Launcher.MPI, NONE: Launcher.NONE}
DEFAULT_ARGUMENTS = ("train",)
"""What SageMaker gives to an image's entry point where a line says nothing."""


def list_pod_problems(training: Wanted) -> Iterator[str]:
    """Yields a line for everything of a training that a cluster of Kubernetes cannot do as SageMaker would."""
    spec, cluster = training.spec, training.env.kubernetes
    if cluster is None:
        yield (
            f"backend: {KUBERNETES} needs a cluster, and the deployment has none; allowed: "
            f"{Backend.SAGEMAKER.value} or {Backend.EC2.value}, or kubernetes.cluster in cdk.json"
        )
        return
    if spec.region not in (AUTO, training.env.home_region):
        yield (
            f"region: {spec.region} has no cluster of Kubernetes; allowed: {AUTO}, or {training.env.home_region} with the backend "
            f"{KUBERNETES}"
        )
    if spec.market != ON_DEMAND:
        yield f"market: {spec.market} means nothing with the backend {KUBERNETES}; allowed: {ON_DEMAND}"
    if spec.instance_count is not None and spec.instance_count > cluster.most_nodes:
        yield (
            f"instance_count: {spec.instance_count} is more than the nodes of the cluster; allowed: up to {cluster.most_nodes} "
            "(kubernetes.max_nodes in cdk.json)"
        )
    for name, most, do in (("volume_gb", MOST_VOLUME_GB, "have"), ("max_hours", MOST_HOURS, "last")):
        value = getattr(spec, name)
        if value is not None and value > most and _is_own_cluster(training):
            yield f"{name}: {value:g} is more than the machines of the deployment's own cluster {do}; allowed: up to {most}"
    for name, may_be in NOTHING.items():
        if getattr(spec, name):
            yield f"{name}: means nothing with the backend {KUBERNETES}; allowed: {may_be}"
    modes = {"mode": spec.mode, **{f"channels.{name}.mode": one.mode for name, one in (spec.channels or {}).items()}}
    for name, mode in modes.items():
        if mode not in (None, "File"):
            yield f"{name}: {mode} means nothing with the backend {KUBERNETES}, whose pods bring files; allowed: File"
    for name, channel in (spec.channels or {}).items():
        if channel.content_type is not None:
            yield f"channels.{name}.content_type: means nothing with the backend {KUBERNETES}, whose pods bring files; allowed: left out"
    if spec.distribution != NONE and not (spec.program or spec.entrypoint):
        yield (
            f"distribution: {spec.distribution} starts a command, and what the image's entry point starts is not known; "
            "allowed: none, or program or entrypoint beside it"
        )


def list_type_problems(training: Wanted, answers: Answers) -> Iterator[str]:
    """Yields what stands against the line's type of machine, of which EC2 was asked."""
    kind = answers.types.get(training.machine_type)
    where = f"instance_type: {training.spec.instance_type}"
    if kind is None:
        yield f"{where} is no type of EC2 in {training.env.home_region}; allowed: types of EC2 with ml. before them"
    elif PROCESSOR not in kind.architectures:
        yield f"{where} has processors of {', '.join(kind.architectures)}; allowed with the backend {KUBERNETES}: {PROCESSOR}"
    elif kind.neuron:
        yield f"{where} has Neuron devices, for which the cluster has no plugin; allowed: types with or without NVIDIA's GPUs"
    elif _is_own_cluster(training) and training.machine_type.partition(".")[0] in NOT_MADE_FAMILIES:
        yield (
            f"{where} is no type of which EKS's Auto Mode makes machines; allowed on the deployment's own cluster: none of the "
            f"families {', '.join(sorted(NOT_MADE_FAMILIES))}"
        )


def _is_own_cluster(training: Wanted) -> bool:
    """Whether the deployment made the cluster, whose machines are those of Auto Mode."""
    cluster = training.env.kubernetes
    return cluster is not None and cluster.name == names.eks_cluster(training.env.deployment)


def build_pod_request(training: Wanted, decision: Decision, index: int, run: GridRun, gpus: int) -> dict[str, Any]:
    """Returns what a child needs to make the line's MPIJob and to find it again. Equal lines give equal requests."""
    env, cluster = training.env, training.env.kubernetes
    assert cluster is not None, "the line was refused"
    arguments = build_arguments(training, decision, index, run)
    registry = f"{env.account}.dkr.ecr.{env.home_region}.{env.suffix}"
    place = PodPlace(
        cluster=cluster.name,
        namespace=names.pod_namespace(env.deployment),
        region=env.home_region,
        keeper_image=f"{registry}/{names.repository(env.deployment, names.PLATFORM)}:{env.child_image}",
        port=cluster.port,
    )
    notes = f"s3://{bytes_buckets(env)[env.home_region]}/{GridPrefix(run.grid).pod_notes(index)}"
    it = _describe_training(training, mpi_job_name(run.execution, run.started_at, index), notes, gpus)
    return {
        "name": it.name,
        "cluster": place.cluster,
        "namespace": place.namespace,
        "function": names.cluster_function(env.deployment),
        "most_nodes": cluster.most_nodes,
        "notes": notes,
        "model": describe_files(arguments, it).model,
        "job": build_mpi_job(arguments, it, place),
    }


def _describe_training(training: Wanted, name: str, notes: str, gpus: int) -> PodTraining:
    spec = training.spec
    words, arguments = list(spec.entrypoint or ()), list(spec.arguments or ())
    if spec.program:
        words, arguments = as_command(spec.program), write_arguments(spec.hyperparameters or {})
    command = [*words, *arguments] if words else []
    return PodTraining(
        name=name,
        command=tuple(command),
        arguments=() if words else tuple(arguments or DEFAULT_ARGUMENTS),
        unpack=tuple(code.entrypoint(())) if spec.code else (),
        folder=containers.CODE if spec.program and not spec.code else "",
        launcher=LAUNCHERS.get(spec.distribution or NONE, Launcher.TORCHRUN),
        options=tuple(shlex.split(spec.mpi_options or "")),
        processes=spec.processes_per_host or max(1, gpus if spec.distribution != NONE else 1),
        gpus=gpus,
        notes=notes,
    )
