"""The watch of branches, with git's own server on this computer: one build a commit, whatever a branch and its host do."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import branch_watch.handler
from contract.campaigns import name_build
from git_code import fetch_child, fetching
from git_code.commit import MIB
from localaws.git_host import Instead, git
from tests.fakes.executions import BUILD_MACHINE
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.git import ASK_CHILD, HOST, PRIVATE, TOKEN, head
from tests.functions.branch_watch.account import Watched, watch

URL = f"https://{HOST}/owner/watched.git"
LESS_MEMORY = "from git_code import fetch_child as child; child.MOST_MEMORY = {}; child.main()"
"""The child's program, with so many bytes of memory."""
ADVERTISED = "application/x-git-upload-pack-advertisement"


def build_of(commit: str, name: str = "digits") -> str:
    return name_build(name, commit)


def answering(there: Watched, instead: Instead, at: str = f"{HOST}/owner/watched.git") -> None:
    """The host answers so when it is asked about this repository."""
    there.hosts.instead = lambda asked: instead if asked.startswith(at) else None


def advertise(*refs: str) -> bytes:
    """What a host without the newest protocol lists, whatever it is asked for."""

    def packet(text: str) -> bytes:
        return f"{len(text) + 4:04x}{text}".encode()

    first, *rest = refs
    lines = [f"{first}\0multi_ack side-band-64k shallow\n", *(f"{one}\n" for one in rest)]
    return packet("# service=git-upload-pack\n") + b"0000" + b"".join(map(packet, lines)) + b"0000"


# What is built


def test_a_new_commit_is_built_under_its_name_with_the_commit_as_its_context(
    there: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "ask_child", ASK_CHILD)
    there.deploy(digits=watch(build_arguments={"EXTRA": "1"}, platform="linux/arm64"))
    pushed = there.push()
    assert there.tick().error == ""
    assert there.inputs() == {
        f"digits-{pushed[:12]}": {
            "context": {"git": URL, "ref": pushed},
            "tag": f"digits-{pushed[:12]}",
            "if_absent": True,
            "repository": "images",
            "build_arguments": {"EXTRA": "1"},
            "platform": "linux/arm64",
        }
    }
    assert there.questions == [build_of(pushed)]


def test_a_commit_is_built_once_however_often_its_branch_is_looked_at(there: Watched) -> None:
    pushed = there.push()
    for _ in range(3):
        assert there.tick().error == ""
    assert (there.begun, there.questions) == ([build_of(pushed)], [build_of(pushed)])


def test_a_branch_that_is_forced_back_and_forth_is_one_build_a_commit(there: Watched) -> None:
    first = there.push()
    there.tick()
    second = there.push()
    for to in (second, first, second, first, first, second):
        there.force(to)
        there.tick()
    assert there.begun == [build_of(first), build_of(second)]
    assert len(there.questions) == 2


def test_of_many_commits_between_two_looks_the_newest_is_built(there: Watched) -> None:
    pushed = [there.push() for _ in range(3)]
    there.tick()
    assert there.begun == [build_of(pushed[-1])]


@pytest.mark.parametrize("status", ["RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"])
def test_a_commit_that_has_an_execution_is_never_built_again_however_it_ended(there: Watched, status: str) -> None:
    pushed = there.push()
    there.aws.states.executions.begin(build_of(pushed), BUILD_MACHINE).status = status
    assert there.tick().error == ""
    assert (there.begun, there.questions, there.aws.changes) == ([], [], [])


def test_a_branch_with_slashes_is_a_branch_like_any(there: Watched) -> None:
    pushed = there.push()
    there.force(pushed, "team/release-1.0")
    there.deploy(digits=watch(branch="team/release-1.0"))
    assert there.tick().error == ""
    assert there.begun == [build_of(pushed)]


def test_a_tag_of_the_branchs_name_is_not_taken_for_it(there: Watched) -> None:
    pushed = there.push()
    git(there.repository(), "update-ref", "refs/tags/main", head(there.hosts, "watched"))
    second = there.push()
    there.tick()
    assert there.begun == [build_of(second)]
    assert second != pushed


