"""The type checker is as strict as is said: each kind of mistake is found under the project's own settings."""

from __future__ import annotations

import pytest

from tests.architecture.checker import complaints

WRONG = {
    "a parameter without a type": "def f(x) -> int:\n    return 1\n",
    "a function without a return type": "def f(x: int):\n    return x\n",
    "the body of a function without types": "def f():  # pyrefly: ignore\n    return 1 + 'a'\n",
    "Any returned as something else": "import json\ndef f() -> int:\n    return json.loads('1')\n",
    "a generic without its argument": "def f(x: list) -> None: ...\n",
    "a wrong return": "def f() -> int:\n    return 'a'\n",
    "an optional used as if it were there": "def f(x: str | None) -> str:\n    return x.upper()\n",
    "an argument that is missing": "def f(x: int) -> int:\n    return x\n\nf()\n",
    "a call of what has no types": "def g(x, y):  # pyrefly: ignore\n    return x\n\ndef f() -> int:\n    return g(1)\n",
    "an attribute that is not there": "import pathlib\npathlib.Path('.').exist()\n",
    "an override with another signature": (
        "class A:\n    def f(self, x: int) -> int:\n        return x\n"
        "class B(A):\n    def f(self, x: str) -> int:\n        return 1\n"
    ),
    "a cast that changes nothing": "from typing import cast\ndef f(x: int) -> int:\n    return cast(int, x)\n",
    "an ignore without need": "x: int = 1  # pyrefly: ignore[bad-assignment]\n",
    "a wrong argument of a CDK construct": (
        "from aws_cdk import aws_sqs as sqs\nfrom constructs import Construct\n"
        "def f(scope: Construct) -> sqs.Queue:\n    return sqs.Queue(scope, 'Q', fifo='yes')\n"
    ),
    "an argument that a CDK construct lacks": (
        "from aws_cdk import aws_sqs as sqs\nfrom constructs import Construct\n"
        "def f(scope: Construct) -> sqs.Queue:\n    return sqs.Queue(scope, 'Q', fifoo=True)\n"
    ),
    "a wrong argument of a call to AWS": (
        "from types_boto3_s3.client import S3Client\n"
        "def f(s3: S3Client) -> None:\n    s3.get_object(Bucket='b', Key=1)\n"
    ),
    "a key that an answer of AWS lacks": (
        "from types_boto3_s3.client import S3Client\n"
        "def f(s3: S3Client) -> str:\n    return s3.get_object(Bucket='b', Key='k')['ETagg']\n"
    ),
    "a function of a later Python": "import itertools\nitertools.batched([1], 1)\n",
    "a method of a later Python": "from pathlib import Path\nPath('.').walk()\n",
}
RIGHT = """
import json
from typing import Any

def f(x: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(x)
    return read
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    return complaints(tmp_path_factory.mktemp("snippets"), [RIGHT, *WRONG.values()])


@pytest.mark.parametrize(("number", "kind"), list(enumerate(WRONG, 1)), ids=list(WRONG))
def test_a_mistake_is_found(found: list[list[str]], number: int, kind: str) -> None:
    assert found[number], kind


def test_what_is_right_passes(found: list[list[str]]) -> None:
    assert found[0] == []
