"""What a bake is asked for is checked before anything is started: each refusal names the option and what is allowed."""

from __future__ import annotations

import gzip
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract import names
from contract.codec import encode
from contract.places import Place
from localaws.model import Refused
from tests.builders import PLACE
from tests.fakes.baking import BASE, DEPLOYMENT, Bakery
from tools.bake_image.__main__ import main
from tools.bake_image.recipe import Recipe, Rejected, read_requirements

HASH = "--hash=sha256:" + "0" * 64


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "requirements.txt").write_text("einops==0.8.1\n")
    return tmp_path / "requirements.txt"


@pytest.fixture
def bakery(file: Path) -> Bakery:
    return Bakery(file)


def rejected(bakery: Bakery, **asked: Any) -> str:
    """Asks for a bake that is rejected, before any call that changes something."""
    with pytest.raises(Rejected) as problem:
        bakery.bake(**asked)
    assert bakery.aws.changes == []
    assert "allowed: " in str(problem.value)
    return str(problem.value)


# Options


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"base": "ami-00000000"}, "--base: eu-central-1 has no image ami-00000000"),
        ({"family": "arm64"}, "--family: cdk.json has no images.arm64"),
        ({"family": "arm64", "base": BASE}, f"--base: {BASE} is for x86_64"),
        ({"subnet": "subnet-of-another"}, "--subnet: subnet-of-another is not of the deployment"),
        ({"region": "us-east-1"}, "--region: the deployment does not train in us-east-1"),
        ({"security_group": "sg-9"}, "--security-group: vpc-1 has no sg-9"),
        ({"instance_type": "m9.huge"}, "--instance-type: eu-central-1 has no m9.huge"),
        ({"instance_type": "m7i.large"}, "--instance-type: eu-central-1 has no m7i.large"),
        ({"instance_type": "t4g.large"}, "--instance-type: t4g.large is for arm64"),
        ({"volume_gb": 20}, "--volume-gb is 20; allowed: 75 and more"),
        ({"limit_min": 1}, "--limit-minutes is 1; allowed: 5 to 600"),
        ({"limit_min": 601}, "--limit-minutes is 601"),
    ],
)
def test_a_wrong_option_is_named_with_what_is_allowed(bakery: Bakery, asked: dict[str, Any], told: str) -> None:
    assert rejected(bakery, **asked).startswith(told)


def test_a_subnet_that_is_gone_is_named(bakery: Bakery) -> None:
    gone = PLACE.zones[0].subnet
    del bakery.ec2.catalogue.subnets[gone]
    assert rejected(bakery).startswith(f"--subnet: eu-central-1 has no {gone}")


def test_a_closed_default_group_is_named_with_the_setting_that_closes_it(bakery: Bakery) -> None:
    bakery.ec2.egress = ()
    assert "compliance" in rejected(bakery)


def test_a_group_that_lets_other_protocols_out_is_not_enough(bakery: Bakery) -> None:
    bakery.ec2.egress = ("udp",)
    assert "lets no TCP 443 out" in rejected(bakery)


def test_a_region_without_its_stack_is_rejected(bakery: Bakery) -> None:
    del bakery.aws.directory.parameters[PLACE.region, names.region_parameter(DEPLOYMENT, PLACE.region)]
    assert rejected(bakery).startswith("--region: eu-central-1 has no SSM parameter")


def test_a_region_that_serves_grids_alone_is_rejected(bakery: Bakery) -> None:
    place = Place(region=PLACE.region, bucket=PLACE.bucket)
    bakery.aws.directory.parameters[PLACE.region, names.region_parameter(DEPLOYMENT, PLACE.region)] = encode(
        place
    ).decode()
    assert "serves grids only" in rejected(bakery)


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("Architecture", "arm64", "is for arm64"),
        ("State", "deregistered", "is deregistered"),
        ("RootDeviceName", "/dev/none", "no snapshot for its root device"),
        ("Tags", [{"Key": "trainyard-image:base", "Value": "ami-older"}], "was baked itself, from ami-older"),
    ],
)
def test_a_base_that_cannot_be_one_is_rejected(bakery: Bakery, field: str, value: Any, told: str) -> None:
    bakery.ec2.bases[BASE][field] = value
    assert told in rejected(bakery)


def test_a_parameter_of_the_settings_is_followed(file: Path) -> None:
    bakery = Bakery(file, images={"x86_64": "/our/image"})
    bakery.aws.directory.parameters[PLACE.region, "/our/image"] = BASE
    assert bakery.bake() == 0


def test_a_parameter_that_does_not_exist_is_named_with_its_setting(file: Path) -> None:
    assert rejected(Bakery(file, images={"x86_64": "/our/image"})).startswith("images.x86_64: eu-central-1 has no SSM")


def test_a_right_that_is_missing_is_not_taken_for_a_wrong_option(bakery: Bakery) -> None:
    def deny(call: Any) -> None:
        if call.operation == "DescribeImages":
            raise Refused("UnauthorizedOperation", "no", 403)

    bakery.before = deny
    with pytest.raises(Exception, match="UnauthorizedOperation"):
        bakery.bake()
    assert bakery.aws.changes == []


