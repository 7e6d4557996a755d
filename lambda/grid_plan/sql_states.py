"""Says what a query may be instead, by the SQLSTATE with which PostgreSQL refused it.

The first two characters of a SQLSTATE are its class (PostgreSQL's manual, "PostgreSQL Error Codes").
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from types import MappingProxyType

from contract.catalogue import SCHEMA, TEAM
from refusals.synonyms import ALIKE

READABLE = "one statement that reads, such as a select, with the rights of the catalogue's reader"
SYNTAX = (
    "SQL as PostgreSQL writes it: ' around a text, \" around a name that is not all lower case (the query editor of RDS tries a query "
    "with the secret of the output CatalogueReaderSecret)"
)
TABLES = (
    f"the tables and views of the schemas {SCHEMA} and {TEAM} (docs/guides/catalogue.md), or aliases of its own from"
)
COLUMNS = "columns of the tables in its from, and ' around a text: what \" stands around is a name"
FUNCTIONS = "functions and operators that PostgreSQL has for these types; a cast, as in n::text, changes a type"
OBJECTS = "types, settings and collations that PostgreSQL has"
AMBIGUOUS = "a name with its table before it, as in d.region, where several tables have it"
DOUBLE = "a different name for each"
GROUPS = "columns that its group by has, or that are inside an aggregate function; window functions in the select list or order by"
TYPES = "values of one type; a cast, as in n::text, changes a type"
VALUES = "values that its casts, functions and operators take: a where, or nullif, leaves out those that they do not"
ONE_ROW = "a subquery that gives one row, as with limit 1"
PARAMETERS = "values in the query itself: nothing gives it parameters"
RIGHTS = f"what the catalogue's reader may read and call: the tables of the schema {SCHEMA}, and what the keeper made in {TEAM}"
AGAIN = "the same query again in some minutes: another session was in its way"
SMALLER = "a query that sorts, joins or groups less: the database has too little memory or disk for this one"
LIMITS = "a query within PostgreSQL's limits: shorter texts, fewer columns, less nesting"
RAISED = "a query whose functions raise no error: the one that did so says why"
BROKEN = "the same query again later: the database itself failed, and the query need not be wrong"
RESULTS = "columns of text, numbers, true and false, times, JSON, and lists of them, without parameters: more the Data API does not take"
OTHER = "a query that PostgreSQL carries out without an error"
BY_STATE = MappingProxyType(
    {
        "": RESULTS,
        **dict.fromkeys(("42P01", "3F000", "42P09"), TABLES),
        **dict.fromkeys(("42703", "42P10"), COLUMNS),
        **dict.fromkeys(("42704", "42P17"), OBJECTS),
        **dict.fromkeys(("42702", "42725"), AMBIGUOUS),
        **dict.fromkeys(("42701", "42712", "42P03", "42P04", "42P05", "42P06", "42P07"), DOUBLE),
        **dict.fromkeys(("42803", "42P20", "42809"), GROUPS),
        **dict.fromkeys(("42804", "42846", "42P08", "42P18", "42P21", "42P22"), TYPES),
        **dict.fromkeys(("08P01", "42P02"), PARAMETERS),
        **dict.fromkeys(("42P11", "25001", "25006"), READABLE),
        **dict.fromkeys(("55P03", "55006"), AGAIN),
        "42883": FUNCTIONS,
        "42501": RIGHTS,
        "21000": ONE_ROW,
    }
)
"""SQLSTATE to what is allowed; the empty one is the Data API's own refusal."""
BY_CLASS = MappingProxyType(
    {
        "0A": READABLE,
        "22": VALUES,
        "23": READABLE,
        "28": RIGHTS,
        "38": RAISED,
        "39": RAISED,
        "40": AGAIN,
        "42": SYNTAX,
        "53": SMALLER,
        "54": LIMITS,
        "58": BROKEN,
        "P0": RAISED,
        "XX": BROKEN,
    }
)
"""Class to what is allowed with the SQLSTATEs that BY_STATE lacks."""
WRITES = re.compile(r"multiple commands|\bINTO is not allowed")
"""What PostgreSQL says, as a syntax error, of several statements and of one that makes a table."""
UNKNOWN = re.compile(r'\b(?:column|relation) "?(?:[^". ]+\.)?([^" ]+)"? (?:specified in USING clause )?does not exist')


def say_allowed(state: str, text: str) -> str:
    """Returns what is allowed instead of a query that was refused with this SQLSTATE and these words."""
    if WRITES.search(text):
        return READABLE
    return BY_STATE.get(state) or BY_CLASS.get(state[:2], OTHER)


def find_unknown(text: str) -> str:
    """Returns the column or table that PostgreSQL does not know, without its schema; empty if its words are about something else, or
    already have a hint."""
    found = UNKNOWN.search(text)
    return found[1] if found and "Hint:" not in text else ""


def suggest_name(unknown: str, names: Iterable[str]) -> str:
    """Returns a hint in parentheses, with a space before it; empty if none of the names is like the unknown one."""
    near = difflib.get_close_matches(unknown.lower(), names, n=1, cutoff=ALIKE)
    return f" (did you mean {near[0]}?)" if near else ""
