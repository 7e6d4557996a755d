"""Every setting, and every form of text, is put through a wrong value; what the page and the schema say is what is parsed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, get_args

import jsonschema
import pytest
from pydantic import TypeAdapter, ValidationError

from stacks import forms
from stacks.forms import Form
from stacks.refused import tree
from stacks.settings import BLOCK, BadSettings, Settings
from tools.file_systems import CORPUS
from tools.settings import entry, meanings, schema
from tools.synthesis import CONTEXT

HOME = {"region": "eu-central-1", "cidr": "10.70.0.0/16"}
NO_FORM = "!\n"
"""A text that is none of the forms."""
FORMS: dict[str, tuple[str, ...]] = {
    "Deployment": ("", "a", "1a", "a--b", "a-", "A", "ab\n", "a" * 21, "ä1"),
    "Region": ("", "EU-CENTRAL-1", "eu-central-1a", "eu-central-1\n", "eu-central", "eu-mars-1", "eusc-de-east-1"),
    "Network": ("", "ten", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/8", "999.0.0.0/16", "::/16", "10.0.0.0/16\n"),
    "Zone": (
        "",
        "a",
        "eu-central-1",
        "eu-central-1A",
        "euc1-az1",
        "us-west-2-lax-1a",
        "us-east-1-wl1-bos-wlz-1",
        "eu-central-1a\n",
    ),
    "Vpc": (
        "vpc-1",
        "vpc-0123456789abcdefg",
        "subnet-0123456789abcdef0",
        "vpc-0123456789abcdef0\n",
        "VPC-0123456789abcdef0",
    ),
    "Subnet": ("", "subnet-1", "vpc-0123456789abcdef0", "subnet-0123456789ABCDEF0", "subnet-0123456789abcdef0\n"),
    "KeyArn": (
        "alias/ebs",
        "12345678-1234-1234-1234-123456789012",
        "arn:aws:kms:eu-central-1:111122223333:alias/ebs",
        "arn:aws:kms:eu-central-1:1111:key/1",
        "arn:aws:kms:eu-central-1:111122223333:key/*",
        "arn:aws:kms:eu-central-1:111122223333:key/1\n",
        "arn:aws:iam::111122223333:role/key",
    ),
    "TagKey": ("", "a b", "a/b", "a,b", "ü", "aws:x", "Aws:x", "trainyard:x", "Name", "a" * 128, "a\n"),
    "TagValue": ("", " a", "a ", "a;b", "a\n", "a\tb", "🚂", "x" * 256),
    "Bucket": ("", "ab", "-ab", "a_b", "AB1", "s3://ab", "a" * 64),
    "MachineImage": ("", "ami-XYZ", "ami-1", "newest", "/a b"),
    "InstanceTypes": ("", "G5.xlarge", "g5.*;rm", "-g5", "g5 "),
    "Repository": ("", "a", "a/b", "A1", "a--b", "a" * 41),
    "Account": ("", "1", "1234567890123", "12345678901x", "*"),
    "Organization": ("", "acme", "o-1", "o-A1B2C3D4E5"),
    "TrainingImage": ("my image:v1", "a\n", "ü", "x" * 256),
    "ImageOwner": ("amazon", "12345678901", "1234567890123", "self", "*"),
    "ClusterName": ("-lab", "a b", "a\n", "ü", "a" * 101),
    "ManifestFile": ("/etc/operator.yaml", "../operator.yaml", "a/../b", "a b", "a\n", "~/a"),
    "Digest": ("", "abc", "A" * 64, "0" * 65, f"sha256:{'0' * 57}"),
    "BaseImage": (
        "python",
        "python:3.13",
        "public.ecr.aws/x@sha256:1",
        "https://public.ecr.aws/x:1",
        "public.ecr.aws/x:1 ",
    ),
    "MachineImageName": ("", "a", "A1", "1a", "a--b", "a-", "ab\n", "a" * 41),
    "GitHost": (
        "",
        "localhost",
        "GitHub.com",
        "github.com:443",
        "https://github.com",
        "github.com/",
        "a@github.com",
        "github.com\n",
    ),
    "SecretName": (
        "my token",
        "arn:aws:secretsmanager:eu-central-1:111122223333:secret:token",
        "token\n",
        "ü",
        "x" * 61,
    ),
    "JobRoleName": ("", "a", "A1", "1a", "a--b", "a-", "ab\n", "a" * 21),
    "RoleArn": (
        "",
        "datasets",
        "arn:aws:iam::1:role/datasets",
        "arn:aws:iam::111122223333:user/datasets",
        "arn:aws:iam::111122223333:role/",
        "arn:aws:iam::111122223333:role/*",
        "arn:aws:iam::111122223333:role/datasets\n",
    ),
    "TrainingType": ("g5.xlarge", "ml.g5", "ml.", "ML.g5.xlarge", "ml.g5.xlarge "),
    "StarterName": ("", "a", "A1", "1a", "a--b", "a-", "ab\n", "a" * 41, "drive_eu"),
    "PresetName": ("", "a", "A1", "1a", "a--b", "a-", "ab\n", "a" * 41, "two_a10g"),
    "KeyPart": ("", "*", "a*b", "ü", "a\n", "a\tb", 'a"b', "a'b", "{data}", "a\\b", "%20", "x" * 501),
    "PageAddress": (
        "wiki.example.com/runbook",
        "http://wiki.example.com/runbook",
        "https://",
        "https://wiki.example.com/runbook#alarms",
        "https://wiki.example.com/a runbook",
        "https://wiki.example.com/runbook\n",
        "javascript:alert(1)",
    ),
    "GitAddress": (
        "",
        "https://github.com",
        "https://github.com/",
        "http://github.com/owner/repository",
        "ssh://git@github.com/owner/repository",
        "git@github.com:owner/repository.git",
        "https://user@github.com/owner/repository",
        "https://user:token@github.com/owner/repository",
        "https://github.com:8443/owner/repository",
        "https://github.com/owner/../repository",
        "https://github.com/owner/repository?ref=main",
        "https://github.com/owner/repository#main",
        "https://localhost/owner/repository",
        "https://github.com/owner/repository\n",
    ),
    "Branch": (
        "",
        "-main",
        "a..b",
        "/main",
        "main/",
        "a//b",
        ".main",
        "refs/heads/*",
        "a b",
        "main\n",
        "a/-b",
        "x" * 201,
    ),
    "ArgumentName": ("", "1A", "A-B", "A B", "A\n", "A=B", "x" * 201),
    "ArgumentValue": ("a\n", "a\0", "\t", "x" * 4001),
    "DeepLearningContainer": ("pytorch", "pytorch:", ":2.8", "PyTorch:2.8", "pytorch:2.8 ", "pytorch:2.8\n"),
    "BuildPlatform": ("", "amd64", "linux", "linux/386", "linux/arm64\n"),
}
"""Form to texts that it does not take."""


def forms_in(hint: Any) -> Iterator[Form]:
    """Every form of a type, however deep."""
    yield from (one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Form))
    for inner in get_args(hint):
        yield from forms_in(inner)


def properties(block: dict[str, Any], *above: str) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every setting's path, and what the schema says of it."""
    for name, one in block["properties"].items():
        yield (*above, name), one
        if target := entry(one).get("$ref"):
            yield from properties(schema()["$defs"][target.split("/")[-1]], *above, name)


