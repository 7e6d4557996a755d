"""The Build machine's function through real boto3 clients: what it orders, what it finds standing, how it tells a failure."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace

import pytest
from botocore.exceptions import ClientError

import image_build.handler
from contract.codec import decode
from contract.errors import BuildFailed, InvalidRequest
from contract.images import AMD64, ARM64, BuildOrder, ContainerImage
from tests.archives import tarred
from tests.functions.image_build.account import ENVIRONMENT, HOME, REPOSITORY, Account, account, check, collect
from tools.refusals.images import ACCOUNT, BASE, DIGEST, LEAST, OTHER_DIGEST, PARTNER, REGIONS

BUILD = "yard-build:12345678-1234-1234-1234-123456789012"
EVERYWHERE = dict.fromkeys(REGIONS, DIGEST)
PLAN = {"repository": REPOSITORY, "tag": "v1", "how": "built", "order": "{}"}


def ordered(request: object) -> BuildOrder:
    return decode(BuildOrder, check(request)["order"])


# check


def test_a_request_becomes_an_order_for_every_region(there: Account) -> None:
    order = ordered({**LEAST, "build_arguments": {"EXTRA": "a b"}, "base": BASE})
    assert order.regions == REGIONS
    assert order.arguments == {"EXTRA": "a b"}
    assert order.base == f"763104351884.dkr.ecr.eu-central-1.amazonaws.com/{BASE}"
    assert str(order.target("us-east-1")) == f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/yard/images:v1"
    assert there.changes == []


@pytest.mark.parametrize("given", [{"platform": ARM64}, {"platform": AMD64}, {}], ids=["arm64", "amd64", "nothing"])
def test_the_plan_and_its_order_name_the_platform(there: Account, given: dict[str, str]) -> None:
    plan = check({**LEAST, **given})
    assert plan["platform"] == decode(BuildOrder, plan["order"]).platform == given.get("platform", AMD64)
    assert there.changes == []


def test_the_order_names_the_version_that_was_checked(there: Account) -> None:
    there.put("uploads/good.tar.gz", tarred(("Dockerfile", "FROM other\n")))
    order = ordered(LEAST)
    newest = there.s3.buckets["yard-home"].newest("uploads/good.tar.gz")
    assert order.context is not None
    assert newest is not None
    assert (order.context.version, order.context.etag) == (newest.id, newest.etag)


def test_every_look_into_the_context_is_at_the_version_of_the_first(there: Account) -> None:
    check(LEAST)
    looks = [call.params for call in there.calls_of("s3") if call.operation == "GetObject"]
    assert looks
    assert {(one["VersionId"], one["IfMatch"]) for one in looks} == {
        (looks[0]["VersionId"], there.s3.buckets["yard-home"].objects["uploads/good.tar.gz"][0].etag)
    }


def test_a_plain_tar_and_a_tgz_are_contexts_too(there: Account) -> None:
    there.put("uploads/a.tar", tarred(("Dockerfile", "FROM scratch\n"), mode="w"))
    there.put("uploads/a.tgz", tarred(("Dockerfile", "FROM scratch\n")))
    for name in ("a.tar", "a.tgz"):
        assert ordered({**LEAST, "context": f"s3://yard-home/uploads/{name}"}).context is not None


def test_a_zip_is_looked_at_from_its_end(there: Account) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("big.bin", bytes(12 * 1024**2))
        archive.writestr("Dockerfile", "FROM scratch\n")
    there.put("uploads/a.zip", packed.getvalue())
    assert ordered({**LEAST, "context": "s3://yard-home/uploads/a.zip"}).context is not None
    places = [call.params["Range"] for call in there.calls_of("s3") if call.operation == "GetObject"]
    assert places
    assert "bytes=0-" not in places


def test_a_context_that_changes_while_it_is_looked_at_is_refused(
    there: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(*_: object) -> list[str]:
        raise ClientError({"Error": {"Code": "PreconditionFailed", "Message": ""}}, "GetObject")

    monkeypatch.setattr(image_build.handler, "archive_problems", changed)
    with pytest.raises(InvalidRequest, match="S3 answers PreconditionFailed"):
        check(LEAST)
    assert there.changes == []


def test_trouble_of_s3_is_not_said_to_be_the_contexts(there: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: object) -> list[str]:
        raise ClientError({"Error": {"Code": "SlowDown", "Message": ""}}, "GetObject")

    monkeypatch.setattr(image_build.handler, "archive_problems", slow)
    with pytest.raises(ClientError, match="SlowDown"):
        check(LEAST)
    assert there.changes == []


def test_a_copy_orders_the_source_and_no_context(there: Account) -> None:
    order = ordered({"copy": "public.ecr.aws/lab/tool:7", "repository": "images", "tag": "tool"})
    assert (order.source, order.context, order.cache) == ("public.ecr.aws/lab/tool:7", None, "")
    assert [call.name for call in there.calls] == ["ecr:DescribeImages"] * 3


def test_a_copy_by_tag_and_digest_is_ordered_by_its_digest(there: Account) -> None:
    source = f"public.ecr.aws/lab/tool:7@{DIGEST}"
    assert (
        ordered({"copy": source, "repository": "images", "tag": "tool"}).source == f"public.ecr.aws/lab/tool@{DIGEST}"
    )
    assert there.changes == []


def test_a_copy_from_an_account_of_the_settings_is_looked_up_there(there: Account) -> None:
    there.ecr["us-east-1"].repositories[PARTNER, "lab/x"] = {"1": DIGEST}
    source = f"{PARTNER}.dkr.ecr.us-east-1.amazonaws.com/lab/x:1"
    assert ordered({"copy": source, "repository": "images", "tag": "x"}).source == source


def test_a_registry_that_does_not_let_us_look_is_left_to_the_pull(there: Account) -> None:
    there.ecr[HOME].closed = frozenset({"763104351884"})
    assert ordered({**LEAST, "base": BASE}).base


def test_what_stands_everywhere_is_unchanged_where_that_is_enough(there: Account) -> None:
    there.stand("v1", EVERYWHERE)
    plan = check({**LEAST, "if_absent": True})
    assert (plan["order"], plan["how"]) == ("", "unchanged")


def test_what_an_earlier_push_left_undone_is_copied_and_not_built(there: Account) -> None:
    there.stand("v1", {"us-east-1": DIGEST})
    plan = check(LEAST)
    order = decode(BuildOrder, plan["order"])
    assert plan["how"] == "completed"
    assert order.regions == ("eu-central-1", "ap-south-1")
    assert order.source == f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/yard/images@{DIGEST}"
    assert order.context is None


@pytest.mark.parametrize("if_absent", [False, True])
def test_different_images_under_one_tag_are_refused_with_their_regions(there: Account, if_absent: bool) -> None:
    there.stand("v1", {"eu-central-1": DIGEST, "us-east-1": OTHER_DIGEST})
    with pytest.raises(InvalidRequest) as problem:
        check({**LEAST, "if_absent": if_absent})
    assert f"eu-central-1 has {DIGEST}, us-east-1 has {OTHER_DIGEST}" in str(problem.value)


def test_a_tag_of_another_repository_is_free(there: Account) -> None:
    there.stand("v1", EVERYWHERE, repository="yard/grid")
    assert ordered(LEAST).regions == REGIONS


def test_an_order_is_ascii_that_reads_back_as_it_was(there: Account) -> None:
    odd = {"A": "déjà \u202e 🚂\n\"'`$(x)\\", "B": "{% $states.input %}"}
    text = check({**LEAST, "build_arguments": odd})["order"]
    assert text.isascii()
    assert text.isprintable()
    assert decode(BuildOrder, text).arguments == odd
    assert there.changes == []


@pytest.mark.parametrize(
    "name", ["PROXY", "HTTP_PROXY_URL", "MY_HTTP_PROXY", "BUILDKIT", "MY_BUILDKIT_SYNTAX", "buildkit_syntax"]
)
def test_an_argument_that_only_resembles_one_of_dockers_reaches_the_build(there: Account, name: str) -> None:
    assert ordered({**LEAST, "build_arguments": {name: "1"}}).arguments == {name: "1"}
    assert there.changes == []


def test_an_order_that_codebuild_would_not_take_is_refused(there: Account) -> None:
    assert len(ordered({**LEAST, "build_arguments": {"A": "x" * 3900}}).text()) < 5000
    with pytest.raises(InvalidRequest, match="build_arguments: make an order of"):
        check({**LEAST, "build_arguments": {"A": "x" * 3000, "B": "x" * 3000}})
    assert there.changes == []


def test_short_names_of_a_region_that_nobody_knows_are_refused_when_they_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with account(monkeypatch, replace(ENVIRONMENT, base_account="")):
        with pytest.raises(InvalidRequest, match="in eu-central-1 is unknown"):
            check({**LEAST, "base": BASE})
        assert ordered(LEAST).base == ""


def test_a_region_without_the_repository_is_named(there: Account) -> None:
    del there.ecr["ap-south-1"].repositories[ACCOUNT, REPOSITORY]
    with pytest.raises(
        InvalidRequest, match="repository: ap-south-1 has no yard/images; allowed: deploy the region first"
    ):
        check(LEAST)


# collect


def test_the_output_names_the_image_in_every_region_by_its_digest(there: Account) -> None:
    there.stand("v1", EVERYWHERE)
    output = collect(PLAN, BUILD)
    assert output == {
        "repository": REPOSITORY,
        "tag": "v1",
        "digest": DIGEST,
        "images": {region: f"{ACCOUNT}.dkr.ecr.{region}.amazonaws.com/yard/images@{DIGEST}" for region in REGIONS},
        "build": BUILD,
        "how": "built",
        "unchanged": False,
    }


def test_a_build_that_says_it_is_done_is_not_believed(there: Account) -> None:
    there.stand("v1", {"eu-central-1": DIGEST, "ap-south-1": DIGEST})
    with pytest.raises(BuildFailed, match="us-east-1 has no such image"):
        collect(PLAN, BUILD)


def test_two_images_under_one_tag_are_a_failure_with_both_named(there: Account) -> None:
    there.stand("v1", {**EVERYWHERE, "us-east-1": OTHER_DIGEST})
    with pytest.raises(BuildFailed) as problem:
        collect(PLAN, BUILD)
    assert f"us-east-1 has {OTHER_DIGEST}" in str(problem.value)


def failed_build(there: Account, lines: int, why: str = "") -> dict[str, str]:
    build = there.codebuild.fail(BUILD, group="/trainyard/yard/builds", phase="BUILD", why=why)
    events = [{"timestamp": n, "message": f"\x1b[31mline {n}\x1b[0m\r\n"} for n in range(lines)]
    there.logs.groups["/trainyard/yard/builds"] = {build.stream: events}
    return {"Error": "States.TaskFailed", "Cause": f'{{"Build":{{"Arn":"x","Id":"{BUILD}","BuildStatus":"FAILED"'}


def test_a_failed_build_is_told_with_the_last_thirty_lines_of_its_log(there: Account) -> None:
    with pytest.raises(BuildFailed) as problem:
        collect(PLAN, None, failed_build(there, 100))
    text = str(problem.value)
    assert f"Build {BUILD} ended with FAILED in its phase BUILD." in text
    assert f"the stream {BUILD.partition(':')[2]} of /trainyard/yard/builds" in text
    assert text.splitlines()[-30:] == [f"line {n}" for n in range(70, 100)]


def test_a_build_without_a_log_is_told_with_codebuilds_own_words(there: Account) -> None:
    problem = failed_build(there, 0, "BUILD_CONTAINER_UNABLE_TO_PULL_IMAGE")
    there.logs.groups.clear()
    with pytest.raises(BuildFailed) as failure:
        collect(PLAN, None, problem)
    assert "BUILD_CONTAINER_UNABLE_TO_PULL_IMAGE" in str(failure.value)
    assert "It wrote no log." in str(failure.value)


def test_a_build_that_never_started_is_told_as_it_was_refused(there: Account) -> None:
    cause = "Cannot have more than 0 builds in queue for the account"
    with pytest.raises(BuildFailed, match=cause):
        collect(PLAN, None, {"Error": "CodeBuild.AccountLimitExceededException", "Cause": cause})
    assert there.changes == []


def test_a_failure_stays_a_failure_whatever_stands(there: Account) -> None:
    there.stand("v1", EVERYWHERE)
    with pytest.raises(BuildFailed):
        collect(PLAN, None, failed_build(there, 3))


# addresses


@pytest.mark.parametrize(
    "text",
    [
        "nginx:1",
        "localhost/x:1",
        "127.0.0.1/x:1",
        "169.254.169.254/latest:1",
        "Public.ecr.aws/x:1",
        "public.ecr.aws/X:1",
        "public.ecr.aws/x",
        "public.ecr.aws/x:",
        "public.ecr.aws/x@sha256:abc",
        "public.ecr.aws/../x:1",
        "public.ecr.aws/x:1 --push",
        "https://public.ecr.aws/x:1",
        "public.ecr.aws/x:1\n",
        "",
    ],
)
def test_what_is_no_address_of_an_image_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"registry|repository|tag|digest"):
        ContainerImage.parse(text)


def test_an_address_reads_back_as_it_was_written() -> None:
    for text in (f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/a/b_c@{DIGEST}", "ghcr.io:443/a/b:V1.0-x"):
        assert str(ContainerImage.parse(text)) == text
