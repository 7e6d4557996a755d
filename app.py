"""What is deployed: the settings of cdk.json become stacks, from top to bottom."""

from __future__ import annotations

import sys

import aws_cdk as cdk

from contract import names
from contract.mounts import Kind
from stacks.builds import BuildsStack
from stacks.campaign_settings import describe_starts
from stacks.campaigns import CampaignsStack
from stacks.catalogue import CatalogueStack
from stacks.compliance import comply
from stacks.dashboard import DashboardStack
from stacks.foundation import FoundationStack
from stacks.grid import GridStack
from stacks.images import ImagesStack
from stacks.kubernetes import KubernetesStack
from stacks.ordering import order_stacks, place_before_grid
from stacks.pages import PagesStack
from stacks.parts.assembled import ROOT, NotSetUp
from stacks.parts.campaign_rights import CampaignRights
from stacks.parts.common import Common
from stacks.parts.container_rights import ContainerRights, base_accounts
from stacks.parts.deployed import find_deployed
from stacks.parts.existing_network import ExistingNetwork
from stacks.parts.git_rights import GitHosts
from stacks.parts.grid_rights import GridRights, container_accounts
from stacks.parts.kubernetes_rights import KubernetesRights
from stacks.parts.mount_rights import Mountable
from stacks.parts.network import Network
from stacks.parts.own_images import child_tag
from stacks.parts.region_check import Existing
from stacks.parts.repository import Readers
from stacks.parts.rights import Rights
from stacks.parts.saved_queries import save_queries
from stacks.parts.search_rights import SearchRights
from stacks.parts.tagging import tag_resources
from stacks.reaper import ReaperStack
from stacks.refused import DEEP_ENOUGH
from stacks.region import RegionStack, TrainingRegion
from stacks.search import SearchStack
from stacks.settings import BLOCK, BadSettings, Settings
from stacks.workflow import WorkflowStack


def build(app: cdk.App, settings: Settings) -> None:
    """All stacks of one deployment. Raises NotSetUp where `make setup` has not run."""
    deployment = settings.deployment
    common = Common(
        rights=Rights(deployment=deployment, home_region=settings.home_region, regions=settings.training),
        regions=settings.everywhere,
        timing=settings.timing,
        log_retention_days=settings.log_retention_days,
        reserved_concurrency=settings.reserved_concurrency,
        runbook_url=settings.runbook_url,
        rules=settings.rules,
        jobs=settings.jobs,
    )
    foundation = FoundationStack(
        app,
        names.foundation_stack(deployment),
        common=common,
        data_buckets=settings.data_buckets,
        keep_data=settings.keep_data,
        workbench=settings.workbench,
        sends_events=any(one.bucket is None for one in settings.campaigns.values()),
        compliance=settings.compliance,
    )
    grids = _grid_rights(settings, common)
    git = GitHosts(rights=common.rights, secrets=settings.git_hosts)
    reaper = _reaper(app, settings, common, foundation, grids)
    regions = build_regions(app, settings)
    builds = BuildsStack(
        app,
        names.stack(deployment, "builds"),
        common=common,
        # Not the platform's own: what people build must never become a part of it.
        repositories=settings.repositories,
        data_buckets=settings.data_buckets,
        copy_accounts=settings.copy_accounts,
        git=git,
    )
    workflow = WorkflowStack(
        app,
        names.workflow_stack(deployment),
        common=common,
        foundation=foundation.exports,
        drain=reaper.exports.drain,
        containers=ContainerRights.of_jobs(common.rights, common.jobs, settings.repositories),
        file_systems=_list_mountable(settings),
        git=git,
        data_buckets=settings.data_buckets,
        job_roles=settings.job_roles,
        master_port=settings.master_port,
        limits=settings.limits,
        checkpoints=settings.checkpoints,
        existing=Existing(
            networks=settings.named_networks,
            file_systems=settings.named_file_systems,
            volume_keys=settings.volume_keys,
        ),
        subnets=settings.subnets,
    )
    catalogue = _catalogue(app, settings, common, grids, foundation, regions)
    kubernetes = _kubernetes(app, settings, common, grids, foundation, regions)
    grid = _grid(app, settings, common, grids, foundation, reaper, regions, catalogue, kubernetes)
    search = _search(app, common, grids, foundation, reaper, grid)
    images = ImagesStack(app, names.stack(deployment, "images"), common=common, child_base=settings.grid.child_base)
    order_stacks(foundation, reaper, regions, builds, workflow, grid, search, images)
    pages = _pages(app, common, grids, foundation, workflow, search)
    optional = _campaigns(app, settings, common, foundation, reaper, git, [*regions, builds, workflow, grid, search])
    optional += place_before_grid((catalogue, kubernetes), foundation, regions, grid)
    if settings.compliance:
        comply(
            app, common.rights, foundation, [reaper, builds, workflow, grid, search, images, pages, *optional], regions
        )
    _show(app, settings, common, search, pages)
    tag_resources(app, deployment, settings.tags)


