"""The expression that guides and refusals propose reads every float that Python and its frameworks print, and nothing else."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from contract.metric_values import NUMBER, describe_value, describe_values, keep_values, write_expression

PRINTED = (
    "0.1234", "0.0", "1.0", "12", "-3", "100.0", "12345.678", "-0.25", "+0.25", ".5", "-.5", "5.", "-5.", "1e-05", "7.1e-05", "-7.1e-05",
    "1.e-05", "2.3026e+00", "1.0000e-04", "+1.0E+10", "1E5", "1e+20", "1e300", "4.9e-324", "0.30000000000000004", "1e22", "-1E-7", "007",
    "nan", "-nan", "NaN", "NAN", "inf", "-inf", "+inf", "Inf", "INF", "Infinity", "-Infinity", "infinity",
)  # fmt: skip
"""Numbers as Python, C, Java and JSON write them."""
AROUND = (
    "{}", "  {}", "tensor({})", "tensor([{}])", "tensor([[{}]])", "tensor({}, device='cuda:0', grad_fn=<NllLossBackward0>)",
    "tensor([{}, 9.0], dtype=torch.float64)", "np.float64({})", "np.float32({})", "numpy.float16({})", "array({})", "array([ {}])", "[{}]",
    "[ {} 9.0]", "({})", "({}, 9.0)", "'{}'", '"{}"', "Decimal('{}')", "tf.Tensor({}, shape=(), dtype=float32)",
    "<tf.Tensor: shape=(), dtype=float32, numpy={}>",
    "<tf.Tensor: shape=(1,), dtype=float32, numpy=array([{}], dtype=float32)>", "<tf.Tensor: shape=(), numpy=np.float32({})>",
    "<tf.Variable 'v:0' shape=() dtype=float32, numpy={}>",
    "Array({}, dtype=float32, weak_type=True)", "{},", "{}, 9.0", "{};", "{})", "{}]", "{}%", "{} %", "{}.", "{}. Next",
    "{} - acc: 9.0", "{}|9.0", "{}\t9.0", "{} (9.0)", "{}/9.0", "{}\x1b[0m", '{}"}}', "{}:", "{}!",
)  # fmt: skip
"""What stands around a number, the words before it left out."""
PROPOSED = re.compile(write_expression("loss"))


def read(line: str) -> str | None:
    """What the proposed expression reads, as text."""
    found = PROPOSED.search(line)
    return found[1] if found else None


def is_same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


@pytest.mark.parametrize("around", AROUND)
def test_every_printed_float_is_read_whole_whatever_stands_around_it(around: str) -> None:
    wrong = list[tuple[str, str | None]]()
    for number in PRINTED:
        line = f"epoch 3 loss={around.format(number)}"
        found = read(line)
        if found is None or not is_same(float(found), float(number)):
            wrong.append((line, found))
    assert wrong == []


@pytest.mark.parametrize("number", ["5", ".5", "0.5", "1e-05", "nan", "-inf"])
def test_a_bracket_right_behind_a_number_makes_no_call_of_it(number: str) -> None:
    assert read(f"loss={number}(9.0)") == number


@pytest.mark.parametrize("unit", ["s", "ms", "it/s", "e", "x", "k", "GB"])
def test_a_unit_at_a_number_is_no_part_of_it(unit: str) -> None:
    wrong = [
        one
        for one in PRINTED
        if one[-1] in "0123456789." and is_same(float(one), float(read(f"loss={one}{unit}") or "nan")) is False
    ]
    assert wrong == []


def test_the_table_has_a_hundred_floats_as_they_are_printed() -> None:
    assert len({around.format(number) for number in PRINTED for around in AROUND}) > 100


@pytest.mark.parametrize("words", ["loss: ", "loss = ", "'loss': ", '"loss": ', "loss ", "loss|", "Loss/train: "])
def test_it_is_put_behind_whatever_words_a_training_prints(words: str) -> None:
    found = re.search(words.replace("|", "[|]") + NUMBER, f"step 7 {words}-7.1e-05, lr: 0.1")
    assert found is not None
    assert float(found[1]) == -7.1e-05


@pytest.mark.parametrize("kind", [float, np.float32, np.float64, np.array])
def test_what_is_printed_here_is_read_here(kind: type) -> None:
    for exact in (0.1, -0.25, 7.1e-05, 1e-05, 1.5e20, 3.0, math.nan, math.inf, -math.inf, 1 / 3, 5e-324):
        value = kind(exact)
        for line in (
            f"loss={value}",
            f"loss={value!r}",
            f"{{'loss'={value!r}}}",
            f"loss={value:.4e}",
            f"loss={float(value):9.3f}",
        ):
            found = read(line.replace("'loss'", "loss"))
            assert found is not None, line
            assert math.isclose(float(found), float(value), rel_tol=1e-3, abs_tol=1e-3) or is_same(
                float(found), float(value)
            ), line


@pytest.mark.parametrize(
    "value",
    [
        "", "None", "N/A", "n/a 0.5", "-", "--", ".", "e5", "x0.5", "None epoch=3", "info 5", "nano 5", "\x1b[32m0.5\x1b[0m", "tensor([])",
        "tensor([], size=(0,))", "CrossEntropyLoss()", "<function mean at 0x7f>", "- 0.5", ", 0.5", "abc(x5)", "True", "torch.Size([])",
    ],
)  # fmt: skip
def test_where_no_number_follows_the_words_no_later_one_is_taken_for_it(value: str) -> None:
    text = read(f"loss={value} acc=9.0")
    with pytest.raises(ValueError, match="could not convert"):
        float(text or "nothing")


@pytest.mark.parametrize("value", ["1,234.5", "12,345,678", "0,5", "1,000"])
def test_a_number_with_commas_is_no_float_and_never_its_first_digits(value: str) -> None:
    assert read(f"loss={value} acc=9.0") == value


def test_digits_that_python_groups_are_one_number() -> None:
    assert float(read("loss=1_000.5") or "") == 1000.5


def test_json_csv_and_python_have_the_same_text_of_it_in_half_of_what_sagemaker_takes() -> None:
    assert not set(NUMBER) & set("\\\"'\n")
    assert len(NUMBER) < 250
    assert not re.search(r"\(\?[^:]", NUMBER), "nothing but what every engine knows"


@pytest.mark.parametrize("metric", ["acc@1", "f1(macro)", "val:loss", "a.b", "[x]", "a|b", "a\\b", "top-1", "mean^2$"])
def test_the_expression_for_a_metric_finds_it_by_its_name(metric: str) -> None:
    found = re.search(write_expression(metric), f"x {metric}=0.5")
    assert found is not None
    assert found[1] == "0.5"


@pytest.mark.parametrize(("value", "said"), [(math.nan, "nan"), (math.inf, "inf"), (-math.inf, "-inf")])
def test_a_last_value_that_is_not_finite_says_so(value: float, said: str) -> None:
    assert describe_value(value) == f"its last value is {said}"
    assert describe_values({"loss": value, "acc": 0.5}) == {"loss": f"its last value is {said}"}
    assert keep_values({"loss": value, "acc": 0.5}) == {"acc": 0.5}


@pytest.mark.parametrize("value", [0.0, -0.0, 1e300, -1e300, -5.0])
def test_a_finite_value_needs_no_reason(value: float) -> None:
    assert describe_value(value) == ""
