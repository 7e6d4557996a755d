"""What the build does, and does not do: odd values, failing builds, failing pushes, a missing cache, copies."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

import pytest

from contract.images import ARM64, ContainerImage
from tests.archives import zip_entry, zip_with
from tests.image_builder.bench import BUILT, REGIONS, Bench, fresh, order

ODD = {
    "SPACES": "two words",
    "QUOTES": "\"double\" 'single' `back`",
    "COMMAND": "$(touch /tmp/never) ${HOME} $HOME; rm -rf / && false | true > /dev/null",
    "LINES": "one\ntwo\n",
    "EMPTY": "",
    "DASHES": "--push --tag=evil",
    "EQUALS": "a=b=c",
    "SCRIPTS": "déjà vu \u202e 🚂",
    "GLOB": "* ? [a-z] ~ {a,b} !x \\n",
    "JSONATA": "{% $states.input %}",
}


@dataclass(frozen=True, slots=True)
class Once:
    """A machine that has built once."""

    bench: Bench
    done: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Shared by tests that only look."""
    bench = fresh(tmp_path_factory.mktemp("once"))
    return Once(bench, bench.run(BUILT))


def test_an_image_is_built_once_and_stands_in_every_region_with_one_digest(once: Once) -> None:
    bench, done = once.bench, once.done
    assert done.returncode == 0, done.stderr
    assert len(bench.docker("buildx", "build")) == 1
    assert len(set(bench.standing().values())) == 1
    assert None not in bench.standing().values()
    (digest,) = set(bench.standing().values())
    for region in REGIONS:
        assert f"{region}: 111122223333.dkr.ecr.{region}.amazonaws.com/yard/images:v1 is {digest}" in done.stdout


def test_the_version_that_was_checked_is_the_one_that_is_fetched(once: Once) -> None:
    (call,) = once.bench.aws("s3api", "get-object")
    assert call[2:-1] == [
        *("--bucket", "yard-home", "--key", "uploads/context.tar.gz"),
        *("--if-match", '"abc"', "--version-id", "v-7"),
    ]


def test_regions_get_the_image_by_its_digest_and_never_by_a_tag_that_moves(once: Once) -> None:
    sources = {call[-1] for call in once.bench.docker("buildx", "imagetools", "create")}
    (digest,) = set(once.bench.standing().values())
    assert sources == {f"111122223333.dkr.ecr.eu-central-1.amazonaws.com/yard/build-cache@{digest}"}


def test_nothing_is_pushed_under_the_tag_before_the_whole_image_is_built(bench: Bench) -> None:
    bench.upload({"Dockerfile": "FROM scratch\nRUN false\n"})
    done = bench.run(BUILT)
    assert done.returncode != 0
    assert "exit code: 1" in done.stderr
    assert set(bench.standing().values()) == {None}
    assert bench.docker("buildx", "imagetools") == []


def test_odd_build_arguments_reach_docker_as_they_are(bench: Bench) -> None:
    done = bench.run(order(arguments=ODD))
    assert done.returncode == 0, done.stderr
    assert sorted(bench.arguments()) == sorted(f"{name}={value}" for name, value in ODD.items())


@pytest.mark.parametrize(
    "key", ["uploads/a b 'c' \"d\" $(id) `e`.tar.gz", "uploads/--help;x.tgz", f"uploads/{'n' * 400}.tar.gz"]
)
def test_an_odd_key_is_fetched_as_it_is(bench: Bench, key: str) -> None:
    if len(key) < 255:
        bench.upload({"Dockerfile": "FROM scratch\n"}, key)
    assert BUILT.context is not None
    done = bench.run(order(context=type(BUILT.context)(bucket="yard-home", key=key, version="", etag='"x"')))
    (call,) = bench.aws("s3api", "get-object")
    assert key in call
    assert "--version-id" not in call
    assert len(call[-1].rsplit("/", 1)[-1]) < 20
    assert (done.returncode == 0) == (len(key) < 255)  # a file system of the test cannot hold the long one