def _show(app: cdk.App, settings: Settings, common: Common, *after: cdk.Stack) -> None:
    """Shows what all other stacks have, and saves queries in them. A destroy takes the page away before it drains."""
    if not settings.dashboard:
        return
    deployed = find_deployed(app, settings.home_region)
    for stack in (one for one in app.node.children if isinstance(one, cdk.Stack)):
        save_queries(stack, settings.deployment)
    page = DashboardStack(
        app,
        names.stack(settings.deployment, "dashboard"),
        common=common,
        deployed=deployed,
        checkpoints=settings.checkpoints,
    )
    for one in after:
        page.add_stack_dependency(one)


def _list_mountable(settings: Settings) -> list[Mountable]:
    return [
        Mountable(name=one.name, kind=Kind(one.kind), region=one.region, id=one.id, access_point=one.access_point)
        for one in settings.file_systems
    ]


def _grid_rights(settings: Settings, common: Common) -> GridRights:
    return GridRights(
        rights=common.rights,
        regions=common.regions,
        repositories=settings.repositories,
        base_accounts=base_accounts(settings.everywhere),
        data_buckets=settings.data_buckets,
        pull_accounts=(*container_accounts(settings.everywhere), *settings.copy_accounts),
        kubernetes=KubernetesRights(
            rights=common.rights, cluster=settings.kubernetes.cluster, most_nodes=settings.kubernetes.max_nodes
        )
        if settings.kubernetes.cluster
        else None,
    )


def _campaigns(
    app: cdk.App,
    settings: Settings,
    common: Common,
    foundation: FoundationStack,
    reaper: ReaperStack,
    git: GitHosts,
    started: list[cdk.Stack],
) -> list[cdk.Stack]:
    """Returns the stack of what starts by itself, where the settings have any. `started` are the stacks in which it starts something, or
    whose events it sees."""
    if not settings.campaigns and not settings.watch:
        return []
    campaigns = CampaignsStack(
        app,
        names.stack(settings.deployment, "campaigns"),
        common=common,
        foundation=foundation.exports,
        rights=CampaignRights(
            rights=common.rights,
            starts=describe_starts(settings.campaigns, settings.watch),
        ),
        git=git,
    )
    for one in (foundation, reaper, *started):
        campaigns.add_stack_dependency(one)
    return [campaigns]


def _reaper(
    app: cdk.App,
    settings: Settings,
    common: Common,
    foundation: FoundationStack,
    grids: GridRights,
) -> ReaperStack:
    return ReaperStack(
        app,
        names.stack(settings.deployment, "reaper"),
        common=common,
        foundation=foundation.exports,
        grid=grids,
        max_hours=settings.limits.max_hours,
        settings=settings.reaper,
        keep_data=settings.keep_data,
    )


def _grid(
    app: cdk.App,
    settings: Settings,
    common: Common,
    grids: GridRights,
    foundation: FoundationStack,
    reaper: ReaperStack,
    regions: list[RegionStack],
    catalogue: CatalogueStack | None,
    kubernetes: KubernetesStack | None,
) -> GridStack:
    """Its children run in the home region's network."""
    network = _home_network(settings, regions)
    return GridStack(
        app,
        names.grid_stack(settings.deployment),
        common=common,
        foundation=foundation.exports,
        drain=reaper.exports.drain,
        network=network,
        grid=grids,
        settings=settings.grid,
        job_limits=settings.limits,
        child_image=child_tag(settings.grid.child_base),
        output_key=names.region_key(settings.deployment) if settings.compliance else "",
        catalogue=catalogue.exports if catalogue else None,
        kubernetes=kubernetes.exports if kubernetes else None,
    )


