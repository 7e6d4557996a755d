"""Refusals of a request's own tags."""

from __future__ import annotations

from contract import tags
from tools.refusals.jobs.table import Row, Section

KEY = f"1 to 127 letters, digits and _.:=+@-, without aws: or {tags.RESERVED} at the beginning, and not Name"
SETTINGS = "every job has CostCenter with the value 4711; allowed: keys that cdk.json does not set (tags)"
TAGS = Section(
    "tags",
    "an object of up to 16 keys and values",
    entry=f"a key of {KEY}, and a value of 1 to 255 letters, digits, spaces and _.:/=+-@, such as 4711",
    taken={"Project": "apollo 11", "Stage": "研究"},
    rows=(
        ("a list", ["Project"], "a list is not an object"),
        ("a text", "Project=apollo", '"Project=apollo" is not an object'),
        ("a value that is a number", {"Project": 11}, ".Project: 11 is not a string"),
        ("no value", {"Project": ""}, ".Project: has 0 characters"),
        ("a value that is too long", {"Project": "a" * 256}, ".Project: has 256 characters"),
        ("a value that no service takes", {"Project": "a;b"}, '.Project: a;b is not the value of a tag (it has ";")'),
        (
            "a value that begins with a space",
            {"Project": " x"},
            ".Project:  x is not the value of a tag (it begins or ends with a space)",
        ),
        (
            "a line break in a value",
            {"Project": "a\nb"},
            '.Project: a\\u000ab is not the value of a tag (it has "\\n")',
        ),
        ("a slash in a key", {"team/project": "a"}, ".team/project: is not the key of a tag"),
        ("a key of 128 characters", {"a" * 128: "a"}, f".{'a' * 80}...: is not the key of a tag"),
        ("a key of AWS", {"aws:cost": "a"}, ".aws:cost: is not a key for people (it begins with a reserved prefix)"),
        (
            "a key of ours",
            {tags.PROTECTED: "a"},
            f".{tags.PROTECTED}: is not a key for people (it begins with a reserved prefix)",
        ),
        (
            "a key of ours in capitals",
            {tags.DEPLOYMENT.upper(): "other"},
            f".{tags.DEPLOYMENT.upper()}: is not a key for people (it begins with a reserved prefix)",
        ),
        ("the name that the console shows", {"name": "a"}, ".name: is not a key for people (it is Trainyard's own)"),
        (
            "a key that metadata has not",
            {"_index": "a"},
            "._index: is not a key for people (instance metadata has no such key)",
        ),
        Row(
            "a key that differs from another in capitals alone",
            {"tags": {"Project": "a", "project": "b"}},
            "tags.Project: the request has project too; allowed: one of them",
        ),
        Row("a key of the settings", {"tags": {"CostCenter": "1"}}, f"tags.CostCenter: {SETTINGS}"),
        Row("a key of the settings in other capitals", {"tags": {"costcenter": "1"}}, f"tags.costcenter: {SETTINGS}"),
        ("more than a request may have", {f"t{number}": "1" for number in range(17)}, "has 17 entries"),
    ),
)