def test_two_watches_of_one_branch_build_one_image_each(there: Watched) -> None:
    there.deploy(digits=watch(), large=watch(base="pytorch-training:2.8"))
    pushed = there.push()
    there.tick()
    assert sorted(there.begun) == [build_of(pushed), build_of(pushed, "large")]


def test_branches_are_looked_at_side_by_side(there: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branch_watch.handler, "ThreadPoolExecutor", ThreadPoolExecutor)
    there.deploy(**{f"w{number}": watch() for number in range(6)})
    pushed = there.push()
    assert there.tick().error == ""
    assert sorted(there.begun) == [build_of(pushed, f"w{number}") for number in range(6)]


def test_without_a_watch_nothing_is_asked(there: Watched) -> None:
    there.deploy()
    there.push()
    assert there.tick().error == ""
    assert there.hosts.asked == []


# Hosts that do not answer as they should


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_commit_is_built_as_soon_as_its_host_answers_again(there: Watched, status: int) -> None:
    pushed = there.push()
    answering(there, Instead(status))
    outcome = there.tick()
    assert (outcome.error, there.begun, there.questions) == ("BranchesUnread", [], [])
    assert outcome.cause.startswith(f"watch.digits.git: {URL} cannot be reached (")
    there.hosts.instead = lambda _: None
    assert there.tick().error == ""
    assert there.begun == [build_of(pushed)]


def test_a_host_without_a_connection_is_said_to_be_away(there: Watched) -> None:
    there.deploy(digits=watch(host="nowhere.example.com"))
    outcome = there.tick()
    assert outcome.error == "BranchesUnread"
    assert "https://nowhere.example.com/owner/watched.git cannot be reached (" in outcome.cause


def test_a_host_that_does_not_end_its_answer_ends_at_the_limit(there: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "ask_child", ASK_CHILD)
    monkeypatch.setattr(fetching, "FETCH_S", 1.0)
    there.push()
    over = threading.Event()

    def hang(_: str) -> None:
        over.wait()

    there.hosts.instead = hang
    try:
        outcome = there.tick()
    finally:
        over.set()
    assert (outcome.error, there.begun) == ("BranchesUnread", [])
    assert "was not fetched within" in outcome.cause


@pytest.mark.parametrize("to", [f"https://{PRIVATE}/owner/good.git", f"https://{HOST}/owner/good.git", "http://[::1]/"])
def test_no_redirect_is_followed(there: Watched, to: str) -> None:
    there.push()
    answering(there, Instead(301, location=to))
    outcome = there.tick()
    assert f"redirects to another address ({to}), and no redirect is followed" in outcome.cause
    assert [one for one in there.hosts.asked if "watched" not in one] == []
    assert there.begun == []


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_repository_that_may_not_be_read_is_told_with_the_hosts_answer(there: Watched, status: int) -> None:
    there.push()
    answering(there, Instead(status, b"Repository not found."))
    outcome = there.tick()
    assert (
        f"does not exist, or may not be read ({HOST} answers {status}: Repository not found. to a request without a token)"
        in outcome.cause
    )
    assert there.begun == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Sign in</html>",
        b"0000",
        b"ffff",
        b"\0" * 10_000,
        advertise("0" * 40 + " capabilities^{}"),
        advertise("xyz refs/heads/main"),
        advertise("main refs/heads/main"),
        advertise("1" * 39 + " refs/heads/main"),
    ],
)
def test_what_is_no_answer_of_git_builds_nothing(there: Watched, body: bytes) -> None:
    there.push()
    answering(there, Instead(200, body, kind=ADVERTISED))
    outcome = there.tick()
    assert (outcome.error, there.begun, there.questions) == ("BranchesUnread", [], [])
    assert outcome.cause.startswith(f"watch.digits.git: {URL} ")
    assert "; allowed: " in outcome.cause


