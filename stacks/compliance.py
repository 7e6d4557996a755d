"""What the setting `compliance` does once all stacks are there: everything stored gets its key, every role its right on that key, and
what the rule packs still find is acknowledged."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk

from stacks.catalogue import CatalogueStack
from stacks.foundation import FoundationStack
from stacks.parts import interfaces
from stacks.parts.compliance_findings import acknowledge_findings
from stacks.parts.customer_key import encrypt
from stacks.parts.key_rights import let_use_keys
from stacks.parts.rights import Rights
from stacks.region import RegionStack


def comply(
    app: cdk.App,
    rights: Rights,
    foundation: FoundationStack,
    others_of_home: Sequence[cdk.Stack],
    regions: Sequence[RegionStack],
) -> None:
    """A pass over the finished tree, not a parameter of each part: a new queue, log or role gets its key without a line of its own."""
    assert foundation.key is not None
    if any(isinstance(one, CatalogueStack) for one in others_of_home):
        foundation.key.let_rds_log(rights.deployment, rights.home_region)
    for stack in (foundation, *others_of_home):
        encrypt(stack, interfaces.key(foundation.key))
    for region in regions:
        assert region.key is not None
        encrypt(region, interfaces.key(region.key))
    let_use_keys(app, rights, foundation.key.key_arn)
    acknowledge_findings(app)
