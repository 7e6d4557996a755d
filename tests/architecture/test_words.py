"""Every shared word is spelt once, in contract/."""

from __future__ import annotations

import ast
import re
from collections import Counter

import pytest

from contract import errors, grid, keys, names, tags
from tests.architecture.sources import PRODUCT, name, python_files, texts

EXAMPLE = "s3://my-bucket/"
"""What stands for a person's own bucket in descriptions."""
OUTSIDE = [file for file in python_files(*PRODUCT) if file.parent.name != "contract"]


def spelling(pattern: str) -> list[str]:
    """Where the product, outside of the contract, has a string that fits."""
    found = re.compile(pattern)
    return [
        f"{name(file)}:{line}"
        for file in OUTSIDE
        for line, text in texts(file)
        if found.search(text) and not text.startswith(EXAMPLE)
    ]


def test_no_tag_key_is_spelt_outside_of_the_contract() -> None:
    assert spelling(r"\btrainyard:[a-z]") == []


def test_no_folder_of_the_buckets_is_spelt_outside_of_the_contract() -> None:
    folders = "|".join(re.escape(folder) for folder in (keys.JOBS, keys.UPLOADS, keys.CONTROL, grid.GRIDS))
    assert spelling(rf"(^|[/'\"])({folders})") == []


def test_no_name_in_the_console_is_spelt_outside_of_the_contract() -> None:
    assert spelling(r"(^|[^\w])/trainyard/") == []
    assert spelling(re.escape(keys.URGENT_SUFFIX)) == []


def test_no_error_name_is_spelt_outside_of_the_contract() -> None:
    assert spelling(rf"^({'|'.join(errors.BY_NAME)})$") == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('["Error"]["Code"]', "lambda/aws/errors.py"),
        ("PermanentRedirect", "lambda/aws/errors.py"),
        ("(-[a-z]+)+-[0-9]", "contract/names.py"),
        ("[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", "contract/names.py"),
        ('".tgz"', "lambda/refusals/fields.py"),
        ("holds a NUL character", "lambda/refusals/fields.py"),
        ("1769", "stacks/parts/function.py"),
    ],
)
def test_what_functions_or_stacks_share_is_written_in_one_file(text: str, place: str) -> None:
    assert [name(file) for file in python_files("contract", "lambda", "stacks") if text in file.read_text()] == [place]


def test_tag_keys_are_readable_in_instance_metadata() -> None:
    allowed = re.compile(r"[A-Za-z0-9+\-=.,_:@]+")
    assert [key for key in (*tags.AT_LAUNCH, *tags.AFTER_LAUNCH) if not allowed.fullmatch(key)] == []


def test_no_tag_is_set_at_launch_and_afterwards() -> None:
    assert set(tags.AT_LAUNCH) & set(tags.AFTER_LAUNCH) == set()


def test_the_patterns_for_permissions_fit_the_keys_that_they_stand_for() -> None:
    prefix = keys.JobPrefix("resnet")

    def fits(pattern: str, key: str) -> bool:
        return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), key) is not None

    assert fits(keys.ANY_REPORT, prefix.report(1, 3))
    assert fits(keys.ANY_URGENT, prefix.urgent(1, 3))
    assert fits(keys.ANY_ORDER, prefix.order(2))
    for other in (prefix.description, prefix.intent(1, 1), prefix.artifacts(1), prefix.code("code.zip"), prefix.result):
        assert not any(fits(pattern, other) for pattern in (keys.ANY_REPORT, keys.ANY_URGENT, keys.ANY_ORDER)), other


def test_what_nodes_may_write_is_what_they_write() -> None:
    prefix = keys.BytesPrefix("resnet")
    written = {
        prefix.checkpoint(0, "f" * 64, "a.pt"),
        prefix.artifact(0, "a.pt"),
        *(prefix.commit(kind, 1, 2, 0) for kind in keys.Kind),
    }
    folders = {key.removeprefix(prefix.root).partition("/")[0] for key in written}
    assert folders == set(keys.BYTES_FOLDERS)


@pytest.mark.parametrize("deployment", ["ab", "a" * 20])
def test_no_bucket_name_is_longer_than_s3_allows(deployment: str) -> None:
    for bucket in (names.home_bucket, names.bytes_bucket):
        assert 3 <= len(bucket(deployment, "1" * 12, "ap-southeast-1")) <= 63


def test_every_error_of_the_contract_says_when_it_is_raised() -> None:
    assert [error.__name__ for error in errors.ALL if not error.__doc__] == []


def test_no_word_of_the_contract_is_unused() -> None:
    """Constants that nobody reads are promises that nobody keeps."""
    users = Counter(
        word
        for file in python_files(*PRODUCT, "localaws", "rehearsal", "tests")
        for word in re.findall(r"\w+", file.read_text())
    )
    unused = []
    for file in python_files("contract"):
        for node in ast.parse(file.read_text()).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            for target in targets:
                if isinstance(target, ast.Name) and users[target.id] < 2:
                    unused.append(f"{name(file)}: {target.id}")
    assert unused == []
