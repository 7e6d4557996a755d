"""Manifests as pandas, spreadsheets and editors write them: what is read, what is refused, and what is sent unchanged with a warning."""

from __future__ import annotations

from typing import Any

import pytest

from contract.errors import InvalidRequest
from contract.metric_values import write_expression
from tests.functions.grid_plan.account import INPUT, Account, line, plan, planned
from tools.refusals.grids.yard import ACCOUNT

HEAD = "region;data;hp.lr\n"
ROWS = "eu-central-1;s3://data-eu/train/;0.1\nus-east-1;s3://data-us/train/;0.2\n"
TABLE = HEAD + ROWS
PLANNED = [("eu-central-1", {"lr": "0.1"}), ("us-east-1", {"lr": "0.2"})]
ONE = "eu-central-1,s3://data-eu/train/"


def cell(there: Account, column: str, text: str) -> dict[str, Any]:
    """The request of a line of CSV with one more cell."""
    (found,) = planned(there, f'region,data,{column}\n{ONE},"{text}"\n')
    return found.request


@pytest.mark.parametrize(
    "manifest",
    [
        TABLE,
        TABLE.replace(";", "\t"),
        TABLE.replace(";", "|"),
        "sep=;\r\n" + TABLE.replace("\n", "\r\n"),
        "SEP=,\n" + TABLE.replace(";", ","),
        "sep=\t\n" + TABLE.replace(";", "\t"),
        "\ufeffsep=;\n" + TABLE,
        '"sep=;"\n' + TABLE,
        "sep=;;;\n" + TABLE,
        "# of May\nsep=;\n\n" + TABLE,
        "sep=,\n" + TABLE,
        "hp.lr;region;data\n0.1;eu-central-1;s3://data-eu/train/\n0.2;us-east-1;s3://data-us/train/\n",
        TABLE.replace("\n", ";;\n"),
        TABLE.replace(";s3", "\u00a0;\u200bs3").replace("region", "\u200bregion\u00a0"),
        "\ufeff\ufeff" + TABLE,
        TABLE.replace("eu-central-1", '"eu-central-1"'),
    ],
    ids=[
        "semicolons",
        "tabs",
        "bars",
        "semicolons that are said",
        "commas that are said",
        "tabs that are said",
        "behind a mark",
        "quoted",
        "padded",
        "behind a comment",
        "another than is said",
        "an entry's column first",
        "empty cells at the ends",
        "invisible letters",
        "two marks",
        "quotes",
    ],
)
def test_a_table_is_read_whatever_separates_its_columns(there: Account, manifest: str) -> None:
    found = planned(there, manifest)
    assert [(one.region, one.request["HyperParameters"]) for one in found] == PLANNED


def test_a_line_keeps_its_number_behind_a_line_that_says_the_separator(there: Account) -> None:
    assert [one.line for one in planned(there, "sep=;\n" + TABLE)] == [3, 4]


def test_separators_stay_in_the_cells_of_a_table_of_commas(there: Account) -> None:
    there.s3.write("data-eu", "a;b|c/x", b"")
    (found,) = planned(there, "region,data,hp.a;b\neu-central-1,s3://data-eu/a;b|c/,1;2\n")
    assert found.request["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3Uri"] == "s3://data-eu/a;b|c/"
    assert found.request["HyperParameters"] == {"a;b": "1;2"}


def test_commas_stay_in_the_cells_of_a_table_of_semicolons_without_a_header(there: Account) -> None:
    there.s3.write("data-eu", "a,b/x", b"")
    (found,) = planned(there, "eu-central-1;s3://data-eu/a,b/\n")
    assert found.request["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3Uri"] == "s3://data-eu/a,b/"


@pytest.mark.parametrize("manifest", ["sep=;\nregion;daat\n", "sep=:\nregion:data\n", "sep\nregion,data\n", "sep=\n"])
def test_a_header_that_no_separator_makes_known_is_refused(there: Account, manifest: str) -> None:
    with pytest.raises(InvalidRequest, match=r"manifest: has (the column|no line)"):
        planned(there, manifest)


@pytest.mark.parametrize("backend", ["", ',"backend": "sagemaker"'])
def test_an_expression_that_misreads_printed_numbers_is_planned_with_a_warning(there: Account, backend: str) -> None:
    (found,) = planned(there, line(metrics={"loss": "loss=([0-9.]+)"}).replace("}\n", f"{backend}}}\n"))
    assert found.request["AlgorithmSpecification"]["MetricDefinitions"] == [{"Name": "loss", "Regex": "loss=([0-9.]+)"}]
    (warning,) = there.grid().warnings
    assert warning.startswith('line 1: metrics.loss: loss=([0-9.]+) reads "loss=7.1e-05" as 7.1')


