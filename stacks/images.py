"""The Images stack (home region): the Build machine builds the platform's own images during the deploy; no local Docker is needed.

It is deployed last and nothing depends on it: if a build fails, the deploy reports it, and all other stacks stay.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from contract import errors, keys, names
from contract.environments import OwnImagesEnvironment
from contract.timing import Timing
from contract.timings import OwnImagesTiming
from stacks.parts.acknowledged import acknowledge
from stacks.parts.answering_machine import INPUT, AnsweringMachine, Waiting
from stacks.parts.assembled import Assembled
from stacks.parts.common import Common
from stacks.parts.function import Function, Layer
from stacks.parts.own_images import CHILD, child_tag
from stacks.parts.right import Right
from stacks.parts.rights import READ

CLOUDFORMATION_WAITS = cdk.Duration.hours(1)
"""The longest wait of CloudFormation for a custom resource."""


class ImagesStack(cdk.Stack):
    """Depends on everything that a build uses: the Builds stack, and every region's repositories."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        common: Common,
    ) -> None:
        """When a region is added, the deploy copies the images there."""
        rights, timing, deployment = common.rights, common.timing, common.deployment
        super().__init__(scope, name, env=common.env, description=f"Trainyard {deployment}: the platform's own images")
        context = assets.Asset(
            self,
            "ChildContext",
            path=str(CHILD["."]),
            asset_hash_type=cdk.AssetHashType.OUTPUT,
            bundling=Assembled(CHILD).options(),
        )
        function = Function(
            self,
            "OwnImages",
            package="own_images",
            description="Has the platform's own images built, and waits for them",
            environment=OwnImagesEnvironment(
                deployment=deployment,
                bucket=rights.home_bucket,
                build_machine=rights.machine(names.build_machine(deployment)),
                timing=timing.of(OwnImagesTiming),
            ),
            layer=Layer(self, "Libraries"),
            timeout=cdk.Duration.minutes(1),
            log_retention_days=common.log_retention_days,
            rights=[
                Right("ReadContexts", READ, [context.bucket.arn_for_objects(context.s3_object_key)]),
                Right("ListAssets", ["s3:ListBucket"], [context.bucket.bucket_arn]),
                rights.home("PutContexts", ["s3:PutObject"], keys.ANY_OWN_CONTEXT),
                *rights.build_own_images(),
            ],
        )
        waits = AnsweringMachine(
            self,
            "OwnImagesMachine",
            physical_name=names.image_machine(deployment),
            function=function,
            waiting=waiting(timing),
        )
        resource = cdk.CustomResource(
            self,
            "Child",
            resource_type="Custom::OwnImage",
            service_token=function.function_arn,
            service_timeout=CLOUDFORMATION_WAITS,
            # A deploy that changes none of these properties asks nobody and builds nothing.
            properties={
                "Tag": child_tag(),
                "Bucket": context.s3_bucket_name,
                "Key": context.s3_object_key,
                "Regions": list(common.regions),
            },
        )
        resource.node.add_dependency(waits, function)
        acknowledge(resource, "The function starts the machine by its name, which no reference says.", "W3005")


def waiting(timing: Timing) -> Waiting:
    """Describes the wait for the platform's own images."""
    return Waiting(
        comment="Has one of the platform's own images built and brought into every region. Started by a deploy.",
        step="Build",
        does="Starts the Build machine with the image's context, and asks until the image stands in every region.",
        unfinished=errors.StillBuilding,
        again_s=timing.image_again_s,
        patience_s=timing.image_patience_s,
        passes_on={"image": f"{{% {INPUT}.image %}}", "since": f"{{% {INPUT}.since %}}"},
        answers="Tells CloudFormation that the image stands, or why it does not.",
        right="InvokeOwnImages",
        description="The machine of the platform's own images: invokes its function",
        done=("The image stands", "The image stands in every region; CloudFormation goes on."),
        failed="The image does not stand in every region; the cause ends with the build's log.",
    )
