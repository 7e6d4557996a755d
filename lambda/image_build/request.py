"""Reads the request that a person pastes into the console to have an image built or copied; checks that need AWS are in policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from contract.images import AMD64, ARGUMENT, BASE, PLATFORMS, REPOSITORY, REPOSITORY_LENGTHS, TAG, ContainerImage
from git_code.commit import GIT_MAY_BE
from git_code.fields import CodeSource
from refusals.fields import ARCHIVE_MAY_BE, without_nul
from refusals.placeholders import find_placeholders
from refusals.texts import validate
from refusals.wording import lines, plain

MOST_VALUE = 4000
"""The most characters of a build argument's value: CodeBuild takes 5,500 for all variables together."""
PROXIES = frozenset({"http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy"})
"""Arguments that Docker takes without an ARG line, in any case. They reach each RUN line, and no part of what identifies its layer."""
OF_BUILDKIT = "BUILDKIT_"
"""Names that begin so direct BuildKit itself: which program reads the Dockerfile, which cache a RUN line shares."""
ALLOWED = {
    "context": f"{ARCHIVE_MAY_BE}, or a commit: {GIT_MAY_BE}; with a Dockerfile at its root",
    "copy": "an image with its registry, as in public.ecr.aws/docker/library/python:3.12-slim",
    "repository": "one of the deployment's repositories, as in images",
    "tag": "1 to 128 letters, digits, _, . and -, not beginning with . or -",
    "build_arguments": f"an object of names and strings, each up to {MOST_VALUE:,} characters",
    "base": "name and tag of a Deep Learning Container, as in pytorch-training:2.8.0-gpu-py312-cu129-ubuntu22.04-ec2",
    "platform": " or ".join(PLATFORMS),
    "if_absent": "true or false",
}
"""What each field may be."""


def _image(value: str) -> str:
    try:
        ContainerImage.parse(value)
    except ValueError as problem:
        raise ValueError(f"{plain(value)} {problem}") from None
    return value


def _repository(value: str) -> str:
    if not REPOSITORY.fullmatch(value) or len(value) not in REPOSITORY_LENGTHS:
        raise ValueError(f"{plain(value)} is not a repository name")
    return value


def _tag(value: str) -> str:
    if not TAG.fullmatch(value):
        raise ValueError(f"{plain(value)} is not a tag")
    return value


def _argument(name: str) -> str:
    if not ARGUMENT.fullmatch(name):
        raise ValueError("is not an argument name; allowed: letters, digits and _, not beginning with a digit")
    if name == BASE:
        raise ValueError("is set by base; allowed: any other name")
    if name.lower() in PROXIES:
        raise ValueError(
            "is a proxy, which Docker leaves out of what identifies a layer: a build with another value would get the layers of "
            "this one; allowed: a name of your own, as in RUN http_proxy=$MY_PROXY pip install ..."
        )
    if name.startswith(OF_BUILDKIT):
        raise ValueError(
            "is an instruction to BuildKit and no ARG of the Dockerfile; allowed: names that do not begin with "
            f"{OF_BUILDKIT} (a Dockerfile may begin with a line # syntax=...)"
        )
    return name


def _platform(value: str) -> str:
    if value not in PLATFORMS:
        raise ValueError(f"{plain(value)} is not a platform")
    return value


def _base(value: str) -> str:
    repository, _, tag = value.partition(":")
    if not REPOSITORY.fullmatch(repository) or len(repository) not in REPOSITORY_LENGTHS or not TAG.fullmatch(tag):
        raise ValueError(f"{plain(value)} is not the name and tag of a container")
    return value


