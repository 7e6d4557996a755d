"""Rules of EventBridge that see what is uploaded: in the region of a bucket, and at home, where the starter's queue is."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from constructs import Construct

from contract.campaigns import Campaign
from stacks.parts import interfaces
from stacks.parts.queue import DeadLetters, Queue
from stacks.parts.right import Right, role
from stacks.parts.rights import arn_of

PATIENTLY = events.CfnRule.RetryPolicyProperty(maximum_retry_attempts=185, maximum_event_age_in_seconds=86_400)
"""EventBridge's maxima: it tries to deliver an event for a day."""


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


def send_uploads(
    stack: cdk.Stack, campaigns: Mapping[str, Campaign], *, deployment: str, queue: Queue, letters: DeadLetters
) -> None:
    """Sends every upload that starts a campaign to the queue; what cannot be sent in a day becomes a letter.

    A queue's policy takes 20 statements (SQS's quotas), so one of them lets all rules of the deployment send. CloudFormation cuts a
    stack's name to 24 characters where it makes a rule's name of it, so the pattern is shorter than that.
    """
    for name, one in campaigns.items():
        _point(
            _make_rule(stack, name, one),
            events.CfnRule.TargetProperty(
                arn=queue.queue_arn,
                id="Queue",
                dead_letter_config=events.CfnRule.DeadLetterConfigProperty(arn=letters.queue_arn),
                retry_policy=PATIENTLY,
            ),
        )
    if campaigns:
        rules = stack.format_arn(service="events", resource="rule", resource_name=f"{deployment}-*")
        for one in (queue, letters):
            one.add_to_resource_policy(
                iam.PolicyStatement(
                    sid="RulesSendUploads",
                    principals=[interfaces.principal(iam.ServicePrincipal("events.amazonaws.com"))],
                    actions=["sqs:SendMessage"],
                    resources=[one.queue_arn],
                    conditions={"ArnLike": {"aws:SourceArn": rules}},
                )
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
        _point(
            _make_rule(scope, name, one),
            events.CfnRule.TargetProperty(arn=bus, id="Home", role_arn=sender.role_arn, retry_policy=PATIENTLY),
        )


def _make_rule(scope: Construct, name: str, campaign: Campaign) -> events.Rule:
    return events.Rule(
        scope,
        f"Uploaded-{name}",
        description=f"An object was uploaded that starts the campaign {name}",
        event_pattern=match_uploads(campaign),
    )


def _point(rule: events.Rule, target: events.CfnRule.TargetProperty) -> None:
    """Gives the rule its only target: CDK's own targets write a policy's statement for each rule, or make a role for each."""
    made = rule.node.default_child
    assert isinstance(made, events.CfnRule)
    made.targets = [target]
