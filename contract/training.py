"""Environment of the training process: what a trainer may rely on."""

JOB_ID = "JOB_ID"
ATTEMPT = "ATTEMPT"
MASTER_ADDR = "MASTER_ADDR"
MASTER_PORT = "MASTER_PORT"
NUM_NODES = "NUM_NODES"
NODE_RANK = "NODE_RANK"
CHECKPOINT_DIR = "CHECKPOINT_DIR"
ARTIFACTS_DIR = "ARTIFACTS_DIR"
PROGRESS_FILE = "PROGRESS_FILE"
"""Rank 0 (and each rank that writes checkpoints) replaces it atomically: JSON with `step`, `world_size`, `metric`."""

TF_CONFIG, CLUSTER_SPEC = "TF_CONFIG", "CLUSTER_SPEC"
"""The cluster in TensorFlow's words (contract.cluster), unless the request sets them. Only where there are several nodes."""

ROLE, ROLE_RANK = "ROLE", "ROLE_RANK"
"""The name of the node's role, and the node's place in it, from 0. Only in jobs with roles, whose requests may not set them."""
ROLE_ADDRESSES = "ROLE_ADDRESSES_"
"""Ahead of a role's name in capitals, as in ROLE_ADDRESSES_PS: the addresses of the role's nodes, with commas between them."""

REQUIREMENTS = "requirements.txt"
"""The file of the code, at its root, that a node installs with pip before a training without an image."""

CONFIG_FILE = "AWS_CONFIG_FILE"
"""Names the file from which AWS's SDKs take the credentials of the request's `job_role`; set only where the request names one."""

OTHER_CREDENTIALS = frozenset(
    {
        CONFIG_FILE,
        "AWS_ACCESS_KEY_ID",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_DEFAULT_PROFILE",
        "AWS_PROFILE",
        "AWS_ROLE_ARN",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
    }
)
"""Names that lead SDKs to other credentials: a request with a `job_role` may not set them, and its training does not inherit them."""

RESERVED = frozenset(
    {JOB_ID, ATTEMPT, MASTER_ADDR, MASTER_PORT, NUM_NODES, NODE_RANK, CHECKPOINT_DIR, ARTIFACTS_DIR, PROGRESS_FILE}
)
"""Names that a request's `environment` and `secrets` may not set."""
