"""Texts that stand where a statement is expected: what is no SQL is refused with what to write, and no SQL that reads ever is."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from aws.data_api import DataApi
from contract.campaigns import fill_in, folder_of
from grid_plan import request, statements
from grid_plan.query import QueryRefused, read_lines
from grid_plan.statements import find_mistake
from tests.builders import GRID_LIMITS
from tests.fakes.catalogue import DataApiOver
from tests.functions.grid_plan.catalogue import ACCESS, serve_catalogue

EMPTY, COMMENTS, JSON, QUOTED = "is empty", "holds comments alone", "is JSON", "is in quotation marks"
FILE, ADDRESS, NAME = "names a file", "is an address", "is a single name"
NO_STATEMENT = [
    ("query.sql", FILE),
    ("query.SQL;", FILE),
    ("'query.sql'", FILE),
    ("my query.sql", FILE),
    ("./queries/drive.sql", FILE),
    ("queries/drive", FILE),
    ("/srv/queries/drive", FILE),
    (r"C:\queries\drive.sql", FILE),
    ("~/drive.psql", FILE),
    ("@query.sql", FILE),
    ("file:query.sql", FILE),
    (r"\i query.sql", FILE),
    ("psql -f query.sql", FILE),
    ("select.sql", FILE),
    ("with/query.sql", FILE),
    ("query.sql.j2", FILE),
    ("query.txt", FILE),
    ("input.json", FILE),
    ("lines.csv", "the address of a manifest belongs in manifest"),
    ("s3://a-bucket/lines.jsonl", "the address of a manifest belongs in manifest"),
    ("s3://a-bucket/query.sql", ADDRESS),
    ("s3://a-bucket/queries/drive", ADDRESS),
    ("s3://a-bucket/my query.sql", FILE),
    ("https://git.example.com/q.sql", ADDRESS),
    ("file:///srv/query.sql", ADDRESS),
    ("next_grid", NAME),
    ("team.next_grid;", "or table team.next_grid for all rows"),
    ("", EMPTY),
    (" \n\t", EMPTY),
    (" ; ; ", EMPTY),
    ("-- select 1", COMMENTS),
    ("/* select 1 /* 2 */ */ -- 3\n;", COMMENTS),
    ('{"query": "select 1"}', JSON),
    ('["select 1"]', JSON),
    ("query: select 1", "begins with query:, as a field"),
    ("query: |\n  select 1", "begins with query:, as a field"),
    ("- select 1", "begins with -"),
    ("sql = select 1", "begins with sql=, as a field or a variable"),
    ("trainyard=> select 1", "as a field or a variable"),
    ('"select 1"', QUOTED),
    ("'select 1'", QUOTED),
    ("```sql\nselect 1\n```", QUOTED),
    (r"\d", r"has \d, which only psql knows"),
    (r"\dt+ trainyard.*", r"has \dt, which only psql knows"),
    (r"\copy data_sets to stdout", r"has \copy, which only psql knows"),
    (r"select 1 \gx", r"has \gx, which only psql knows"),
    ("select 1;\n\\g", r"has \g, which only psql knows"),
    ("selec region from data_sets", "begins with selec (did you mean select?)"),
    ("(SELECTT region from data_sets)", "begins with SELECTT (did you mean select?)"),
    ("wtih a as (table runs) table a", "(did you mean with?)"),
    ("insert into runs values (1)", "begins with INSERT, which writes"),
    ("-- new\nUpdate runs set name = ''", "begins with UPDATE, which writes"),
    ("delete from runs", "begins with DELETE, which writes"),
    ("create table t (a int)", "begins with CREATE, which writes"),
    ("explain select 1", "begins with explain"),
    ("show all", "begins with show"),
    ("begin; select 1; commit", "begins with begin"),
    ("select 1; select 2", "has a second statement, which begins with select"),
    ("select ';'; -- one\n; drop table runs", "has a second statement, which begins with drop"),
    ("select $a$;$a$ as region; table runs", "has a second statement, which begins with table"),
    ("{{ query }}", "begins with the placeholder {{ query }}"),
    ("${QUERY}", "begins with the placeholder ${QUERY}"),
    ("<query>", "begins with the placeholder <query>"),
    ("{% if a %} select 1 {% endif %}", "begins with the placeholder {% if a %}"),
    ("select * from data_sets where campaign = {campaign}", "has the placeholder {campaign}"),
    ("select * from {{ ref('data_sets') }}", "has the placeholder {{ ref('data_sets') }}"),
    ("select * from data_sets where campaign = <campaign>", "has the placeholder <campaign>"),
    ("select * from data_sets where campaign = $1", "has the placeholder $1"),
    ("select * from data_sets where campaign = $CAMPAIGN", "has the placeholder $CAMPAIGN"),
    ("select * from data_sets where campaign = :campaign", "has the placeholder :campaign"),
    ("select * from data_sets where campaign = :'campaign'", "has the placeholder :'campaign'"),
    ("select * from data_sets where campaign = %s", "has the placeholder %s"),
    ("select * from data_sets where campaign in (%(a)s, 'b')", "has the placeholder %("),
    ("select * from data_sets where campaign = ? limit ?", "has the placeholder ?"),
    ("\ufeffselect 1", "has the character U+FEFF, which is invisible"),
    ("select\u00a01 as volume_gb", "has the character U+00A0, which is invisible"),
    ("select \u2018eu-central-1\u2019 as region", "has the quotation mark \u2018; allowed: ' around a text"),
    ("select `region` from data_sets", "has the quotation mark `"),
]
IN_A_QUOTATION = [
    ("select '{data}/train' as data", "has the placeholder {data}"),
    ("select * from data_sets where address = '{data}'", "has the placeholder {data}"),
    ("select 's3://a-bucket/{campaign}/' as data", "has the placeholder {campaign}"),
    ("select $$s3://a-bucket/{campaign}/$$ as data", "has the placeholder {campaign}"),
    ("select * from data_sets where campaign = '{{ campaign }}'", "has the placeholder {{ campaign }}"),
    ("select * from data_sets where campaign = '<your campaign>'", "has the placeholder <your campaign>"),
    ("select * from data_sets where campaign = '${CAMPAIGN}'", "has the placeholder ${CAMPAIGN}"),
    ("select 's3://REPLACE-WITH-UploadPrefix/a' as data", "has the placeholder s3://REPLACE-WITH-UploadPrefix"),
]
"""Placeholders that are text to PostgreSQL, which would find no row, or name a folder that is not there."""
READS = [
    "select 'eu-central-1' as region",
    " \n(select 'eu-central-1' as region) ;; -- the end",
    "/* a /* b; */ ' */ SELECT 'eu-central-1' AS region",
    "((values ('eu-central-1')))",
    "values('eu-central-1')",
    "table next_grid;",
    "TABLE team.next_grid",
    "with a as (table next_grid) table a",
    'select"region"from"next_grid"',
    "select*from next_grid",
    "select 'query.sql' as data",
    "select * from next_grid -- see query.sql",
    "select ';' as region, $$; \\d {2} $$ as data, E'\\'; \\\\' as command",
    "select '{a,b}'::text[] as regions, '{\"a\": 1}'::jsonb as hyperparameters",
    "select (array['a','b','c'])[1:n] as regions from (values (2)) t (n)",
    "select 5 % 3 as volume_gb, n %s as nodes from (values (2, 3)) t (n, s)",
    "select region from next_grid where jsonb '{\"a\": 1}' ? 'a' and jsonb '{}' ?| array['a']",
    "select region from runs where metrics->>'loss' < '1' and 1<2 and metrics @> '{\"a\": 1}'",
    "select 1 << 2 > 3 as allow, '<a>b</a>' as data",
    "select 1 as region from (values (1, 2, 3)) t (a, b, c) where a<b>>c or a - -b <c",
    "select region from runs where jsonb_path_exists(metrics, '$.a ? (@ > $least)', '{\"least\": 1}')",
    "select format('%s-%s', region, 1) as region from next_grid where region like '%s'",
    "select make_interval(days := 2)::text as region",
    "select U&'d\\0061t' as region, n'a' as data, b'1'::text as command",
    "select regexp_replace(region, '[a-z]{2,3}$', 'x') as region from next_grid",
]
"""Statements that PostgreSQL takes, with signs in them that could be taken for something else."""


@pytest.mark.parametrize(("text", "said"), [*NO_STATEMENT, *IN_A_QUOTATION])
def test_what_is_no_statement_is_refused_with_what_to_write(text: str, said: str) -> None:
    found = find_mistake(text)
    assert said in found
    assert "; allowed: " in found


@pytest.mark.parametrize("text", READS)
def test_no_statement_that_reads_is_refused(text: str) -> None:
    assert find_mistake(text) == ""


@pytest.mark.parametrize("text", ["select 'open", 'select "open', "/* open", "select $a$ open", "'open"])
def test_a_quotation_or_comment_that_does_not_end_is_left_to_postgresql(text: str) -> None:
    assert find_mistake(text) == ""


def test_the_reader_of_plan_refuses_a_file_where_a_statement_is_expected() -> None:
    problems = request.read({"query": "query.sql"}, GRID_LIMITS)[2]
    assert problems == [f"query: query.sql names a file; allowed: {statements.FROM_A_FILE}"]


def test_a_manifest_that_is_sql_belongs_in_query() -> None:
    (problem,) = request.read({"manifest": "s3://a-bucket/uploads/query.sql"}, GRID_LIMITS)[2]
    assert "names a file of SQL" in problem
    assert problem.endswith("or query with the SQL itself")


def test_the_folder_that_a_campaign_fills_in_is_no_placeholder() -> None:
    query = "select region, address as data from data_sets where address = '{data}/'"
    assert find_mistake(fill_in(query, folder_of("a-bucket", "campaigns/a/_READY"))) == ""


@pytest.mark.parametrize("part", ["'a''", "$a$$b", "${", "/*", "{{", "<a", "(", "\\", "select x, "], ids=range(9))
def test_the_longest_query_is_read_in_proportion_to_its_length(part: str) -> None:
    def measure(size: int) -> float:
        began = time.process_time()
        find_mistake(part * (size // len(part)))
        return time.process_time() - began

    assert measure(request.MOST_QUERY) < 100 * (measure(request.MOST_QUERY // 10) + 0.01)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataApiOver]:
    with serve_catalogue(tmp_path_factory.mktemp("postgres") / "data") as calls:
        yield calls


def test_postgresql_refuses_what_is_no_statement_and_takes_every_statement_that_reads(database: DataApiOver) -> None:
    assert [text for text, _ in NO_STATEMENT if text and not is_refused(database, text)] == []
    assert [text for text, _ in IN_A_QUOTATION if is_refused(database, text)] == []
    assert [text for text in READS if is_refused(database, text)] == []


def is_refused(database: DataApiOver, text: str) -> bool:
    """Whether PostgreSQL refuses to open a cursor for the statement, or to give rows from it."""
    try:
        read_lines(DataApi(ACCESS, database), text, most=100, clock=time.monotonic)
    except QueryRefused as refused:
        return "SQLSTATE" in str(refused)
    return False
