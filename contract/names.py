"""Names that a person meets in the console: log streams, parameters, metric namespace."""

from __future__ import annotations

import re

JOB_PATTERN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,79}")
"""An execution name that Step Functions, S3 keys, tags and log streams all take unchanged. It cannot begin with a dot: `..` would lead
up wherever a key becomes a path, and a leading dot hides a file. Step Functions takes more (`!`, `'`, `(`, `)`, `+`, `=`, `@`,
and letters beyond ASCII); S3 keys, log streams or tags do not take all of them, or show them escaped."""
JOB_WORDS = "1 to 80 letters (a to z), digits, _, - and ., not beginning with ."
GRID_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,80}")
"""The same for a grid, without dots: Batch takes none in the name of a job."""
GRID_WORDS = "1 to 80 letters, digits, _ and -"
REGION_PATTERN = re.compile(r"[a-z]{2,4}(-[a-z]+)+-[0-9]")
"""The form of a region's name; `eusc-de-east-1` has the longest beginning so far."""
BUCKET_PATTERN = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
"""The form of a bucket's name; S3 also forbids two dots in a row."""
MACHINE_IMAGE_PATTERN = re.compile(r"[a-z](-?[a-z0-9]){1,39}")
JOB_ROLE_PATTERN = re.compile(r"[a-z](-?[a-z0-9]){1,19}")
"""The form of the names in the setting `job_roles`, 20 characters at most."""

BUILD_CACHE = "build-cache"
"""The short name of the repository that keeps the layers of earlier builds."""
PLATFORM = "platform"
"""The short name of the repository of the platform's own images."""
AWS_IMAGES = "amazon"
"""What EC2 and IAM call the owner of the machine images that AWS publishes."""
SPOT_ROLE = "aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"
"""The path and name of the role with which AWS launches spot instances, in every account."""
PLATFORM_CACHE = "platform-cache"
"""The short name of the repository that builds of the platform's own images push to first; people's builds cannot write it."""
METRICS = "Trainyard"
"""The CloudWatch namespace of the metrics in contract.metrics."""


def log_group(deployment: str) -> str:
    """The one log group that every node of the deployment writes to."""
    return f"/trainyard/{deployment}/nodes"


def log_stream(job: str, attempt: int, rank: int) -> str:
    return f"{job}/{attempt}/{rank}"


def kernel_stream(job: str, attempt: int, rank: int) -> str:
    """Log stream of the node's kernel messages."""
    return f"{log_stream(job, attempt, rank)}/kernel"


def node_metrics(deployment: str) -> str:
    """Namespace of the metrics that nodes report about themselves. Users' code runs on nodes, so none of our alarms reads it."""
    return f"{METRICS}/{deployment}/nodes"


def region_parameter(deployment: str, region: str) -> str:
    """The SSM parameter with which a Region stack describes itself (contract.places.Place as JSON)."""
    return f"/trainyard/{deployment}/regions/{region}"


def file_systems_parameter(deployment: str, region: str) -> str:
    """The SSM parameter in which a Region stack names the file systems that jobs may mount (contract.mounts.FileSystems as JSON)."""
    return f"{region_parameter(deployment, region)}/file-systems"


def region_stack(deployment: str, region: str) -> str:
    """The CloudFormation stack of a region, in that region."""
    return f"{deployment}-region-{region}"


def zone_attribute(number: int) -> str:
    """Attribute of the zone look-up's answer, numbered from 1."""
    return f"Zone{number}"


def secret_prefix(deployment: str) -> str:
    """Prefix of the Secrets Manager names whose secrets jobs may use."""
    return f"trainyard/{deployment}/"


def machine(deployment: str) -> str:
    """The state machine's name: what a person looks for in the console."""
    return f"{deployment}-train"


def drain_machine(deployment: str) -> str:
    """Name of the state machine that a destroy waits with; the drain's function finds it by this name."""
    return f"{deployment}-drain"


def home_bucket(deployment: str, account: str, region: str) -> str:
    """The bucket of decisions, in the home region."""
    return f"{deployment}-home-{account}-{region}"


def state_table(deployment: str) -> str:
    """The table of state, in the home region."""
    return f"{deployment}-state"


def bytes_bucket(deployment: str, account: str, region: str) -> str:
    """Name of a region's bucket of checkpoints and artifacts; home knows the name before the stack exists."""
    return f"{deployment}-bytes-{account}-{region}"


def region_key(deployment: str) -> str:
    """Alias of a region's customer key, the same in every region."""
    return f"alias/{deployment}-region"


def home_key(deployment: str) -> str:
    """Alias of the customer key of the home region's stacks."""
    return f"alias/{deployment}-home"


def repository(deployment: str, name: str = "images") -> str:
    """An image repository: the same name in every region."""
    return f"{deployment}/{name}"


def build_cache(deployment: str) -> str:
    """The repository (home region) that stores the layers of earlier builds; its tags move."""
    return repository(deployment, BUILD_CACHE)


def build_machine(deployment: str) -> str:
    """The state machine that brings an image into every region."""
    return f"{deployment}-build"


def build_project(deployment: str) -> str:
    """Name of the CodeBuild project that the Build machine starts."""
    return f"{deployment}-build"


