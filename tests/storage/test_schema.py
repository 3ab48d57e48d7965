"""Whatever is edited in ``cptuning.json``: the model loads, or one sentence says why not."""

import json
import shutil
import time
from copy import deepcopy
from dataclasses import fields
from pathlib import Path

import pytest

import cptuning
from cptuning import list_methods
from cptuning.errors import CPTuningError
from cptuning.methods.all_settings import SETTINGS
from cptuning.methods.ranking_settings import RankingSettings
from cptuning.registry import classifier_class
from cptuning.storage import FACTS_FILE, OF_ONE_MACHINE, ModelFacts, read_facts

STORED = Path(__file__).parent / "format_1"
ODD_VALUES = [
    None,
    True,
    -1,
    0,
    2**70,
    1e308,
    1e-320,
    "",
    "a text\nof two lines" * 1000,
    [],
    [[]],
    {},
    {"a": {"b": 1}},
]
REMOVED = object()


def places(value, path=()):
    """The path of every value inside a JSON value, leaves and the objects that hold them."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        items = enumerate(value)
    for key, inner in items:
        yield from places(inner, (*path, key))


def edited(facts, path, value):
    facts = deepcopy(facts)
    holder = facts
    for key in path[:-1]:
        holder = holder[key]
    if value is REMOVED:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return facts


@pytest.fixture(scope="module", params=["cp-tuning", "lm-bff-l"])
def folder(request, tmp_path_factory):
    """A small model, written today."""
    folder = tmp_path_factory.mktemp("schema") / "model"
    cptuning.load(STORED / request.param).save(folder)
    return folder


def test_every_edited_value_is_fine_or_one_sentence(folder, tmp_path):
    """Of some thousand folders those that can still be read are loaded, and answer."""
    model = shutil.copytree(folder, tmp_path / "model")
    facts = json.loads((folder / FACTS_FILE).read_text())
    count, slowest = 0, 0.0
    for path in places(facts):
        for value in [*ODD_VALUES, REMOVED]:
            (model / FACTS_FILE).write_text(json.dumps(edited(facts, path, value)))
            began = time.monotonic()
            try:
                read_facts(model)
                if path[0] not in ("training", "versions"):  # These are only told.
                    cptuning.load(model).predict(["a great film"])
            except CPTuningError as error:
                said = str(error)
                assert "\n" not in said, (path, value)
                assert len(said) < 1000, (path, value)
                assert str(model) in said, (path, value)
            slowest = max(slowest, time.monotonic() - began)
            count += 1
    assert count > 500
    assert slowest < 10


@pytest.mark.parametrize("name", ["features", "inference", "k", "index", "loss", "selection"])
@pytest.mark.parametrize("value", ["other", 0, None, ["knn"]])
def test_settings_that_cannot_be_are_refused(tmp_path, name, value):
    model = shutil.copytree(STORED / "cp-tuning", tmp_path / "model")
    facts = json.loads((model / FACTS_FILE).read_text())
    facts["settings"][name] = value
    (model / FACTS_FILE).write_text(json.dumps(facts))
    with pytest.raises(CPTuningError, match=f"its settings can't be: .*{name} is"):
        cptuning.load(model)


@pytest.mark.parametrize("name", sorted(OF_ONE_MACHINE))
def test_a_folder_cannot_choose_for_whoever_runs_it(tmp_path, name):
    assert {"checkpoint_dir", "callbacks", "device", "verbose"} <= OF_ONE_MACHINE
    model = shutil.copytree(STORED / "cp-tuning", tmp_path / "model")
    facts = json.loads((model / FACTS_FILE).read_text())
    facts["parameters"][name] = str(tmp_path)
    (model / FACTS_FILE).write_text(json.dumps(facts))
    with pytest.raises(CPTuningError, match=f"it sets the parameter {name}"):
        cptuning.load(model)


def test_facts_are_the_same_after_a_trip_through_json(folder):
    facts = read_facts(folder)
    again = ModelFacts.from_json(json.loads(json.dumps(facts.to_json())))
    assert again == facts
    assert {field.name for field in fields(facts.settings)} == set(facts.to_json()["settings"])


def test_the_settings_of_every_method_are_known():
    known = {m: classifier_class(m).settings_class for m in list_methods()}
    assert known | {"ranking": RankingSettings} == SETTINGS
