"""Rights of the functions that make and fill the catalogue: they log in as the keeper, through the Data API alone."""

from __future__ import annotations

from contract.catalogue import CatalogueAccess
from stacks.parts.right import Right

TRANSACTIONS = (
    "rds-data:BeginTransaction",
    "rds-data:CommitTransaction",
    "rds-data:ExecuteStatement",
    "rds-data:RollbackTransaction",
)


def write_as_keeper(access: CatalogueAccess) -> list[Right]:
    """Allows statements as the role of the secret, which the Data API reads with the caller's rights."""
    return [
        Right("WriteTheCatalogue", TRANSACTIONS, [access.cluster]),
        Right("LogInAsKeeper", ["secretsmanager:GetSecretValue"], [access.secret]),
    ]


def make_schema(access: CatalogueAccess, reader_secret: str) -> list[Right]:
    """Allows to make the tables, to give the reader its password, and to let a destroy delete the cluster."""
    return [
        *write_as_keeper(access),
        Right("ReadTheReadersPassword", ["secretsmanager:GetSecretValue"], [reader_secret]),
        Right("LiftProtection", ["rds:ModifyDBCluster"], [access.cluster]),
    ]