def test_the_base_is_an_argument_and_its_registry_is_logged_in_to(bench: Bench) -> None:
    base = "763104351884.dkr.ecr.eu-central-1.amazonaws.com/pytorch-training:2.8.0-gpu"
    bench.run(order(base=base))
    assert bench.arguments() == [f"BASE={base}"]
    assert "763104351884.dkr.ecr.eu-central-1.amazonaws.com" in {call[-1] for call in bench.docker("login")}


def test_without_a_base_no_argument_is_given(once: Once) -> None:
    assert once.bench.arguments() == []


def test_a_missing_cache_is_no_error_and_the_next_build_finds_one(bench: Bench) -> None:
    first, second = bench.run(BUILT), bench.run(order(tag="v2"))
    assert (first.returncode, second.returncode) == (0, 0)
    assert "ERROR: not found" in first.stdout
    assert "ERROR: not found" not in second.stdout
    cache = "type=registry,ref=111122223333.dkr.ecr.eu-central-1.amazonaws.com/yard/build-cache:yard-images"
    assert all(cache in call and "type=inline" in call for call in bench.docker("buildx", "build"))


def test_an_image_is_one_manifest_for_one_platform(once: Once) -> None:
    (call,) = once.bench.docker("buildx", "build")
    assert {"linux/amd64", "--provenance=false", "--sbom=false"} <= set(call)


def test_an_image_for_arm64_is_built_for_it_and_its_layers_are_no_other_builds(bench: Bench) -> None:
    done = bench.run(order(platform=ARM64))
    assert done.returncode == 0, done.stderr
    (call,) = bench.docker("buildx", "build")
    assert call[call.index("--platform") + 1] == "linux/arm64"
    assert f"{BUILT.built}-linux-arm64" in call


@pytest.mark.parametrize("region", [*REGIONS[:2], pytest.param(REGIONS[2], marks=pytest.mark.at_length)])
def test_a_region_that_cannot_be_pushed_to_is_named_and_the_others_have_the_image(bench: Bench, region: str) -> None:
    bench.fail("create", BUILT.target(region).registry + "/yard/images:v1", says="denied: your registry is on fire")
    done = bench.run(BUILT)
    assert done.returncode == 1
    assert f"  {region}: denied: your registry is on fire" in done.stderr
    assert {one for one, digest in bench.standing().items() if digest is None} == {region}
    assert len(set(bench.standing().values()) - {None}) == 1
    assert len(bench.docker("buildx", "build")) == 1


def test_a_region_that_gives_no_password_fails_alone(bench: Bench) -> None:
    (bench.images / "no-password-us-east-1").touch()
    done = bench.run(BUILT)
    assert done.returncode == 1
    assert "  us-east-1: An error occurred (UnrecognizedClientException)" in done.stderr
    assert {one for one, digest in bench.standing().items() if digest is None} == {"us-east-1"}


def test_all_failed_regions_are_named(bench: Bench) -> None:
    bench.fail("create", ".us-east-1.", says="first reason")
    bench.fail("create", ".ap-south-1.", says="second reason")
    done = bench.run(BUILT)
    assert "did not get into 2 of the regions" in done.stderr
    assert "us-east-1: first reason" in done.stderr
    assert "ap-south-1: second reason" in done.stderr


def test_a_push_that_breaks_once_is_made_again(bench: Bench) -> None:
    (bench.folder / "programs" / "docker").rename(bench.folder / "programs" / "docker-itself")
    once = (
        '#!/bin/bash\nif [[ $* == *create*us-east-1* && ! -e $IMAGES/broken ]]; then touch "$IMAGES/broken"; '
        'echo "connection reset" >&2; exit 1; fi\nexec docker-itself "$@"\n'
    )
    (bench.folder / "programs" / "docker").write_text(once)
    (bench.folder / "programs" / "docker").chmod(0o755)
    done = bench.run(BUILT)
    assert done.returncode == 0, done.stderr
    assert (bench.images / "broken").exists()


