"""Files of SQL have one order and one text for ever, and a password becomes what PostgreSQL stores of it."""

from __future__ import annotations

import re

import pytest

from catalogue_schema.policy import SchemaRefused, find_unapplied, read_files, verify_with

FILES = read_files({"0001_one.sql": "select 1\n--;\nselect 2\n", "0002_two.sql": "select 3\n"})
FIRST, SECOND = FILES


def test_a_file_is_split_at_lines_of_ours_and_nowhere_else() -> None:
    (file,) = read_files({"0001_a.sql": "select ';'; -- a;b\n --; no\n--;\ncomment on table t is 'a\n--;b'\n"})
    assert file.statements == ("select ';'; -- a;b\n --; no", "comment on table t is 'a\n--;b'")


@pytest.mark.parametrize("text", ["", "\n", "select 1\n--;\n", "--;\nselect 1", "select 1\n--;\n--;\nselect 2"])
def test_an_empty_statement_is_refused(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"0001_a\.sql has an empty statement; allowed: one statement before and after"
    ):
        read_files({"0001_a.sql": text})


@pytest.mark.parametrize("names", [["0002_a.sql"], ["0001_a.sql", "0001_b.sql"], ["0001_a.sql", "0003_b.sql"]])
def test_a_number_that_is_missing_or_there_twice_is_refused(names: list[str]) -> None:
    with pytest.raises(ValueError, match="allowed: one for each number from 0001 on"):
        read_files(dict.fromkeys(names, "select 1"))


@pytest.mark.parametrize("name", ["1_a.sql", "0001-a.sql", "0001_A.sql", "0001_a.txt", "0001_.sql.bak"])
def test_another_form_of_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="allowed: four digits"):
        read_files({name: "select 1"})


def test_what_is_missing_is_applied_in_its_order() -> None:
    assert find_unapplied(FILES, {}) == [FIRST, SECOND]
    assert find_unapplied(FILES, {1: FIRST.sha256}) == [SECOND]
    assert find_unapplied(FILES, {1: FIRST.sha256, 2: SECOND.sha256}) == []


def test_a_file_that_changed_after_it_was_applied_is_refused_by_name() -> None:
    with pytest.raises(
        SchemaRefused, match=r"^0001_one.sql changed after .* allowed: the file as it was, and a further"
    ):
        find_unapplied(FILES, {1: "another", 2: SECOND.sha256})


def test_a_database_of_a_later_version_is_refused_and_not_taken_back() -> None:
    with pytest.raises(SchemaRefused, match="up to 0003, and this version has 2; allowed: that version"):
        find_unapplied(FILES, {1: FIRST.sha256, 2: SECOND.sha256, 3: "later"})


def test_a_verifier_has_the_salt_and_not_the_password_nor_a_quote() -> None:
    verifier = verify_with("pencil", b"salt")
    assert verifier.startswith("SCRAM-SHA-256$4096:c2FsdA==$")
    assert not {"pencil", "'"} & set(re.findall("pencil|'", verifier))
    assert verifier != verify_with("pencil", b"salz")


@pytest.mark.parametrize("password", ["", "with space", "schlüssel", "a\nb", "\x00"])
def test_a_password_that_postgresql_would_write_otherwise_is_refused_and_not_shown(password: str) -> None:
    with pytest.raises(ValueError, match="allowed: visible characters of ASCII") as refused:
        verify_with(password, b"salt")
    assert not password or password not in str(refused.value)
