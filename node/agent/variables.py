"""The environment of the training: what contract.training promises, on top of the job's own variables and secrets."""

from __future__ import annotations

from agent.aws import Aws
from agent.credentials import CredentialsExpired
from agent.failures import CannotStart
from agent.identity import NodeIdentity
from agent.launching.start import describe_cluster
from agent.workspace import Folders
from contract import training
from contract.jobs import Job


def for_training(job: Job, node: NodeIdentity, folders: Folders, aws: Aws) -> dict[str, str]:
    """All but the master's address. Raises CannotStart where a secret cannot be read, and CredentialsExpired."""
    return {
        # Output arrives line by line, and a fatal signal (of CUDA, of a library) writes every thread's stack.
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
        **describe_cluster(job, node),
        **job.environment,
        **{name: _secret(job, aws, name, arn) for name, arn in job.secrets.items()},
        training.JOB_ID: job.id,
        training.ATTEMPT: str(node.attempt),
        training.MASTER_PORT: str(job.master_port),
        training.NUM_NODES: str(job.nodes),
        training.NODE_RANK: str(node.rank),
        training.CHECKPOINT_DIR: folders.checkpoints,
        training.ARTIFACTS_DIR: folders.artifacts,
        training.PROGRESS_FILE: folders.progress_file,
    }


def _secret(job: Job, aws: Aws, name: str, arn: str) -> str:
    # The secret's ARN names its region, which is the home region unless a person chose another.
    region = arn.split(":")[3] if arn.count(":") >= 6 else job.home_region
    try:
        return aws.secret(region, arn)
    except CredentialsExpired:
        raise
    except Exception as problem:
        raise CannotStart(f"the secret for {name} cannot be read ({arn}): {problem}") from problem
