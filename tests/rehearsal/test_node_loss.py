"""A fault of single nodes by itself: it strikes once the product's own report says that its moment has come."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract import items, tags
from contract.codec import encode
from contract.reports import NodeReport, Phase, Progress
from localaws.testing.ec2 import local_aws
from localaws.testing.waiting import until
from rehearsal.faults import parse_faults
from rehearsal.node_faults import NodeFaults

pytestmark = pytest.mark.rehearsal


def test_a_node_is_lost_once_the_first_attempt_has_trained_so_far(tmp_path: Path) -> None:
    with local_aws(tmp_path, parse_faults(["node-lost:rank=1,step=7"]), mischief=NodeFaults()) as yard:
        named = {tags.JOB: "digits", tags.ATTEMPT: "1"}
        marks = [{"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in named.items()]}]
        instances = yard.run(2, TagSpecifications=marks, UserData="#!/bin/bash\nsleep 60\n")
        until(lambda: yard.states(instances) == {"running"})
        table = yard.aws.client("dynamodb")
        keys = (items.PARTITION, items.SORT)
        table.create_table(
            TableName="state",
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[
                {"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=True)
            ],
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
        )
        for step in (6, 7):
            report = NodeReport(
                job="digits",
                attempt=1,
                rank=0,
                instance=instances[0],
                phase=Phase.TRAINING,
                sent_at=0.0,
                progress=Progress(step=step),
            )
            assert yard.states(instances) == {"running"}
            item = {
                items.PARTITION: {"S": "AROA:i-0"},
                items.SORT: {"S": items.REPORT},
                items.DOCUMENT: items.packed(encode(report)),
            }
            table.put_item(TableName="state", Item=item)
        until(lambda: yard.states(instances[1:]) == {"terminated"})
        described = yard.ec2.describe_instances(InstanceIds=instances)["Reservations"][0]["Instances"]
        assert [one["State"]["Name"] for one in described] == ["running", "terminated"]
        assert described[1]["StateReason"]["Code"] == "Server.InternalError"