def refused(one: dict[str, Any]) -> Iterator[tuple[object, str]]:
    """Values that a setting does not take by its schema, and what the refusal says is allowed."""
    if "$ref" in one:
        yield "x", "an object"
    elif options := one.get("anyOf"):
        yield from refused(next(option for option in options if option != {"type": "null"}))
    elif choice := one.get("enum"):
        yield NO_FORM, f"{choice[0]!r}, "
    elif one["type"] == "array":
        yield "x", "a list"
        yield from (([value], may_be) for value, may_be in refused(one["items"]) if "$ref" not in one["items"])
    elif patterns := one.get("patternProperties"):
        ((pattern, of_name),) = patterns.items()
        if "$ref" in of_name:
            yield "x", "an object"
            yield {"No Name": {}}, one["propertyNames"]["patternErrorMessage"]
            return
        name = next(one for one in ("entry", "git.example.org", "eu-central-1a") if re.match(pattern, one))
        yield from (({name: value}, may_be) for value, may_be in refused(of_name))
        yield {"No Name": good_value(of_name)}, one["propertyNames"]["patternErrorMessage"]
    elif one["type"] == "object" and "propertyNames" not in one:
        yield from (("x", "an object"), ({}, "at least 1 item"))
    elif one["type"] == "object":
        yield from (
            ({one["propertyNames"]["enum"][0]: value}, may_be) for value, may_be in refused(one["additionalProperties"])
        )
    elif one["type"] == "boolean":
        yield "no", "true or false"
    elif one["type"] == "string":
        yield NO_FORM, one["patternErrorMessage"]
    else:
        yield "1", {"integer": "a whole number", "number": "a number"}[one["type"]]
        yield from ((one[key] + by, f"{words} {one[key]:g}") for key, by, words in BOUNDS if key in one)


def good_value(one: dict[str, Any]) -> object:
    """A value that the schema of an entry takes."""
    if one["type"] in ("array", "object"):
        return [] if one["type"] == "array" else {"nodes": 2}
    examples = (one["patternErrorMessage"].rpartition(" ")[2], "ami-12345678")
    return next(text for text in examples if re.match(one["pattern"], text))