class ImageRequest(BaseModel):
    """An image that is to stand in every region: built from a context, or copied."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, title="Trainyard image")

    context: CodeSource | None = Field(
        default=None,
        description="S3 address of an archive, or a commit of a git repository, with a Dockerfile at its root; one of context and copy.",
        examples=[
            "s3://my-bucket/uploads/image_with_code.tar.gz",
            {"git": "https://github.com/owner/repository.git", "ref": "0123456789abcdef0123456789abcdef01234567"},
        ],
    )
    image: Annotated[str, Field(max_length=512), AfterValidator(_image)] | None = Field(
        default=None,
        alias="copy",
        description="An existing image that is copied as it is, with its registry and a tag or a digest.",
        examples=["public.ecr.aws/docker/library/python:3.12-slim"],
    )
    repository: Annotated[str, Field(max_length=256), AfterValidator(_repository)] = Field(
        description="One of the deployment's repositories, without the deployment's name.", examples=["images"]
    )
    tag: Annotated[str, Field(max_length=300), AfterValidator(_tag)] = Field(
        description="The image's tag in every region. Tags never move: a taken one is refused.",
        examples=["v1"],
        json_schema_extra={"pattern": f"^{TAG.pattern}$", "maxLength": 128},
    )
    build_arguments: dict[
        Annotated[str, AfterValidator(_argument)],
        Annotated[str, Field(max_length=MOST_VALUE), AfterValidator(without_nul)],
    ] = Field(
        default_factory=dict,
        max_length=100,
        description="The Dockerfile's ARGs. They stay readable in the image's history: no place for secrets.",
        examples=[{"EXTRA_PACKAGES": "einops==0.8.1"}],
    )
    base: Annotated[str, Field(max_length=400), AfterValidator(_base)] | None = Field(
        default=None,
        description=f"An AWS Deep Learning Container of the home region by its short name; the Dockerfile's argument {BASE}.",
        examples=["pytorch-training:2.8.0-gpu-py312-cu129-ubuntu22.04-ec2"],
    )
    platform: Annotated[str, AfterValidator(_platform)] = Field(
        default=AMD64,
        description="The processors that the image is built for: those of the machines that will run it.",
        json_schema_extra={"enum": list(PLATFORMS)},
    )
    if_absent: bool = Field(default=False, description="Accept the image that has the tag in every region already.")


_STAND_IN = {"copy": "any.any/any:any", "repository": "any", "tag": "any"}
"""Values of required fields that are wrong."""


def read(raw: object) -> tuple[ImageRequest, list[str]]:
    """Returns the request and a line for every problem; wrong fields are empty, so that the rest can still be judged."""
    left = find_placeholders(raw)
    problems, wrong = [*left.values()], {*left}
    request, errors = validate(ImageRequest, raw)
    if request is None:
        errors = [one for one in errors if not left.keys() & one["loc"][:1]]
        problems += lines(errors, ALLOWED)
        wrong |= {str(error["loc"][0]) for error in errors if error["loc"]}
    if request is None or problems:
        request = _rest(raw, wrong)
    given = raw if isinstance(raw, Mapping) else {}
    if isinstance(raw, Mapping):
        problems += _together(given)
    return request, problems


def _together(given: Mapping[str, object]) -> list[str]:
    """Finds fields that do not go together; a field that is null counts as absent."""
    there = {name for name, value in given.items() if value is not None}
    ways = there & {"context", "copy"}
    if not ways:
        return [f"context: is missing, and so is copy; allowed: {ALLOWED['context']}; or copy: {ALLOWED['copy']}"]
    if len(ways) == 2:
        return ["copy: excludes context; allowed: one of them"]
    return [
        f"{name}: means nothing for a copy; allowed: with context"
        for name in ("build_arguments", "base", "platform")
        if name in there and ways == {"copy"} and given[name] != {}
    ]


def _rest(raw: object, wrong: set[str]) -> ImageRequest:
    """Reads the fields that are right; the others are empty."""
    fields = raw if isinstance(raw, Mapping) and wrong else {}
    right = {
        field.alias or name: fields[field.alias or name]
        for name, field in ImageRequest.model_fields.items()
        if (field.alias or name) in fields and (field.alias or name) not in wrong
    }
    request = ImageRequest.model_validate({**_STAND_IN, **right})
    empty = {"image" if name == "copy" else name: "" for name in _STAND_IN if name not in right}
    return request.model_copy(update=empty)


def schema() -> dict[str, Any]:
    """JSON Schema of the request, for `docs/reference/build.schema.json`."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **ImageRequest.model_json_schema(by_alias=True)}
