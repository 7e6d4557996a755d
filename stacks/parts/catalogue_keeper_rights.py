"""Rights of the functions that make and fill the catalogue: they log in as the keeper, through the Data API alone."""

from __future__ import annotations

from contract import keys
from contract.catalogue import REMEMBERED, CatalogueAccess
from contract.grid import ANY_GRID
from stacks.parts.grid_rights import GridRights
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


def keep_catalogue(access: CatalogueAccess, grid: GridRights, queue_arn: str) -> list[Right]:
    """Allows to read what jobs and grids have left, prices and capacity, and to write the catalogue. It starts nothing, ends nothing, and
    changes nothing that a job or a grid reads."""
    rights = grid.rights
    return [
        *write_as_keeper(access),
        *rights.see_ends(),
        grid.list_grids(),
        grid.grid_executions("DescribeGrids", "states:DescribeExecution"),
        rights.list_home(),
        rights.home("ReadWhatEnded", ["s3:GetObject"], keys.ANY_DESCRIPTION, keys.ANY_RESULT, ANY_GRID),
        rights.home("Remember", ["s3:GetObject", "s3:PutObject"], REMEMBERED),
        rights.look_at("DescribePricesAndCapacity", "ec2:DescribeSpotPriceHistory", "ec2:DescribeCapacityReservations"),
        rights.prices(),
        rights.work_through(queue_arn, sends=False),
    ]


def make_schema(access: CatalogueAccess, reader_secret: str) -> list[Right]:
    """Allows to make the tables, to give the reader its password, and to let a destroy delete the cluster."""
    return [
        *write_as_keeper(access),
        Right("ReadTheReadersPassword", ["secretsmanager:GetSecretValue"], [reader_secret]),
        Right("LiftProtection", ["rds:ModifyDBCluster"], [access.cluster]),
    ]
