"""Where code may be fetched from, and the secrets with which functions do so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import aws_cdk as cdk

from stacks.parts.right import Right
from stacks.parts.rights import Rights, arn_of


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHosts:
    """The hosts of the settings."""

    rights: Rights
    secrets: Mapping[str, str]
    """Host to the name of the secret with its token, empty for none."""

    @property
    def read(self) -> list[Right]:
        """Reads these secrets and no other; returns no right where the settings name none."""
        wanted = sorted(set(filter(None, self.secrets.values())))
        if not wanted:
            return []
        reason = "Secrets Manager ends the ARN of each secret with six characters of its own."
        named = [
            arn_of("secretsmanager", self.rights.home_region, cdk.Aws.ACCOUNT_ID, f"secret:{one}-??????")
            for one in wanted
        ]
        return [Right("ReadTokensOfGit", ["secretsmanager:GetSecretValue"], named, reason, apart="Git")]
