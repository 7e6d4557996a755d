"""Manifests that cannot be read, and lines that make no training."""

from __future__ import annotations

from grid_plan.manifest import JSON_FORM
from tools.refusals.grids.row import COLUMNS, GOOD, MISSING, Row, line

TEN_THOUSAND = "".join(f"eu-central-1,s3://data-eu/train/,0.{number}\n" for number in range(10_000))
HEADED = "region,s3_location,hp.lr\n"
ONE_BAD = HEADED + TEN_THOUSAND.replace("0.7000\n", "0.7000,4\n")
ROWS = (
    Row("an empty manifest", "", "manifest: has no line of a training; allowed: 1 to 10,000 lines"),
    Row(
        "a manifest of blank lines and comments",
        "\n# nothing yet\n\r\n   \n",
        "manifest: has no line of a training; allowed: 1 to 10,000 lines",
    ),
    Row("a header alone", "region,s3_location\n", "manifest: has no line of a training; allowed: 1 to 10,000 lines"),
    Row(
        "10,001 lines",
        HEADED + TEN_THOUSAND + GOOD.replace("\n", ",1\n"),
        "manifest: makes more than 10,000 trainings, sweeps included; allowed: up to 10,000 (grid.limits.max_lines in cdk.json)",
        shown="10,001 lines",
    ),
    Row(
        "one bad line in 10,000",
        ONE_BAD,
        "line 7002: has 4 cells; allowed: 3, as many as columns",
        shown="10,000 lines, one of them with a cell too many",
    ),
    Row(
        "10,000 bad lines",
        HEADED + TEN_THOUSAND.replace("eu-central-1", "eu-central-9"),
        "lines 2, 3, 4, 5, 6 and 9,995 more: region: eu-central-9 is not a region of yard; allowed: auto, "
        "eu-central-1, us-east-1, us-west-2, ap-south-1",
        shown="10,000 lines of eu-central-9",
    ),
    Row(
        "UTF-16",
        GOOD.encode("utf-16"),
        "manifest: is UTF-16, as Excel's 'Unicode text' is; allowed: UTF-8 (in Excel: CSV UTF-8)",
    ),
    Row(
        "UTF-16 without a mark",
        GOOD.encode("utf-16-be"),
        "manifest: is UTF-16 or not text at all (its first letters are NUL bytes); allowed: UTF-8",
    ),
    Row(
        "Latin-1",
        b"region,s3_location,hp.name\n" + "eu-central-1,s3://data-eu/train/,Müller\n".encode("latin-1"),
        "line 2: is not UTF-8 (byte 0xfc at place 35); allowed: UTF-8",
    ),
    Row(
        "a NUL byte in the header",
        "region,data,na\0me\neu-central-1,s3://data-eu/train/,1\n",
        "manifest: has 3 columns and no names for them (line 2); allowed: region,s3_location, or a first line that names the columns",
        "line 1: holds NUL bytes; allowed: text in UTF-8",
    ),
    Row("a NUL byte", GOOD + "eu-central-1,s3://data-eu/train/\0\n", "line 2: holds NUL bytes; allowed: text in UTF-8"),
    Row(
        "an Excel workbook",
        b"PK\x03\x04\x14\0\0\0",
        "manifest: is a ZIP archive, as Excel's own files are; allowed: plain text (in Excel: CSV UTF-8)",
    ),
    Row(
        "a manifest packed with gzip",
        b"\x1f\x8b\x08\0\0\0",
        "manifest: is compressed with gzip; allowed: the plain text",
    ),
    Row(
        "a line over 100 KB",
        GOOD + "eu-central-1," + "x" * 103_000 + "\n",
        "line 2: is longer than 102,400 bytes; allowed: up to 102,400 bytes",
        shown="a line of 103,000 characters",
    ),
    Row(
        "a quote that is never closed",
        'region,data,hp.a\neu-central-1,s3://data-eu/train/,"1\n' + GOOD * 5000,
        "line 2: has a quote that is not closed within 102,400 characters, so nothing after it was read; allowed: an even number of quotes",
        shown="a quote that opens in line 2 of 5,002",
    ),
    Row(
        "characters after a closing quote",
        'region,data,hp.a\neu-central-1,s3://data-eu/train/,"1"2\n',
        "line 2: is not CSV (',' expected after '\"'); allowed: cells as RFC 4180 has them",
    ),
    Row(
        "three columns without a header",
        "eu-central-1,s3://data-eu/train/,images:v1\n",
        "manifest: has 3 columns and no names for them (line 1); allowed: region,s3_location, or a first line that names the columns",
    ),
    Row(
        "an unknown column",
        "region,s3_locaton\n" + GOOD,
        f"manifest: has the column s3_locaton, which is unknown (did you mean s3_location?) (line 1); allowed: {COLUMNS}",
    ),
    Row(
        "a column twice",
        "region,data,s3_location\neu-central-1,s3://data-eu/train/,\n",
        "manifest: has the column data twice (line 1); allowed: each column once (s3_location is data, command is entrypoint)",
    ),
    Row("a cell too few", "region,data,hp.lr\n" + GOOD, "line 2: has 2 cells; allowed: 3, as many as columns"),
    Row(
        "a cell that is not a number",
        "region,data,volume_gb,max_hours,network_isolation\neu-central-1,s3://data-eu/train/,many,1h,ja\n",
        "line 2: volume_gb: many is not a whole number",
        "line 2: max_hours: 1h is not a number",
        "line 2: network_isolation: ja is neither true nor false",
    ),
    Row(
        "numbers with commas, and thousands apart",
        "region;data;instance_count;volume_gb;max_hours\neu-central-1;s3://data-eu/train/;2.5;1.000;0,5\n"
        "eu-central-1;s3://data-eu/train/;2,0;1\u202f000;1,000.5\n",
        "line 2: instance_count: 2.5 is not a whole number",
        "line 2: volume_gb: 1.000 is 1 in English and 1000 in German",
        "line 2: max_hours: 0,5 is not a number (decimals follow a point, and nothing separates thousands)",
        "line 3: instance_count: 2,0 is not a whole number (decimals follow a point, and nothing separates thousands)",
        "line 3: volume_gb: 1\\u202f000 is not a whole number (decimals follow a point, and nothing separates thousands)",
        "line 3: max_hours: 1,000.5 is not a number (decimals follow a point, and nothing separates thousands)",
    ),
    Row(
        "missing values that are text",
        "region,data,channel,instance_count,kms_key\neu-central-1,s3://data-eu/train/,nan,NaN,None\n"
        "nan,<NA>,#N/A,null,NaT\n",
        f"line 2: channel: nan {MISSING}",
        f"line 2: instance_count: NaN {MISSING}",
        f"line 2: kms_key: None {MISSING}",
        f"line 3: region: nan {MISSING}",
        f"line 3: data: <NA> {MISSING}",
        f"line 3: channel: #N/A {MISSING}",
        f"line 3: instance_count: null {MISSING}",
        f"line 3: kms_key: NaT {MISSING}",
    ),
    Row(
        "errors of formulas, one of them at the beginning of a line",
        "region,data,volume_gb,hp.lr\n#REF!,s3://data-eu/train/,#DIV/0!,#VALUE!\n",
        "line 2: region: #REF! is the error of a spreadsheet's formula",
        "line 2: volume_gb: #DIV/0! is the error of a spreadsheet's formula",
        "line 2: hyperparameters.lr: #VALUE! is the error of a spreadsheet's formula; allowed: a value",
    ),
    Row(
        "the index that pandas writes",
        ",region,data\n0,eu-central-1,s3://data-eu/train/\n",
        "manifest: has a column without a name, such as the index that pandas writes (line 1); "
        "allowed: a name for each column (df.to_csv(index=False))",
    ),
    Row(
        "a header in typographic quotes",
        "“region”,data\neu-central-1,s3://data-eu/train/\n",
        'manifest: has the column “region”, which is in typographic quotes (straight ones are ") (did you mean region?) (line 1); '
        f"allowed: {COLUMNS}",
    ),
    Row(
        "an address in typographic quotes",
        "eu-central-1,“s3://data-eu/train/”\n",
        'line 1: data: “s3://data-eu/train/” is in typographic quotes (straight ones are ")',
    ),
    Row(
        "JSON in typographic quotes",
        line() + "{“region”: “eu-central-1”}\n",
        f"line 2: is not JSON (a typographic quote in the place of a straight one at place 2); allowed: {JSON_FORM}",
    ),
    Row(
        "a cell that is not JSON",
        "region,data,tags\neu-central-1,s3://data-eu/train/,{a}\n",
        "line 2: tags: {a} is not JSON (Expecting property name enclosed in double quotes at place 2)",
    ),
    Row(
        "one JSON document",
        '[{"region": "eu-central-1"}]\n',
        "manifest: begins with [, as one JSON document does; allowed: JSON Lines, an object on one "
        'line, as in {"region": "eu-central-1", "data": "s3://bucket/folder/"}, or CSV',
    ),
    Row(
        "JSON over several lines",
        '{\n "region": "eu-central-1"\n}\n',
        f"line 1: is not JSON (Expecting property name enclosed in double quotes at place 3); allowed: {JSON_FORM}",
        f"line 2: is not JSON (Extra data at place 10); allowed: {JSON_FORM}",
        f"line 3: is not JSON (Expecting value at place 1); allowed: {JSON_FORM}",
    ),
    Row(
        "NaN",
        '{"region": "eu-central-1", "max_hours": NaN}\n',
        f"line 1: is not JSON (NaN is not a JSON number); allowed: {JSON_FORM}",
    ),
    Row(
        "a number that is too large for a float",
        '{"region": "eu-central-1", "hyperparameters": {"lr": 1e999}}\n',
        f"line 1: is not JSON (1e999 is too large a number); allowed: {JSON_FORM}",
    ),
    Row(
        "a name twice in an object",
        '{"region": "eu-central-1", "region": "us-east-1"}\n',
        f"line 1: is not JSON (region appears twice); allowed: {JSON_FORM}",
    ),
    Row(
        "half of a surrogate pair",
        '{"region": "eu-central-1", "hyperparameters": {"a": "\\ud800"}}\n',
        f"line 1: is not JSON (hyperparameters.a holds half of a surrogate pair); allowed: {JSON_FORM}",
    ),
    Row(
        "brackets without end",
        '{"a": ' + "[" * 60_000 + "\n",
        f"line 1: is not JSON (it is nested too deeply); allowed: {JSON_FORM}",
        shown="60,000 opening brackets",
    ),
    Row("a list among objects", line() + "[1]\n", f"line 2: is JSON, but not an object; allowed: {JSON_FORM}"),
)
