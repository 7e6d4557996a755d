"""The attendant begins sessions of exactly the roles in the setting `job_roles`, each with the tag that names a job; nobody else does."""

from __future__ import annotations

from contract import names
from localaws.iam.simulator import Policies, simulate
from tests.security.asking import JOB_ROLE, Ask
from tests.security.jobs import BEGINS, CORPUS, WITH_JOB, WITHOUT_JOB
from tests.security.policies import ACCOUNT, REGION, role
from tests.security.resumes import WITH_SOURCE

ROLES_OF_OTHERS = (
    "arn:aws:iam::444455556666:role/corpus2",
    "arn:aws:iam::444455556666:role/team/corpus",
    "arn:aws:iam::444455556666:role/Corpus",
    "arn:aws:iam::777788889999:role/corpus",
    f"arn:aws:iam::{ACCOUNT}:role/corpus",
    f"arn:aws:iam::{ACCOUNT}:role/Administrator",
    f"arn:aws:iam::{ACCOUNT}:role/{names.training_role('trainyard', REGION)}",
    role("Launcher"),
    role("Terminator"),
)
ALLOWED = [Ask("Attendant", one, CORPUS, WITH_JOB) for one in BEGINS]
DENIED = [
    *(Ask("Attendant", begins, one, WITH_JOB) for begins in BEGINS for one in ROLES_OF_OTHERS),
    *(Ask("Attendant", "sts:AssumeRole", one, given) for one in (CORPUS, JOB_ROLE) for given in WITHOUT_JOB),
    # A training's role learns of no other job.
    *(Ask("Attendant", one, CORPUS, WITH_SOURCE) for one in BEGINS),
    *(
        Ask(who, begins, CORPUS, WITH_JOB)
        for begins in BEGINS
        for who in (
            "Node",
            "Job",
            "Admission",
            "Launcher",
            "Terminator",
            "Cleanup",
            "Reaper",
            "Child",
            "Training",
            "Build",
        )
    ),
    *(
        Ask("Attendant", one, CORPUS, WITH_JOB)
        for one in ("sts:SetSourceIdentity", "iam:PassRole", "iam:GetRole", "iam:UpdateAssumeRolePolicy")
    ),
]


def test_the_attendant_begins_sessions_of_the_roles_in_the_settings(wide_policies: dict[str, Policies]) -> None:
    answers = simulate(wide_policies, [ask.request for ask in ALLOWED])
    told = zip(ALLOWED, answers, strict=True)
    assert [str(ask) for ask, one in told if one.error or one.ignored or not one.allowed] == []


def test_no_other_role_no_other_tag_and_nobody_else(wide_policies: dict[str, Policies]) -> None:
    answers = simulate(wide_policies, [ask.request for ask in DENIED])
    assert [(str(ask), one.error) for ask, one in zip(DENIED, answers, strict=True) if one.error or one.allowed] == []
    assert len({ask.request.identity for ask in DENIED}) == len(DENIED) > 10 * len(ALLOWED)


def test_without_the_setting_the_attendant_begins_none(policies: dict[str, Policies]) -> None:
    asked = [ask.request for ask in ALLOWED]
    assert not any(answer.allowed for answer in simulate(policies, asked))