def test_the_image_of_several_regions_is_named_by_a_parameter(file: Path) -> None:
    regions = [{"region": "eu-central-1", "cidr": "10.70.0.0/16"}, {"region": "eu-west-1", "cidr": "10.71.0.0/16"}]
    bakery = Bakery(file, regions=regions)
    bakery.bake()
    assert any("put-parameter --region eu-central-1" in line for line in bakery.said)
    assert "/yard-images/x86_64" in bakery.said[-1]


# Requirements


@pytest.mark.parametrize(
    "line",
    [
        "-r other.txt",
        "-rother.txt",
        "--requirement=other.txt",
        "-c limits.txt",
        "-e .",
        "./wheel.whl",
        "/a.whl",
        "../a",
        "file:///a.whl",
    ],
)
def test_a_line_that_names_another_file_is_rejected_with_its_number(file: Path, line: str) -> None:
    file.write_text(f"einops==0.8.1\n{line}\n")
    with pytest.raises(Rejected, match=r"line 2.*names another file"):
        read_requirements(file)


@pytest.mark.parametrize(
    "line",
    ["--index-url https://me:secret@pypi.us/simple", "a @ https://token@git.us/a.zip", "--index-url https://${T}.us"],
)
def test_a_secret_in_an_address_is_rejected(file: Path, line: str) -> None:
    file.write_text(f"einops==0.8.1\n{line}\n")
    with pytest.raises(Rejected, match="a user, a password or a variable"):
        read_requirements(file)


@pytest.mark.parametrize(
    "contents", [b"", b"# nothing\n", b"--index-url https://pypi.us/simple\n", b"\xff\xfe", b"a\0b"]
)
def test_what_is_no_file_of_requirements_is_rejected(file: Path, contents: bytes) -> None:
    file.write_bytes(contents)
    with pytest.raises(Rejected, match="--requirements"):
        read_requirements(file)


def test_a_file_that_is_not_there_is_rejected(bakery: Bakery) -> None:
    bakery.file = bakery.file.with_name("other.txt")
    assert "No such file" in rejected(bakery)


def test_too_many_hashes_are_rejected_with_the_sizes(bakery: Bakery) -> None:
    hashes = [f"--hash=sha256:{random.Random(one).randbytes(32).hex()}" for one in range(600)]
    bakery.file.write_text("einops==0.8.1 \\\n    " + " \\\n    ".join(hashes) + "\n")
    assert "16,384" in rejected(bakery)


@pytest.mark.parametrize(
    "text", ["flash-attn @ https://git.us/a/b@v1\n", f"einops==0.8.1 {HASH}\n", "-i https://pypi.us/simple\neinops\n"]
)
def test_packages_addresses_hashes_and_indexes_are_taken(file: Path, text: str) -> None:
    file.write_text(text)
    assert read_requirements(file).decode() == text


# User data


def script(text: str) -> str:
    return gzip.decompress(Recipe(BASE, text.encode()).user_data(70)).decode()


def test_the_user_data_is_a_script_with_the_whole_file_in_it() -> None:
    made = script("einops==0.8.1\n")
    assert made.startswith("#!/bin/bash\n")
    assert "\neinops==0.8.1\nEND-OF-REQUIREMENTS-" in made
    assert "\nBAKE_LIMIT_MIN=70\n" in made


@pytest.mark.parametrize(("text", "hashes"), [("a==1\n", "no"), (f"a==1 {HASH}\n", "yes")])
def test_hashes_are_checked_where_the_file_has_them(text: str, hashes: str) -> None:
    assert f"\nBAKE_HASHES={hashes}\n" in script(text)


def test_base_requirements_and_script_decide_the_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one = Recipe(BASE, b"a==1\n")
    name = one.name("yard", "x86_64")
    assert name == Recipe(BASE, b"a==1\n").name("yard", "x86_64")
    assert (
        len({name, Recipe("ami-2", b"a==1\n").name("yard", "x86_64"), Recipe(BASE, b"a==2\n").name("yard", "x86_64")})
        == 3
    )
    (tmp_path / "other.sh").write_text("true\n")
    monkeypatch.setattr("tools.bake_image.recipe.SCRIPT", tmp_path / "other.sh")
    assert one.name("yard", "x86_64") != name


# The command line


def test_the_command_line_needs_requirements(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([])
    assert "--requirements" in capsys.readouterr().err


@pytest.fixture
def handlers() -> Iterator[None]:
    """The command line takes over signals of the process."""
    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for one, handler in before.items():
        signal.signal(one, handler)


@pytest.mark.usefixtures("handlers")
def test_what_is_rejected_ends_with_status_2_and_its_reason(bakery: Bakery, capsys: pytest.CaptureFixture[str]) -> None:
    """With the settings of cdk.json, whose deployment the fake has not."""
    with bakery.connected():
        assert main(["--requirements", str(bakery.file), "--base", BASE]) == 2
    assert "--region: eu-central-1 has no SSM parameter /trainyard/" in capsys.readouterr().err
    assert bakery.aws.changes == []


@pytest.mark.usefixtures("handlers")
def test_a_terminal_that_closes_is_an_interrupt(bakery: Bakery, capsys: pytest.CaptureFixture[str]) -> None:
    bakery.before = lambda _: signal.raise_signal(signal.SIGHUP)
    with bakery.connected():
        assert main(["--requirements", str(bakery.file), "--base", BASE]) == 130
    assert "Interrupted" in capsys.readouterr().err
