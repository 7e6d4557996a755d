"""Every shared word is spelt once, in contract/."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from contract import errors, grid, keys, names, tags
from tests.architecture.sources import PRODUCT, name, python_files, source
from tests.builders import TAGS_AT_LAUNCH

EXAMPLE = "s3://my-bucket/"
"""What stands for a person's own bucket in descriptions."""
OUTSIDE = [file for file in python_files(*PRODUCT) if file.parent.name != "contract"]


def spelling(pattern: str) -> list[str]:
    """Where the product, outside of the contract, has a string that fits."""
    found = re.compile(pattern)
    return [
        f"{name(file)}:{line}"
        for file in OUTSIDE
        for line, text in source(file).texts
        if found.search(text) and not text.startswith(EXAMPLE)
    ]


def test_no_tag_key_is_spelt_outside_of_the_contract() -> None:
    assert spelling(r"\btrainyard:[a-z]") == []


def test_no_folder_of_the_buckets_is_spelt_outside_of_the_contract() -> None:
    folders = "|".join(re.escape(folder) for folder in (keys.JOBS, keys.UPLOADS, grid.GRIDS))
    assert spelling(rf"(^|[/'\"])({folders})") == []


def test_no_name_in_the_console_is_spelt_outside_of_the_contract() -> None:
    assert spelling(r"(^|[^\w])/trainyard/") == []


def test_no_error_name_is_spelt_outside_of_the_contract() -> None:
    assert spelling(rf"^({'|'.join(errors.BY_NAME)})$") == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("PermanentRedirect", "lambda/aws/errors.py"),
        ("(-[a-z]+)+-[0-9]", "contract/names.py"),
        ("[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", "contract/names.py"),
        ('".tgz"', "lambda/refusals/fields.py"),
        ("holds a NUL character", "lambda/refusals/texts.py"),
        ("1769", "stacks/parts/function.py"),
    ],
)
def test_what_functions_or_stacks_share_is_written_in_one_file(text: str, place: str) -> None:
    assert [name(file) for file in python_files("contract", "lambda", "stacks") if text in file.read_text()] == [place]


SHARED = {
    "Action": "what a policy's verdict asks for; no module reads two policies",
    "Bucket": "a bucket of S3, which a stack deploys and a function calls",
    "Facts": "what a policy judges; no module reads two policies",
    "How": "a way to a result that a policy chooses; no module reads two policies",
    "Queue": "a queue of SQS, which a stack deploys and a function calls",
    "Verdict": "a policy's decision with its reason; no module reads two policies",
}
"""Names of more than one class, each with its one meaning."""


def test_a_name_of_a_class_has_one_meaning() -> None:
    places: dict[str, list[str]] = {}
    for file in python_files(*PRODUCT):
        for one in source(file).classes:
            places.setdefault(one, []).append(name(file))
    assert {one: found for one, found in sorted(places.items()) if len(found) > 1}.keys() == SHARED.keys()


def test_the_code_of_an_error_is_read_in_one_place() -> None:
    by_hand = re.compile(r'"Error"(\]|, \{\}\))(\["Code"\]|\.get\("Code")')
    files = python_files("contract", "grid_child", "lambda", "node", "stacks")
    assert [name(file) for file in files if by_hand.search(file.read_text())] == ["contract/aws_errors.py"]


def test_tag_keys_are_readable_in_instance_metadata() -> None:
    allowed = re.compile(r"[A-Za-z0-9+\-=.,_:@]+")
    assert [key for key in (*TAGS_AT_LAUNCH, *tags.AFTER_LAUNCH) if not allowed.fullmatch(key)] == []


def test_no_tag_but_the_name_is_set_at_launch_and_afterwards() -> None:
    """Nobody may change what a machine is; nothing is decided by its name, which gains the rank."""
    assert set(TAGS_AT_LAUNCH) & set(tags.AFTER_LAUNCH) == {tags.NAME}


