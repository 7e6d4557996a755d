"""The Build machine on the local AWS: the stack by CloudFormation, the buildspec as a process, three regions of registries."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from contract import names
from localaws.server import LocalAws
from localaws.services.codebuild_run import AWS_CLI
from localaws.testing.calm import CALM, over
from localaws.testing.waiting import until
from tests.archives import tarred, zip_entry, zip_with
from tests.stacks.builds import REGIONS, built

pytestmark = [pytest.mark.rehearsal, pytest.mark.images]
HOME, DEPLOYMENT = REGIONS[0], "yard"
REPOSITORY = names.repository(DEPLOYMENT)


@dataclass
class Yard:
    """The deployed Build machine, and what a test does with it."""

    aws: LocalAws
    machine: str
    bucket: str

    def upload(self, name: str, files: Mapping[str, str]) -> str:
        packed = tarred(*files.items())
        self.aws.client("s3", HOME).put_object(Bucket=self.bucket, Key=f"uploads/{name}", Body=packed)
        return f"s3://{self.bucket}/uploads/{name}"

    def run(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """DescribeExecution at the end; `output` parsed."""
        states = self.aws.client("stepfunctions", HOME)
        arn = states.start_execution(
            stateMachineArn=self.machine, name=f"e-{time.time_ns()}", input=json.dumps(request)
        )["executionArn"]
        ended = over(states, arn)
        return {**ended, "output": json.loads(ended["output"])} if ended["status"] == "SUCCEEDED" else ended

    def digests(self, tag: str) -> dict[str, str]:
        """Region to the digest under a tag, where there is one."""
        found = {}
        for region in REGIONS:
            for one in self.aws.client("ecr", region).list_images(repositoryName=REPOSITORY)["imageIds"]:
                if one.get("imageTag") == tag:
                    found[region] = str(one["imageDigest"])
        return found

    def builds(self) -> int:
        return len(self.aws.recorder.of(name="codebuild:StartBuild"))


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    if not (AWS_CLI / "aws").exists():
        pytest.fail("the AWS command line is not there: run `make setup`")
    out = tmp_path_factory.mktemp("assembly")
    with LocalAws(CALM, gaps=("cloudformation", "ecr", "codebuild")) as aws:
        bucket = names.home_bucket(DEPLOYMENT, aws.account, HOME)
        s3 = aws.client("s3", HOME)
        for name in (bucket, f"cdk-hnb659fds-assets-{aws.account}-{HOME}"):
            s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": HOME})
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        for region in REGIONS:
            aws.client("ecr", region).create_repository(repositoryName=REPOSITORY, imageTagMutability="IMMUTABLE")
        built(out)
        deploy(aws, out)
        outputs = aws.client("cloudformation", HOME).describe_stacks(StackName="yard-builds")["Stacks"][0]["Outputs"]
        (machine,) = (one["OutputValue"] for one in outputs if one["OutputKey"] == "BuildMachine")
        yield Yard(aws, machine, bucket)


def deploy(aws: LocalAws, assembly: Path) -> None:
    """Assets and template, as the CDK command line brings them; it is not what this is about."""
    s3, manifest = aws.client("s3", HOME), json.loads((assembly / "yard-builds.assets.json").read_text())
    for asset in manifest["files"].values():
        (place,) = asset["destinations"].values()
        source = assembly / asset["source"]["path"]
        if source.is_dir():
            s3.put_object(
                Bucket=place["bucketName"].replace("${AWS::AccountId}", aws.account),
                Key=place["objectKey"],
                Body=packed(source),
            )
    template = (assembly / "yard-builds.template.json").read_text()
    formation = aws.client("cloudformation", HOME)
    parameters = [{"ParameterKey": "BootstrapVersion", "ParameterValue": "/cdk-bootstrap/hnb659fds/version"}]
    aws.client("ssm", HOME).put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String")
    formation.create_stack(
        StackName="yard-builds", TemplateBody=template, Parameters=parameters, Capabilities=["CAPABILITY_IAM"]
    )


def packed(folder: Path) -> bytes:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    entries = [(zip_entry(str(path.relative_to(folder)), path.stat().st_mode), path.read_bytes()) for path in files]
    return zip_with(*entries)


def test_an_image_is_built_once_and_stands_in_every_region(yard: Yard) -> None:
    context = yard.upload("good.tar.gz", {"Dockerfile": "FROM scratch\n", "train.py": "print(1)\n"})
    odd = {"MESSAGE": "two words; $(touch /tmp/never) 'and' \"quotes\"\nand lines", "EMPTY": ""}
    ended = yard.run({"context": context, "repository": "images", "tag": "v1", "build_arguments": odd})
    assert ended["status"] == "SUCCEEDED", ended.get("cause")
    output = ended["output"]
    assert (output["how"], output["unchanged"], output["tag"]) == ("built", False, "v1")
    assert yard.digests("v1") == dict.fromkeys(REGIONS, output["digest"])
    assert output["images"]["us-east-1"] == (
        f"{yard.aws.account}.dkr.ecr.us-east-1.amazonaws.com/{REPOSITORY}@{output['digest']}"
    )
    calls = [json.loads(line) for line in (yard.aws.work / "images" / "calls").read_text().splitlines()]
    (build,) = (call for call in calls if call[:2] == ["buildx", "build"])
    assert {f"{name}={value}" for name, value in odd.items()} <= set(build)


def test_an_image_for_arm64_is_built_on_a_machine_with_such_processors(yard: Yard) -> None:
    context = yard.upload("arm.tar.gz", {"Dockerfile": "FROM scratch\n"})
    request = {"context": context, "repository": "images", "tag": "arm-1", "platform": "linux/arm64"}
    ended = yard.run(request)
    assert ended["status"] == "SUCCEEDED", ended.get("cause")
    (build,) = yard.aws.client("codebuild", HOME).batch_get_builds(ids=[ended["output"]["build"]])["builds"]
    assert build["environment"]["type"] == "ARM_CONTAINER"
    assert "aarch64" in build["environment"]["image"]
    calls = [json.loads(line) for line in (yard.aws.work / "images" / "calls").read_text().splitlines()]
    assert any("linux/arm64" in call for call in calls if call[:2] == ["buildx", "build"])


def test_what_stands_everywhere_is_not_built_again(yard: Yard) -> None:
    before = yard.builds()
    request = {
        "context": yard.upload("good.tar.gz", {"Dockerfile": "FROM other\n"}),
        "repository": "images",
        "tag": "v1",
    }
    again = yard.run({**request, "if_absent": True})
    assert again["output"]["unchanged"] is True
    refused = yard.run(request)
    assert (refused["status"], refused["error"]) == ("FAILED", "InvalidRequest")
    assert "is taken in every region" in refused["cause"]
    assert yard.builds() == before


def test_a_build_that_fails_tells_the_end_of_its_log(yard: Yard) -> None:
    context = yard.upload("bad.tar.gz", {"Dockerfile": "FROM scratch\nRUN false\n"})
    ended = yard.run({"context": context, "repository": "images", "tag": "bad"})
    assert (ended["status"], ended["error"]) == ("FAILED", "BuildFailed")
    assert "did not complete successfully: exit code: 1" in ended["cause"]
    assert names.build_log_group(DEPLOYMENT) in ended["cause"]
    assert yard.digests("bad") == {}


def test_a_region_that_cannot_be_pushed_to_is_named_and_completed_later(yard: Yard) -> None:
    fails = yard.aws.work / "images" / "fails"
    fails.parent.mkdir(exist_ok=True)
    fails.write_text(json.dumps(["create", "us-east-1.amazonaws.com/yard/images:v3", "denied: on fire"]) + "\n")
    request = {
        "context": yard.upload("third.tar.gz", {"Dockerfile": "FROM scratch\n# 3\n"}),
        "repository": "images",
        "tag": "v3",
    }
    ended = yard.run(request)
    assert ended["error"] == "BuildFailed"
    assert "us-east-1: denied: on fire" in ended["cause"]
    assert set(yard.digests("v3")) == {"eu-central-1", "ap-south-1"}
    fails.unlink()
    again = yard.run(request)
    assert again["output"]["how"] == "completed"
    assert len(set(yard.digests("v3").values())) == 1
    assert set(yard.digests("v3")) == set(REGIONS)


def test_an_image_of_another_registry_is_copied_as_it_is(yard: Yard) -> None:
    place = yard.aws.work / "images" / "public.ecr.aws" / "lab" / "tool"
    place.mkdir(parents=True)
    (place / "7").write_text(
        json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json"})
    )
    digest = f"sha256:{hashlib.sha256((place / '7').read_bytes()).hexdigest()}"
    (place / digest).write_text((place / "7").read_text())
    ended = yard.run({"copy": "public.ecr.aws/lab/tool:7", "repository": "images", "tag": "tool-7"})
    assert ended["status"] == "SUCCEEDED", ended.get("cause")
    assert ended["output"]["how"] == "copied"
    assert yard.digests("tool-7") == dict.fromkeys(REGIONS, digest)


def test_a_bad_request_starts_no_build(yard: Yard) -> None:
    before = yard.builds()
    ended = yard.run({"context": f"s3://{yard.bucket}/uploads/none.zip", "repository": "imagse", "tag": "-v"})
    assert ended["error"] == "InvalidRequest"
    for word in ("context: ", "repository: imagse", "tag: -v"):
        assert word in ended["cause"]
    assert yard.builds() == before


def test_an_execution_that_a_person_stops_stops_its_build(yard: Yard) -> None:
    context = yard.upload("slow.tar.gz", {"Dockerfile": "FROM scratch\nRUN sleep 60\n"})
    states, codebuild = yard.aws.client("stepfunctions", HOME), yard.aws.client("codebuild", HOME)
    request = {"context": context, "repository": "images", "tag": "slow"}
    arn = states.start_execution(stateMachineArn=yard.machine, name="stopped", input=json.dumps(request))[
        "executionArn"
    ]
    calls = yard.aws.work / "images" / "calls"
    until(lambda: calls.read_text().splitlines()[-1].startswith('["buildx", "build"'))
    states.stop_execution(executionArn=arn, cause="enough")
    until(lambda: yard.aws.recorder.of(name="codebuild:StopBuild"))
    (stopped,) = yard.aws.recorder.of(name="codebuild:StopBuild")
    assert "ImagesRole" in stopped.role
    group = names.build_log_group(DEPLOYMENT)
    streams = yard.aws.client("logs", HOME).describe_log_streams(logGroupName=group)["logStreams"]
    identities = [f"{names.build_project(DEPLOYMENT)}:{one['logStreamName']}" for one in streams]
    until(
        lambda: "STOPPED" in [one["buildStatus"] for one in codebuild.batch_get_builds(ids=identities)["builds"]], 15.0
    )
    assert yard.digests("slow") == {}
