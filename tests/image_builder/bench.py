"""A build machine of the tests: the script as it is shipped, a Docker that only writes down, an AWS of files."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from contract.images import ORDER, BuildOrder, ContainerImage, Context
from localaws.testing.waiting import HANG_S

ROOT = Path(__file__).parents[2]
REGIONS = ("eu-central-1", "us-east-1", "ap-south-1")
BUILT = BuildOrder(
    account="111122223333",
    suffix="amazonaws.com",
    home_region="eu-central-1",
    repository="yard/images",
    tag="v1",
    regions=REGIONS,
    context=Context(bucket="yard-home", key="uploads/context.tar.gz", version="v-7", etag='"abc"'),
    cache="yard/build-cache",
)
# env finds the bench's own python3: a first line cannot name a program whose path has a blank.
AWS = '''#!/usr/bin/env python3
"""Stands in for the AWS command line: objects and registries are the files of the bench."""
import json, os, shutil, sys
from pathlib import Path
images, given = Path(os.environ["IMAGES"]), sys.argv[1:]
with (images / "aws").open("a") as calls:
    calls.write(json.dumps(given) + "\\n")
option = {name: value for name, value in zip(given, given[1:])}
if given[:2] == ["ecr", "get-login-password"]:
    if (images / f"no-password-{option['--region']}").exists():
        sys.exit("An error occurred (UnrecognizedClientException) when calling the GetAuthorizationToken operation")
    print("secret-of-" + option["--region"])
elif given[:2] == ["s3api", "get-object"]:
    source = images / "objects" / option["--bucket"] / option["--key"]
    if not source.exists():
        sys.exit("An error occurred (NoSuchKey) when calling the GetObject operation: The specified key does not exist.")
    shutil.copyfile(source, given[-1])
elif given[:2] == ["s3api", "put-object"]:
    place = images / "objects" / option["--bucket"] / option["--key"]
    if option.get("--if-none-match") == "*" and place.exists():
        sys.exit("An error occurred (PreconditionFailed) when calling the PutObject operation")
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(option["--body"], place)
elif given[:2] == ["ecr", "describe-images"]:
    name = images / f"111122223333.dkr.ecr.{option['--region']}.amazonaws.com" / option["--repository-name"]
    stands = name / option["--image-ids"].partition("=")[2]
    if not stands.exists():
        sys.exit("An error occurred (ImageNotFoundException) when calling the DescribeImages operation")
    import hashlib
    print("sha256:" + hashlib.sha256(stands.read_bytes()).hexdigest())
else:
    sys.exit(f"aws: what is {given}?")
'''


@dataclass
class Bench:
    """One machine, kept from build to build as a registry is."""

    folder: Path

    def __post_init__(self) -> None:
        shutil.copytree(ROOT / "image_builder", self.folder / "image_builder")
        shutil.copytree(ROOT / "contract", self.folder / "image_builder" / "contract")
        programs = self.folder / "programs"
        programs.mkdir()
        shutil.copy(ROOT / "localaws" / "machines" / "standins" / "images" / "docker", programs)
        (programs / "aws").write_text(AWS)
        (programs / "aws").chmod(0o755)
        # The scripts need the standard library alone; loading this computer's packages at each start took most of a build.
        python = Path(sys.executable).resolve()
        (programs / "python3").symlink_to(python)
        (self.folder / "pyvenv.cfg").write_text(f"home = {python.parent}\ninclude-system-site-packages = false\n")
        self.images.mkdir()

    @property
    def images(self) -> Path:
        return self.folder / "images"

    def upload(self, files: Mapping[str, str], key: str = "uploads/context.tar.gz") -> None:
        """A context in the bucket of uploads."""
        made = self.folder / "made"
        shutil.rmtree(made, ignore_errors=True)
        for name, text in files.items():
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).write_text(text)
        place = self.images / "objects" / "yard-home" / key
        place.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(place, "w:gz") as archive:
            archive.add(made, ".")

    def run(self, order: BuildOrder) -> subprocess.CompletedProcess[str]:
        """The script, with nothing of this process' environment but the way to basic programs."""
        return subprocess.run(
            ["bash", "build.sh"],
            cwd=self.folder / "image_builder",
            env={
                "PATH": f"{self.folder / 'programs'}:{os.environ['PATH']}",
                "IMAGES": str(self.images),
                ORDER: order.text(),
            },
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )

    def fail(self, *call: str, says: str) -> None:
        """From now on Docker fails at a call that has all these texts in its arguments."""
        with (self.images / "fails").open("a") as rules:
            rules.write(json.dumps([*call, says]) + "\n")

    def mend(self) -> None:
        (self.images / "fails").unlink()

    def docker(self, *begin: str) -> list[list[str]]:
        """Docker's calls that begin so."""
        return self._calls("calls", begin)

    def aws(self, *begin: str) -> list[list[str]]:
        return self._calls("aws", begin)

    def _calls(self, file: str, begin: tuple[str, ...]) -> list[list[str]]:
        path = self.images / file
        calls: list[list[str]] = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [call for call in calls if tuple(call[: len(begin)]) == begin]

    def put(self, image: ContainerImage, text: str = "{}") -> str:
        """An image that stands already; its digest."""
        folder = self.images / image.registry / image.repository
        folder.mkdir(parents=True, exist_ok=True)
        digest = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
        for name in (image.tag, digest):
            (folder / name).write_text(text)
        return digest

    def standing(self, order: BuildOrder = BUILT) -> dict[str, str | None]:
        """Region to the digest under the order's tag."""
        return {region: self._digest(order.target(region)) for region in REGIONS}

    def _digest(self, image: ContainerImage) -> str | None:
        file = self.images / image.registry / image.repository / image.tag
        return f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}" if file.exists() else None

    def arguments(self) -> list[str]:
        """The build arguments of the only build, as Docker got them."""
        (call,) = self.docker("buildx", "build")
        return [value for option, value in pairwise(call) if option == "--build-arg"]


def order(**changes: Any) -> BuildOrder:
    return replace(BUILT, **changes)


def fresh(folder: Path) -> Bench:
    """A new machine, and what BUILT asks for in the bucket."""
    made = Bench(folder)
    made.upload({"Dockerfile": "ARG BASE\nFROM ${BASE}\nCOPY . /opt/ml/code\n", "train.py": "print('hello')\n"})
    return made