def test_the_patterns_for_permissions_fit_the_keys_that_they_stand_for() -> None:
    prefix = keys.JobPrefix("resnet")

    def fits(pattern: str, key: str) -> bool:
        return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), key) is not None

    made = {
        keys.ANY_DESCRIPTION: prefix.description,
        keys.ANY_CODE: prefix.code("code.zip"),
        keys.ANY_LIST: prefix.artifacts(2),
        keys.ANY_RESULT: prefix.result,
        keys.ANY_WAIT: prefix.wait,
        keys.ANY_AGENT: keys.agent("0" * 64),
    }
    for pattern, key in made.items():
        assert [other for other in made.values() if fits(pattern, other)] == [key]


def test_what_nodes_may_write_is_what_they_write() -> None:
    prefix = keys.BytesPrefix("resnet")
    written = {
        prefix.checkpoint(0, "f" * 64, "a.pt"),
        prefix.artifact(0, "a.pt"),
        *(prefix.commit(kind, 1, 2, 0) for kind in keys.CommitKind),
        *(prefix.part(1, 2, 0), prefix.plan(1, 2), prefix.closed(1, 2)),
    }
    folders = {key.removeprefix(prefix.root).partition("/")[0] for key in written}
    assert folders == set(keys.BYTES_FOLDERS)


@pytest.mark.parametrize("deployment", ["ab", "a" * 20])
def test_no_bucket_name_is_longer_than_s3_allows(deployment: str) -> None:
    for bucket in (names.home_bucket, names.bytes_bucket):
        assert 3 <= len(bucket(deployment, "1" * 12, "ap-southeast-1")) <= 63


def test_every_error_of_the_contract_says_when_it_is_raised() -> None:
    assert [error.__name__ for error in errors.ALL if not error.__doc__] == []


KEPT: dict[str, str] = {}
"""Words of the contract that nothing uses yet, each with the capability that will."""


def test_every_word_of_the_contract_has_a_user_outside_of_the_tests() -> None:
    """Constants that nobody reads, errors that nobody raises and members that nobody names are promises that nobody keeps."""
    used = {word for file in python_files(*PRODUCT, "rehearsal", "tools") for word in used_words(file)}
    assert [word for file in python_files("contract") for word in words_of(file) if word not in used] == [*KEPT]


def test_a_word_without_a_user_would_be_seen() -> None:
    module = "SPARE = 1\nUSED = 2\nclass Kind(Enum):\n    ONE = 1\n    TWO = 2\nlast = USED\n"
    tree = ast.parse(module)
    used = {*_used(tree, own="words"), *_used(ast.parse("from contract.words import Kind\nprint(Kind.TWO)"), own="")}
    assert [word for word in _words(tree, "words") if word not in used] == [
        "words.SPARE",
        "words.Kind.ONE",
        "words.last",
    ]


def words_of(file: Path) -> list[str]:
    """`module.WORD` of each constant, class and function that a file of the contract defines, `module.Kind.MEMBER` of each member."""
    return _words(ast.parse(file.read_text()), file.stem)


def used_words(file: Path) -> set[str]:
    return _used(ast.parse(file.read_text()), own=file.stem if file.parent.name == "contract" else "")


def _words(tree: ast.Module, module: str) -> list[str]:
    found = []
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found += [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.append(node.name)
        if isinstance(node, ast.ClassDef) and any("Enum" in ast.unparse(base) for base in node.bases):
            members = [one.targets[0] for one in node.body if isinstance(one, ast.Assign)]
            found += [f"{node.name}.{ast.unparse(member)}" for member in members]
    return [f"{module}.{word}" for word in found]


def _used(tree: ast.Module, own: str) -> set[str]:
    """What a file names of the contract: as `module.WORD`, or as WORD that it imported or, in the contract, has of its `own`."""
    origin = {
        alias.asname or alias.name: f"{node.module.removeprefix('contract').lstrip('.')}.{alias.name}".lstrip(".")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "contract"
        for alias in node.names
    }
    origin |= {word.removeprefix(f"{own}."): word for word in _words(tree, own)} if own else {}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            first, *rest = _dotted(node)
            if first in origin:
                found.add(".".join([origin[first], *rest]))
    return found


def _dotted(node: ast.expr) -> list[str]:
    """["a", "b", "c"] for `a.b.c`; begins with "" where something else than a name does."""
    if isinstance(node, ast.Attribute):
        return [*_dotted(node.value), node.attr]
    return [node.id if isinstance(node, ast.Name) else ""]
