"""Refusals of file systems to mount."""

from __future__ import annotations

from typing import Any

from job_requests.mount_fields import MOUNT_MAY_BE
from tools.refusals.jobs.table import LEAST, Row, Section

SHAPE = '{"from": "fsx:corpus", "at": "/data", "read_only": true}'
OURS = "efs:home, fsx:corpus, s3files:images (file_systems in cdk.json)"
DATA = "a folder of its own, as in /data"


def _at(path: Any, source: str = "fsx:corpus") -> list[dict[str, Any]]:
    return [{"from": source, "at": path}]


MOUNTS = Section(
    "mounts",
    f"a list of up to 4 objects of from, at and read_only, as in {SHAPE}",
    entry=MOUNT_MAY_BE,
    rows=(
        ("an object", {"/data": "fsx:corpus"}, "an object is not a list"),
        ("a string among the mounts", ["fsx:corpus"], '.0: "fsx:corpus" is not an object'),
        ("five", [{"from": "fsx:corpus", "at": f"/{n}"} for n in range(5)], "has 5 entries"),
        ("a mount without at", [{"from": "fsx:corpus"}], ".0.at: is missing"),
        ("a mount without from", [{"at": "/data"}], ".0.from: is missing"),
        ("an unknown kind", _at("/data", "nfs:corpus"), '.0.from: "nfs:corpus" does not have the right form'),
        (
            "the id of a file system",
            _at("/data", "fs-0123456789abcdef0"),
            '.0.from: "fs-0123456789abcdef0" does not have the right form',
        ),
        (
            "a name that the settings do not have",
            _at("/data", "fsx:corpse"),
            f".0.from: fsx:corpse names no file system in eu-central-1; allowed: {OURS}",
        ),
        (
            "a name under another kind",
            _at("/data", "efs:corpus"),
            f".0.from: efs:corpus names no file system in eu-central-1; allowed: {OURS}",
        ),
        ("a relative folder", _at("data"), '.0.at: "data" does not have the right form'),
        ("a slash at the end", _at("/data/"), '.0.at: "/data/" does not have the right form'),
        ("the root", _at("/"), '.0.at: "/" does not have the right form'),
        ("a comma, which docker reads", _at("/data,source=/"), '.0.at: "/data,source=/" does not have the right form'),
        (
            "a path with ..",
            _at("/data/../etc"),
            ".0.at: /data/../etc contains . or ..; allowed: an absolute path without them, as in /data",
        ),
        ("201 characters", _at(f"/{'a' * 200}"), ".0.at: has 201 characters"),
        (
            "a folder of the job",
            _at("/opt/ml/checkpoints"),
            f".0.at: /opt/ml/checkpoints would hide or lie in /opt/ml; allowed: {DATA}",
        ),
        ("a folder above those of the job", _at("/opt"), f".0.at: /opt would hide or lie in /opt/ml; allowed: {DATA}"),
        ("a folder of the system", _at("/etc"), f".0.at: /etc would hide or lie in /etc; allowed: {DATA}"),
        (
            "a folder of the agent",
            _at("/var/lib/trainyard/work"),
            f".0.at: /var/lib/trainyard/work would hide or lie in /var; allowed: {DATA}",
        ),
        (
            "the folder of homes",
            _at("/home"),
            ".0.at: /home would hide /home; allowed: a folder of its own, as in /home/data",
        ),
        (
            "twice the same folder",
            [{"from": "fsx:corpus", "at": "/data"}, {"from": "efs:home", "at": "/data"}],
            ".1.at: /data is the folder of another mount; allowed: separate folders",
        ),
        (
            "one below another",
            [{"from": "fsx:corpus", "at": "/data/corpus"}, {"from": "efs:home", "at": "/data"}],
            ".1.at: /data is above or below /data/corpus of another mount; allowed: separate folders",
        ),
        (
            "a string for read_only",
            [{**_at("/data")[0], "read_only": "yes"}],
            '.0.read_only: "yes" is neither true nor false',
        ),
        (
            "options of mount",
            [{**_at("/data")[0], "options": "exec"}],
            f".0.options: there is no such field; allowed: {MOUNT_MAY_BE}",
        ),
        Row(
            "a wrong mount beside another wrong field",
            {**LEAST, "mounts": _at("/data", "fsx:corpse"), "nodes": 0},
            "nodes: 0 is too small; allowed: a whole number from 1 to 16 (limits.max_nodes in cdk.json)",
            f"mounts.0.from: fsx:corpse names no file system in eu-central-1; allowed: {OURS}",
        ),
    ),
)