def test_a_push_whose_answer_was_lost_is_seen_by_what_stands(bench: Bench) -> None:
    bench.run(BUILT)
    bench.fail("create", ".us-east-1.", says="ImageTagAlreadyExistsException")
    done = bench.run(BUILT)
    assert done.returncode == 0, done.stderr
    assert "us-east-1: " in done.stdout
    assert "already" in done.stdout


def test_a_tag_that_somebody_else_took_meanwhile_stops_everything_after_it(bench: Bench) -> None:
    other = bench.put(BUILT.target("us-east-1"), '{"other": true}')
    bench.fail("create", ".us-east-1.", says="ImageTagAlreadyExistsException")
    done = bench.run(BUILT)
    assert done.returncode == 1
    assert f"us-east-1: the tag was taken meanwhile by {other}" in done.stderr
    assert "Start the same input again" not in done.stderr
    assert bench.standing()["ap-south-1"] is None
    assert bench.standing()["us-east-1"] == other


def test_a_context_that_is_gone_fails_before_docker_builds(bench: Bench) -> None:
    (bench.images / "objects" / "yard-home" / "uploads" / "context.tar.gz").unlink()
    done = bench.run(BUILT)
    assert done.returncode != 0
    assert "NoSuchKey" in done.stderr
    assert bench.docker("buildx") == []


def test_a_zip_is_unpacked_with_what_may_be_executed(bench: Bench) -> None:
    place = bench.images / "objects" / "yard-home" / "uploads" / "context.zip"
    place.write_bytes(zip_with((zip_entry("run.sh", 0o100755), "#!/bin/sh\n"), ("Dockerfile", "FROM scratch\n")))
    assert BUILT.context is not None
    context = type(BUILT.context)(bucket="yard-home", key="uploads/context.zip", version="", etag='"x"')
    assert bench.run(order(context=context)).returncode == 0


SOURCE = ContainerImage("public.ecr.aws", "docker/library/python", "3.12-slim")


def test_a_copy_builds_nothing_and_keeps_the_digest(bench: Bench) -> None:
    digest = bench.put(SOURCE, '{"an": "image"}')
    done = bench.run(order(context=None, source=str(SOURCE), cache=""))
    assert done.returncode == 0, done.stderr
    assert bench.docker("buildx", "build") == []
    assert set(bench.standing().values()) == {digest}
    assert bench.aws("s3api") == []


def test_a_copy_of_what_does_not_exist_pushes_nothing(bench: Bench) -> None:
    done = bench.run(order(context=None, source=str(SOURCE), cache=""))
    assert done.returncode != 0
    assert "public.ecr.aws/docker/library/python:3.12-slim: not found" in done.stderr
    assert set(bench.standing().values()) == {None}


def test_a_copy_from_a_private_registry_logs_in_to_it(bench: Bench) -> None:
    source = ContainerImage("444455556666.dkr.ecr.eu-west-1.amazonaws.com", "lab/images", "v3")
    bench.put(source)
    bench.run(order(context=None, source=str(source), cache=""))
    assert bench.docker("login")[0][-1] == source.registry
    assert bench.aws("ecr", "get-login-password")[0][-1] == "eu-west-1"


def test_what_an_earlier_push_left_undone_is_completed_without_a_build(bench: Bench) -> None:
    bench.fail("create", ".us-east-1.", says="denied")
    bench.run(BUILT)
    bench.mend()
    (digest,) = set(bench.standing().values()) - {None}
    there = ContainerImage(BUILT.target("eu-central-1").registry, "yard/images", digest=str(digest))
    done = bench.run(order(context=None, source=str(there), regions=("us-east-1",), cache=""))
    assert done.returncode == 0, done.stderr
    assert set(bench.standing().values()) == {digest}
    assert len(bench.docker("buildx", "build")) == 1


def test_no_password_is_printed(once: Once) -> None:
    assert "secret-of-" not in once.done.stdout + once.done.stderr
    assert "secret-of-" not in (once.bench.images / "calls").read_text()
