"""Answers the words that other tools have for a parameter of a search: Optuna, Ray Tune, hyperopt, SageMaker, Katib, W&B's sweeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from refusals.synonyms import find_near, normalise

FLOAT, INT, CHOICE = '{"float": [low, high]}', '{"int": [low, high]}', '{"choice": [values]}'
LOG, STEP, ENDS = '"log": true', '"step": step', "the two numbers of float or int"
ANY = "float, int or choice"
OWN = ("float", "int", "choice", "log", "step")
VERY_ALIKE = 0.9
"""The least likeness to one of many words: `optional` is no option."""
FORMS = {
    FLOAT: "float uniform real double continuous number suggest_float suggest_uniform float_distribution uniform_distribution "
    "uniform_float float_uniform float_range float_parameter continuous_parameter continuous_parameter_range continuous_parameter_ranges "
    "double_value_spec uniform_float_hyperparameter normal randn gaussian",
    INT: "int integer long suggest_int int_distribution int_range int_uniform int_uniform_distribution randint uniformint uniform_int "
    "uniform_integer int_parameter integer_parameter integer_parameter_range integer_parameter_ranges integer_value_spec "
    "uniform_integer_hyperparameter",
    CHOICE: "choice choices choose categorical categories category option options enum discrete values list set items grid grid_search "
    "sample_from pchoice suggest_categorical categorical_distribution categorical_parameter categorical_parameter_range "
    "categorical_parameter_ranges categorical_value_spec discrete_value_spec categorical_hyperparameter ordinal ordinal_hyperparameter "
    "bool boolean str string one_of oneof any_of anyof selection",
    f"{FLOAT[:-1]}, {LOG}}}": "loguniform log_uniform log_uniform_values suggest_loguniform log_uniform_distribution "
    "reverse_log_uniform inv_log_uniform_values log_float lognormal log_normal logspace",
    f"{INT[:-1]}, {LOG}}}": "lograndint log_randint int_log_uniform int_log_uniform_distribution log_int log_integer",
    f"{FLOAT[:-1]}, {STEP}}}": "quniform q_uniform suggest_discrete_uniform discrete_uniform discrete_uniform_distribution qnormal qrandn",
    f"{INT[:-1]}, {STEP}}}": "qrandint q_randint quniformint quniform_int",
    LOG: "log logarithmic log_scale logscale log10 log2 log_base base scaling_type scaling scale is_log use_log log_sampling prior "
    "unit_log_scale reverse_logarithmic reverse_log_scale",
    'a range without "log"': "linear auto unit_linear_scale",
    STEP: "step steps q quant quantization quantum quantize step_size stepsize increment resolution granularity precision",
    ENDS: "low high lo hi lower upper lowest highest min max minimum maximum min_value max_value minimum_value maximum_value bound "
    "bounds lower_bound upper_bound lower_limit upper_limit range interval domain start stop begin end from to feasible_space span",
    "template.hyperparameters": "constant const fixed value",
    "begin_with": "default default_value initial initial_value init init_to guess",
}
"""What a person writes here to the words of other tools for it."""
MEANT = {word: form for form, words in FORMS.items() for word in words.split()}
OF_TYPES = "type dtype kind space dist distribution parameter_type param_type value_type sampling_strategy scaling_type scaling scale prior"
TYPES = frozenset(OF_TYPES.split())
"""Words whose value is a word itself, which says more."""
OF_CONDITIONS = (
    "if when unless only_if condition conditions conditional conditional_on parent parents parent_name parent_value parent_values "
    "parent_parameter child children active active_if active_when depends depend depends_on dependency dependencies requires forbidden "
    "conditional_parameters conditional_parameter_specs equals_condition in_condition and_conjunction or_conjunction"
)
CONDITIONAL = frozenset(OF_CONDITIONS.split())
"""Words for a parameter that is there beside certain values of others alone."""


def is_conditional(word: str) -> bool:
    """Whether other tools mean a condition by the word."""
    return _simplify(word) in CONDITIONAL


def suggest_form(word: str, value: Any) -> str:
    """Returns a hint in parentheses, with a space before it: what a field that there is not means here. Empty where nothing is near."""
    name = _simplify(word)
    if name in TYPES:
        return _hint((_find(value) if isinstance(value, str) else "") or MEANT.get(name, ANY))
    if name == "feasible_space" and isinstance(value, Mapping) and "list" in value:
        return _hint(CHOICE)
    return _hint(ANY if name == "value" and isinstance(value, list) else _find(word))


def suggest_parameter(name: str, value: Any) -> str:
    """Returns such a hint for what stands in the place of a parameter's object: a call, a word, a list or one value."""
    if isinstance(value, str) and (found := _find(value)):
        return _hint(found)
    if isinstance(value, list):
        several = any(isinstance(one, Mapping) for one in value)
        return _hint(f"{_find(name) or 'an object'} under the name of each hyperparameter" if several else CHOICE)
    return " (one value belongs in template.hyperparameters)" if isinstance(value, str | bool | int | float) else ""


def _find(word: str) -> str:
    """Returns what is meant by a word, or by a call of a function, as in tune.uniform(0, 1); empty for none."""
    name = _simplify(word.partition("(")[0])
    return MEANT.get(name) or MEANT.get(find_near(name, OWN) or find_near(name, MEANT, VERY_ALIKE), "")


def _simplify(word: str) -> str:
    return normalise(word.strip().rpartition(".")[2]).strip("_")


def _hint(form: str) -> str:
    return f" (did you mean {form}?)" if form else ""
