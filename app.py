"""What is deployed: the settings of cdk.json become stacks, from top to bottom."""

from __future__ import annotations

import sys

import aws_cdk as cdk

from contract import tags
from stacks.foundation import FoundationStack
from stacks.parts.assembled import NotSetUp
from stacks.parts.rights import Rights
from stacks.region import RegionStack
from stacks.settings import BLOCK, BadSettings, Settings
from stacks.workflow import WorkflowStack


def build(app: cdk.App, settings: Settings) -> None:
    """All stacks of one deployment. Raises NotSetUp where `make setup` has not run."""
    deployment, home = settings.deployment, cdk.Environment(region=settings.home_region)
    rights = Rights(
        deployment=deployment,
        home_region=settings.home_region,
        regions=tuple(place.region for place in settings.regions),
    )
    foundation = FoundationStack(
        app,
        f"{deployment}-foundation",
        env=home,
        deployment=deployment,
        rights=rights,
        data_buckets=settings.data_buckets,
        log_retention_days=settings.log_retention_days,
    )
    regions = [
        RegionStack(
            app,
            f"{deployment}-region-{place.region}",
            env=cdk.Environment(region=place.region),
            deployment=deployment,
            cidr=place.cidr,
            nat_gateways=settings.network.nat_gateways,
            interface_endpoints=settings.network.interface_endpoints,
            placement_groups_per_zone=settings.placement_groups_per_zone,
        )
        for place in settings.regions
    ]
    workflow = WorkflowStack(
        app,
        f"{deployment}-workflow",
        env=home,
        foundation=foundation.exports,
        rights=rights,
        images={str(family): image for family, image in settings.images.items()},
        data_buckets=settings.data_buckets,
        limits=settings.limits,
        timing=settings.timing,
        log_retention_days=settings.log_retention_days,
    )
    for region in regions:
        workflow.add_stack_dependency(region)  # destroyed first, so that nothing launches into what goes away
    cdk.Tags.of(app).add(tags.DEPLOYMENT, deployment)


def main() -> None:
    app = cdk.App()
    try:
        build(app, Settings.parse(app.node.try_get_context(BLOCK)))
    except (BadSettings, NotSetUp) as problem:
        sys.exit(str(problem))
    app.synth()


if __name__ == "__main__":
    main()
