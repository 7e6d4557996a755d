"""The Region stacks on an app of their own: they need no other stack, and most of a deployment is no part of them."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk

from app import build_regions
from stacks.settings import BLOCK, Settings
from tools.synthesis import CONTEXT, Synthesised


def synthesise_regions(folder: Path, **changes: object) -> Synthesised:
    """Synthesises the Region stacks alone of cdk.json's deployment with some settings replaced."""
    context = {"aws:cdk:disable-asset-staging": True, "aws:cdk:bundling-stacks": []}
    app = cdk.App(context=context, outdir=str(folder))
    build_regions(app, Settings.parse(CONTEXT[BLOCK] | changes))
    app.synth()
    return Synthesised(folder)
