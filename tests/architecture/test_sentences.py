"""A few rules that every sentence of the product keeps; whether it is a good one a reader has to say."""

from __future__ import annotations

import re

import pytest

from tests.architecture.sources import ROOT, name, named_files, python_files, source

SCRIPTS = sorted(file for place in ("image_builder", "node", "tools") for file in (ROOT / place).rglob("*.sh"))
SETTINGS = ROOT / "cdk.json"
READ = named_files()
PERSONS = re.compile(r"\b(any|no|some)body\b", re.IGNORECASE)
"""A sentence names who does something: a person, a function, a node, a call."""
RULES = {
    "a word that is doubled": re.compile(r"\b([a-z]+) \1\b"),
    "a before a vowel": re.compile(r"\ba (?!and\b|one\b)[aeio][a-z]+\b"),
    "an before a consonant": re.compile(r"\ban (?!ml\b)[bcdfgjklmnpqrstvwz][a-z]+\b"),
    "a number with less": re.compile(r"\bless (lines|nodes|instances|regions|hours|files)\b"),
    "a thing that does not stand": re.compile(r"\bdo(es)? not stand\b"),
    "a plan that stands": re.compile(r"\b(plan|reservation) stands\b"),
    "a thing that says nothing to another": re.compile(r"\bsays nothing to\b"),
    "a thing that is none": re.compile(r"\bthat (is|are) none\b"),
    "a thing that there is not": re.compile(r"\bthat there is not\b"),
    "a thing that is in no place": re.compile(r"\bis in no (bucket|place|registry|repository)\b"),
    "resources that are known": re.compile(r"\bknows? no resources?\b"),
}


def wrong(text: str) -> list[str]:
    """The rules that a text breaks."""
    return [rule for rule, pattern in RULES.items() if pattern.search(text)]


def test_every_sentence_keeps_the_rules() -> None:
    found = {f"{name(file)}:{line}": wrong(text) for file in READ for line, text in source(file).texts}
    assert {place: rules for place, rules in found.items() if rules} == {}


def test_nobody_and_somebody_do_nothing() -> None:
    lines = [
        f"{name(file)}:{number}"
        for file in [*READ, *SCRIPTS, SETTINGS]
        for number, line in enumerate(file.read_text().splitlines(), start=1)
        if PERSONS.search(line)
    ]
    assert lines == []


@pytest.mark.parametrize(
    "text",
    [
        "how old it is is not known",
        "a object",
        "an number",
        "less lines",
        "it does not stand in eu-central-1",
        "until the plan stands",
        "max_wait_hours: says nothing to the market on-demand",
        "has a tag that is none",
        "Describe calls know no resources",
        "a field that there is not",
        "s3://elsewhere/a.zip is in no bucket that jobs may read",
    ],
)
def test_a_bad_sentence_would_be_seen(text: str) -> None:
    assert wrong(text)


@pytest.mark.parametrize("text", ["there is none", "The image stands in every region", "a one-node job", "an hour"])
def test_a_good_sentence_passes(text: str) -> None:
    assert wrong(text) == []


def test_there_are_sentences_to_read() -> None:
    assert len(python_files("lambda")) > 100
