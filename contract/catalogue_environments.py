"""Environments of the catalogue's functions; contract/environments.py says how they are written and read."""

from __future__ import annotations

from dataclasses import dataclass

from contract.environments import Environment


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
