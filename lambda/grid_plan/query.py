"""Reads the rows of a person's query from the catalogue, as its reader, in one transaction that only reads.

Nothing here reads SQL, beyond what `grid_plan.statements` refuses before. The protocol takes one statement, a cursor takes one that gives
rows, the transaction and the role may only read, and each statement has its own time-out, whatever the query sets.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from aws.data_api import (
    CANCELLED,
    AnswerTooLarge,
    DataApi,
    NoDatabase,
    StatementAnswer,
    StatementRefused,
    Transaction,
)
from contract.catalogue import SCHEMA, TEAM
from contract.errors import DatabaseAway
from grid_plan.problems import Report
from grid_plan.rows import find_targets, write_line
from grid_plan.sql_states import find_unknown, say_allowed, suggest_name
from refusals.wording import plain

PAGES = (1000, 100, 10)
"""Rows of a page: the Data API gives 1 MiB in one answer, and a row may have 64 KB."""
STATEMENT_S = 40.0
"""The longest time of one statement: the Data API ends one after 45 s by itself, and loses what PostgreSQL says."""
WHOLE_S = 240.0
"""The longest time of all of them, after the database woke: Plan has 15 minutes for everything."""
MOST_BYTES = 128 * 1024**2
"""Of all lines, which Plan holds in its memory until they are written."""
MOST_WORDS = 500
"""The most characters that are shown of what PostgreSQL says."""
TRIES = 3
"""How often a query is asked whose statement is cancelled, or whose session ends."""
UNCANCELLED = f"a query that no other session cancels {TRIES} times"
UNENDED = f"a query that ends no session: it ended its own {TRIES} times"
BY_A_SESSION = "due to user request"
"""What PostgreSQL says of a statement that `pg_cancel_backend` ended; one that ran into its time-out has the same SQLSTATE."""
CURSOR = "declare lines no scroll cursor for "
PLACE = re.compile(r"[;\s]*\bPosition: ([0-9]+)")
NAMES = (
    "select table_name::text from information_schema.tables where table_schema in (:schema, :team) "
    "union select column_name::text from information_schema.columns where table_schema in (:schema, :team) order by 1"
)
"""Names that a query may mean: of the tables and columns that the reader sees."""
ENTRANCE = (
    "a catalogue whose database is there, and whose reader has the password of its secret "
    "(invoke the function CatalogueSchema of the catalogue's stack with {})"
)
IN_TIME = (
    f"a query that gives its first rows, and each {PAGES[0]:,} more, within {STATEMENT_S:.0f} s, "
    f"and all within {WHOLE_S / 60:.0f} minutes"
)


class QueryRefused(Exception):
    """The query gives no manifest; `problems` are lines for a person."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def read_lines(database: DataApi, query: str, *, most: int, clock: Callable[[], float]) -> bytes:
    """Returns the rows as JSON Lines. Raises QueryRefused, and DatabaseAway where nothing is known of the query."""
    ends_at: float | None = None
    pages, tries = list(PAGES), TRIES
    try:
        while pages:
            try:
                with database.transaction(commits=False) as transaction:
                    ends_at = clock() + WHOLE_S if ends_at is None else ends_at
                    return _Reading(transaction, most, ends_at, clock, database).read(query, pages[0])
            except AnswerTooLarge:  # the cursor has passed its rows, and the transaction may be over
                del pages[0]
            except StatementRefused as refused:  # our own statements, or the login: that tells nothing of the query
                raise NoDatabase(_word(refused)) from None
            except _Interrupted as interrupted:
                tries -= 1
                if not tries:
                    raise QueryRefused(str(interrupted)) from None
    except NoDatabase as problem:
        raise QueryRefused(
            f"query: the catalogue does not let Plan in: {plain(str(problem), MOST_WORDS)}; allowed: {ENTRANCE}"
        ) from None
    raise QueryRefused("query: gives a row of more than 64 KB; allowed: rows of up to 64 KB, the most of the Data API")


class _Interrupted(Exception):
    """A statement of the query was cancelled, or its session ended: the next try may go well."""