def test_fifty_thousand_branches_are_read_to_their_end_in_a_fourth_of_the_memory(
    there: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "ask_child", ASK_CHILD)
    monkeypatch.setattr(fetching, "PROGRAM", LESS_MEMORY.format(fetch_child.MOST_MEMORY // 4))
    pushed = there.push()
    many = [f"{number:040x} refs/heads/branch-{number}" for number in range(50_000)]
    answer = Instead(200, advertise(*many, f"{pushed} refs/heads/main"), kind=ADVERTISED)
    there.hosts.instead = lambda asked: answer if asked.endswith("/info/refs") else None
    assert there.tick().error == ""
    assert there.begun == [build_of(pushed)]


def test_an_answer_without_an_end_does_not_take_the_functions_memory(
    there: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "ask_child", ASK_CHILD)
    monkeypatch.setattr(fetching, "PROGRAM", LESS_MEMORY.format(150 * MIB))
    many = [f"{number:040x} refs/heads/{number:065000}" for number in range(2000)]
    answering(there, Instead(200, advertise(*many), kind=ADVERTISED))
    outcome = there.tick()
    assert (outcome.error, there.begun) == ("BranchesUnread", [])
    assert "is too large (" in outcome.cause


def test_a_commit_that_its_host_does_not_give_yet_takes_no_name_of_a_build(there: Watched) -> None:
    """A build that failed for its host's sake would have the name for ninety days."""
    pushed = there.push()
    packs = iter([None])  # the list of branches is a pack of its own, and comes first
    there.hosts.instead = lambda asked: next(packs, Instead(503)) if asked.endswith("/git-upload-pack") else None
    outcome = there.tick()
    assert (outcome.error, there.begun, there.questions) == ("BranchesUnread", [], [])
    there.hosts.instead = lambda _: None
    assert there.tick().error == ""
    assert there.begun == [build_of(pushed)]


def test_a_commit_that_no_build_could_take_is_told_and_not_built(there: Watched) -> None:
    there.deploy(digits=watch("submodule"))
    outcome = there.tick()
    assert "has the submodule 'third', whose files are in another repository" in outcome.cause
    assert there.begun == []


def test_a_branch_that_there_is_not_is_told(there: Watched) -> None:
    there.push()
    there.deploy(digits=watch(branch="mian"))
    outcome = there.tick()
    assert outcome.cause == (
        f"watch.digits.git: {URL} has no branch mian; allowed: a branch that `git ls-remote` lists"
    )
    assert there.begun == []


def test_a_repository_without_a_commit_has_no_branch(there: Watched) -> None:
    assert "has no branch main" in there.tick().cause


def test_a_branch_that_only_begins_like_the_watched_one_is_another(there: Watched) -> None:
    there.force(there.push(), "main-2")
    git(there.repository(), "update-ref", "-d", "refs/heads/main")
    assert "has no branch main;" in there.tick().cause
    assert there.begun == []


# Tokens


def test_a_private_repository_is_asked_with_the_token_of_its_host(there: Watched) -> None:
    there.aws.directory.secrets["eu-central-1", "git-token"] = (
        "arn:aws:secretsmanager:eu-central-1:1:secret:git-token-a"
    )
    there.aws.directory.values["eu-central-1", "git-token"] = f"{TOKEN}\n"
    there.deploy(digits=watch("good", PRIVATE))
    assert there.tick().error == ""
    assert there.begun == [build_of(head(there.hosts, "good", PRIVATE))]


@pytest.mark.parametrize("text", [None, "", "another"])
def test_a_token_that_is_missing_or_wrong_is_told_and_never_shown(there: Watched, text: str | None) -> None:
    if text is not None:
        arn = "arn:aws:secretsmanager:eu-central-1:1:secret:git-token-a"
        there.aws.directory.secrets["eu-central-1", "git-token"] = arn
        there.aws.directory.values["eu-central-1", "git-token"] = text
    there.deploy(digits=watch("good", PRIVATE))
    outcome = there.tick()
    assert "git-token" in outcome.cause
    assert "another" not in outcome.cause
    assert there.begun == []


# One of several


@pytest.mark.parametrize("first", [True, False])
def test_a_branch_that_cannot_be_read_keeps_no_other_from_being_built(there: Watched, first: bool) -> None:
    bad = {"bad": watch("none"), "worse": watch("good", PRIVATE), "away": watch(host="nowhere.example.com")}
    there.deploy(**({**bad, "digits": watch()} if first else {"digits": watch(), **bad}))
    pushed = there.push()
    outcome = there.tick()
    assert there.begun == [build_of(pushed)]
    assert outcome.error == "BranchesUnread"
    assert sorted(line.partition(":")[0] for line in outcome.cause.splitlines()) == [
        "watch.away.git",
        "watch.bad.git",
        "watch.worse.git",
    ]


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("stepfunctions:DescribeExecution", Kind.DENIED),
        ("stepfunctions:StartExecution", Kind.THROTTLED),
        ("stepfunctions:StartExecution", Kind.UNREACHABLE),
        ("sqs:SendMessage", Kind.ERROR),
    ],
)
def test_a_build_that_cannot_be_started_keeps_no_other_from_it_and_is_started_later(
    there: Watched, call: str, kind: Kind
) -> None:
    there.deploy(digits=watch(), large=watch())
    pushed = there.push()
    outcome = there.tick(Mishap(call, times=8 if kind is not Kind.DENIED else 1, fault=kind))
    assert (outcome.error, there.begun) == ("BranchesUnread", [build_of(pushed, "large")])
    assert outcome.cause.startswith("watch digits: ")
    assert there.tick().error == ""
    assert there.begun == [build_of(pushed, "large"), build_of(pushed)]


