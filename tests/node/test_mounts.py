"""How a node mounts file systems: argument by argument, with the job's credentials, in time, and never over files of the machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.container.container_workspace import ContainerWorkspace
from agent.credentials import CredentialsExpired
from agent.failures import CannotStart, MachineTrouble, Ordered
from agent.mounts import failing, profile
from agent.mounts.mounting import CREDENTIALS, Mounts
from agent.mounts.options import MEANING, PROFILE, command, helper
from agent.programs import Said, ask
from contract.jobs import Job
from contract.mounts import JobMount, Kind
from tests.builders import JOB, MOUNTED
from tests.node.containers import CONTAINER
from tests.node.world import KEYS

CORPUS, HOME, IMAGES = MOUNTED
DENIED = "b'mount.nfs4: access denied by server while mounting 127.0.0.1:/'"
UNRESOLVED = 'Failed to resolve "fs-1.efs.eu-central-1.amazonaws.com" - check that your file system ID is correct'


class Machine:
    """A machine whose `mount` and `umount` answer what a test says."""

    def __init__(self, root: Path, *answers: Said, helpers: Sequence[Kind] = tuple(Kind)) -> None:
        self.root, self.work = root, root / "var/lib/trainyard"
        self.answers, self.asked = list(answers), list[list[str]]()
        self.limits, self.notes, self.told, self.paused = list[float](), list[str](), list[str](), 0
        self.programs = root / "sbin"
        self.programs.mkdir(parents=True)
        for kind in helpers:
            (self.programs / helper(kind)).touch(mode=0o755)

    def mounts(self, *mounted: JobMount, job: Job = JOB, keys: Callable[[], Any] = lambda: KEYS) -> Mounts:
        return Mounts(
            replace(job, mounted=mounted),
            root=self.root,
            work=self.work,
            variables={"PATH": str(self.programs)},
            credentials=keys,
            pause=self._pause,
            note=self.notes.append,
            tell=self.told.append,
            ask=self._ask,
        )

    def _ask(self, words: Sequence[str], most_s: float, _pause: Callable[[float], None]) -> Said:
        self.asked.append(list(words))
        self.limits.append(most_s)
        return self.answers.pop(0) if self.answers else Said(0)

    def _pause(self, seconds: float) -> None:
        assert seconds > 0
        self.paused += 1


def ordered(_seconds: float) -> None:
    raise Ordered


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


# What mount is told


def test_lustre_is_mounted_by_the_dns_name_that_follows_from_its_id_and_by_its_mount_name() -> None:
    assert command(CORPUS, Path("/data"), "aws") == [
        "mount", "-t", "lustre", "-o", "relatime,flock,nodev,nosuid,ro",
        "fs-0123456789abcdef0.fsx.eu-central-1.amazonaws.com@tcp:/abcdefgh", "/data",
    ]  # fmt: skip


def test_in_china_names_have_another_end() -> None:
    assert command(replace(CORPUS, region="cn-north-1"), Path("/data"), "aws-cn")[-2] == (
        "fs-0123456789abcdef0.fsx.cn-north-1.amazonaws.com.cn@tcp:/abcdefgh"
    )


def test_efs_is_mounted_encrypted_with_the_jobs_keys_and_through_its_access_point() -> None:
    assert command(replace(HOME, read_only=False), Path("/home-of-all"), "aws") == [
        "mount", "-t", "efs", "-o",
        "tls,iam,awsprofile=trainyard,region=eu-central-1,accesspoint=fsap-0123456789abcdef0,nodev,nosuid",
        "fs-0123456789abcdef1:/", "/home-of-all",
    ]  # fmt: skip


def test_s3_files_are_read_through_the_file_system_because_the_job_has_no_right_on_the_bucket() -> None:
    assert command(IMAGES, Path("/images"), "aws") == [
        "mount", "-t", "s3files", "-o", "nodirects3read,awsprofile=trainyard,region=eu-central-1,nodev,nosuid,ro",
        "fs-0123456789abcdef2:/", "/images",
    ]  # fmt: skip


@pytest.mark.parametrize("mount", MOUNTED)
def test_every_option_has_a_meaning_in_the_docs_and_nothing_is_ever_run_with_anothers_rights(mount: JobMount) -> None:
    for read_only in (True, False):
        options = command(replace(mount, read_only=read_only), Path("/x"), "aws")[4].split(",")
        assert {one.partition("=")[0] for one in options} <= MEANING.keys()
        assert {"nodev", "nosuid"} <= set(options)
        assert ("ro" in options) is read_only


def test_the_page_has_the_ports_the_rights_and_every_option_as_the_code_has_them() -> None:
    page = (Path(__file__).parents[2] / "docs/guides/mounts.md").read_text()
    assert [f"| `{name}` | {meaning} |" in page for name, meaning in MEANING.items()] == [True] * len(MEANING)
    rows = {line.split("|")[1].strip(" `"): line for line in page.splitlines() if line.startswith("| `")}
    for kind in Kind:
        ports = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in kind.ports)
        assert f"| {ports}{', in both directions' if kind.calls_back else ''} |" in rows[kind.value]
        assert all(f"`{action}`" in rows[kind.value] for action in kind.actions(read_only=False))
        assert f"`{kind.type}`" in rows[kind.value]
        assert helper(kind) in page


# Where


def test_without_an_image_a_file_system_is_at_the_path_of_the_request(machine: Machine) -> None:
    machine.mounts(CORPUS).begin()
    assert machine.asked[0][-1] == str(machine.root / "corpus")
    assert (machine.root / "corpus").is_dir()


def test_for_a_container_it_is_in_a_folder_of_the_job_and_hides_nothing_of_the_machine(machine: Machine) -> None:
    mounts = machine.mounts(CORPUS, HOME, job=replace(JOB, container=CONTAINER))
    (machine.root / "corpus").mkdir()
    (machine.root / "corpus/own").touch()
    mounts.begin()
    assert [place.relative_to(machine.work) for place, _ in mounts.places] == [Path("mounts/0"), Path("mounts/1")]


def test_files_of_the_machine_are_not_hidden(machine: Machine) -> None:
    (machine.root / "corpus").mkdir()
    (machine.root / "corpus/own").touch()
    with pytest.raises(CannotStart, match="cannot be mounted at /corpus: the machine's image has files there"):
        machine.mounts(CORPUS).begin()
    assert machine.asked == []


def test_a_file_system_of_the_machine_is_not_taken_for_the_jobs(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "is_mount", lambda path: path == machine.root / "corpus")
    mounts = machine.mounts(CORPUS)
    with pytest.raises(CannotStart, match="cannot be mounted at /corpus: the machine's image has a file system there"):
        mounts.begin()
    mounts.close()
    assert machine.asked == []


def test_what_another_run_of_the_agent_has_mounted_is_not_mounted_again_but_unmounted(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.mounts(CORPUS).begin()
    monkeypatch.setattr(Path, "is_mount", lambda path: path == machine.root / "corpus")
    mounts = machine.mounts(CORPUS)
    mounts.begin()
    mounts.close()
    assert [one[0] for one in machine.asked] == ["mount", "umount"]


def test_a_file_in_the_place_of_the_folder_is_the_machines_failure(machine: Machine) -> None:
    (machine.root / "corpus").touch()
    with pytest.raises(MachineTrouble, match="there is no folder /corpus"):
        machine.mounts(CORPUS).begin()


def test_a_job_without_mounts_asks_for_nothing_and_writes_no_keys(machine: Machine) -> None:
    mounts = machine.mounts()
    mounts.begin()
    mounts.close()
    assert (machine.asked, machine.told, machine.notes) == ([], [], [])
    assert not (machine.root / CREDENTIALS).exists()


def test_the_report_says_what_is_waited_for_and_the_log_what_is_mounted(machine: Machine) -> None:
    machine.mounts(CORPUS, replace(HOME, read_only=False)).begin()
    assert machine.told == ["mounts fsx:corpus", "mounts efs:home", ""]
    assert machine.notes == ["mounted fsx:corpus at /corpus, read only", "mounted efs:home at /home"]


# Keys


def test_the_helpers_find_the_keys_of_the_job_and_nobody_else_may_read_them(machine: Machine) -> None:
    machine.mounts(HOME).begin()
    file = machine.root / CREDENTIALS
    assert file.read_text().splitlines()[:2] == [f"[{PROFILE}]", "aws_access_key_id = ASIAJOB"]
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_lustre_needs_no_keys(machine: Machine) -> None:
    machine.mounts(CORPUS).begin()
    assert not (machine.root / CREDENTIALS).exists()


def test_other_profiles_of_the_image_stay(tmp_path: Path) -> None:
    file = tmp_path / ".aws/credentials"
    file.parent.mkdir()
    file.write_text("[default]\naws_access_key_id = THEIRS\n[trainyard]\naws_access_key_id = OLD\nextra = 1\n")
    profile.write(file, KEYS)
    told = file.read_text()
    assert "[default]\naws_access_key_id = THEIRS" in told
    assert "OLD" not in told
    assert "extra" not in told


def test_a_file_that_no_sdk_could_read_is_written_anew(tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_bytes(b"no section\n\xff")
    profile.write(file, KEYS)
    assert file.read_text().startswith("[trainyard]")


def test_a_link_in_the_place_of_the_file_leads_nowhere(tmp_path: Path) -> None:
    file, other = tmp_path / "credentials", tmp_path / "other"
    file.symlink_to(other)
    profile.write(file, KEYS)
    assert not file.is_symlink()
    assert not other.exists()


def test_expired_keys_are_waited_for_by_whoever_began(machine: Machine) -> None:
    def expired() -> Any:
        raise CredentialsExpired("none yet")

    with pytest.raises(CredentialsExpired):
        machine.mounts(HOME, keys=expired).begin()
    assert machine.asked == []


# Failures


@pytest.mark.parametrize("mount", MOUNTED)
def test_a_machine_without_the_client_says_what_brings_it_before_anything_is_tried(
    tmp_path: Path, mount: JobMount
) -> None:
    machine = Machine(tmp_path, helpers=())
    with pytest.raises(
        CannotStart, match=rf"the machine's image has no {helper(mount.file_system.kind)}, which .* brings"
    ):
        machine.mounts(mount).begin()
    assert machine.asked == []


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("mount: /data: unknown filesystem type 'lustre'.", "cannot be mounted without the Lustre client"),
        ("mount.lustre: failed: No such device\nAre the lustre modules loaded?", "without the Lustre client"),
        (DENIED, "does not let the job in"),
        ("mount.nfs4: Operation not permitted: not authorized", "does not let the job in"),
        ("failed: No such file or directory\nIs the MGS specification correct?", "does not exist as the setting"),
    ],
)
def test_what_every_node_would_meet_ends_the_job_at_once_in_mounts_words(tmp_path: Path, said: str, words: str) -> None:
    machine = Machine(tmp_path, Said(32, said))
    with pytest.raises(CannotStart, match=words) as problem:
        machine.mounts(CORPUS).begin()
    assert said in str(problem.value)
    assert (len(machine.asked), machine.paused) == (1, 0)


def test_what_may_pass_is_tried_three_times_and_then_the_machines(tmp_path: Path) -> None:
    machine = Machine(tmp_path, *(Said(1, UNRESOLVED) for _ in range(3)))
    with pytest.raises(MachineTrouble, match="in 3 tries: Failed to resolve"):
        machine.mounts(HOME).begin()
    assert (len(machine.asked), machine.paused) == (3, 2)


def test_a_second_try_that_goes_well_mounts(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Said(1, UNRESOLVED))
    mounts = machine.mounts(HOME)
    mounts.begin()
    assert any("is not mounted yet: Failed to resolve" in note for note in machine.notes)
    mounts.close()
    assert machine.asked[-1][0] == "umount"


def test_a_mount_that_hangs_ends_with_where_to_look(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Said(None, ""))
    with pytest.raises(MachineTrouble, match=r"did not answer within 120 s\. Does it lie in the region's network"):
        machine.mounts(CORPUS).begin()
    assert (machine.limits, len(machine.asked)) == ([failing.MOST_S], 1)


def test_a_program_that_cannot_be_started_is_a_failure_like_another(machine: Machine) -> None:
    def broken(_words: Sequence[str], _most_s: float, _pause: Callable[[float], None]) -> Said:
        raise OSError("no mount here")

    mounts = machine.mounts(CORPUS)
    mounts._ask = broken
    with pytest.raises(MachineTrouble, match="no mount here"):
        mounts.begin()


def test_an_order_between_two_tries_ends_the_preparation(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Said(1, UNRESOLVED))
    mounts = machine.mounts(HOME)
    mounts._pause = ordered
    with pytest.raises(Ordered):
        mounts.begin()


def test_an_order_while_a_mount_hangs_ends_it_and_the_preparation(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Said(32, "umount: /corpus: not mounted."))
    mounts = machine.mounts(CORPUS)
    mounts._pause = ordered
    mounts._ask = lambda words, most_s, pause: (
        ask(["sleep", "600"], most_s, pause) if words[0] == "mount" else machine._ask(words, most_s, pause)
    )
    with pytest.raises(Ordered):
        mounts.begin()
    mounts.close()
    assert machine.asked == [["umount", str(machine.root / "corpus")]]
    assert not [note for note in machine.notes if "still mounted" in note]


def test_a_mount_that_was_ended_half_way_is_unmounted(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Said(None, ""))
    mounts = machine.mounts(CORPUS)
    with pytest.raises(MachineTrouble):
        mounts.begin()
    mounts.close()
    assert machine.asked[-1] == ["umount", str(machine.root / "corpus")]


# The end


def test_at_the_end_the_last_is_unmounted_first_and_nothing_twice(machine: Machine) -> None:
    mounts = machine.mounts(CORPUS, HOME)
    mounts.begin()
    mounts.close()
    mounts.close()
    ends = [words for words in machine.asked if words[0] == "umount"]
    assert ends == [["umount", str(machine.root / "home")], ["umount", str(machine.root / "corpus")]]


def test_one_that_is_busy_is_detached_from_the_folders(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Said(0), Said(32, "target is busy."), Said(0))
    mounts = machine.mounts(CORPUS)
    mounts.begin()
    mounts.close()
    assert machine.asked[-1] == ["umount", "--lazy", str(machine.root / "corpus")]
    assert not [note for note in machine.notes if "still mounted" in note]


def test_one_that_cannot_even_be_detached_is_told(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Said(0), Said(None, ""), Said(32, "not mounted."))
    mounts = machine.mounts(CORPUS)
    mounts.begin()
    mounts.close()
    assert machine.notes[-1] == f"{machine.root / 'corpus'} is still mounted: not mounted."


def test_what_was_never_mounted_is_not_unmounted(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Said(0), Said(32, DENIED))
    mounts = machine.mounts(CORPUS, HOME)
    with pytest.raises(CannotStart):
        mounts.begin()
    mounts.close()
    assert [words[-1] for words in machine.asked if words[0] == "umount"] == [str(machine.root / "corpus")]


# In a container


def test_a_container_has_its_file_systems_beside_the_jobs_folders(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    job = replace(JOB, container=CONTAINER, mounted=(CORPUS, replace(HOME, read_only=False)))
    workspace = ContainerWorkspace(
        job, CONTAINER, "eu-central-1", root=tmp_path, work=machine.work, variables={}, mounts=machine.mounts(*job.mounted, job=job).places,
        token=str, instance_type=str, pause=lambda _: None, note=print, tell=print,
    )  # fmt: skip
    found = [str(one) for one in workspace._mounts()][-2:]
    assert found == [
        f"type=bind,source={machine.work}/mounts/0,target=/corpus,readonly",
        f"type=bind,source={machine.work}/mounts/1,target=/home",
    ]
