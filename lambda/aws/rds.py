"""Every RDS call of the functions; what is in a database is the business of aws.data_api."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from aws.clients import client
from contract.aws_errors import code_of


def lift_protection(cluster: str) -> None:
    """Lets the cluster of this ARN be deleted; one that is gone is left as it is. Raises ClientError or a botocore connection error."""
    rds: Any = client("rds")
    try:
        rds.modify_db_cluster(
            DBClusterIdentifier=cluster.rpartition(":")[2], DeletionProtection=False, ApplyImmediately=True
        )
    except ClientError as problem:
        if code_of(problem) != "DBClusterNotFoundFault":
            raise