def test_an_expression_in_a_column_of_its_own_is_judged_as_well(there: Account) -> None:
    planned(there, f'region,data,metric.loss\n{ONE},loss=([0-9.]+)\n{ONE},"{write_expression("loss")}"\n')
    (warning,) = there.grid().warnings
    assert warning.startswith("line 2: metrics.loss: ")


@pytest.mark.parametrize("text", ["2", "2.0", "2.00", "2.", "2.000000", "2e0", "20E-1", " 2 ", "2\u00a0", "\u200b2"])
def test_a_whole_number_may_be_written_as_a_fraction(there: Account, text: str) -> None:
    assert cell(there, "instance_count", text)["ResourceConfig"]["InstanceCount"] == 2


@pytest.mark.parametrize(
    "text",
    ["2.5", "1,000", "2,0", "1.000", "1 000", "0x2", "٢", "inf", "1e999", "2.0.0", "1_0", "--2", ".", "e3", "2h"],
)
def test_what_may_be_several_numbers_or_none_is_no_whole_number(there: Account, text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"line 2: volume_gb: "):
        cell(there, "volume_gb", text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("0.30000000000000004", 1080), ("5e-1", 1800), (".5", 1800), ("2", 7200)]
)
def test_hours_are_read_as_python_writes_numbers(there: Account, text: str, seconds: int) -> None:
    assert cell(there, "max_hours", text)["StoppingCondition"]["MaxRuntimeInSeconds"] == seconds


@pytest.mark.parametrize("text", ["TRUE", "True", "true ", "1", "1.0", "yes"])
def test_a_flag_may_be_written_as_pandas_and_excel_write_it(there: Account, text: str) -> None:
    assert cell(there, "network_isolation", text)["EnableNetworkIsolation"] is True


@pytest.mark.parametrize("text", ["FALSE", "0", "0.0", "No"])
def test_a_flag_that_is_off_may_be_too(there: Account, text: str) -> None:
    assert cell(there, "encrypt_traffic", text)["EnableInterContainerTrafficEncryption"] is False


@pytest.mark.parametrize("text", ["2", "-1", "t", "WAHR", "on", "0.5", "nan"])
def test_no_other_word_switches_a_protection_on_or_off(there: Account, text: str) -> None:
    with pytest.raises(InvalidRequest, match="line 2: network_isolation: "):
        cell(there, "network_isolation", text)


def test_whole_numbers_of_json_may_be_written_as_fractions(there: Account) -> None:
    defaults = INPUT["defaults"] | {"volume_gb": 50.0}
    first, second = planned(there, line(instance_count=2.0, volume_gb=40.0) + line(), defaults=defaults)
    assert first.request["ResourceConfig"]["InstanceCount"] == 2
    assert [one.request["ResourceConfig"]["VolumeSizeInGB"] for one in (first, second)] == [40, 50]


def test_invisible_letters_around_json_and_its_values_are_nothing(there: Account) -> None:
    first, second = line(region="eu-central-1\u00a0").strip(), line(market=" spot")
    found = planned(there, f"\u200b{first}\u200b\n\ufeff{second}")
    assert [one.request["EnableManagedSpotTraining"] for one in found] == [False, True]


def test_the_place_of_a_mistake_in_json_is_that_in_the_line(there: Account) -> None:
    with pytest.raises(InvalidRequest, match=r"line 2: is not JSON .* at place 5"):
        planned(there, line() + "\u200b  {a}\n")


@pytest.mark.parametrize(
    "given", [{"instance_count": True}, {"volume_gb": 2.5}, {"volume_gb": "2.0"}, {"region": "nan"}]
)
def test_json_says_the_type_of_a_value_itself(there: Account, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match=f"line 1: {next(iter(given))}: "):
        planned(there, line(**given))


def test_a_missing_value_in_the_defaults_is_refused_as_one_in_a_line(there: Account) -> None:
    with pytest.raises(InvalidRequest, match=r"defaults\.kms_key: nan stands for a missing value"):
        planned(there, line(), defaults=INPUT["defaults"] | {"kms_key": "nan"})


