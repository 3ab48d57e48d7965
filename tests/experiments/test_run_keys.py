"""Keys: what tells one run from another, and what must not."""

import csv
import json

import pytest
from tests.experiments.conftest import keys_of

from cptuning.experiments import run_keys
from cptuning.experiments.run_keys import (
    AddedSetting,
    RenamedSetting,
    RenamedValue,
    current_form,
    first_form,
    key_of,
)

OLD = {"method": "lm-bff-l", "settings": {"words_a_class": 50, "selection": "one-error", "k": 3}}
NEW = {
    "method": "lm-bff-l",
    "settings": {"words_per_class": 50, "selection": "one-standard-error", "k": 3},
}


def changed(**settings):
    return NEW | {"settings": NEW["settings"] | settings}


def test_renamed_settings_and_values_have_the_key_that_they_had():
    assert key_of(NEW) == key_of(OLD)
    assert current_form(OLD["settings"]) == NEW["settings"]
    assert current_form(NEW["settings"]) == NEW["settings"]


@pytest.mark.parametrize(
    "other",
    [
        changed(words_per_class=100),
        changed(selection="best"),
        changed(k=5),
        changed(pooling="mean"),  # a setting that nothing says is neutral
        NEW | {"method": "lm-bff-tl"},
    ],
)
def test_another_setting_has_another_key(other):
    assert key_of(other) != key_of(NEW)


def test_the_order_of_the_entries_does_not_matter():
    shuffled = dict(reversed(NEW["settings"].items()))
    assert key_of({"settings": shuffled, "method": "lm-bff-l"}) == key_of(NEW)


def test_an_added_setting_changes_the_key_unless_it_is_neutral(monkeypatch):
    monkeypatch.setattr(
        run_keys, "CHANGES", (*run_keys.CHANGES, AddedSetting("pooling", neutral="mask"))
    )
    before = key_of(OLD)
    assert key_of(changed(pooling="mask")) == before
    assert key_of(changed(pooling="mean")) != before


def test_changes_may_follow_each_other(monkeypatch):
    changes = (
        RenamedSetting("a", "b"),
        AddedSetting("views", neutral=1),
        RenamedValue("b", "x", "y"),
        RenamedSetting("b", "c"),
        RenamedSetting("views", "n_views"),
        RenamedValue("c", "y", "z"),
    )
    monkeypatch.setattr(run_keys, "CHANGES", changes)
    assert first_form({"c": "z", "n_views": 1}) == {"a": "x"}
    assert first_form({"c": "z", "n_views": 2}) == {"a": "x", "views": 2}
    for of_any_age in ({"a": "x"}, {"b": "x"}, {"b": "y"}, {"c": "y"}, {"c": "z"}):
        assert current_form(of_any_age) == {"c": "z"}


def test_a_sweep_continues_in_a_directory_from_before_the_changes(run, request_for, monkeypatch):
    monkeypatch.setattr(
        run_keys, "CHANGES", (RenamedSetting("edge", "margin"), AddedSetting("k", neutral=3))
    )
    _, files = run(methods=("cp-tuning",))
    folder, report = request_for().output, files["main.csv"].read_text()
    stored = {path: json.loads(path.read_text()) for path in (folder / "runs").iterdir()}
    for path, record in stored.items():  # As the version before the changes wrote them.
        configuration = record["configuration"]
        configuration["settings"] = first_form(configuration["settings"])
        assert configuration["settings"]["edge"] == 0.3
        assert "k" not in configuration["settings"]
        path.write_text(json.dumps(record))
    _, files = run(methods=("cp-tuning",))
    assert {path: json.loads(path.read_text()) for path in (folder / "runs").iterdir()} == stored
    texts = (report, files["main.csv"].read_text())
    before, after = (list(csv.DictReader(text.splitlines())) for text in texts)
    assert after == [row | {"k": ""} for row in before]
    run(methods=("cp-tuning",), steps=2)  # A setting that truly differs.
    assert len(keys_of(folder)) == 2 * len(stored)
