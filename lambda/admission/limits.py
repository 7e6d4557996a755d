"""Limits of a request, in numbers for its fields and in words for its refusals."""

from __future__ import annotations

from contract.environments import Limits
from refusals.fields import ARCHIVE_MAY_BE, OWNER_MAY_BE

MOST_ARGUMENTS = 1000
"""Of the command."""
MOST_BYTES = 128_000
"""Of one argument, or of the value of one variable: Linux takes 131,071 bytes, a variable's name among them."""
MOST_TYPES = 10
LEAST_HOURS = 0.01
DEFAULT_HOURS = 24.0
LEAST_MINUTES, MOST_MINUTES = 0.01, 1440
"""Between two commits of a checkpoint."""
MOST_VARIABLES = 200
MOST_SECRETS = 50
MOST_DATA = 100


def allowed(limits: Limits) -> dict[str, str]:
    """Field to what it may be in this deployment."""
    return {
        "code": ARCHIVE_MAY_BE,
        "command": f"a list of 1 to {MOST_ARGUMENTS:,} texts, or one text of such words",
        "instance_types": f"a list of 1 to {MOST_TYPES} different EC2 types, as in g5.xlarge",
        "region": "a region in which the deployment trains (regions with a cidr in cdk.json), as in eu-central-1",
        "nodes": f"a whole number from 1 to {limits.max_nodes} (limits.max_nodes in cdk.json)",
        "market": "on-demand",
        "max_hours": f"a number from {LEAST_HOURS:g} to {limits.max_hours:g} (limits.max_hours in cdk.json)",
        "max_cost_usd": "nothing yet; leave it out and limit max_hours",
        "checkpoint_minutes": f"a number from {LEAST_MINUTES:g} to {MOST_MINUTES}",
        "environment": f"an object of up to {MOST_VARIABLES} names of variables and their texts",
        "secrets": f"an object of up to {MOST_SECRETS} names of variables and the ARNs of their secrets",
        "data": f"a list of up to {MOST_DATA} addresses, as in s3://bucket/folder/",
        "volume_gb": f"a whole number from 1 to {limits.max_volume_gb} (limits.max_volume_gb in cdk.json)",
        "owner": OWNER_MAY_BE,
    }


ENTRIES = {
    "command": f"texts of up to {MOST_BYTES:,} bytes",
    "instance_types": "EC2 types, as in g5.xlarge",
    "environment": f"texts of up to {MOST_BYTES:,} bytes",
    "secrets": "arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME",
    "data": "addresses, as in s3://bucket/folder/",
}
"""What the entries of a list or an object may be."""
