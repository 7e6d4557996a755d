"""Rules of EventBridge that see what is uploaded: in the region of a bucket, and at home, where the starter's queue is."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from contract.campaigns import Campaign
from stacks.parts import interfaces
from stacks.parts.queue import DeadLetters, Queue
from stacks.parts.right import Right, role
from stacks.parts.rights import arn_of

A_DAY = cdk.Duration.hours(24)
"""So long EventBridge tries to deliver an event, which is its maximum, as are the tries."""
TRIES = 185


def match_uploads(campaign: Campaign) -> events.EventPattern:
    """Returns the pattern of the objects that start the campaign, wherever their bucket lies."""
    return events.EventPattern(
        source=["aws.s3"],
        detail_type=["Object Created"],
        detail={
            "bucket": {"name": [campaign.bucket]},
            "object": {"key": [{"wildcard": f"{campaign.prefix}*{campaign.suffix}"}]},
        },
    )


def send_uploads(scope: Construct, campaigns: Mapping[str, Campaign], *, queue: Queue, letters: DeadLetters) -> None:
    """Sends every upload that starts a campaign to the queue; what cannot be sent in a day becomes a letter."""
    for name, one in campaigns.items():
        target = targets.SqsQueue(queue, dead_letter_queue=letters, retry_attempts=TRIES, max_event_age=A_DAY)
        events.Rule(
            scope,
            f"Uploaded-{name}",
            description=f"An object was uploaded that starts the campaign {name}",
            event_pattern=match_uploads(one),
            targets=[interfaces.target(target)],
        )


def forward_uploads(scope: Construct, campaigns: Mapping[str, Campaign], *, home_region: str) -> None:
    """Sends the uploads of a region's buckets to the home region: a rule sees the events of its own region alone."""
    if not campaigns:
        return
    bus = arn_of("events", home_region, cdk.Aws.ACCOUNT_ID, "event-bus/default")
    sender = role(
        scope,
        "ForwardUploads",
        "events.amazonaws.com",
        "Sends events of uploads that start campaigns to the home region",
        Right("SendToTheHomeRegion", ["events:PutEvents"], [bus]),
    )
    for name, one in campaigns.items():
        rule = events.Rule(
            scope,
            f"Uploaded-{name}",
            description=f"An object was uploaded that starts the campaign {name}",
            event_pattern=match_uploads(one),
        )
        made = rule.node.default_child
        assert isinstance(made, events.CfnRule)
        made.targets = [
            events.CfnRule.TargetProperty(
                arn=bus,
                id="Home",
                role_arn=sender.role_arn,
                retry_policy=events.CfnRule.RetryPolicyProperty(
                    maximum_retry_attempts=TRIES, maximum_event_age_in_seconds=int(A_DAY.to_seconds())
                ),
            )
        ]