@pytest.mark.parametrize(
    "key",
    [
        "alias/ours",
        "alias/aws/s3",
        "12345678-90ab-cdef-1234-567890abcdef",
        "mrk-1234567890abcdef1234567890abcdef",
        f"arn:aws:kms:eu-central-1:{ACCOUNT}:key/12345678-90ab-cdef-1234-567890abcdef",
        f"arn:aws:kms:eu-central-1:{ACCOUNT}:alias/ours",
    ],
)
def test_a_key_is_named_in_every_way_that_kms_has(there: Account, key: str) -> None:
    assert cell(there, "kms_key", key)["OutputDataConfig"]["KmsKeyId"] == key


@pytest.mark.parametrize(
    "key", ["ours", "TBD", "-", "0", "true", "none", "alias/", "key/1", "12345678-90ab", "arn:aws:kms:x"]
)
def test_a_word_that_kms_finds_no_key_by_is_refused(there: Account, key: str) -> None:
    with pytest.raises(InvalidRequest, match="line 2: kms_key: "):
        cell(there, "kms_key", key)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nan", "stands for a missing value"),
        ("None", "stands for a missing value"),
        ("#N/A", "stands for a missing value"),
        ("“adam”", "is in typographic quotes"),
        ("0,1", "has a comma"),
    ],
)
def test_a_hyperparameter_is_sent_as_it_stands_and_a_warning_says_what_it_looks_like(
    there: Account, text: str, why: str
) -> None:
    there.upload(f'region,data,hp.x,env.X,tag.x\n{ONE},"{text}","{text}",nan\n')
    *warnings, of_the_tag = plan(INPUT)["warnings"]
    assert of_the_tag.startswith("line 2: tags.x: nan stands for a missing value")
    (found,) = there.lines()
    assert found.request["HyperParameters"]["x"] == found.request["Environment"]["X"] == text
    fields = ("hyperparameters.x", "environment.X")
    assert [one[: one.index(why) + len(why)] for one in warnings] == [
        f"line 2: {field}: {text} {why}" for field in fields
    ]
    assert all(one.endswith("; it is sent unchanged") for one in warnings)


@pytest.mark.parametrize(
    "text", ["none", "0.1", "Nancy", "it’s", "a,b", "1,2,3", "# N/A", "“a” or “b", "NA-1", "[None]"]
)
def test_a_text_that_only_resembles_one_is_no_warning(there: Account, text: str) -> None:
    there.upload(f'region,data,hp.x\n{ONE},"{text}"\n')
    assert plan(INPUT)["warnings"] == []


def test_a_thousand_lines_with_the_same_oddity_are_one_warning(there: Account) -> None:
    there.upload("region,data,hp.a,hp.x\n" + "".join(f"{ONE},{number},nan\n" for number in range(1000)))
    assert [one.partition(": ")[0] for one in plan(INPUT)["warnings"]] == ["lines 2, 3, 4, 5, 6 and 995 more"]


def test_an_empty_cell_of_a_hyperparameter_sends_nothing_and_warns_of_nothing(there: Account) -> None:
    there.upload(f"region,data,kms_key,hp.x\n{ONE},,\n")
    assert plan(INPUT)["warnings"] == []
    assert "HyperParameters" not in there.lines()[0].request


def test_a_formulas_error_that_json_says_is_sent(there: Account) -> None:
    (found,) = planned(there, line(hyperparameters={"marker": "#REF!"}))
    assert found.request["HyperParameters"] == {"marker": "#REF!"}


def test_distribution_none_is_no_missing_value(there: Account) -> None:
    assert cell(there, "distribution", "none")["ResourceConfig"]["InstanceCount"] == 1


@pytest.mark.parametrize("comment", ["# N/A, for now", "#N/A lines follow", "#SKIP, later", "#!/usr/bin/env x", "#"])
def test_comments_stay_comments(there: Account, comment: str) -> None:
    assert [one.line for one in planned(there, f"{comment}\nregion,data\n{comment}\n{ONE}\n")] == [4]


@pytest.mark.parametrize("error", ["#REF!", "#N/A", "#NAME?", "#DIV/0!", "#BEZUG!", "#¡REF!", "#NV"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_line_whose_first_cell_is_an_error_is_no_comment(there: Account, error: str, separator: str) -> None:
    table = f"region,data\n{error},s3://data-eu/train/\n{ONE}\n".replace(",", separator)
    with pytest.raises(InvalidRequest, match="line 2: region: "):
        planned(there, table)


@pytest.mark.parametrize("row", [f"{ONE},1,2", "eu-central-1", f"{ONE},, ,x"])
def test_only_empty_cells_may_be_too_many(there: Account, row: str) -> None:
    with pytest.raises(InvalidRequest, match=r"line 2: has \d cells; allowed: 2"):
        planned(there, f"region,data\n{row}\n")