def _home_network(settings: Settings, regions: list[RegionStack]) -> Network | ExistingNetwork:
    network = next(one.network for one in regions if one.region == settings.home_region)
    assert network is not None, "the settings refuse a home region without a network"
    return network


def _kubernetes(
    app: cdk.App,
    settings: Settings,
    common: Common,
    grids: GridRights,
    foundation: FoundationStack,
    regions: list[RegionStack],
) -> KubernetesStack | None:
    if not settings.kubernetes.cluster:
        return None
    return KubernetesStack(
        app,
        names.kubernetes_stack(settings.deployment),
        common=common,
        foundation=foundation.exports,
        network=_home_network(settings, regions),
        grid=grids,
        settings=settings.kubernetes,
        master_port=settings.master_port,
        root=ROOT,
    )


def _catalogue(
    app: cdk.App,
    settings: Settings,
    common: Common,
    grids: GridRights,
    foundation: FoundationStack,
    regions: list[RegionStack],
) -> CatalogueStack | None:
    if not settings.catalogue:
        return None
    return CatalogueStack(
        app,
        names.catalogue_stack(settings.deployment),
        common=common,
        foundation=foundation.exports,
        network=_home_network(settings, regions),
        cidr=next(one.cidr or "" for one in settings.regions if one.region == settings.home_region),
        grid=grids,
        keep_data=settings.keep_data,
    )


def _search(
    app: cdk.App,
    common: Common,
    grids: GridRights,
    foundation: FoundationStack,
    reaper: ReaperStack,
    grid: GridStack,
) -> SearchStack:
    return SearchStack(
        app,
        names.search_stack(common.deployment),
        common=common,
        foundation=foundation.exports,
        drain=reaper.exports.drain,
        rights=SearchRights(grid=grids),
        environment=grid.check_with(),
    )


def _pages(
    app: cdk.App,
    common: Common,
    grids: GridRights,
    foundation: FoundationStack,
    workflow: WorkflowStack,
    search: SearchStack,
) -> PagesStack:
    """Returns the stack of pages. It starts nothing to drain. A destroy begins with the searches' stack, whose drain ends everything that
    runs, and deletes the pages after it: so what was ended can have its page."""
    pages = PagesStack(
        app,
        names.stack(common.deployment, "pages"),
        common=common,
        foundation=foundation.exports,
        rights=SearchRights(grid=grids),
    )
    pages.add_stack_dependency(workflow)
    search.add_stack_dependency(pages)
    return pages


def build_regions(app: cdk.App, settings: Settings) -> list[RegionStack]:
    """One stack a region, which needs no other; a region without a network serves the grid alone."""
    readers = Readers(accounts=settings.image_readers.accounts, organizations=settings.image_readers.organizations)
    return [
        RegionStack(
            app,
            names.region_stack(settings.deployment, place.region),
            env=cdk.Environment(region=place.region),
            deployment=settings.deployment,
            training=TrainingRegion(
                cidr=place.cidr or "",
                zones=place.zones,
                vpc=place.vpc,
                subnets=place.subnets,
                volume_key=place.volume_key,
                settings=settings.network,
                placement_groups_per_zone=settings.placement_groups_per_zone,
                tags=settings.tags,
                file_systems=tuple(one for one in settings.file_systems if one.region == place.region),
            )
            if place.trains
            else None,
            repositories=settings.every_repository,
            image_readers=readers,
            keep_data=settings.keep_data,
            log_retention_days=settings.log_retention_days,
            job_role=names.job_role(settings.deployment, settings.home_region),
            others_train=any(one.trains for one in settings.regions if one is not place),
            compliance=settings.compliance,
            home_region=settings.home_region,
            forwarded={
                name: one
                for name, one in describe_starts(settings.campaigns, {}).campaigns.items()
                if place.region == settings.campaigns[name].region != settings.home_region
            },
        )
        for place in settings.regions
    ]


def _read_context(app: cdk.App) -> object:
    """Returns the block of cdk.json, which the CDK reads with a call for each level of it. Raises BadSettings."""
    try:
        return app.node.try_get_context(BLOCK)
    except RecursionError:
        raise BadSettings(f"{BLOCK} is nested too deep for the CDK; allowed: {DEEP_ENOUGH}") from None


def main() -> None:
    app = cdk.App()
    try:
        build(app, Settings.parse(_read_context(app)))
    except (BadSettings, NotSetUp) as problem:
        sys.exit(str(problem))
    app.synth()


if __name__ == "__main__":
    main()