def test_a_build_machine_that_a_deploy_has_not_made_yet_is_tried_again(there: Watched) -> None:
    there.aws.states.executions.machines.discard(BUILD_MACHINE)
    pushed = there.push()
    assert "StateMachineDoesNotExist" in there.tick().cause
    there.aws.states.executions.machines.add(BUILD_MACHINE)
    there.tick()
    assert there.begun == [build_of(pushed)]


# Closed, killed, side by side


def test_while_admission_is_closed_no_host_is_asked_and_nothing_is_lost(there: Watched) -> None:
    there.close()
    pushed = there.push()
    assert there.tick().error == ""
    assert (there.hosts.asked, there.begun, there.questions) == ([], [], [])
    there.open()
    there.tick()
    assert there.begun == [build_of(pushed)]


@pytest.mark.parametrize("death", Death)
@pytest.mark.parametrize("nth", range(1, 5))
def test_a_watch_that_is_killed_at_any_call_has_started_one_build_after_the_next_tick(
    there: Watched, nth: int, death: Death
) -> None:
    pushed = there.push()
    there.tick(Mishap("*", nth, death=death))
    there.tick()
    assert there.begun == [build_of(pushed)]
    assert set(there.questions) == {build_of(pushed)}


def test_the_question_how_it_ends_is_sent_before_the_build(there: Watched) -> None:
    there.push()
    there.tick(Mishap("stepfunctions:StartExecution", death=Death.BEFORE))
    assert (len(there.questions), there.begun) == (1, [])


@pytest.mark.parametrize("nth", range(1, 5))
def test_two_ticks_at_the_same_time_are_one_build(there: Watched, nth: int) -> None:
    pushed = there.push()
    outcome = there.tick(Mishap("*", nth, meanwhile=lambda: there.tick()))  # type: ignore[arg-type, return-value]
    assert outcome.error == ""
    assert there.begun == [build_of(pushed)]


def test_an_answer_to_a_start_that_is_lost_is_no_second_build(there: Watched) -> None:
    pushed = there.push()
    there.tick(Mishap("stepfunctions:StartExecution", fault=Kind.LOST))
    there.tick()
    assert there.begun == [build_of(pushed)]