class _Reading:
    """One try, with one size of pages."""

    def __init__(
        self, transaction: Transaction, most: int, ends_at: float, clock: Callable[[], float], database: DataApi
    ) -> None:
        self._transaction, self._most = transaction, most
        self._ends_at, self._clock, self._database = ends_at, clock, database

    def read(self, query: str, page: int) -> bytes:
        self._transaction.run("set transaction isolation level repeatable read, read only")
        self._limit()
        self._declare(query)
        lines, report, size = list[bytes](), Report(), 0
        while True:
            found = self._fetch(page)
            targets, problems = find_targets(found.columns)
            if problems:
                raise QueryRefused(*(f"query: {one}" for one in problems))
            for row in found.rows:
                line, wrong = write_line(targets, row)
                lines.append(line)
                size += len(line)
                for one in wrong:
                    report.add(one, len(lines))
            if len(lines) > self._most:
                raise QueryRefused(
                    f"query: gives more than {self._most:,} rows; allowed: up to {self._most:,} (grid.limits.max_lines in cdk.json)"
                )
            if size > MOST_BYTES:
                raise QueryRefused(
                    f"query: gives more than {MOST_BYTES // 1024**2} MB; allowed: up to {MOST_BYTES // 1024**2} MB"
                )
            if len(found.rows) < page:
                break
        if not lines:
            raise QueryRefused(f"query: gives no row; allowed: 1 to {self._most:,} rows")
        if report:
            raise QueryRefused(*report.reasons())
        return b"".join(lines)

    def _declare(self, query: str) -> None:
        try:
            self._transaction.run(CURSOR + query)
        except (StatementRefused, DatabaseAway) as refused:
            raise _explain(refused, shift=len(CURSOR), hint=self._suggest(refused)) from None

    def _suggest(self, refused: StatementRefused | DatabaseAway) -> str:
        """Names the table or column that an unknown name may mean; the transaction is over, so in one of its own."""
        unknown = find_unknown(refused.text)
        if not unknown:
            return ""
        try:
            found = self._database.run(NAMES, {"schema": SCHEMA, "team": TEAM})
        except (StatementRefused, DatabaseAway, NoDatabase, AnswerTooLarge):
            return ""  # the refusal is right without it
        return suggest_name(unknown, [str(name) for (name,) in found.rows])

    def _fetch(self, page: int) -> StatementAnswer:
        try:
            self._limit()  # the rows before may have set another one: a query may call set_config
            return self._transaction.run(f"fetch forward {page} from lines")
        except (StatementRefused, DatabaseAway) as refused:
            raise _explain(refused) from None

    def _limit(self) -> None:
        """Sets the next statement's time-out, and where names are looked up."""
        left = min(STATEMENT_S, self._ends_at - self._clock())
        if left <= 0:
            raise QueryRefused(f"query: takes longer than {WHOLE_S / 60:.0f} minutes; allowed: {IN_TIME}")
        self._transaction.run(
            "select set_config('statement_timeout', :time, true), set_config('search_path', :path, true)",
            {"time": f"{max(1, int(left * 1000))}ms", "path": f"{SCHEMA}, {TEAM}"},
        )


def _explain(refused: StatementRefused | DatabaseAway, shift: int = 0, hint: str = "") -> Exception:
    """Returns what to raise: the query is to blame, unless it was interrupted, or nothing is known of it. `hint` follows the words."""
    if isinstance(refused, DatabaseAway) and not refused.state:
        return refused
    if isinstance(refused, DatabaseAway):
        return _Interrupted(f"query: {_word(refused)}; allowed: {UNENDED}")
    if refused.state == CANCELLED and BY_A_SESSION in refused.text:
        return _Interrupted(f"query: {_word(refused)}; allowed: {UNCANCELLED}")
    allowed = IN_TIME if refused.state == CANCELLED else say_allowed(refused.state, refused.text)
    return QueryRefused(f"query: {_word(refused, shift)}{hint}; allowed: {allowed}")


def _word(refused: StatementRefused | DatabaseAway, shift: int = 0) -> str:
    """Puts PostgreSQL's words on one line, with the place in the query itself."""
    place = PLACE.search(refused.text)
    words = " ".join(PLACE.sub("", refused.text).split())
    words += f" at character {int(place[1]) - shift}" if place and int(place[1]) > shift else ""
    words += f" (SQLSTATE {refused.state})" if refused.state else ""
    return plain(words, MOST_WORDS)
