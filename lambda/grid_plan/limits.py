"""Limits of a manifest's line, in numbers for its fields and in words for its refusals."""

from __future__ import annotations

from contract.environments import GridLimits
from contract.tags import RESERVED
from grid_plan.code import ENDINGS

MOST_COPIES = 20
MOST_CHANNELS = 20
MOST_CHANNEL_NAME = 64
MOST_ARGUMENTS, MOST_ARGUMENT = 100, 256
"""The most entries, and the most characters of each; likewise below."""
MOST_HYPERPARAMETERS, MOST_NAME, MOST_VALUE = 100, 256, 2500
MOST_VARIABLES, MOST_VARIABLE = 100, 512
MOST_SWEPT, MOST_SWEEP = 20, 1000
"""The most hyperparameters of a sweep, and the most values of each."""
LEAST_HOURS, DEFAULT_HOURS = 0.01, 24.0
MOST_PROCESSES = 512
MOST_OPTIONS = 2000
MOST_TAGS, MOST_TAG_KEY, MOST_TAG_VALUE = 45, 128, 256
MOST_METRICS, MOST_EXPRESSION = 40, 500


def allowed(limits: GridLimits) -> dict[str, str]:
    """Says for each field what it may be in this deployment."""
    arguments = f"a list of 1 to {MOST_ARGUMENTS} strings of up to {MOST_ARGUMENT} characters"
    return {
        "backend": "sagemaker, ec2 or kubernetes",
        "region": "auto, or a region of the deployment, as in eu-central-1",
        "data": f"up to {MOST_COPIES} copies of the data in different regions, as in s3://bucket/folder/",
        "channel": f"a channel's name of 1 to {MOST_CHANNEL_NAME} letters, digits, dots, _ and -",
        "mode": "File, FastFile or Pipe",
        "channels": f"an object of up to {MOST_CHANNELS} channels, as in "
        '{"validation": {"data": "s3://bucket/folder/", "mode": "File"}}',
        "image": "repository:tag or repository@sha256:... of the deployment's repositories, "
        "name and tag of a Deep Learning Container of AWS, or the whole address in a private ECR registry",
        "code": f"s3://bucket/key of a {ENDINGS}, beside program or entrypoint",
        "program": "a file's path from the archive's root, as in src/train.py, of letters, digits and _./-",
        "entrypoint": arguments,
        "arguments": arguments,
        "hyperparameters": f"an object of up to {MOST_HYPERPARAMETERS} names ({MOST_NAME} characters) "
        f"and values ({MOST_VALUE:,} characters)",
        "environment": f"an object of up to {MOST_VARIABLES} names of variables and strings of up to {MOST_VARIABLE} characters",
        "sweep": f"an object of hyperparameters and lists of 1 to {MOST_SWEEP:,} different values",
        "instance_type": f"a type of SageMaker trainings, {', '.join(limits.instance_types)} (grid.limits.instance_types in cdk.json)",
        "instance_count": f"a whole number from 1 to {limits.max_instances:,} (grid.limits.max_instances in cdk.json)",
        "volume_gb": f"a whole number from 1 to {limits.max_volume_gb:,} (grid.limits.max_volume_gb in cdk.json)",
        "market": "on-demand or spot",
        "max_hours": f"a number from {LEAST_HOURS:g} to {limits.max_hours:g} (grid.limits.max_hours in cdk.json)",
        "max_wait_hours": f"a number from max_hours to {limits.longest_h:g} (grid.limits.max_hours and a day), for the market spot only",
        "checkpoint": "a folder for this training alone in the bucket of bytes of its region; by default, one of its own",
        "distribution": "mpi, torchrun or none",
        "processes_per_host": f"a whole number from 1 to {MOST_PROCESSES}, for mpi only",
        "mpi_options": f"a string of up to {MOST_OPTIONS:,} characters, for mpi only",
        "tags": f"an object of up to {MOST_TAGS} keys ({MOST_TAG_KEY} characters) and strings ({MOST_TAG_VALUE}), "
        f"without keys that begin with aws: or {RESERVED}",
        "metrics": f"an object of up to {MOST_METRICS} names and regular expressions of up to {MOST_EXPRESSION} characters",
        "subnets": "nothing; leave it out, and SageMaker trains in a network of its own",
        "security_groups": "nothing; leave it out",
        "kms_key": "an id, ARN or alias of a KMS key of the training's region, for what the training writes",
        "volume_kms_key": "an id, ARN or alias of a KMS key of the training's region, for its disks",
        "network_isolation": "true or false",
        "encrypt_traffic": "true or false",
    }
