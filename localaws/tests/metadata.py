"""The metadata of one node, for tests of who reads them."""

from __future__ import annotations

from dataclasses import dataclass

from localaws.machines.imds import Metadata

ADDRESS = "127.44.7.21"


@dataclass(frozen=True)
class Keys:
    access_key: str = "ASIAEXAMPLE"
    secret: str = "secret"
    token: str = "session"


METADATA = Metadata(
    instance="i-0123456789abcdef0",
    instance_type="g5.xlarge",
    image="ami-1",
    rank=3,
    address=ADDRESS,
    hostname="ip-127-44-7-21.ec2.internal",
    mac="02:00:00:00:00:01",
    region="us-east-1",
    zone="us-east-1b",
    account="123456789012",
    user_data=b"#!/bin/bash\n\xff",
    tags=lambda: {"yard:job": "digits", "Name": "digits/1"},
    role=lambda: "node",
    credentials=Keys,
    spot_action=lambda: None,
)
