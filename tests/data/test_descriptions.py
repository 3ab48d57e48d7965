"""Names and descriptions of labels, as users give them and as files hold them."""

import json

import numpy as np
import pytest

from cptuning.data import as_descriptions, read_descriptions
from cptuning.errors import CPTuningError


def told(given, labels=()):
    found = as_descriptions(given, labels)
    return list(zip(found.labels, found.examples.first, strict=True))


@pytest.mark.parametrize("given", [None, False])
def test_nothing_given_is_no_description(given):
    assert as_descriptions(given, ["a"]) is None


def test_a_dictionary_has_one_text_or_several_for_a_label():
    assert told({"b": "bees", "a": ["ants", "apes"]}) == [
        ("b", "bees"),
        ("a", "ants"),
        ("a", "apes"),
    ]


@pytest.mark.parametrize("given", [True, "names"])
def test_names_are_those_of_the_examples_each_once(given):
    assert told(given, ["cardLost", "top_up", "cardLost"]) == [
        ("cardLost", "card lost"),
        ("top_up", "top up"),
    ]


def test_a_list_of_labels_stands_for_their_names():
    assert told(np.array(["play_music", "café-menu"])) == [
        ("play_music", "play music"),
        ("café-menu", "café menu"),
    ]


def test_labels_are_spelled_as_those_of_the_examples():
    # The keys of a JSON object are strings.
    assert told({"1": "one star"}, [0, 1]) == [(1, "one star")]


@pytest.mark.parametrize(
    ("given", "labels", "sentence"),
    [
        ({"a": ""}, [], "The description of the label 'a' is empty: write a few words"),
        ({"a": "  "}, [], "The description of the label 'a' is empty"),
        ({"a": []}, [], "The description of the label 'a' is empty"),
        ({"a": None}, [], "The description of the label 'a' is missing"),
        ({"a": ["x", 3]}, [], r"The description of the label 'a' is a number \(int\), not a text"),
        ({}, [], "label_descriptions is empty: describe some labels, or leave it out"),
        ("a text", [], "label_descriptions is 'a text': give a dictionary"),
        (3, [], "label_descriptions is 3: give a dictionary"),
        (True, [], "There are no examples to take the names of labels from"),
        (True, [1, 2], "The name of the label 1 says nothing: describe it in words"),
        (["a", ["b"]], [], "The label in row 2 is of type list"),
    ],
)
def test_what_describes_nothing_is_refused_in_one_sentence(given, labels, sentence):
    with pytest.raises(CPTuningError, match=sentence):
        as_descriptions(given, labels)


def test_a_json_file_holds_descriptions_or_labels(tmp_path):
    path = tmp_path / "labels.json"
    for stored in ({"a": "ants", "b": ["bees", "bears"]}, ["a_b", "c"]):
        path.write_text(json.dumps(stored), "utf-8")
        assert read_descriptions(path) == stored


def test_a_table_may_describe_a_label_in_several_rows(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("label,description\na,ants\nb,bees\na,apes\n", "utf-8")
    assert read_descriptions(path) == {"a": ["ants", "apes"], "b": ["bees"]}


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.json", "[1", "a.json can't be read as JSON"),
        ("a.json", "3", "a.json holds neither an object from labels to descriptions nor a list"),
        ("a.csv", "label,description\na,\n", "a.csv, line 2: the description of 'a' is empty"),
        ("a.csv", "label,text\na,b\n", "a.csv has no column 'description'"),
    ],
)
def test_a_file_that_describes_nothing_is_refused(tmp_path, name, content, sentence):
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(CPTuningError, match=sentence):
        read_descriptions(tmp_path / name)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CPTuningError, match=r"no\.json can't be read as JSON: No such file"):
        read_descriptions(tmp_path / "no.json")
