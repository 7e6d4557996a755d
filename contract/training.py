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

RESERVED = frozenset(
    {JOB_ID, ATTEMPT, MASTER_ADDR, MASTER_PORT, NUM_NODES, NODE_RANK, CHECKPOINT_DIR, ARTIFACTS_DIR, PROGRESS_FILE}
)
"""Names that a request's `environment` and `secrets` may not set."""
