"""An example of the setting `file_systems`: one of each kind."""

from __future__ import annotations

from typing import Any

CORPUS: dict[str, Any] = {
    "name": "corpus",
    "kind": "fsx",
    "region": "eu-central-1",
    "id": "fs-0123456789abcdef0",
    "security_group": "sg-0123456789abcdef0",
    "mount_name": "abcdefgh",
}
HOME: dict[str, Any] = {
    "name": "home",
    "kind": "efs",
    "region": "eu-central-1",
    "id": "fs-0123456789abcdef1",
    "security_group": "sg-0123456789abcdef1",
    "access_point": "fsap-0123456789abcdef1",
}
IMAGES: dict[str, Any] = {
    "name": "images",
    "kind": "s3files",
    "region": "eu-central-1",
    "id": "fs-0123456789abcdef2",
    "security_group": "sg-0123456789abcdef2",
}
EVERY = [CORPUS, HOME, IMAGES]
