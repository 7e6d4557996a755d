"""Rights on the catalogue's database: who may run statements there, and as which of its roles."""

from __future__ import annotations

import aws_cdk as cdk

from contract.catalogue import CatalogueAccess
from stacks.parts.right import Right
from stacks.parts.rights import arn_of

READING = ("rds-data:BeginTransaction", "rds-data:ExecuteStatement", "rds-data:RollbackTransaction")
"""Every transaction of a query is rolled back."""


def query_as_reader(access: CatalogueAccess) -> list[Right]:
    """Runs statements as the role whose secret `access` names, and as no other: what they may do is that role's rights in PostgreSQL."""
    return [
        Right("ReadTheCatalogue", READING, [access.cluster], apart="Catalogue"),
        log_in(access),
    ]


def log_in(access: CatalogueAccess) -> Right:
    """Lets the Data API read the role's name and password: it asks with the rights of who calls it."""
    named, reason = access.secret, ""
    if not cdk.Token.is_unresolved(named) and not named.startswith("arn:"):
        named = arn_of("secretsmanager", cdk.Aws.REGION, cdk.Aws.ACCOUNT_ID, f"secret:{named}-??????")
        reason = "Secrets Manager ends the ARN of each secret with six characters of its own."
    return Right("LogIntoTheCatalogue", ["secretsmanager:GetSecretValue"], [named], reason, apart="Catalogue")