BOUNDS = (
    ("minimum", -1, "greater than or equal to"),
    ("exclusiveMinimum", 0, "greater than"),
    ("maximum", 1, "less than or equal to"),
)
LISTED: dict[tuple[str, ...], dict[str, Any]] = {("regions",): HOME, ("file_systems",): CORPUS}
"""Settings that are lists of blocks, to a good block."""
NAMED: dict[tuple[str, ...], dict[str, Any]] = {
    ("campaigns",): {"prefix": "uploads/drive/", "suffix": "_READY", "input": {"manifest": "{data}/lines.jsonl"}},
    ("watch",): {"git": "https://github.com/owner/repository", "build": {"repository": "images"}},
}
"""Settings that are names of blocks, to a good block."""
WRONG = [
    (path, *wrong)
    for path, one in properties(schema()["properties"]["context"]["properties"][BLOCK])
    for wrong in refused(one)
    # What durations are at least and at most is a sentence of its own (test_settings.py).
    if path[0] != "timing" or isinstance(wrong[0], str)
]
"""Setting, a value that it does not take, and what the refusal says is allowed."""


def test_every_setting_has_a_wrong_value() -> None:
    assert {path for path, _, _ in WRONG} == tree(Settings).keys()


@pytest.mark.parametrize(
    ("path", "value", "allowed"), WRONG, ids=[f"{'.'.join(path)}: {json.dumps(value)}" for path, value, _ in WRONG]
)
def test_a_wrong_value_of_any_setting_is_told_with_its_name_and_what_is_allowed(
    path: tuple[str, ...], value: object, allowed: str
) -> None:
    *above, last = path
    listed = LISTED.get(tuple(above))
    raw: Any = {last: value} if listed is None else [listed | {last: value}]
    while above:
        if good := NAMED.get(tuple(above)):
            raw = {"entry": good | raw}
        raw = {above.pop(): raw}
    with pytest.raises(BadSettings) as refusal:
        Settings.parse(raw)
    (line,) = [line for line in str(refusal.value).splitlines() if "; allowed: " in line and " is missing" not in line]
    where, _, may_be = line.partition("; allowed: ")
    assert where.startswith(f"{BLOCK}.{path[0]}")
    assert path[-1] in where
    assert may_be.startswith(allowed)


def test_every_form_of_text_has_wrong_ones_in_the_table() -> None:
    assert FORMS.keys() == {name for name, kind in vars(forms).items() if next(forms_in(kind), None)}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in FORMS.items() for text in texts])
def test_a_text_of_another_form_is_refused_in_the_words_of_the_form(name: str, text: str) -> None:
    kind = getattr(forms, name)
    (form,) = forms_in(kind)
    with pytest.raises(ValidationError) as refusal:
        TypeAdapter(kind).validate_python(text)
    (error,) = refusal.value.errors()
    assert error["ctx"]["allowed"] == form.words


def test_no_pattern_of_the_settings_comes_without_words() -> None:
    def patterns(value: Any) -> Iterator[dict[str, Any]]:
        if isinstance(value, dict):
            if "pattern" in value and isinstance(value["pattern"], str):
                yield value
            for inner in value.values():
                yield from patterns(inner)
        for inner in value if isinstance(value, list) else ():
            yield from patterns(inner)

    found = list(patterns(schema()))
    assert found
    assert [one for one in found if not one.get("patternErrorMessage")] == []


@pytest.mark.parametrize(
    "network", ["100.64.0.0/16", "192.168.4.0/22", "172.16.0.0/16", "172.18.0.0/16", "10.255.255.0/24"]
)
def test_a_private_network_is_taken_carrier_grade_addresses_too(network: str) -> None:
    settings = Settings.parse({"regions": [{"region": "eu-central-1", "cidr": network}]})
    assert settings.regions[0].cidr == network


@pytest.mark.parametrize("home", ["eu-central-2", "cn-north-1", "us-gov-west-1", "ap-southeast-7"])
def test_a_deployment_may_live_in_any_region_of_the_partitions_that_are_named(home: str) -> None:
    assert (
        Settings.parse({"home_region": home, "regions": [{"region": home, "cidr": "10.0.0.0/16"}]}).home_region == home
    )


def test_every_setting_says_what_it_means() -> None:
    blocks = {kind for kind in tree(Settings).values() if kind} | {Settings}
    assert {
        f"{kind.__name__}.{name}" for kind in blocks for name, meant in meanings(kind).items() if not meant
    } == set()


def test_the_schema_takes_cdk_json_and_not_a_key_that_there_is_not() -> None:
    jsonschema.validate({"context": CONTEXT}, schema())
    for wrong_block in ({"netwrk": {}}, {"limits": {"max_nodes": 0}}, {"timing": {"cleanup_again_s": 901}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"context": {BLOCK: wrong_block}}, schema())
