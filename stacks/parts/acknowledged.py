"""Acknowledges findings of security scanners, once for all scanners, at the construct, with the reason in one sentence."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from constructs import IConstruct

PACKS = ("AwsSolutions", "HIPAA.Security", "NIST.800.53.R5")
"""Rule packs of cdk-nag by their prefixes; deployments with the setting `compliance` are checked with all of them."""


def acknowledge(construct: IConstruct, reason: str, *findings: str) -> None:
    """Takes `findings` by the scanners' own names: `AwsSolutions-S1` and `HIPAA.Security-LambdaDLQ` (cdk-nag), `CKV_AWS_18` (Checkov),
    `W3005` (cfn-lint).

    Findings of Checkov and cfn-lint apply to the construct's own resource, those of cdk-nag to everything below it as well.
    """
    for finding in findings:
        if finding.startswith(PACKS):
            cdk.Validations.of(construct).acknowledge(cdk.Acknowledgment(id=finding, reason=reason))
        elif finding.startswith("CKV_"):
            resource, checkov = _metadata(construct, "checkov")
            skipped = [*checkov.get("skip", []), {"id": finding, "comment": reason}]
            resource.add_metadata("checkov", {"skip": skipped})
        else:
            resource, lint = _metadata(construct, "cfn-lint")
            ignored = [*lint.get("config", {}).get("ignore_checks", []), finding]
            resource.add_metadata("cfn-lint", {"config": {"ignore_checks": ignored}})


def _metadata(construct: IConstruct, key: str) -> tuple[cdk.CfnResource, dict[str, Any]]:
    resource = construct if isinstance(construct, cdk.CfnResource) else construct.node.default_child
    assert isinstance(resource, cdk.CfnResource)
    return resource, resource.get_metadata(key) or {}