def build_log_group(deployment: str) -> str:
    return f"/trainyard/{deployment}/builds"


def platform_cache(deployment: str) -> str:
    """The repository (home region) that builds of the platform's own images push to first."""
    return repository(deployment, PLATFORM_CACHE)


def platform_machine(deployment: str) -> str:
    """The state machine that brings the platform's own images into every region; a deploy alone starts it."""
    return f"{deployment}-platform-build"


def platform_project(deployment: str) -> str:
    """Name of the CodeBuild project of the platform's own images."""
    return f"{deployment}-platform-build"


def platform_log_group(deployment: str) -> str:
    return f"/trainyard/{deployment}/platform-builds"


def child_image_tag(digest: str) -> str:
    """The tag of the grid's child whose context has this digest (contract.images.content_digest), in the repository PLATFORM."""
    return f"grid-child-{digest[:32]}"


def image_machine(deployment: str) -> str:
    """The state machine that waits for the platform's own images during a deploy."""
    return f"{deployment}-platform-images"


def grid_machine(deployment: str) -> str:
    """The state machine of grids: what a person looks for in the console."""
    return f"{deployment}-grid"


def search_machine(deployment: str) -> str:
    """The state machine of searches: what a person looks for in the console."""
    return f"{deployment}-search"


def dashboard(deployment: str, region: str) -> str:
    """The dashboard; an account has those of all regions in one list."""
    return f"{deployment}-dashboard-{region}"


def grid_queue(deployment: str) -> str:
    """The Batch queue of the grid's children."""
    return f"{deployment}-grid"


def child_definition(deployment: str) -> str:
    """The Batch job definition of the grid's children."""
    return f"{deployment}-grid-child"


def child_log_group(deployment: str) -> str:
    return f"/trainyard/{deployment}/grid"


def job_role(deployment: str, region: str) -> str:
    """Role whose sessions nodes have for their job alone. Names of roles are an account's, not a region's."""
    return f"{deployment}-job-{region}"


NODE_ROLE_ID = "NodeRoleId"
"""Output of the Foundation stack: the first half of the key under which each node's report lies in the table of state."""
ATTENDANT_ROLE = "AttendantRoleArn"
"""Output of the Workflow stack: the role that trust policies of `job_roles` name."""


def foundation_stack(deployment: str) -> str:
    """The CloudFormation stack of the home bucket, the table of state, the nodes' log and the topic."""
    return f"{deployment}-foundation"


def workflow_stack(deployment: str) -> str:
    """The CloudFormation stack of the Train machine and its functions."""
    return f"{deployment}-workflow"


def grid_stack(deployment: str) -> str:
    """The CloudFormation stack of the Grid machine and its functions."""
    return f"{deployment}-grid"


def search_stack(deployment: str) -> str:
    """The CloudFormation stack of the Search machine and its function."""
    return f"{deployment}-search"


def stack(deployment: str, part: str) -> str:
    """The CloudFormation stack of a part that no other part finds by its name, in the home region: its reaper, for example."""
    return f"{deployment}-{part}"


def people_policy(deployment: str, region: str) -> str:
    """Name of the managed policy of people who start and watch jobs; policies have no region, as roles have none."""
    return f"{deployment}-people-{region}"


def bench_policy(deployment: str, region: str) -> str:
    """Name of the managed policy of people who have workbenches."""
    return f"{deployment}-workbench-{region}"


def training_role(deployment: str, region: str) -> str:
    """Name of the role of the grid's SageMaker trainings; roles have no region, so the home region keeps deployments apart."""
    return f"{deployment}-training-{region}"


def catalogue_stack(deployment: str) -> str:
    """The CloudFormation stack of the catalogue."""
    return f"{deployment}-catalogue"


def catalogue_cluster(deployment: str) -> str:
    """Name of the database cluster of the catalogue, in the home region."""
    return f"{deployment}-catalogue"


def catalogue_secret(deployment: str, role: str) -> str:
    """Name of the secret of a role of the catalogue. It is not below `secret_prefix`: no job may use it."""
    return f"{deployment}-catalogue-{role}"


def catalogue_log_group(deployment: str) -> str:
    """The log group to which RDS writes what PostgreSQL logs; RDS names it."""
    return f"/aws/rds/cluster/{catalogue_cluster(deployment)}/postgresql"


def kubernetes_stack(deployment: str) -> str:
    """The CloudFormation stack of the cluster for lines on Kubernetes, and of the function that speaks with it."""
    return f"{deployment}-kubernetes"


def eks_cluster(deployment: str) -> str:
    """Name of the deployment's own cluster of EKS, in the home region."""
    return f"{deployment}-kubernetes"


def pod_namespace(deployment: str) -> str:
    """Namespace of a cluster for the deployment's lines; it is also the group of those who may speak with it."""
    return f"{deployment}-lines"


def pod_role(deployment: str, region: str) -> str:
    """Role of the pods of lines on Kubernetes, with the rights of trainings; roles have no region, so the home region tells them apart."""
    return f"{deployment}-pods-{region}"


def cluster_function(deployment: str) -> str:
    """Name of the function that speaks with the cluster, in its network, for the functions that are in none."""
    return f"{deployment}-cluster"
