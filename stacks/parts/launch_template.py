"""Launches every node of a region the same way, whatever its job: without image, network and disk, because these differ."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import CfnTag
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from contract import tags


class LaunchTemplate(Construct):
    """`id` and `version`; the version is a number, because `$Default` stays 1 under CloudFormation."""

    def __init__(self, scope: Construct, name: str, *, deployment: str, further_tags: Mapping[str, str]) -> None:
        super().__init__(scope, name)
        template = ec2.CfnLaunchTemplate(
            self,
            "Template",
            launch_template_data=ec2.CfnLaunchTemplate.LaunchTemplateDataProperty(
                instance_initiated_shutdown_behavior="terminate",
                metadata_options=ec2.CfnLaunchTemplate.MetadataOptionsProperty(
                    http_endpoint="enabled",
                    http_tokens="required",
                    # One hop more than the node itself needs: a job's container is one hop further away.
                    http_put_response_hop_limit=2,
                    instance_metadata_tags="enabled",
                ),
            ),
            # Tags the template itself, which the CDK's Tags pass over: the launcher may use only templates of the deployment.
            tag_specifications=[
                ec2.CfnLaunchTemplate.LaunchTemplateTagSpecificationProperty(
                    resource_type="launch-template",
                    tags=[
                        CfnTag(key=key, value=value)
                        for key, value in {**further_tags, tags.DEPLOYMENT: deployment}.items()
                    ],
                )
            ],
        )
        self.id = template.ref
        self.version = template.attr_latest_version_number
