"""How an image comes to a machine, and what a pull that fails says: with a docker that is a script of the test's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.container import container_workspace, pulling
from agent.container.docker import CONTAINERD, Docker
from agent.container.pulling import Why
from agent.failures import CannotStart, MachineTrouble
from contract.containers import UNPACKED
from tests.node.containers import REPOSITORY
from tests.node.programs import Program
from tests.node.pulls import ADDRESS, CONTAINERDS, GIB, Pulled, docker


@pytest.fixture
def machine(tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch) -> Pulled:
    monkeypatch.setattr(pulling, "AGAIN_S", 0.01)
    monkeypatch.setenv("DOCK", str(tmp_path))
    program("docker", docker("exit 0"))
    return Pulled(tmp_path, variables={"PATH": f"{tmp_path}/programs:/usr/bin:/bin"})


def asks(call: str) -> str:
    return call.split()[2]


def fails(program: Program, said: str) -> None:
    program("docker", docker(f"echo '{said}' >&2; exit 1"))


def test_the_login_goes_through_standard_input_and_nothing_of_it_stays(machine: Pulled) -> None:
    machine.run()
    registry = REPOSITORY.partition("/")[0]
    settings = machine.work / "docker"
    assert machine.calls[-2:] == [
        f"--config {settings} login --username AWS --password-stdin {registry}",
        f"--config {settings} pull --quiet {ADDRESS}",
    ]
    assert (machine.folder / "password").read_text() == "hush"
    assert "hush" not in "".join(machine.calls)
    assert not settings.exists()


def test_an_image_that_the_machine_has_is_not_pulled(machine: Pulled, program: Program) -> None:
    program("docker", docker("exit 1").replace("exit 1 ;;\n  login", "exit 0 ;;\n  login"))
    machine.run()
    assert not any(asks(call) in ("pull", "login") for call in machine.calls)


def test_a_disk_too_small_for_the_image_is_told_before_the_pull(
    machine: Pulled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container_workspace.devices, "free", lambda _: 20 * GIB)
    large = Pulled(machine.folder, size=10 * GIB, variables={"PATH": f"{machine.folder}/programs:/usr/bin:/bin"})
    with pytest.raises(CannotStart, match=r"the disk has 20\.0 GiB free, and the image takes about 30\.0 GiB"):
        large.run()
    assert not any(asks(call) == "pull" for call in large.calls)


def test_expired_keys_are_waited_for(machine: Pulled) -> None:
    machine.expired = 3
    machine.run()
    assert asks(machine.calls[-1]) == "pull"


@pytest.mark.parametrize(
    "said",
    [
        f"Error response from daemon: manifest for {ADDRESS} not found: manifest unknown: Requested image not found",
        "Error response from daemon: pull access denied for x, repository does not exist or may require docker login: denied: User: x",
        "Error response from daemon: Head x: no basic auth credentials",
        "no matching manifest for linux/amd64 in the manifest list entries",
        "failed to register layer: write /opt/x: no space left on device",
        f'Error response from daemon: failed to resolve reference "{ADDRESS}": {ADDRESS}: not found',
        "unexpected status from HEAD request to https://x/v2/yard/images/manifests/sha256:a: 403 Forbidden",
        "failed to copy: could not fetch content descriptor sha256:a (application/x) from remote: not found",
        "no match for platform in manifest: not found",
        "unsupported media type application/vnd.cncf.helm.config.v1+json",
    ],
)
def test_what_another_machine_would_meet_as_well_ends_the_job_in_the_registrys_words(
    machine: Pulled, program: Program, said: str
) -> None:
    fails(program, said)
    with pytest.raises(CannotStart) as problem:
        machine.run()
    assert said in str(problem.value)
    assert sum(asks(call) == "pull" for call in machine.calls) == 1


@pytest.mark.parametrize(
    "said",
    [
        "Error response from daemon: Get https://x/v2/: net/http: TLS handshake timeout",
        "Error response from daemon: received unexpected HTTP status: 503 Service Unavailable",
        "toomanyrequests: Rate exceeded",
        "denied: Your authorization token has expired. Reauthenticate and try again.",
        "open /var/lib/docker/tmp/x: permission denied",
        "unexpected status from GET request to https://x.s3.amazonaws.com/layer: 403 Forbidden",
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        "something that nobody has ever said",
    ],
)
def test_what_may_pass_is_tried_again_and_then_the_machines(machine: Pulled, program: Program, said: str) -> None:
    fails(program, said)
    with pytest.raises(MachineTrouble) as problem:
        machine.run()
    assert said in str(problem.value)
    assert sum(asks(call) == "pull" for call in machine.calls) == pulling.TRIES


def test_a_pull_that_goes_well_the_second_time_is_no_failure(machine: Pulled, program: Program) -> None:
    program(
        "docker",
        docker('if [ -e "$DOCK/tried" ]; then exit 0; fi; touch "$DOCK/tried"; echo "i/o timeout" >&2; exit 1'),
    )
    machine.run()
    assert any("is not pulled yet: i/o timeout" in note for note in machine.notes)


def test_a_login_that_ecr_does_not_give_at_once_is_asked_for_again(machine: Pulled) -> None:
    machine.refused = 2
    machine.run()
    assert asks(machine.calls[-1]) == "pull"
    assert any("ECR gives no login: ConnectionError: no way to ECR" in note for note in machine.notes)


def test_a_login_that_ecr_never_gives_is_the_machines_failure_in_its_words(machine: Pulled) -> None:
    machine.refused = 100
    with pytest.raises(MachineTrouble, match="in 3 tries: ECR gives no login: ConnectionError: no way to ECR"):
        machine.run()


def test_a_pull_that_hangs_is_ended_and_says_so(machine: Pulled, program: Program) -> None:
    program("docker", docker("sleep 600"))
    machine.within(0.2)
    with pytest.raises(MachineTrouble, match=r"in 3 tries: docker pull had not ended after 0 s"):
        machine.run()


def test_a_pull_that_begins_as_the_job_ends_is_none(machine: Pulled) -> None:
    """The order comes between the login and the pull."""
    own = Docker(machine.work / "docker", {"PATH": f"{machine.folder}/programs:/usr/bin:/bin"})
    own.give_up()
    assert own.pull(ADDRESS, 5.0).code is None
    assert not (machine.folder / "calls").exists()


def test_docker_finds_a_login_before_it_looks_for_a_keyring_of_a_desktop(machine: Pulled) -> None:
    """Where docker-credential-secretservice is installed, a login without any other fails for want of a display."""
    machine.run()
    assert json.loads((machine.folder / "before").read_text()) == {"auths": {REPOSITORY.partition("/")[0]: {}}}


def test_the_room_of_containerds_store_counts_where_docker_keeps_images_there(
    machine: Pulled, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("docker", docker("exit 0", CONTAINERDS))
    monkeypatch.setattr(container_workspace.devices, "free", lambda folder: 0 if folder == CONTAINERD else 20 * GIB)
    with pytest.raises(CannotStart, match=r"the disk has 0\.0 GiB free"):
        machine.run()


def test_containerds_folder_does_not_count_where_docker_has_its_own_store(
    machine: Pulled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container_workspace.devices, "free", lambda folder: 0 if folder == CONTAINERD else 20 * GIB)
    machine.run()


def test_a_daemon_that_does_not_run_is_started_although_docker_says_success(machine: Pulled, program: Program) -> None:
    """Asked for a format, docker writes that there is no daemon, an empty answer, and ends with 0."""
    away = 'if [ "$3" = info ] && [ ! -e "$DOCK/up" ]; then echo no daemon >&2; echo \'["",null]\'; exit 0; fi\n'
    program("docker", away + docker("exit 0"))
    program("systemctl", 'touch "$DOCK/up"')
    machine.run()
    assert asks(machine.calls[-1]) == "pull"


def test_docker_that_never_answers_is_the_machines_failure(machine: Pulled, program: Program) -> None:
    program("docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    program("systemctl", 'echo "$@" >> "$DOCK/started"; exit 1')
    with pytest.raises(MachineTrouble, match="docker does not answer: Cannot connect to the Docker daemon"):
        machine.run()
    assert (machine.folder / "started").read_text() == "start docker\n"


@pytest.mark.parametrize(("said", "why"), [("NO SPACE LEFT ON DEVICE: denied", Why.FULL), ("", Why.PASSING)])
def test_a_full_disk_counts_before_everything_else_and_silence_may_pass(said: str, why: Why) -> None:
    assert pulling.why(said) is why


def test_room_is_judged_by_what_the_image_takes_unpacked() -> None:
    assert pulling.lacks_room(10 * UNPACKED, 10) == ""
    assert "volume_gb" in pulling.lacks_room(10 * UNPACKED - 1, 10)
