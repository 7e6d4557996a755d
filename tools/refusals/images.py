"""The table of refused images: a test runs it against the function, and `make docs` makes a page of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from image_build.request import ALLOWED
from tools.markdown import code, plain
from tools.refusals import image_commits
from tools.refusals.refusal import Refusal

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "image-refusals.md"
WIDTH = 100
ACCOUNT, PARTNER, DEEP_LEARNING = "111122223333", "444455556666", "763104351884"
REGIONS = ("eu-central-1", "us-east-1", "ap-south-1")
OTHER_DIGEST, DIGEST = "sha256:" + "b" * 64, "sha256:" + "a" * 64
BASE = "pytorch-training:2.8.0-gpu-py312-cu129-ubuntu22.04-ec2"
LEAST = {"context": "s3://yard-home/uploads/good.tar.gz", "repository": "images", "tag": "v1"}
"""The smallest request that is built."""


class Row(Refusal):
    """A refusal of an image; what is given are fields beside the smallest request."""

    least = LEAST

    def lines(self) -> list[str]:
        """Returns the complete lines of the answer."""
        return self.completed(lambda line: ALLOWED[re.split("[.:]", line)[0]])


def _at(name: str) -> dict[str, str]:
    return {"context": f"s3://yard-home/uploads/{name}"}


def _context(name: str, problem: str) -> str:
    return f"context: s3://yard-home/uploads/{name} {problem}"


STRANGE = "999988887777.dkr.ecr.us-east-1.amazonaws.com/lab/x:1"
OURS = f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/lab/images:1"
NONE = f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/yard/images:none"
CONTAINERS = f"{DEEP_LEARNING}.dkr.ecr.eu-central-1.amazonaws.com"
FIELDS = ", ".join(ALLOWED)
PLAIN = "allowed: plain relative names, and links that stay in the archive"
PULLED = (
    "allowed: up to 1 GB (data and weights belong in S3 and not in an image, which every node would have to pull: "
    "name them in the job's data)"
)
PLACES = "allowed: s3://yard-home/uploads/..., s3://datasets/..., s3://partner/..., s3://retired/... (data_buckets in cdk.json)"
ROWS = (
    Row(
        "nothing",
        {},
        f"repository: is missing; allowed: {ALLOWED['repository']}",
        f"tag: is missing; allowed: {ALLOWED['tag']}",
        f"context: is missing, and so is copy; allowed: {ALLOWED['context']}; or copy: {ALLOWED['copy']}",
        whole=True,
    ),
    Row("no object", [], f"request: a list is not an object; allowed: an object of the fields {FIELDS}", whole=True),
    Row(
        "an unknown field",
        {"tags": "v1"},
        f"tags: there is no such field (did you mean tag?); allowed: {FIELDS}",
    ),
    Row(
        "the placeholder of an example",
        {"context": "s3://REPLACE-WITH-UploadPrefix/image_job.tar.gz"},
        "context: s3://REPLACE-WITH-UploadPrefix/image_job.tar.gz has the placeholder of the example; allowed: the output UploadPrefix of "
        "the stacks in the place of s3://REPLACE-WITH-UploadPrefix",
    ),
    Row(
        "a copy beside a context",
        {"copy": "public.ecr.aws/x/y:1"},
        "copy: excludes context; allowed: one of them",
    ),
    Row(
        "build arguments for a copy",
        {"copy": "public.ecr.aws/x/y:1", "build_arguments": {"A": "1"}},
        "build_arguments: means nothing for a copy; allowed: with context",
        without=("context",),
    ),
    Row(
        "a platform for a copy",
        {"copy": "public.ecr.aws/x/y:1", "platform": "linux/arm64"},
        "platform: means nothing for a copy; allowed: with context",
        without=("context",),
    ),
    Row(
        "a platform that no machine of AWS's has",
        {"platform": "linux/riscv64"},
        f"platform: linux/riscv64 is not a platform; allowed: {ALLOWED['platform']}",
    ),
    Row(
        "everything at once",
        {
            "context": "s3://yard-home/uploads/none.zip",
            "repository": "imagse",
            "tag": "-v",
            "build_arguments": {"1A": "x"},
            "if_absent": "yes",
        },
        "tag: -v is not a tag",
        "build_arguments.1A: is not an argument name; allowed: letters, digits and _, not beginning with a digit",
        'if_absent: "yes" is neither true nor false',
        "repository: imagse is not a repository of yard; allowed: images, grid",
        "context: s3://yard-home/uploads/none.zip does not exist; allowed: an archive that was uploaded before the start",
    ),
    Row(
        "a context that is not there",
        _at("none.zip"),
        _context("none.zip", "does not exist; allowed: an archive that was uploaded before the start"),
    ),
    Row("a context of 5 GB", _at("large.zip"), _context("large.zip", f"has 5.0 GB; {PULLED}")),
    Row("an empty context", _at("empty.zip"), _context("empty.zip", f"is empty; {PULLED}")),
    Row(
        "a context that is not named like an archive",
        _at("context.rar"),
        "context: s3://yard-home/uploads/context.rar is not named like an archive",
    ),
    Row(
        "no address",
        {"context": "context.tar.gz"},
        "context: context.tar.gz is not an S3 address; allowed: s3://bucket/key",
    ),
    Row(
        "an address that climbs",
        _at("../jobs/x.zip"),
        "context: s3://yard-home/uploads/../jobs/x.zip has a part '..'; allowed: the plain key",
    ),
    Row(
        "a bucket that is not the deployment's",
        {"context": "s3://elsewhere/a.zip"},
        f"context: s3://elsewhere/a.zip is not in a place for contexts; {PLACES}",
    ),
    Row(
        "the bucket of decisions outside of uploads",
        {"context": "s3://yard-home/jobs/x/code.zip"},
        f"context: s3://yard-home/jobs/x/code.zip is not in a place for contexts; {PLACES}",
    ),
    Row(
        "a bucket that denies access",
        {"context": "s3://partner/a.zip"},
        "context: s3://partner/a.zip cannot be checked (S3 answers 403); allowed: an object that the deployment may read",
    ),
    Row(
        "no Dockerfile",
        _at("none.tgz"),
        _context(
            "none.tgz", "has no Dockerfile at its root; allowed: an archive with a file named Dockerfile at its root"
        ),
    ),
    Row(
        "a folder packed with its name",
        _at("folder.tgz"),
        _context(
            "folder.tgz",
            "has no Dockerfile at its root (it is at app/Dockerfile: "
            "pack the folder's contents, as `tar -C app -czf context.tar.gz .` does); "
            "allowed: an archive with a file named Dockerfile at its root",
        ),
    ),
    Row(
        "a Dockerfile that is a link",
        _at("linked.tgz"),
        _context(
            "linked.tgz",
            "has a Dockerfile that is a link to docker/gpu; allowed: an archive with a file named Dockerfile at its root, as `tar -h` "
            "packs in place of the link",
        ),
    ),
    Row(
        "a Dockerfile with an ending",
        _at("text.tgz"),
        _context(
            "text.tgz",
            "has no Dockerfile at its root (it has Dockerfile.txt); allowed: an archive with a file named Dockerfile at its root",
        ),
    ),
    Row(
        "a context packed with Deflate64",
        _at("deflate64.zip"),
        _context(
            "deflate64.zip",
            "has the entry 'Dockerfile', packed with Deflate64, which Python 3.10 cannot read; allowed: what "
            "`tar -C FOLDER -czf code.tar.gz .` makes",
        ),
    ),
    Row(
        "an absolute name",
        _at("abs.tgz"),
        _context("abs.tgz", f"has the entry '/etc/passwd', which points out of its folder; {PLAIN}"),
    ),
    Row(
        "a name that climbs",
        _at("up.tgz"),
        _context("up.tgz", f"has the entry '../up', which points out of its folder; {PLAIN}"),
    ),
    Row(
        "a link that leaves",
        _at("link.tgz"),
        _context("link.tgz", f"has the entry 'etc', a link to '/etc', out of its folder; {PLAIN}"),
    ),
    Row(
        "something below a link",
        _at("below.tgz"),
        _context("below.tgz", f"has the entry 'a/x', which lies below a link; {PLAIN}"),
    ),
    Row(
        "no archive by its bytes",
        _at("bytes.tgz"),
        _context("bytes.tgz", "cannot be read (truncated header); allowed: a whole .tar.gz, .tgz, .tar or .zip"),
    ),
    *(Row(what, {"context": commit}, says) for what, commit, says in image_commits.ROWS),
    Row(
        "a repository of another deployment",
        {"repository": "lab/images"},
        "repository: lab/images is not a repository of yard; allowed: images, grid",
    ),
    Row(
        "the repository of the platform's own images",
        {"repository": "platform", "if_absent": True},
        "repository: platform takes the images of deploys only; allowed: images, grid",
    ),
    Row(
        "the repository where builds of the platform's own images keep their layers",
        {"repository": "platform-cache"},
        "repository: platform-cache takes the images of deploys only; allowed: images, grid",
    ),
    Row(
        "a repository that ECR would not take", {"repository": "Images"}, "repository: Images is not a repository name"
    ),
    Row(
        "a repository with a newline", {"repository": "images\n"}, "repository: images\\u000a is not a repository name"
    ),
    Row("a tag of 129 characters", {"tag": "v" * 129}, f"tag: {'v' * 80}... is not a tag"),
    Row("a tag with a space", {"tag": "v 1"}, "tag: v 1 is not a tag"),
    Row("a tag that begins with a dot", {"tag": ".v1"}, "tag: .v1 is not a tag"),
    Row("shell in a tag", {"tag": "$(id)"}, "tag: $(id) is not a tag"),
    Row("an empty tag", {"tag": ""}, 'tag: "" is not a tag'),
    Row("a number for a tag", {"tag": 1}, "tag: 1 is not a string"),
    Row(
        "a tag that is taken everywhere",
        {},
        f"tag: v1 is taken in every region ({DIGEST}), and tags never move; "
        f'allowed: a tag that is not taken, or "if_absent": true to use the image that is there',
    ),
    Row(
        "a tag that is two images",
        {},
        f"tag: v1 is a different image in different regions: eu-central-1 has {DIGEST}, "
        f"us-east-1 has {OTHER_DIGEST}; allowed: a tag that is not taken",
    ),
    Row(
        "an argument that is not a name",
        {"build_arguments": {"A-B": "1"}},
        "build_arguments.A-B: is not an argument name; allowed: letters, digits and _, not beginning with a digit",
    ),
    Row(
        "the argument that base becomes",
        {"build_arguments": {"BASE": "x"}},
        "build_arguments.BASE: is set by base; allowed: any other name",
    ),
    *(
        Row(
            what,
            {"build_arguments": {name: "http://proxy:3128"}},
            f"build_arguments.{name}: is a proxy, which Docker leaves out of what identifies a layer: a build with another value "
            "would get the layers of this one; allowed: a name of your own, as in RUN http_proxy=$MY_PROXY pip install ...",
        )
        for what, name in (
            ("a proxy", "HTTP_PROXY"),
            ("a proxy in small letters", "https_proxy"),
            ("a proxy in letters of both cases", "No_Proxy"),
            ("a proxy for FTP", "FTP_PROXY"),
            ("a proxy for everything", "all_proxy"),
        )
    ),
    *(
        Row(
            what,
            {"build_arguments": {name: "1"}},
            f"build_arguments.{name}: is an instruction to BuildKit and no ARG of the Dockerfile; allowed: names that do not begin "
            "with BUILDKIT_ (a Dockerfile may begin with a line # syntax=...)",
        )
        for what, name in (
            ("another reader of the Dockerfile", "BUILDKIT_SYNTAX"),
            ("a cache that BuildKit shares", "BUILDKIT_CACHE_MOUNT_NS"),
            ("an instruction to BuildKit of a later release", "BUILDKIT_ANYTHING"),
        )
    ),
    Row("an argument that is a number", {"build_arguments": {"A": 1}}, "build_arguments.A: 1 is not a string"),
    Row("an argument too long", {"build_arguments": {"A": "x" * 4001}}, "build_arguments.A: has 4,001 characters"),
    Row(
        "an argument with a NUL",
        {"build_arguments": {"A": "a\0b"}},
        "build_arguments.A: holds a NUL character; allowed: all others",
    ),
    Row(
        "arguments that CodeBuild would not take",
        {"build_arguments": {"A": "x" * 3000, "B": "x" * 3000}},
        "build_arguments: make an order of 6,464 characters; allowed: up to 5,000 with everything else in it "
        "(long values belong in a file of the context)",
    ),
    Row(
        "a base without a tag",
        {"base": "pytorch-training"},
        "base: pytorch-training is not the name and tag of a container",
    ),
    Row(
        "a base with its registry",
        {"base": f"{CONTAINERS}/{BASE}:1"},
        f"base: {f'{CONTAINERS}/{BASE}:1'[:80]}... is not the name and tag of a container",
    ),
    Row(
        "a base that AWS does not have",
        {"base": "pytorch-training:0.1"},
        f"base: pytorch-training:0.1 does not exist in {CONTAINERS}; "
        "allowed: name and tag of a container in the list of AWS Deep Learning Containers",
    ),
    Row(
        "an image without its registry",
        {"copy": "nginx:1"},
        "copy: nginx:1 does not begin with a registry",
        without=("context",),
    ),
    Row(
        "an image without a tag",
        {"copy": "public.ecr.aws/x/y"},
        "copy: public.ecr.aws/x/y has neither a tag nor a digest",
        without=("context",),
    ),
    Row(
        "an image of the own machine",
        {"copy": "127.0.0.1/x:1"},
        "copy: 127.0.0.1/x:1 does not begin with a registry",
        without=("context",),
    ),
    Row(
        "an image of a stranger's private registry",
        {"copy": STRANGE},
        f"copy: {STRANGE} lies in a private registry of account 999988887777; "
        "allowed: public registries, and private ones of "
        f"{ACCOUNT}, {DEEP_LEARNING}, {PARTNER}",
        without=("context",),
    ),
    Row(
        "an image of another deployment",
        {"copy": OURS},
        f"copy: {OURS} is not a repository of this deployment; allowed: yard/..., or public registries",
        without=("context",),
    ),
    Row(
        "an image that is not there",
        {"copy": NONE},
        f"copy: {NONE} does not exist; allowed: an image that can be pulled",
        without=("context",),
    ),
)
HEAD = """# What the Build machine refuses

<!-- Written by `make docs` from tools/refusals/images.py, which a test runs against the function. -->

A request that is wrong fails in *Check* with the error `InvalidRequest`, before a build starts and before anything is changed. The cause
names everything that is wrong, a line a problem. The examples come from a deployment named `yard` in {regions} with the
repositories `images` and `grid`; each is this request with the fields shown put in:

```json
{least}
```

{count} refusals:

| what | given | answer |
|---|---|---|
"""


def pages() -> dict[Path, str]:
    return {PAGE: page()}


def page() -> str:
    """Returns the whole page."""
    head = HEAD.format(regions=", ".join(REGIONS), least=json.dumps(LEAST, indent=2), count=len(ROWS))
    rows = [
        f"| {plain(row.what)} | {_given(row)} | {'<br>'.join(plain(line) for line in row.lines())} |" for row in ROWS
    ]
    return head + "\n".join(rows) + "\n"


def _given(row: Row) -> str:
    shown = [f"without {', '.join(row.without)}"] if row.without else []
    if row.given or row.whole:
        shown.append(code(json.dumps(row.given, ensure_ascii=False), WIDTH))
    return ", ".join(shown)
