"""The Builds stack on an app of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk

from contract.request_rules import NO_RULES
from contract.timing import Timing
from stacks.builds import BuildsStack
from stacks.parts.common import Common
from stacks.parts.git_rights import GitHosts
from stacks.parts.rights import Rights
from stacks.settings import BLOCK, Settings
from tools.synthesis import CONTEXT

REGIONS = ("eu-central-1", "us-east-1", "ap-south-1")
WIDE: dict[str, Any] = {
    "data_buckets": ("imagenet",),
    "copy_accounts": ("444455556666",),
    "repositories": ("images", "grid"),
    "git_hosts": {"git.example.com": "", "private.example.com": "git-token"},
}


def built(folder: Path, home: str = REGIONS[0], **changes: Any) -> cdk.App:
    app = cdk.App(context={"aws:cdk:disable-asset-staging": True}, outdir=str(folder))
    regions = (home, *(region for region in REGIONS if region != home))
    usual: dict[str, Any] = {"repositories": ("images",), "data_buckets": (), "copy_accounts": (), "git_hosts": {}}
    settings = usual | changes
    rights = Rights(deployment="yard", home_region=home, regions=regions)
    BuildsStack(
        app,
        "yard-builds",
        common=Common(
            rights=rights,
            regions=regions,
            timing=Timing(),
            log_retention_days=30,
            reserved_concurrency=0,
            runbook_url="",
            rules=NO_RULES,
            jobs=Settings.parse(CONTEXT[BLOCK]).jobs,
        ),
        git=GitHosts(rights=rights, secrets=settings.pop("git_hosts")),
        **settings,
    )
    app.synth()
    return app
