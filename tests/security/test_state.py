"""Every role uses the items of the table of state that docs/reference/state.md gives it, and no others, whatever the request."""

from __future__ import annotations

import pytest

from localaws.iam.simulator import Policies, simulate
from tests.security.policies import role
from tests.security.state import MAY, OF_THE_TABLE, PARTIQL, PARTITIONS, WITH_KEYS, ask
from tools.synthesis import ROOT

OF_ROLES = {role(one): one for one in MAY}


@pytest.mark.parametrize("kept", [True, False], ids=["data is kept", "everything that settings can add"])
def test_a_role_uses_its_own_kinds_of_items_and_no_others(
    policies: dict[str, Policies], wide_policies: dict[str, Policies], *, kept: bool
) -> None:
    each = policies if kept else wide_policies
    names = [OF_ROLES.get(one, one.rpartition("/")[2].removesuffix("Role")) for one in sorted(each)]
    assert set(names) >= MAY.keys()
    asked = [(name, action, one) for name in names for action in (*WITH_KEYS, *PARTIQL) for one in PARTITIONS]
    answers = simulate(each, [ask(*one).request for one in asked])
    assert {answer.error for answer in answers} == {""}
    allowed = {one for one, answer in zip(asked, answers, strict=True) if answer.allowed}
    assert allowed == {(name, action, one) for name, may in MAY.items() for action, ones in may.items() for one in ones}


def test_nobody_reads_or_changes_the_table_as_a_whole(policies: dict[str, Policies]) -> None:
    names = [one.rpartition("/")[2].removesuffix("Role") for one in sorted(policies)]
    asked = [ask(name, action).request for name in names for action in (*OF_THE_TABLE, *WITH_KEYS, *PARTIQL)]
    assert [request for request, answer in zip(asked, simulate(policies, asked), strict=True) if answer.allowed] == []


def test_every_kind_of_item_is_on_the_page_of_the_table() -> None:
    page = (ROOT / "docs" / "reference" / "state.md").read_text()
    assert [
        one
        for one in ("job#", "launch#", "closed#", "order#", "session#", "unhealthy#", "curve#", *PARTITIONS[9:])
        if f"`{one}" not in page
    ] == []
