"""Makes the arguments of CreateTrainingJob of one training: what the child sends as it stands."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from contract import tags
from contract.environments import GridEnvironment
from contract.grid import GridPrefix, training_name
from grid_plan.choice import Decision
from grid_plan.columns import SPOT, Training, sent
from grid_plan.policy import bytes_buckets, channels, launcher

RETRIES = 3
"""After SageMaker's own InternalServerError; all attempts together end at the time-outs."""
CHECKPOINTS = "/opt/ml/checkpoints"
"""Where SageMaker's containers look for them; its own default too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Whose training it is."""

    grid: str
    execution: str
    """ARN."""
    started_at: str
    owner: str


def request(
    training: Training, decision: Decision, index: int, identity: Identity, env: GridEnvironment
) -> dict[str, Any]:
    """For a resolved training; nothing in it depends on when it is made."""
    folder = f"s3://{bytes_buckets(env)[decision.region]}/{GridPrefix(identity.grid).bytes(index)}".rstrip("/")
    found = {
        "TrainingJobName": training_name(env.deployment, identity.execution, identity.started_at, index),
        "RoleArn": env.training_role,
        "AlgorithmSpecification": _algorithm(training, decision),
        "HyperParameters": {name: sent(value) for name, value in (training.hyperparameters or {}).items()}
        | launcher(training),
        "InputDataConfig": _inputs(training, decision),
        "OutputDataConfig": _without_empty({"S3OutputPath": folder, "KmsKeyId": training.kms_key}),
        "CheckpointConfig": {"S3Uri": training.checkpoint or f"{folder}/checkpoints", "LocalPath": CHECKPOINTS},
        "ResourceConfig": _without_empty(
            {
                "InstanceType": training.instance_type,
                "InstanceCount": training.instance_count,
                "VolumeSizeInGB": training.volume_gb,
                "VolumeKmsKeyId": training.volume_kms_key,
            }
        ),
        "StoppingCondition": _stopping(training),
        "RetryStrategy": {"MaximumRetryAttempts": RETRIES},
        "EnableManagedSpotTraining": training.market == SPOT,
        "EnableNetworkIsolation": training.network_isolation,
        "EnableInterContainerTrafficEncryption": training.encrypt_traffic,
        "Environment": dict(training.environment or {}),
        "Tags": _tags(training, index, identity, env),
    }
    return _without_empty(found)


def _without_empty(members: dict[str, Any]) -> dict[str, Any]:
    """SageMaker takes no null, and no empty list of channels; false and 0 stay."""
    return {name: value for name, value in members.items() if value is not None and value not in ({}, [])}


def _algorithm(training: Training, decision: Decision) -> dict[str, Any]:
    return _without_empty(
        {
            "TrainingImage": decision.image,
            "TrainingInputMode": training.mode,
            "ContainerEntrypoint": training.entrypoint,
            "ContainerArguments": training.arguments,
            "MetricDefinitions": [{"Name": name, "Regex": regex} for name, regex in (training.metrics or {}).items()],
        }
    )


def _inputs(training: Training, decision: Decision) -> list[dict[str, Any]]:
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
                "InputMode": channel.mode or training.mode,
            }
        )
        for name, channel in channels(training).items()
    ]


def _stopping(training: Training) -> dict[str, int]:
    """Whole seconds; the waiting for spot capacity never shorter than the run."""
    run = max(1, math.floor((training.max_hours or 0) * 3600))
    if training.market != SPOT:
        return {"MaxRuntimeInSeconds": run}
    wait = math.floor((training.max_wait_hours or 0) * 3600)
    return {"MaxRuntimeInSeconds": run, "MaxWaitTimeInSeconds": max(run, wait)}


def _tags(training: Training, index: int, identity: Identity, env: GridEnvironment) -> list[dict[str, str]]:
    """Ours let the child know its own training again; with the person's own, all of them can be columns of the bill."""
    ours = {
        tags.DEPLOYMENT: env.deployment,
        tags.GRID: identity.grid,
        tags.LINE: str(index),
        tags.EXECUTION: identity.execution,
        tags.OWNER: identity.owner,
    }
    return [{"Key": key, "Value": value} for key, value in ((training.tags or {}) | ours).items()]
