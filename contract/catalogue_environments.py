"""Environments of the catalogue's functions; contract/environments.py says how they are written and read."""

from __future__ import annotations

from dataclasses import dataclass

from contract.catalogue import CatalogueAccess
from contract.environments import DeploymentEnvironment, Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueSchemaEnvironment(Environment):
    """Environment of the function that makes the catalogue's tables and roles."""

    deployment: str
    cluster: str
    """ARN."""
    keeper_secret: str
    """ARN of the secret of the role that owns the tables."""
    reader_secret: str
    """ARN of the secret whose password the reader gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeeperEnvironment(DeploymentEnvironment):
    """Environment of the function that fills the catalogue's tables."""

    regions: tuple[str, ...]
    """All regions of the settings: types of SageMaker are priced there."""
    training: tuple[str, ...]
    """Those where nodes run: types of EC2 are priced there, and reservations counted."""
    machine: str
    """ARN of the Train machine."""
    grid_machine: str
    messages: str
    """URL of the queue of what has ended."""
    access: CatalogueAccess
    """The database, as the keeper."""
    cluster_id: str
    """The cluster's id that AWS gives to no other one, whatever its name: what the keeper remembers is of this cluster."""
