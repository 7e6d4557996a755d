"""Makes the arguments of CreateTrainingJob for one training; the child sends them unchanged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from contract import containers, tags
from contract.environments import GridEnvironment
from contract.grid import GridPrefix, training_name
from grid_plan import code
from grid_plan.choice import Decision
from grid_plan.columns import SPOT
from grid_plan.wanted import Wanted, bytes_buckets
from refusals.addresses import Address

RETRIES = 3
"""Retries after SageMaker's own InternalServerError; the time-outs end all attempts together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRun:
    """The execution of the Grid machine whose trainings are planned."""

    grid: str
    execution: str
    """ARN."""
    started_at: str
    owner: str


def build_arguments(training: Wanted, decision: Decision, index: int, run: GridRun) -> dict[str, Any]:
    """Returns the arguments, which do not depend on when they are made."""
    spec, env = training.spec, training.env
    folder = f"s3://{bytes_buckets(env)[decision.region]}/{GridPrefix(run.grid).bytes(index)}".rstrip("/")
    found = {
        "TrainingJobName": training_name(env.deployment, run.execution, run.started_at, index),
        "RoleArn": env.training_role,
        "AlgorithmSpecification": _algorithm(training, decision),
        "HyperParameters": training.hyperparameters | training.launcher | training.toolkit,
        "InputDataConfig": [*_inputs(training, decision), *_code(training, decision, run)],
        "OutputDataConfig": _without_empty(
            {"S3OutputPath": folder, "KmsKeyId": spec.kms_key or env.output_key or None}
        ),
        "CheckpointConfig": {"S3Uri": spec.checkpoint or f"{folder}/checkpoints", "LocalPath": containers.CHECKPOINTS},
        "ResourceConfig": _without_empty(
            {
                "InstanceType": spec.instance_type,
                "InstanceCount": spec.instance_count,
                "VolumeSizeInGB": spec.volume_gb,
                "VolumeKmsKeyId": spec.volume_kms_key,
            }
        ),
        "StoppingCondition": _stopping(training),
        "RetryStrategy": {"MaximumRetryAttempts": RETRIES},
        "EnableManagedSpotTraining": spec.market == SPOT,
        "EnableNetworkIsolation": spec.network_isolation,
        "EnableInterContainerTrafficEncryption": spec.encrypt_traffic,
        "Environment": dict(spec.environment or {}) | ({code.VARIABLE: spec.program} if spec.program else {}),
        "Tags": _tags(training, index, run),
    }
    return _without_empty(found)


def _without_empty(members: dict[str, Any]) -> dict[str, Any]:
    """Drops empty members: SageMaker takes no null, and no empty list of channels; false and 0 stay."""
    return {name: value for name, value in members.items() if value is not None and value not in ({}, [])}


def _algorithm(training: Wanted, decision: Decision) -> dict[str, Any]:
    spec = training.spec
    return _without_empty(
        {
            "TrainingImage": decision.image,
            "TrainingInputMode": spec.mode,
            "ContainerEntrypoint": code.entrypoint(spec.entrypoint)
            if spec.code and spec.entrypoint
            else spec.entrypoint,
            "ContainerArguments": spec.arguments,
            "MetricDefinitions": [{"Name": name, "Regex": regex} for name, regex in (spec.metrics or {}).items()],
        }
    )


def _inputs(training: Wanted, decision: Decision) -> list[dict[str, Any]]:
    return [
        _without_empty(
            {
                "ChannelName": name,
                "DataSource": {
                    "S3DataSource": {
                        "S3DataType": "S3Prefix",
                        "S3Uri": decision.copies[name],
                        "S3DataDistributionType": "ShardedByS3Key" if channel.sharded else "FullyReplicated",
                    }
                },
                "ContentType": channel.content_type,
                "InputMode": channel.mode or training.spec.mode,
            }
        )
        for name, channel in training.channels.items()
    ]


def code_folder(run: GridRun, digest: str, region: str, env: GridEnvironment) -> Address:
    """Returns where an archive of code lies for the trainings of a region."""
    return Address(bytes_buckets(env)[region], GridPrefix(run.grid).code(digest))


def _code(training: Wanted, decision: Decision, run: GridRun) -> list[dict[str, Any]]:
    """Returns the channel of the code: the folder has one file, and its name stays."""
    if not decision.code:
        return []
    source = {
        "S3DataType": "S3Prefix",
        "S3Uri": str(code_folder(run, decision.code, decision.region, training.env)),
        "S3DataDistributionType": "FullyReplicated",
    }
    return [{"ChannelName": code.CHANNEL, "DataSource": {"S3DataSource": source}, "InputMode": "File"}]


def _stopping(training: Wanted) -> dict[str, int]:
    """Returns whole seconds; the wait for spot capacity is never shorter than the run."""
    run = max(1, math.floor((training.spec.max_hours or 0) * 3600))
    if training.spec.market != SPOT:
        return {"MaxRuntimeInSeconds": run}
    wait = math.floor((training.spec.max_wait_hours or 0) * 3600)
    return {"MaxRuntimeInSeconds": run, "MaxWaitTimeInSeconds": max(run, wait)}


def _tags(training: Wanted, index: int, run: GridRun) -> list[dict[str, str]]:
    """Returns our tags, by which the child recognises its own training, and the person's; all can be columns of the bill."""
    ours = {
        tags.DEPLOYMENT: training.env.deployment,
        tags.GRID: run.grid,
        tags.LINE: str(index),
        tags.EXECUTION: run.execution,
        tags.OWNER: run.owner,
    }
    return [{"Key": key, "Value": value} for key, value in ((training.spec.tags or {}) | ours).items()]
